package web

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
	"time"

	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/api"
)

// export gives a thread as a file: Markdown for people, or JSON lines, a message as GET /messages/{id} gives it in each. It is
// written message by message, each read whole; one that cannot be read any more is named as such.
func (s *Server) export(w http.ResponseWriter, r *http.Request, _ Standing) {
	p := params{r: r}
	until, as := int64(p.number("until")), p.text("as")
	if as == "" {
		as = "md"
	}
	write, ok := exports[as]
	if !ok {
		p.refuse("as is md or jsonl")
	}
	if p.err != nil {
		s.fail(w, r, p.err)
		return
	}
	thread, err := s.backend.Thread(r.Context(), r.PathValue("id"), until)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	name := "thread"
	if len(thread.Messages) > 0 {
		name += "-" + thread.Messages[0].Short
	}
	w.Header().Set("Content-Security-Policy", "sandbox; default-src 'none'; frame-ancestors 'none'")
	w.Header().Set("Content-Type", write.kind)
	w.Header().Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": fileName(name + "." + as)}))
	for i := range thread.Messages {
		m := thread.Messages[i]
		whole, err := s.backend.Message(r.Context(), string(m.Envelope.ID))
		if err == nil && whole.Pos == m.Pos {
			m.Envelope, m.Text = whole.Envelope, whole.Text
		}
		if write.one(w, &m, i) != nil {
			return // who asked went away
		}
	}
	if thread.Cut {
		_ = write.cut(w)
	}
}

var exports = map[string]struct {
	kind string
	one  func(w io.Writer, m *api.Message, i int) error
	cut  func(w io.Writer) error
}{
	"md": {"text/markdown; charset=utf-8", markdownOne, func(w io.Writer) error {
		_, err := io.WriteString(w, "\nThere is more of this thread than is exported at once.\n")
		return err
	}},
	"jsonl": {"application/jsonl; charset=utf-8", func(w io.Writer, m *api.Message, _ int) error { return json.NewEncoder(w).Encode(m) }, func(w io.Writer) error {
		_, err := io.WriteString(w, `{"cut":true}`+"\n")
		return err
	}},
}

// markdownOne writes a message: who said what to whom and when, and its words as they are, in a fence that they cannot close.
func markdownOne(w io.Writer, m *api.Message, i int) error {
	e := &m.Envelope
	from, to := string(e.From), string(e.To)
	if from == "" {
		from = "person at " + m.NodeName
	}
	if to == "" {
		if to = "everybody"; e.Room != "" {
			to = "#" + string(e.Room)
		}
	}
	lead := "\n"
	if i == 0 {
		lead = ""
	}
	words := e.Text(markdownBytes)
	if words == "" {
		words = m.Text
	}
	fence := "```"
	for strings.Contains(words, fence) {
		fence += "`"
	}
	_, err := fmt.Fprintf(w, "%s## %s → %s\n\n%s · %s · %s", lead, inLine(from), inLine(to), inLine(string(e.Intent)), time.UnixMilli(m.At).UTC().Format(time.RFC3339), inLine(m.Short))
	if err == nil && e.Re != "" {
		_, err = fmt.Fprintf(w, " · answers %s", inLine(string(e.Re)))
	}
	if no := refusedAs(m.Tiers); err == nil && no != "" {
		_, err = fmt.Fprintf(w, " · refused: %s", inLine(no))
	}
	if err == nil && words != "" {
		_, err = fmt.Fprintf(w, "\n\n%s\n%s\n%s", fence, words, fence)
	}
	for _, b := range e.AllBlobs() {
		if err == nil {
			_, err = fmt.Fprintf(w, "\n\nattached: %s, %d bytes, sha256 %s", inLine(b.Name), b.Bytes, inLine(b.SHA256))
		}
	}
	if err == nil {
		_, err = io.WriteString(w, "\n")
	}
	return err
}

// refusedAs is why a message was refused that nobody has dealt with: the code; "": it was not.
func refusedAs(tiers []api.TierAt) (code string) {
	for _, t := range tiers {
		switch t.Tier {
		case protocol.Processed:
			return ""
		case protocol.Refused:
			code = cmp.Or(t.Reason, "by "+string(t.Agent))
		}
	}
	return code
}

// inLine is a foreign word within a line of Markdown: of letters of no meaning there, and of one line.
func inLine(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r < ' ' || r == 0x7f || r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069:
			return -1
		case strings.ContainsRune("\\`*_[]<>#|!&", r):
			return '\''
		}
		return r
	}, protocol.CutText(s, 200))
}
