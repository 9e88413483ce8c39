package web

import (
	"bytes"
	"net/http"
	"strings"
	"time"
)

// stateMissing is what the contract answers before there is a state document.
const stateMissing = `{"error":"no state.json yet"}`

func (s *Server) state(w http.ResponseWriter, r *http.Request, _ Standing) {
	doc, err := s.backend.State(r.Context())
	if err != nil {
		s.fail(w, r, err)
		return
	}
	if doc == nil {
		doc = []byte(stateMissing)
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	_, _ = w.Write(doc)
}

// stateEvents sends the state document at once and after each change, and a ping every 20 s (wire 1.1).
func (s *Server) stateEvents(w http.ResponseWriter, r *http.Request, _ Standing) {
	last, err := s.backend.State(r.Context())
	if err != nil {
		s.fail(w, r, err)
		return
	}
	out := s.startStream(w, "text/event-stream")
	defer out.end()
	if last != nil && out.write(stateEvent(last)) != nil {
		return
	}
	looks, pings := time.NewTicker(s.stateEvery), time.NewTicker(20*time.Second)
	defer looks.Stop()
	defer pings.Stop()
	for {
		select {
		case <-r.Context().Done():
			return
		case <-pings.C:
			if out.write(": ping\n\n") != nil {
				return
			}
		case <-looks.C:
			doc, err := s.backend.State(r.Context())
			if err != nil || doc == nil || bytes.Equal(doc, last) {
				continue
			}
			last = doc
			if out.write(stateEvent(doc)) != nil {
				return
			}
		}
	}
}

func stateEvent(doc []byte) string {
	flat := strings.NewReplacer("\r\n", " ", "\n", " ", "\r", " ").Replace(string(doc))
	return "event: state\ndata: " + flat + "\n\n"
}
