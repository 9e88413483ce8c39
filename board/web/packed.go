package web

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"net/http"
)

// packedFrom is where packing begins to pay.
const packedFrom = 2 << 10

// answerPacked is answer for bodies that may be large. Nothing in them is secret from who asked, and no other site can
// make a browser ask, so their packed length tells nobody anything.
func (s *Server) answerPacked(w http.ResponseWriter, r *http.Request, body any, err error) {
	if err != nil {
		s.fail(w, r, err)
		return
	}
	raw, err := json.Marshal(body)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.Header().Set("Vary", "Accept-Encoding")
	if len(raw) >= packedFrom && headerHas(r.Header, "Accept-Encoding", "gzip") {
		w.Header().Set("Content-Encoding", "gzip")
		raw = packed(raw, gzip.BestSpeed)
	}
	_, _ = w.Write(raw) // who went away hears nothing
}

func packed(raw []byte, level int) []byte {
	var out bytes.Buffer
	z, err := gzip.NewWriterLevel(&out, level)
	if err != nil {
		panic("web: a level that gzip does not know") // both callers name a constant
	}
	_, _ = z.Write(raw) // into memory
	_ = z.Close()
	return out.Bytes()
}
