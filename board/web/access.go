package web

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"sync"

	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/roles/access"
)

// doors are which addresses are let in, and what is open from others than this machine. Safe for concurrent use.
type doors struct {
	keep Keeper // nil: nothing outlives the process

	mu    sync.Mutex
	rules access.Rules
	open  map[*passage]struct{}
}

// passage is one request that came in by the door for people.
type passage struct {
	from netip.Addr
	end  context.CancelFunc
}

// enter says whether a request may come in; then what it runs under ends when the address may not any more.
func (d *doors) enter(r *http.Request, rt route) (*http.Request, func(), bool) {
	from := remoteAddr(r)
	d.mu.Lock()
	defer d.mu.Unlock()
	if rt.agents {
		return r, func() {}, d.rules.AllowsAny(from)
	}
	if !d.rules.Allows(access.UI, from) {
		return r, nil, false
	}
	if from.IsLoopback() {
		return r, func() {}, true
	}
	ctx, cancel := context.WithCancel(r.Context())
	p := &passage{from: from, end: cancel}
	d.open[p] = struct{}{}
	return r.WithContext(ctx), func() {
		cancel()
		d.mu.Lock()
		delete(d.open, p)
		d.mu.Unlock()
	}, true
}

// set makes rules hold, also for what is open.
func (d *doors) set(rules access.Rules) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.rules = rules
	for p := range d.open {
		if !rules.Allows(access.UI, p.from) {
			p.end()
		}
	}
}

func (d *doors) now() access.Rules {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.rules
}

// remoteAddr is where a connection comes from; the zero address, which no list lets in, where that cannot be told.
func remoteAddr(r *http.Request) netip.Addr {
	at, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.Addr{}
	}
	return at.Addr().Unmap()
}

func notFromHere() *protocol.Refusal {
	return protocol.Refuse(access.CodeAddress, "this node does not answer your address", "ask its owner, who can see and change that at /api/access")
}

// Access is which addresses are let in now.
func (s *Server) Access() access.Rules { return s.doors.now() }

// LoadAccess makes what Config.Access holds the rules, and says whether that changed anything. What is not readable
// changes nothing.
func (s *Server) LoadAccess() (changed bool, err error) {
	if s.doors.keep == nil {
		return false, nil
	}
	raw, err := s.doors.keep.Load()
	if err != nil {
		return false, fmt.Errorf("read access lists: %w", err)
	}
	var rules access.Rules
	if raw != nil {
		var no *protocol.Refusal
		if rules, no = access.Parse(raw); no == nil {
			no = s.asExposed(rules)
		}
		if no != nil {
			return false, no
		}
	}
	old := s.doors.now()
	s.doors.set(rules)
	return !rules.Equal(&old), nil
}

// ShutOut lets in nobody but this machine, until other rules are set.
func (s *Server) ShutOut() { s.doors.set(access.Closed()) }

// asExposed refuses a belief about the board's address that is wrong: nothing here changes that.
func (s *Server) asExposed(r access.Rules) *protocol.Refusal {
	if r.Expose == nil || *r.Expose == s.exposed {
		return nil
	}
	return protocol.Refuse(protocol.CodeNotAllowed, "expose is not set here: where the board listens is said when the node starts", "aster up --board ADDRESS")
}

// accessRows are the contract's address of access lists (wire 7.2). Who changes them sits at this machine: so nobody who
// came in by a list opens it wider, or shuts the owner out.
func (s *Server) accessRows() []route {
	return []route{
		{method: "GET", path: "/api/access", who: signedIn, handle: s.access},
		{method: "PUT", path: "/api/access", who: signedIn, handle: s.setAccess},
		{method: "POST", path: "/api/access", who: signedIn, handle: s.setAccess},
	}
}

func (s *Server) access(w http.ResponseWriter, _ *http.Request, _ Standing) {
	rules := s.doors.now()
	rules.Expose = &s.exposed
	writeJSON(w, http.StatusOK, rules)
}

func (s *Server) setAccess(w http.ResponseWriter, r *http.Request, who Standing) {
	raw, err := io.ReadAll(r.Body)
	if err != nil {
		s.fail(w, r, protocol.Refuse(protocol.CodeBadFrame, "the body could not be read", ""))
		return
	}
	no := (*protocol.Refusal)(nil)
	if !loopback(r) {
		no = protocol.Refuse(protocol.CodeNotAllowed, "access lists are changed on the node's own machine", "")
	}
	var rules access.Rules
	if no == nil {
		rules, no = access.Parse(raw)
	}
	if no == nil {
		no = s.asExposed(rules)
	}
	if no != nil {
		s.fail(w, r, no)
		return
	}
	if s.doors.keep != nil {
		if err := s.doors.keep.Save(rules.Encode()); err != nil {
			s.fail(w, r, fmt.Errorf("keep access lists: %w", err))
			return
		}
	}
	s.doors.set(rules)
	if s.onAccess != nil {
		s.onAccess()
	}
	s.access(w, r, who)
}

// Exposed says whether a board at that address can be reached from other machines.
func Exposed(at net.Addr) bool {
	host := hostOnly(at.String())
	ip := net.ParseIP(host)
	return ip == nil || !ip.IsLoopback()
}
