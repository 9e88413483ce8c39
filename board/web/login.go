package web

import (
	"math"
	"net"
	"net/http"
	"regexp"
	"strconv"

	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/api"
)

// accountName is what an account may be called: it stands in lines of a terminal and of logs.
var accountName = regexp.MustCompile(`^[A-Za-z0-9._-]{1,64}$`)

// accountRows are the part of the table that is about people's accounts.
func (s *Server) accountRows() []route {
	v1 := api.Prefix
	return []route{
		{method: "POST", path: "/api/login", who: anyone, handle: s.login, fresh: true},
		{method: "POST", path: "/api/logout", who: session, handle: s.logout},
		{method: "GET", path: "/api/operators", who: ownerOnly, handle: s.listOperators},
		{method: "POST", path: "/api/operators", who: ownerOnly, handle: s.putOperator},
		{method: "DELETE", path: "/api/operators/{id}", who: ownerOnly, handle: s.removeOperator},
		{method: "GET", path: v1 + "/operators", who: ownerOnly, handle: s.listOperators},
		{method: "POST", path: v1 + "/operators", who: ownerOnly, handle: s.putOperator},
		{method: "DELETE", path: v1 + "/operators/{id}", who: ownerOnly, handle: s.removeOperator},
		{method: "POST", path: v1 + "/sign-out-all", who: ownerOnly, handle: s.signOutAll},
	}
}

// HasOperators says whether people have accounts on this board. Then nobody speaks for its owner by being on this machine.
func (s *Server) HasOperators() bool { return s.operators.any() }

// login opens a session for who knows an account's password. Wrong names and wrong passwords are answered alike.
func (s *Server) login(w http.ResponseWriter, r *http.Request, _ Standing) {
	var req *struct {
		ID       string `json:"id"`
		Password string `json:"password"`
	}
	if err := readJSON(w, r, &req); err != nil {
		s.fail(w, r, err)
		return
	}
	if req == nil || !accountName.MatchString(req.ID) || req.Password == "" {
		s.turnAway(w, r, protocol.Refuse(protocol.CodeBadFrame, "a login has an id and a password", ""))
		return
	}
	leave, room := s.failures.enter(addressOf(r))
	if !room {
		w.Header().Set("Retry-After", "1")
		s.turnAway(w, r, protocol.Refuse(codeLocked, "too many logins at once from this address", "Try again in a second"))
		return
	}
	defer leave()
	s.failures.one.Lock() // also the count: guesses at the same time are not more guesses
	defer s.failures.one.Unlock()
	if r.Context().Err() != nil {
		return
	}
	if wait := s.failures.wait(req.ID, s.now()); wait > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(wait.Seconds()))))
		s.turnAway(w, r, protocol.Refuse(codeLocked, "too many wrong passwords for this account", "Wait, or open the board with a link: aster board"))
		return
	}
	a, known := s.operators.account(req.ID)
	if !known {
		a.Password = s.nobodys
		a.Password.Rounds = s.rounds
	}
	if !a.Password.is(req.Password) || !known {
		s.failures.add(req.ID, func(name string) bool { _, ok := s.operators.account(name); return ok }, s.now())
		s.log.Info("login refused", "account", req.ID, "from", r.RemoteAddr)
		s.turnAway(w, r, protocol.Refuse(codeNoCredential, "no account has this id and password", ""))
		return
	}
	s.failures.forget(req.ID)
	http.SetCookie(w, s.sessions.issue(admission{round: s.operators.round(), epoch: a.Epoch, account: req.ID}, s.now(), r.TLS != nil))
	s.done(w, r, http.StatusOK, nil)
}

// addressOf is the address that a request comes from, without its port: that changes with each connection.
func addressOf(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	return host
}

// logout ends the session that asks, wherever else its cookie has got to.
func (s *Server) logout(w http.ResponseWriter, r *http.Request, _ Standing) {
	in, _, ok := s.sessions.read(r, s.now())
	if !ok {
		s.turnAway(w, r, noCredential())
		return
	}
	if err := s.operators.end(in, s.now()); err != nil {
		s.fail(w, r, err)
		return
	}
	http.SetCookie(w, s.sessions.bare(r.TLS != nil))
	s.done(w, r, http.StatusOK, nil)
}

// signOutAll ends every session, with all that it holds open.
func (s *Server) signOutAll(w http.ResponseWriter, r *http.Request, _ Standing) {
	s.done(w, r, http.StatusOK, s.operators.endAll(s.now()))
}

func (s *Server) listOperators(w http.ResponseWriter, r *http.Request, _ Standing) {
	s.answer(w, r, map[string]any{"operators": list(s.operators.names())}, nil)
}

// putOperator makes an account or changes its password. Only who can read the home may: nobody becomes operator by being
// the first to ask (fault KB15).
func (s *Server) putOperator(w http.ResponseWriter, r *http.Request, _ Standing) {
	var req struct {
		ID       string `json:"id"`
		Password string `json:"password"`
	}
	err := readJSON(w, r, &req)
	if err == nil && !accountName.MatchString(req.ID) {
		err = protocol.Refuse(protocol.CodeBadFrame, "an account's id has 1 to 64 of A-Z a-z 0-9 . _ -", "")
	}
	if err != nil {
		s.fail(w, r, err)
		return
	}
	p, err := newPassword(req.Password, s.rounds)
	if err == nil {
		err = s.operators.put(req.ID, p, s.now())
	}
	if err == nil {
		s.failures.forget(req.ID)
	}
	s.done(w, r, http.StatusOK, err)
}

func (s *Server) removeOperator(w http.ResponseWriter, r *http.Request, _ Standing) {
	s.done(w, r, http.StatusOK, s.operators.remove(r.PathValue("id"), s.now()))
}

// whoami tells a page whether to ask for a password. It names nobody to who is nobody here.
func (s *Server) whoami(w http.ResponseWriter, r *http.Request, who Standing) {
	var operator any
	if in, _, ok := s.sessions.read(r, s.now()); ok && who == Operator && in.account != "" {
		operator = in.account
	}
	n := s.operators.count()
	writeJSON(w, http.StatusOK, map[string]any{"loginRequired": n > 0 && who == Nobody, "operator": operator, "operatorCount": n})
}
