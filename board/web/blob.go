package web

import (
	"net/http"
	"regexp"
	"time"

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
	ref, err := s.backend.PutBlob(r.Context(), paced(w, r.Body), want)
	ref.Name, ref.Mime = p.text("name"), p.text("mime")
	s.answer(w, r, ref, err)
}

// blob gives content away as bytes to save, never as something that a browser shows or runs.
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
	h := w.Header()
	h.Set("Content-Type", "application/octet-stream")
	h.Set("Content-Disposition", `attachment; filename="`+sum[:12]+`.bin"`)
	h.Set("ETag", `"`+sum+`"`)
	http.ServeContent(w, r, "", time.Time{}, content)
}
