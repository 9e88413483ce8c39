package web

import (
	"encoding/json"
	"net/http"
	"strings"

	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/api"
)

// send takes a message in. A browser's session is a person: it cannot speak as an agent (KB1).
func (s *Server) send(w http.ResponseWriter, r *http.Request, who Standing) {
	var req api.SendRequest
	if err := readJSON(w, r, &req); err != nil {
		s.fail(w, r, err)
		return
	}
	if who == Operator {
		req.From, req.FromBoard = "", true
	}
	got, err := s.backend.Send(r.Context(), req)
	s.answer(w, r, got, err)
}

func (s *Server) ack(w http.ResponseWriter, r *http.Request, _ Standing) {
	var req api.AckRequest
	err := readJSON(w, r, &req)
	if many := req.All || req.From != ""; err == nil && (len(req.IDs) == 0) != many {
		err = protocol.Refuse(protocol.CodeBadFrame, "ids names the messages to acknowledge, or all or from which of them", "")
	}
	if err != nil {
		s.fail(w, r, err)
		return
	}
	got, err := s.backend.Ack(r.Context(), req)
	got.Acked = list(got.Acked)
	s.answer(w, r, got, err)
}

func (s *Server) cancelTask(w http.ResponseWriter, r *http.Request, _ Standing) {
	got, err := s.backend.CancelTask(r.Context(), r.PathValue("id"))
	s.answer(w, r, got, err)
}

func (s *Server) invite(w http.ResponseWriter, r *http.Request, who Standing) {
	var req api.InviteRequest
	if err := readJSON(w, r, &req); err != nil {
		s.fail(w, r, err)
		return
	}
	got, err := s.backend.Invite(r.Context(), req)
	if err != nil || who != Operator {
		s.answer(w, r, got, err)
		return
	}
	command := "aster up --detach --join " + got.Token
	s.answer(w, r, invited{got, command, squares(command)}, nil)
}

// invited is an invite for who looks at a page: with the command that uses it, and that as a QR code.
type invited struct {
	api.InviteResult
	Command string   `json:"command"`
	Squares []string `json:"squares,omitempty"`
}

func (s *Server) renewMember(w http.ResponseWriter, r *http.Request, _ Standing) {
	got, err := s.backend.RenewMember(r.Context(), protocol.PeerID(r.PathValue("peer")))
	s.answer(w, r, got, err)
}

func (s *Server) revokeMember(w http.ResponseWriter, r *http.Request, _ Standing) {
	var req struct {
		Reason string `json:"reason"`
	}
	if err := readJSON(w, r, &req); err != nil {
		s.fail(w, r, err)
		return
	}
	err := s.backend.RevokeMember(r.Context(), protocol.PeerID(r.PathValue("peer")), req.Reason)
	s.done(w, r, http.StatusOK, err)
}

func (s *Server) leave(w http.ResponseWriter, r *http.Request, _ Standing) {
	s.done(w, r, http.StatusOK, s.backend.Leave(r.Context()))
}

func (s *Server) forgetAgent(w http.ResponseWriter, r *http.Request, _ Standing) {
	s.done(w, r, http.StatusOK, s.backend.ForgetAgent(r.Context(), protocol.AgentID(r.PathValue("id"))))
}

func (s *Server) renameAgent(w http.ResponseWriter, r *http.Request, _ Standing) {
	var req api.RenameRequest
	if err := readJSON(w, r, &req); err != nil {
		s.fail(w, r, err)
		return
	}
	agent, err := s.backend.RenameAgent(r.Context(), protocol.AgentID(r.PathValue("id")), req.To)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	writeJSON(w, http.StatusOK, agent)
}

func (s *Server) moveAgent(w http.ResponseWriter, r *http.Request, _ Standing) {
	var req api.MoveRequest
	if err := readJSON(w, r, &req); err != nil {
		s.fail(w, r, err)
		return
	}
	moved, err := s.backend.MoveAgent(r.Context(), protocol.AgentID(r.PathValue("id")), req.Node)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	writeJSON(w, http.StatusOK, moved)
}

func (s *Server) down(w http.ResponseWriter, r *http.Request, _ Standing) {
	s.done(w, r, http.StatusAccepted, s.backend.Shutdown(r.Context()))
}

func (s *Server) done(w http.ResponseWriter, r *http.Request, status int, err error) {
	if err != nil {
		s.fail(w, r, err)
		return
	}
	writeJSON(w, status, struct {
		OK bool `json:"ok"`
	}{true})
}

// boardLink answers with a link to the name under which the command reached us.
func (s *Server) boardLink(w http.ResponseWriter, r *http.Request, _ Standing) {
	scheme := "http://"
	if r.TLS != nil {
		scheme = "https://"
	}
	writeJSON(w, http.StatusOK, map[string]string{"url": s.LinkURL(scheme + r.Host)})
}

// open uses a link up. The ticket leaves the address bar with the redirect.
func (s *Server) open(w http.ResponseWriter, r *http.Request, _ Standing) {
	if !s.links.use(r.PathValue("ticket"), s.now()) {
		s.serveFile(w, r, "used.html", http.StatusGone)
		return
	}
	http.SetCookie(w, s.sessions.issue(admission{round: s.operators.round()}, s.now(), r.TLS != nil))
	http.Redirect(w, r, "/", http.StatusSeeOther)
}

// socket hands the upgrade of /ws on. A page needs a session, or a key that the hub will judge.
func (s *Server) socket(w http.ResponseWriter, r *http.Request, who Standing) {
	if !headerHas(r.Header, "Upgrade", "websocket") {
		refuse(w, protocol.Refuse(protocol.CodeBadFrame, "this address speaks WebSocket", ""))
		return
	}
	fromPage := r.Header.Get("Origin") != ""
	if fromPage && who == Nobody && !hasKey(r) {
		s.turnAway(w, r, noCredential())
		return
	}
	while := whileOf(r)
	if who == Nobody && !hasKey(r) {
		while = s.operators.without
	}
	s.backend.ServeSocket(w, r, Caller{Standing: who, Origin: fromPage, Loopback: loopback(r), While: while})
}

func hasKey(r *http.Request) bool {
	q := r.URL.Query()
	for _, name := range []string{"key", "peerKey", "upstreamKey", "collabKey"} { // wire 1.3
		if q.Get(name) != "" {
			return true
		}
	}
	return false
}

// feedback takes what the former dashboard posts and gives it to main as OperatorFeedback (fault B39).
func (s *Server) feedback(w http.ResponseWriter, r *http.Request, _ Standing) {
	var entry map[string]json.RawMessage
	err := readJSON(w, r, &entry)
	if err != nil || entry == nil {
		writeJSON(w, http.StatusBadRequest, map[string]any{"ok": false, "error": "bad json"})
		return
	}
	var target protocol.AgentID
	_ = json.Unmarshal(entry["targetAgentId"], &target) // absent or odd: it is for main
	at, err := json.Marshal(s.now().UnixMilli())
	if err == nil {
		entry["receivedAt"] = at
	}
	value, err := json.Marshal(entry)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	_, err = s.backend.Send(r.Context(), api.SendRequest{FromBoard: true, To: target, Intent: "OperatorFeedback", Value: value})
	s.done(w, r, http.StatusOK, err)
}

func headerHas(h http.Header, name, want string) bool {
	for _, line := range h.Values(name) {
		for part := range strings.SplitSeq(line, ",") {
			if strings.EqualFold(strings.TrimSpace(part), want) {
				return true
			}
		}
	}
	return false
}
