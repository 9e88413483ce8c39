package web

import (
	"errors"
	"io"
	"mime"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/aster-mesh/aster/protocol"
)

var hexSHA256 = regexp.MustCompile(`^[0-9a-f]{64}$`)

func (s *Server) putBlob(w http.ResponseWriter, r *http.Request, _ Standing) {
	p := params{r: r}
	want := r.PathValue("sha256")
	if want == "" {
		want = p.text("sha256")
	}
	if want != "" && !hexSHA256.MatchString(want) {
		s.fail(w, r, protocol.Refuse(protocol.CodeBadFrame, "sha256 is 64 hex digits in lower case", ""))
		return
	}
	ref := protocol.BlobRef{SHA256: want, Name: p.text("name"), Mime: p.text("mime")}
	if given := r.Header.Get("Content-Range"); given != "" {
		s.putPart(w, r, ref, given)
		return
	}
	got, err := s.backend.PutBlob(r.Context(), paced(w, r.Body), want)
	got.Name, got.Mime = ref.Name, ref.Mime
	s.answer(w, r, got, err)
}

// putPart takes a piece of content, so that who was cut off goes on where it was.
func (s *Server) putPart(w http.ResponseWriter, r *http.Request, ref protocol.BlobRef, given string) {
	from, to, total, err := parseContentRange(given)
	if err == nil && ref.SHA256 == "" {
		err = errors.New("a piece needs the hash of the whole in its address")
	}
	if length := to - from; err == nil && r.ContentLength >= 0 && r.ContentLength != length {
		err = errors.New("the body has another length than Content-Range says")
	}
	if err != nil {
		s.fail(w, r, protocol.Refuse(protocol.CodeBadFrame, err.Error(), ""))
		return
	}
	got, err := s.backend.PutPart(r.Context(), ref.SHA256, from, total, io.LimitReader(paced(w, r.Body), to-from))
	switch {
	case err != nil:
		s.fail(w, r, err)
	case got.Complete:
		ref.Bytes = total
		writeJSON(w, http.StatusOK, ref)
	default:
		writeJSON(w, http.StatusAccepted, got)
	}
}

// parseContentRange reads "bytes FROM-LAST/TOTAL", or "bytes */TOTAL" for no bytes at all. to is behind the last.
func parseContentRange(s string) (from, to, total int64, err error) {
	bad := errors.New("the Content-Range is bytes FROM-LAST/TOTAL, or bytes */TOTAL")
	rest, ok := strings.CutPrefix(s, "bytes ")
	span, size, slash := strings.Cut(rest, "/")
	if total, err = number(size); !ok || !slash || err != nil {
		return 0, 0, 0, bad
	}
	if span == "*" {
		return 0, 0, total, nil
	}
	first, last, dash := strings.Cut(span, "-")
	from, err1 := number(first)
	to, err2 := number(last)
	if !dash || err1 != nil || err2 != nil || from > to || to >= total {
		return 0, 0, 0, bad
	}
	return from, to + 1, total, nil
}

// number reads digits alone: no sign, and nothing near the end of what an int64 holds.
func number(s string) (int64, error) {
	if s == "" || len(s) > 15 || strings.Trim(s, "0123456789") != "" {
		return 0, errors.New("not a number")
	}
	return strconv.ParseInt(s, 10, 64)
}

// attachment gives away what a message names.
func (s *Server) attachment(w http.ResponseWriter, r *http.Request, _ Standing) {
	sum := r.PathValue("sha256")
	if !hexSHA256.MatchString(sum) {
		s.fail(w, r, protocol.Refuse(protocol.CodeUnknownID, "there is no such attachment", ""))
		return
	}
	content, ref, err := s.backend.Attachment(r.Context(), r.PathValue("id"), sum)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	defer content.Close()
	serveContent(w, r, content, sum, ref.Name)
}

func (s *Server) blob(w http.ResponseWriter, r *http.Request, _ Standing) {
	sum := r.PathValue("sha256")
	if !hexSHA256.MatchString(sum) {
		s.fail(w, r, protocol.Refuse(protocol.CodeUnknownID, "there is no such attachment", ""))
		return
	}
	content, _, err := s.backend.OpenBlob(r.Context(), sum)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	defer content.Close()
	serveContent(w, r, content, sum, "")
}

// serveContent gives content away as bytes to save, never as something that a browser shows or runs: no type but bytes, a
// policy that lets nothing in it load, run or be framed, and a name without what a file system could take for more.
func serveContent(w http.ResponseWriter, r *http.Request, content io.ReadSeeker, sum, name string) {
	if name = fileName(name); name == "" {
		name = sum[:12] + ".bin"
	}
	h := w.Header()
	h.Set("Content-Security-Policy", "sandbox; default-src 'none'; frame-ancestors 'none'")
	h.Set("Content-Type", "application/octet-stream")
	h.Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": name}))
	h.Set("ETag", `"`+sum+`"`)
	http.ServeContent(w, r, "", time.Time{}, content)
}

// fileName is what of a sender's name for a file can be offered as one: its last part, without what cannot be seen.
func fileName(name string) string {
	name = name[strings.LastIndexAny(name, `/\:`)+1:]
	name = strings.Map(func(r rune) rune {
		if !unicode.IsGraphic(r) || unicode.Is(unicode.Cf, r) || strings.ContainsRune(`"<>|?*%;`, r) {
			return -1
		}
		return r
	}, name)
	return protocol.CutText(strings.Trim(name, " ."), 120)
}
