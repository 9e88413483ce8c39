package web

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"mime"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/aster-mesh/aster/protocol"
)

// contentPolicy lets the page load and reach its own origin only, and lets no string become markup or script.
const contentPolicy = "default-src 'self'; require-trusted-types-for 'script'; trusted-types aster; " +
	"frame-ancestors 'none'; base-uri 'none'; form-action 'self'; object-src 'none'"

func secureHeaders(h http.Header) {
	h.Set("Content-Security-Policy", contentPolicy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
}

// guarded runs every check of the table before the route's handler: the address it comes from, Host, then Origin and site, the URL, the method,
// the credential, the proof that a change comes from our own page, the body's type and size.
func (s *Server) guarded(byMethod map[string]route) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		secureHeaders(w.Header())
		method := r.Method
		if _, ok := byMethod[method]; !ok && method == http.MethodHead {
			method = http.MethodGet
		}
		rt, ok := byMethod[method]
		r, leave, in := s.doors.enter(r, rt)
		if !in {
			s.turnAway(w, r, notFromHere())
			return
		}
		defer leave()
		if no := s.checkPlace(r, rt); no != nil {
			s.turnAway(w, r, no)
			return
		}
		if !ok || r.Method == http.MethodHead && rt.once {
			w.Header().Set("Allow", allowed(byMethod))
			s.turnAway(w, r, protocol.Refuse(codeWrongMethod, "this address does not take %s", "", r.Method))
			return
		}
		who, held, no := s.standing(r)
		if rt.fresh && who == Nobody && r.Header.Get("Authorization") == "" {
			no = nil // a session that is over may be followed by another
		}
		if no == nil && rt.who != anyone && !rt.who.admits(who) {
			no = noCredential()
		}
		if no != nil {
			if rt.locked {
				s.serveLocked(w, r)
				return
			}
			s.turnAway(w, r, no)
			return
		}
		if no := checkChange(r, rt, who); no != nil {
			s.turnAway(w, r, no)
			return
		}
		limit := rt.bytes
		switch {
		case rt.says:
			limit = protocol.FrameBytesMax
		case limit == 0:
			limit = bodyBytesMax
		}
		r.Body = http.MaxBytesReader(w, r.Body, limit)
		if held.while != nil { // a stream does not outlive its session
			ctx, cancel := context.WithTimeout(context.WithValue(r.Context(), whileKey{}, held.while), held.until.Sub(s.now()))
			defer cancel()
			defer context.AfterFunc(held.while, cancel)()
			r = r.WithContext(ctx)
		}
		rt.handle(w, r, who)
	})
}

func (s *Server) turnAway(w http.ResponseWriter, r *http.Request, no *protocol.Refusal) {
	s.log.Debug("refused", "code", no.Code, "route", r.Pattern, "from", r.RemoteAddr) // never the URL: it may hold a ticket
	refuse(w, no)
}

func noCredential() *protocol.Refusal {
	return protocol.Refuse(codeNoCredential, "this board opens with a link from your terminal", "aster board")
}

// checkPlace looks at where a request says it goes and comes from.
func (s *Server) checkPlace(r *http.Request, rt route) *protocol.Refusal {
	if !s.hostAllowed(r) {
		return protocol.Refuse(codeWrongHost, "the board is not known by this name", "")
	}
	if origins := r.Header.Values("Origin"); len(origins) > 1 || len(origins) == 1 && !sameOrigin(origins[0], r.Host) {
		return protocol.Refuse(codeWrongOrigin, "another site may not ask this board", "")
	}
	// A page on another port is the same site: cookies go with its requests, and a plain GET has no Origin.
	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "same-origin", "none":
	default:
		if !rt.landing || r.Header.Get("Sec-Fetch-Mode") != "navigate" || r.Header.Get("Sec-Fetch-Dest") != "document" {
			return protocol.Refuse(codeCrossSite, "another site may not ask this board", "")
		}
	}
	for _, name := range []string{"token", "access_token"} {
		if !rt.tokens && r.URL.Query().Has(name) {
			return protocol.Refuse(codeTokenInURL, "a token does not belong in an address: it stays in histories and logs", "Send it as Authorization: Bearer")
		}
	}
	return nil
}

// hostAllowed refuses names that somebody else may point here (DNS rebinding, KB9).
func (s *Server) hostAllowed(r *http.Request) bool {
	host := strings.ToLower(r.Host)
	name := hostOnly(host)
	if name == "" {
		return false
	}
	if name == "localhost" || s.hosts[host] || s.hosts[name] {
		return true
	}
	ip := net.ParseIP(name)
	if ip == nil {
		return false
	}
	return ip.IsLoopback() || ip.Equal(localIP(r))
}

func hostOnly(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		return name
	}
	return strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
}

func localIP(r *http.Request) net.IP {
	addr, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if addr == nil {
		return nil
	}
	return net.ParseIP(hostOnly(addr.String()))
}

// sameOrigin says whether an Origin header names the host that the request went to. "null" never does.
func sameOrigin(origin, host string) bool {
	u, err := url.Parse(origin)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.User != nil || u.Path != "" || u.RawQuery != "" {
		return false
	}
	port := map[string]string{"http": ":80", "https": ":443"}[u.Scheme]
	plain := func(h string) string { return strings.TrimSuffix(strings.ToLower(h), port) }
	return u.Host != "" && plain(u.Host) == plain(host)
}

// held is what a session gives a request.
type held struct {
	until time.Time
	while context.Context // done when the session is ended; nil: no session
}

type whileKey struct{}

// whileOf is done when the session that r came with is ended before its time; nil: it came with none.
func whileOf(r *http.Request) context.Context {
	while, _ := r.Context().Value(whileKey{}).(context.Context)
	return while
}

// standing finds the credential of r. One that is shown and does not hold is refused, never ignored, also beside another
// that does.
func (s *Server) standing(r *http.Request) (Standing, held, *protocol.Refusal) {
	if given := r.Header.Values("Authorization"); len(given) > 0 {
		token, isBearer := strings.CutPrefix(given[0], "Bearer ")
		hash := sha256.Sum256([]byte(token))
		if len(given) == 1 && isBearer && s.hasToken && subtle.ConstantTimeCompare(hash[:], s.tokenHash[:]) == 1 {
			return Token, held{}, nil
		}
		return Nobody, held{}, protocol.Refuse(codeNoCredential, "this token is not the one of the running node", "Read node.json again")
	}
	in, given, ok := s.sessions.read(r, s.now())
	if ok {
		if while, still := s.operators.enter(in, s.now()); still {
			return Operator, held{in.until, while}, nil
		}
	}
	if given {
		return Nobody, held{}, protocol.Refuse(codeNoCredential, "this session is over", "aster board")
	}
	return Nobody, held{}, nil
}

// checkChange looks at what would change something: a browser must prove that our own page asks, and a body must say
// that it is JSON (a form or a plain-text post from elsewhere cannot).
func checkChange(r *http.Request, rt route, who Standing) *protocol.Refusal {
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		return nil
	}
	if who == Operator && r.Header.Get("Origin") == "" && r.Header.Get("Sec-Fetch-Site") != "same-origin" {
		return protocol.Refuse(codeCrossSite, "a change must come from the board's own page", "")
	}
	if rt.bytes == 0 && r.ContentLength != 0 {
		kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
		if err != nil || kind != "application/json" {
			return protocol.Refuse(protocol.CodeWrongType, "the body must be application/json", "")
		}
	}
	return nil
}

// forwarded says whether some proxy handed the request on: then the connection's address is not the caller's.
func forwarded(r *http.Request) bool {
	for _, name := range []string{"X-Forwarded-For", "X-Real-Ip", "Forwarded", "X-Forwarded-Host", "X-Client-Ip"} {
		if r.Header.Get(name) != "" {
			return true
		}
	}
	return false
}

func loopback(r *http.Request) bool {
	remote := net.ParseIP(hostOnly(r.RemoteAddr))
	local := localIP(r)
	return remote != nil && local != nil && remote.IsLoopback() && local.IsLoopback() && !forwarded(r)
}
