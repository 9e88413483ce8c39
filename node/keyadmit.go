package node

import (
	"context"
	"crypto/subtle"
	"net/http"
	"slices"
	"time"

	"github.com/aster-mesh/aster/board/web"
	"github.com/aster-mesh/aster/node/hub"
	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/asterism"
	"github.com/aster-mesh/aster/roles/access"
	"github.com/aster-mesh/aster/roles/keys"
)

// addressKeys are the contract's names of a key in a URL, in its order (wire 1.3).
var addressKeys = []string{"key", "peerKey", "upstreamKey", "collabKey"}

// presentedKey is the key in a URL.
func presentedKey(r *http.Request) string {
	q := r.URL.Query()
	for _, name := range addressKeys {
		for _, v := range q[name] {
			if v != "" {
				return v
			}
		}
	}
	return ""
}

// credentialsHold says whether what an address shows beside a key is good: a token that is not ours and two different keys
// are refused, never ignored. An empty one is none: some clients always send the parameter (wire 6.5).
func (n *Node) credentialsHold(r *http.Request, who *web.Caller) bool {
	q := r.URL.Query()
	for _, token := range q["token"] {
		if token == "" {
			continue
		}
		if subtle.ConstantTimeCompare([]byte(token), []byte(n.token)) != 1 {
			return false
		}
		who.Standing = web.Token
	}
	shown := presentedKey(r)
	for _, name := range addressKeys {
		for _, v := range q[name] {
			if v != "" && v != shown {
				return false
			}
		}
	}
	return true
}

// openKeyed judges a key in the URL, before a single frame: one that is not valid is said before SERVER_HELLO, since that
// is the only form from which every client backs off. One that is shows nothing before a good HELLO.
func (n *Node) openKeyed(ctx context.Context, o *asterism.Opening, secret string, hostLocal bool) error {
	return n.loop.call(ctx, func() {
		k, no := n.loop.keys().Admit(keys.Presented{Hash: keys.HashOf(secret), HostLocal: hostLocal}, n.home.peer, n.loop.now)
		if no == nil {
			o.Keyed = true
			return
		}
		n.log.Info("key refused", "code", no.Code, "key", keys.HashOf(secret).Fingerprint(), "from", o.IP)
		rej := keyRejection(k, no)
		o.Rejected = &rej
	})
}

// keyRejection is a refusal as the contract tells it; the label and end of a key only to who holds it and came too late.
func keyRejection(k keys.Key, no *protocol.Refusal) asterism.Rejection {
	r := asterism.Rejection{Code: no.Code, Reason: no.Reason, Hint: no.Hint}
	if no.Code == protocol.CodeKeyExpired {
		r.Label, r.ExpiresAt = k.Label, k.ExpiresAt()
	}
	return r
}

// closeReason is how a session ends that a key decided (wire 1.5).
func closeReason(code string) (int, string) {
	switch code {
	case protocol.CodeKeyExpired:
		return asterism.CloseKey, "key expired"
	case protocol.CodeKeyRevoked:
		return asterism.CloseKey, "key revoked"
	}
	return asterism.CloseRejected, code
}

// turnAway ends the session of a HELLO that is being judged. Call it while the read loop waits.
func (l *loop) turnAway(s *socket, k keys.Key, no *protocol.Refusal) {
	s.gone = true
	delete(l.sockets, s.id)
	r := keyRejection(k, no)
	if code, reason := closeReason(no.Code); code == asterism.CloseKey {
		l.say(s, s.session.Revoke(r, reason), asterism.History{})
		return
	}
	l.say(s, s.session.Reject(r), asterism.History{})
}

// turnAwayInTime tells a refusal at once, or to who comes again and again with the same after a while in which it is not
// heard. Then the hearing is over.
func (l *loop) turnAwayInTime(s *socket, agent protocol.AgentID, h *hearing, tell func()) {
	who := "hello " + string(protocol.FoldAgentID(agent))
	if s.keyed {
		who += " " + s.key.String()
	}
	wait := l.n.knocks.refused(who, l.now)
	if wait == 0 {
		tell()
		close(h.over)
		return
	}
	s.gone = true
	delete(l.sockets, s.id)
	h.adjourn(l.n.ctx)
	l.n.later(wait, func() {
		_ = l.post(l.n.ctx, func() {
			if h.hold() {
				tell()
				close(h.over)
			}
		})
	})
}

// identity decides by which right a HELLO may hold: by the key of the URL or its own, or as the node's own user. An agent
// id that is somebody's already needs the key that is bound to it: neither a new key nor the lack of one takes over
// another's mail.
func (l *loop) identity(s *socket, f *asterism.Frame) (protocol.Role, keys.Key, *protocol.Refusal) {
	old, known := l.core.Agent(f.AgentID)
	by := access.Agent
	if f.MCPProxy {
		by = access.MCP
	}
	if no := s.barred(by); no != nil && (no.Code != protocol.CodeKeyRequired || f.Key == "") {
		return "", keys.Key{}, no
	}
	if no := l.ownClient(f); no != nil {
		return "", keys.Key{}, no
	}
	if f.Key != "" {
		h := keys.HashOf(f.Key)
		if s.keyed && s.key != h {
			return "", keys.Key{}, protocol.Refuse(protocol.CodeBadKey, "the HELLO has another key than the address", "send one key, in one of the two places")
		}
		s.keyed, s.key = true, h
	}
	if !s.keyed {
		switch {
		case !s.board:
			return "", keys.Key{}, protocol.Refuse(protocol.CodeKeyRequired, "this node knows neither your user nor a key of yours",
				"connect as the user that runs the node, from the same machine, or with a key: aster key issue")
		case known && l.inside() && !old.Role.Inside() && !l.homeOutside(old.Home):
			return "", keys.Key{}, protocol.Refuse(protocol.CodeIdentityMismatch, "this agent id belongs to an agent that joins with a key", "connect with its key, or choose another id")
		}
		return protocol.RoleLocal, keys.Key{}, nil
	}
	held, _ := l.keys().ByHash(s.key)
	k, no := l.keys().Admit(keys.Presented{Hash: s.key, HostLocal: s.hostLocal, Agent: l.asBound(&held, f.AgentID)}, l.n.home.peer, l.now)
	if no == nil && k.Bound == "" {
		if other, ok := l.keyUsing[s.key]; ok && protocol.FoldAgentID(other) != protocol.FoldAgentID(f.AgentID) {
			no = keys.Bound()
		}
	}
	if no == nil && l.mains(f.AgentID) && (k.Kind != keys.Local || k.Bound == "") {
		no = protocol.Refuse(protocol.CodeIdentityMismatch, "this agent id is the main agent's",
			"choose another, or ask the board's owner for a local key of this one: aster key issue --kind local --agent ID")
	}
	if no == nil && known {
		no = ownsID(&k, &old)
	}
	return k.Kind.Role(), k, no
}

// asBound is an agent's id as its key knows it: a key stays with an agent that was renamed.
func (l *loop) asBound(k *keys.Key, agent protocol.AgentID) protocol.AgentID {
	if k.Bound != "" && protocol.FoldAgentID(l.core.Now(k.Bound)) == protocol.FoldAgentID(agent) {
		return k.Bound
	}
	return agent
}

// mains says whether an id is, or would become, that of main: a key gives it only if the owner issued it for that id and
// this machine (fault B31).
func (l *loop) mains(id protocol.AgentID) bool {
	folded := protocol.FoldAgentID(id)
	for _, main := range []protocol.AgentID{"main-agent", l.own(), l.roster().Term().Agent} {
		if folded == protocol.FoldAgentID(main) {
			return true
		}
	}
	return false
}

func (l *loop) homeOutside(p protocol.PeerID) bool {
	m, ok := l.roster().Member(p)
	return ok && !m.Inside
}

// ownsID says whether a key may speak as an agent that exists: only one that is bound to it, and of its role.
func ownsID(k *keys.Key, a *hub.Known) *protocol.Refusal {
	role := a.Role
	if role == protocol.RoleMain {
		role = protocol.RoleLocal
	}
	switch {
	case role != k.Kind.Role():
		return protocol.Refuse(protocol.CodeIdentityMismatch, "this agent id belongs to an agent of another role", "choose another agent id")
	case k.Bound == "":
		return protocol.Refuse(protocol.CodeIdentityMismatch, "this agent id is in use, and this key is not bound to it",
			"choose another agent id, or ask the board's owner for a key of this one: aster key issue --agent ID")
	}
	return nil
}

// judge asks about a HELLO and waits: nothing behind it is looked at before (fault KB4).
func (s *socket) judge(f *asterism.Frame) {
	s.greets.Store(true)
	if !s.n.offenders.wait(s.n.ctx, s.offender(f.AgentID)) {
		s.conn.Close(closeOffends, "this agent was cut off, and waits already to be heard")
		return
	}
	as := s.n.hidden()
	past, met := s.pastFor(f)
	h := &hearing{over: make(chan struct{})}
	l := s.n.loop
	err := l.post(s.n.ctx, func() {
		if !h.hold() {
			return
		}
		if s.gone {
			close(h.over) // its key ended while the HELLO was on its way
			return
		}
		if s.n.hidden() != as { // somebody deleted meanwhile
			past, met = s.pastFor(f)
		}
		role, key, no := l.identity(s, f)
		if no != nil {
			l.core.Step(l.now, hub.Detach{Conn: s.id})
			l.turnAwayInTime(s, f.AgentID, h, func() { l.turnAway(s, key, no) })
			return
		}
		s.outside, s.met = l.inside() && !role.Inside(), met
		l.attach(s, f, role, past, h)
	})
	if err != nil {
		return
	}
	h.wait(l)
}

// pastFor is what the agent of a HELLO is shown of the past and, of an outside one, whom it met.
func (s *socket) pastFor(f *asterism.Frame) (asterism.History, map[protocol.AgentID]bool) {
	if s.outsideBy(f.Key) {
		return s.n.pastOf(f.AgentID)
	}
	return s.n.history(f.AgentID), nil
}

// silentWait is how long somebody whom the node does not know may say nothing.
const silentWait = time.Minute

// tooSilent lets go of a socket that never said who it is; a board needs to say nothing.
func (s *socket) tooSilent() {
	l := s.n.loop
	_ = l.post(s.n.ctx, func() {
		if s.as == nil && !s.gone {
			l.endSession(s, keys.Key{}, protocol.Refuse(protocol.CodeNotHello, "no HELLO came", "say who you are within a minute"))
		}
	})
}

// attach gives a HELLO that holds to the hub, and writes down the use of its key in the same commit.
func (l *loop) attach(s *socket, f *asterism.Frame, role protocol.Role, past asterism.History, h *hearing) {
	token := l.expect(func(t hub.Told) {
		defer close(h.over)
		if t.Refusal != nil {
			l.turnAway(s, keys.Key{}, t.Refusal)
			return
		}
		k, _ := l.core.Agent(f.AgentID)
		s.conn.Authenticated()
		s.known()
		accepted := s.session.Accept(asterism.Accepted{Name: k.Name, Role: k.Role, Keyed: s.keyed, MayManageKeys: k.Role == protocol.RoleMain && l.inside()})
		s.info = accepted.Say[0].Info
		l.say(s, accepted, past)
		if s.keyed {
			l.keysDirty = true
			l.warnNewcomer(s)
		}
	})
	l.sockets[s.id] = s
	l.core.Step(l.now, hub.Detach{Conn: s.id}) // it is no board any more
	s.undecided, s.held = false, nil
	l.guestCame(f)
	taken := func(id protocol.AgentID) bool { k, ok := l.core.Agent(id); return ok && len(k.Attached) > 0 }
	s.proxy = f.MCPProxy
	s.as = &hub.Attach{
		Conn: s.id, Agent: f.AgentID, Name: asterism.CleanName(f.AgentName, f.AgentID, taken), Role: role, Client: "ws",
		AckLayer: f.Can(asterism.CapAckLayer), Tiers: f.Can(asterism.CapTiers), Token: token,
	}
	l.core.Step(l.now, *s.as)
	if s.keyed && slices.Contains(l.core.Conns(f.AgentID), s.id) {
		l.keyUsed(s.key, f.AgentID)
	}
}

// keyUsed writes down that an agent came with a key: the first time binds it; later ones are noted once an hour.
func (l *loop) keyUsed(h keys.Hash, agent protocol.AgentID) {
	k, ok := l.keys().ByHash(h)
	if !ok || k.Used && l.now.UnixMilli()-k.LastSeen < keySeenEvery.Milliseconds() {
		return
	}
	l.keyUsing[h] = agent
	l.after = append(l.after, func(error) { delete(l.keyUsing, h) })
	l.writeKey(protocol.KeyBody{Step: protocol.KeyUse, Hash: h.String(), Agent: agent}, 0)
}

func (l *loop) writeKey(body protocol.KeyBody, token hub.Token) {
	l.core.Step(l.now, keyRecord(body, token))
}

func keyRecord(body protocol.KeyBody, token hub.Token) hub.Author {
	return hub.Author{Scope: protocol.ScopeInside, Kind: protocol.KindKey, Body: protocol.EncodeBody(body), Token: token}
}

// keys are all keys of the mesh.
func (l *loop) keys() *keys.Ring { return l.board.Keys() }
