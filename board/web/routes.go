package web

import (
	"net/http"
	"path"
	"slices"
	"strings"

	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/api"
)

// whom is the credential that a route asks for.
type whom int

const (
	anyone    whom = 0
	session   whom = 1 << 0
	token     whom = 1 << 1
	signedIn  whom = session | token
	ownerOnly      = token // what only who can read the home may do
)

func (w whom) admits(who Standing) bool {
	return who == Operator && w&session != 0 || who == Token && w&token != 0
}

// route is one row of the table: an address, and everything that is checked before its handler.
type route struct {
	method string
	path   string
	who    whom
	handle func(w http.ResponseWriter, r *http.Request, who Standing)

	bytes   int64 // of the body, which then may be of any type; 0: JSON of at most bodyBytesMax
	says    bool  // the body holds a message: JSON of at most protocol.FrameBytesMax, as on /ws
	locked  bool  // without credential the locked page is shown
	landing bool  // a link elsewhere may lead here
	tokens  bool  // the contract puts tokens into this address: the Backend judges them (wire 6.5)
	fresh   bool  // an old session does no harm here: it ends with this, or is nothing to do with it
	agents  bool  // for those who join: an address that any of the access lists lets in may ask
	once    bool  // has an effect although it is a GET: no HEAD
}

// table is every address of the board.
func (s *Server) table() []route {
	v1 := api.Prefix
	return []route{
		{method: "GET", path: v1 + "/status", who: signedIn, handle: s.status},
		{method: "GET", path: v1 + "/peers", who: signedIn, handle: s.peers},
		{method: "GET", path: v1 + "/agents", who: signedIn, handle: s.agents},
		{method: "GET", path: v1 + "/snapshot", who: signedIn, handle: s.snapshot},
		{method: "GET", path: v1 + "/events", who: signedIn, handle: s.events},
		{method: "POST", path: v1 + "/send", who: signedIn, handle: s.send, says: true},
		{method: "GET", path: v1 + "/messages", who: signedIn, handle: s.messages},
		{method: "GET", path: v1 + "/messages/{id}", who: signedIn, handle: s.message},
		{method: "GET", path: v1 + "/messages/{id}/thread", who: signedIn, handle: s.thread},
		{method: "GET", path: v1 + "/messages/{id}/export", who: signedIn, handle: s.export},
		{method: "GET", path: v1 + "/messages/{id}/proof", who: signedIn, handle: s.proof},
		{method: "GET", path: v1 + "/find", who: signedIn, handle: s.find},
		{method: "GET", path: v1 + "/moment", who: signedIn, handle: s.moment},
		{method: "GET", path: v1 + "/asks", who: signedIn, handle: s.asks},
		{method: "GET", path: v1 + "/health", who: signedIn, handle: s.health},
		{method: "GET", path: v1 + "/figures", who: signedIn, handle: s.figures},
		{method: "GET", path: v1 + "/document", who: signedIn, handle: s.document},
		{method: "GET", path: v1 + "/rooms", who: signedIn, handle: s.rooms},
		{method: "GET", path: v1 + "/layers", who: signedIn, handle: s.layers},
		{method: "GET", path: v1 + "/messages/{id}/attachments/{sha256}", who: signedIn, handle: s.attachment},
		{method: "GET", path: v1 + "/search", who: signedIn, handle: s.search},
		{method: "GET", path: v1 + "/tail", who: signedIn, handle: s.tail},
		{method: "GET", path: v1 + "/tasks", who: signedIn, handle: s.tasks},
		{method: "GET", path: v1 + "/tasks/{id}", who: signedIn, handle: s.task},
		{method: "POST", path: v1 + "/tasks/{id}/cancel", who: signedIn, handle: s.cancelTask},
		{method: "GET", path: v1 + "/inbox", who: ownerOnly, handle: s.inbox},
		{method: "GET", path: v1 + "/outbox", who: ownerOnly, handle: s.outbox},
		{method: "POST", path: v1 + "/ack", who: ownerOnly, handle: s.ack},
		{method: "GET", path: v1 + "/wait", who: ownerOnly, handle: s.wait},
		{method: "GET", path: v1 + "/invites", who: signedIn, handle: s.listInvites},
		{method: "POST", path: v1 + "/invites", who: signedIn, handle: s.invite},
		{method: "POST", path: v1 + "/invites/{id}/withdraw", who: signedIn, handle: s.withdrawInvite},
		{method: "POST", path: v1 + "/members/{peer}/renew", who: signedIn, handle: s.renewMember},
		{method: "POST", path: v1 + "/members/{peer}/revoke", who: signedIn, handle: s.revokeMember},
		{method: "GET", path: v1 + "/keys", who: signedIn, handle: s.listKeys},
		{method: "POST", path: v1 + "/keys", who: signedIn, handle: s.issueKey},
		{method: "POST", path: v1 + "/keys/{ref}/renew", who: signedIn, handle: s.renewKey},
		{method: "POST", path: v1 + "/keys/{ref}/label", who: signedIn, handle: s.labelKey},
		{method: "POST", path: v1 + "/keys/{ref}/revoke", who: signedIn, handle: s.revokeKey},
		{method: "POST", path: v1 + "/leave", who: ownerOnly, handle: s.leave},
		{method: "POST", path: v1 + "/agents/{id}/forget", who: ownerOnly, handle: s.forgetAgent},
		{method: "POST", path: v1 + "/agents/{id}/rename", who: ownerOnly, handle: s.renameAgent},
		{method: "POST", path: v1 + "/agents/{id}/move", who: ownerOnly, handle: s.moveAgent},
		{method: "PUT", path: v1 + "/blobs", who: signedIn, handle: s.putBlob, bytes: protocol.BlobBytesMax},
		{method: "PUT", path: v1 + "/blobs/{sha256}", who: signedIn, handle: s.putBlob, bytes: protocol.BlobBytesMax},
		{method: "GET", path: v1 + "/blobs/{sha256}", who: ownerOnly, handle: s.blob},
		{method: "POST", path: v1 + "/board-link", who: ownerOnly, handle: s.boardLink},
		{method: "POST", path: v1 + "/down", who: ownerOnly, handle: s.down},

		{method: "GET", path: "/api/state", who: signedIn, handle: s.state},
		{method: "GET", path: "/api/events", who: signedIn, handle: s.stateEvents},
		{method: "GET", path: "/api/whoami", who: anyone, handle: s.whoami, fresh: true},
		{method: "POST", path: "/api/feedback", who: session, handle: s.feedback},

		{method: "GET", path: "/ws", who: anyone, handle: s.socket, tokens: true, agents: true},
		{method: "GET", path: "/join/{kind}", who: anyone, handle: s.join, fresh: true, agents: true},
		{method: "GET", path: "/open/{ticket}", who: anyone, handle: s.open, landing: true, once: true, fresh: true},

		{method: "GET", path: "/sw.js", who: session, handle: s.serviceWorker},
		{method: "GET", path: "/static/{file}", who: session, handle: s.file},
	}
}

// pageRows are the addresses at which the page restores what was shown.
func (s *Server) pageRows() (out []route) {
	for _, path := range []string{"/{$}", "/t/{id}", "/m/{id}", "/a/{id}", "/n/{id}", "/agenda", "/mesh", "/settings"} {
		out = append(out, route{method: "GET", path: path, who: session, handle: s.page, locked: true, landing: true})
	}
	return out
}

// rows are all routes that there are.
func (s *Server) rows() []route {
	return slices.Concat(s.table(), s.pageRows(), s.officeTable(), s.accountRows(), s.pushRows(), s.watchedRows(), s.accessRows(), s.backupRows(), s.boardTable(), s.openFiles())
}

// routes mounts the table. What is not in it is told apart only after the checks of place.
func (s *Server) routes() http.Handler {
	byPath := map[string]map[string]route{}
	for _, rt := range s.rows() {
		if byPath[rt.path] == nil {
			byPath[rt.path] = map[string]route{}
		}
		byPath[rt.path][rt.method] = rt
	}
	mux := http.NewServeMux()
	for pattern, byMethod := range byPath {
		mux.Handle(pattern, s.guarded(byMethod))
	}
	mux.Handle("/", s.guardedUnknown())
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if asked := r.URL.EscapedPath(); path.Clean(asked) != asked || r.Method == http.MethodConnect {
			s.guardedUnknown().ServeHTTP(w, r) // the mux would redirect, without any of our checks
			return
		}
		mux.ServeHTTP(w, r)
	})
}

func (s *Server) guardedUnknown() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		secureHeaders(w.Header())
		no := s.checkPlace(r, route{})
		if _, leave, in := s.doors.enter(r, route{}); in {
			leave()
		} else {
			no = notFromHere()
		}
		if no == nil {
			no = protocol.Refuse(codeNoRoute, "there is nothing at this address", "")
		}
		s.turnAway(w, r, no)
	})
}

func allowed(byMethod map[string]route) string {
	var names []string
	for m := range byMethod {
		names = append(names, m)
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}
