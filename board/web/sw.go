package web

import "net/http"

// serviceWorker is the one script outside /static, since a service worker rules only what lies below it. It holds nothing of
// anybody; without a session it is refused like any other file of the page.
func (s *Server) serviceWorker(w http.ResponseWriter, r *http.Request, _ Standing) {
	s.serveFile(w, r, "sw.js", http.StatusOK)
}
