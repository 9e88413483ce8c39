package web

import (
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"fmt"
	"io/fs"
	"net/http"
	"path"
	"strings"
	"sync"
)

//go:embed static
var static embed.FS

type asset struct {
	body []byte
	zip  []byte // the same, packed
	kind string
	etag string
}

var kinds = map[string]string{
	".html":        "text/html; charset=utf-8",
	".css":         "text/css; charset=utf-8",
	".js":          "text/javascript; charset=utf-8",
	".svg":         "image/svg+xml",
	".webmanifest": "application/manifest+json",
}

// openNames are the files that the locked page is made of; they hold nothing of anybody.
var openNames = []string{"board.css", "locked.js", "strings.js", "icon.svg", "board.webmanifest"}

// loadAssets reads and packs the embedded page, once in a process; nobody changes what it returns. A file that cannot be read
// or has an unknown ending is our own broken build.
var loadAssets = sync.OnceValue(func() map[string]asset {
	out := map[string]asset{}
	entries, err := fs.ReadDir(static, "static")
	if err != nil {
		panic(fmt.Sprintf("web: the page is not embedded: %v", err))
	}
	for _, e := range entries {
		body, err := static.ReadFile("static/" + e.Name())
		kind := kinds[path.Ext(e.Name())]
		if err != nil || kind == "" {
			panic(fmt.Sprintf("web: %s cannot be served: %v", e.Name(), err))
		}
		sum := sha256.Sum256(body)
		out[e.Name()] = asset{body, packed(body, gzip.BestCompression), kind, `"` + base64.RawURLEncoding.EncodeToString(sum[:12]) + `"`}
	}
	return out
})

// openFiles are rows of the table for the files that need no session; they are more exact than /static/{file}.
func (s *Server) openFiles() []route {
	var out []route
	for _, name := range openNames {
		out = append(out, route{method: "GET", path: "/static/" + name, who: anyone, fresh: true, handle: func(w http.ResponseWriter, r *http.Request, _ Standing) {
			s.serveFile(w, r, name, http.StatusOK)
		}})
	}
	return out
}

func (s *Server) page(w http.ResponseWriter, r *http.Request, _ Standing) {
	s.serveFile(w, r, "index.html", http.StatusOK)
}

func (s *Server) file(w http.ResponseWriter, r *http.Request, _ Standing) {
	s.serveFile(w, r, r.PathValue("file"), http.StatusOK)
}

func (s *Server) serveLocked(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("WWW-Authenticate", "Bearer")
	s.serveFile(w, r, "locked.html", http.StatusUnauthorized)
}

// serveFile sends an embedded file. Browsers keep it and ask again each time, with its tag: a node that was updated is
// noticed at the next load.
func (s *Server) serveFile(w http.ResponseWriter, r *http.Request, name string, status int) {
	a, ok := s.assets[name]
	if !ok || strings.HasSuffix(name, ".html") && r.PathValue("file") != "" {
		s.guardedUnknown().ServeHTTP(w, r)
		return
	}
	h := w.Header()
	h.Set("Content-Type", a.kind)
	if status == http.StatusOK {
		h.Set("Cache-Control", "no-cache")
		h.Set("ETag", a.etag)
		if r.Header.Get("If-None-Match") == a.etag {
			w.WriteHeader(http.StatusNotModified)
			return
		}
	}
	body := a.body
	h.Set("Vary", "Accept-Encoding")
	if headerHas(r.Header, "Accept-Encoding", "gzip") {
		h.Set("Content-Encoding", "gzip")
		body = a.zip
	}
	w.WriteHeader(status)
	if r.Method != http.MethodHead {
		_, _ = w.Write(body)
	}
}
