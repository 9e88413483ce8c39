package web

import (
	"net/http"

	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/api"
)

// watchedRows are what machines ask that watch over the node.
func (s *Server) watchedRows() []route {
	return []route{
		{method: "GET", path: "/healthz", who: anyone, handle: s.healthz, fresh: true},
		{method: "GET", path: "/readyz", who: anyone, handle: s.readyz, fresh: true},
		{method: "GET", path: "/metrics", who: signedIn, handle: s.metrics},
	}
}

// healthz: the process lives and its loop answers. A service manager may start anew what does not.
func (s *Server) healthz(w http.ResponseWriter, r *http.Request, _ Standing) {
	s.stands(w, r, func(l api.Layer) bool { return l.Name == "loop" })
}

// readyz: the node serves and takes what it is given: it was ready once, its disk can be written, nothing else fences it.
func (s *Server) readyz(w http.ResponseWriter, r *http.Request, _ Standing) {
	s.stands(w, r, func(l api.Layer) bool { return l.Name == "loop" || l.Name == "disk" || l.Name == "ready" })
}

// stands answers ok if all layers that count are. To somebody without a credential it names the first that is not, and no more.
func (s *Server) stands(w http.ResponseWriter, r *http.Request, counts func(api.Layer) bool) {
	for _, l := range s.backend.Layers(r.Context()) {
		if counts(l) && !l.OK {
			refuse(w, protocol.Refuse(codeNotReady, "not well: %s", "aster status", l.Name))
			return
		}
	}
	writeText(w, "ok\n")
}

func (s *Server) layers(w http.ResponseWriter, r *http.Request, _ Standing) {
	s.answer(w, r, map[string]any{"layers": list(s.backend.Layers(r.Context()))}, nil)
}

func (s *Server) metrics(w http.ResponseWriter, r *http.Request, _ Standing) {
	s.backend.ServeMetrics(w, r)
}
