package node

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/aster-mesh/aster/board/web"
	"github.com/aster-mesh/aster/node/hub"
	"github.com/aster-mesh/aster/node/link"
	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/asterism"
	"github.com/aster-mesh/aster/roles/access"
	"github.com/aster-mesh/aster/roles/keys"
)

// socket is one client on /ws.
type socket struct {
	// Fixed at creation.
	n    *Node
	id   hub.ConnID
	conn *link.Conn
	name string // of the session, for SERVER_HELLO

	board     bool            // opened by the node's own user or a person's session: a board until it says HELLO
	hostLocal bool            // both ends are on this machine
	from      netip.Addr      // the other end
	until     time.Time       // end of the session that opened it; zero: none did
	while     context.Context // done when what let it in is over before that; nil: only its connection ends it
	known     func()          // gives its place among strangers back
	kind      keys.Kind       // that the key in the address claims to be; empty without one

	// Owned by the read loop; the loop touches them only while the read loop waits for it.
	session *asterism.Session
	streams asterism.Streams

	// Owned by the loop.
	sent   []sentFrame // deliveries whose reading is not confirmed, in order
	corked bool        // in the loop's list
	feed   feed        // deliveries that wait for a large one
	seen   bool        // it was given a roster, so it gets the next ones
	as     *hub.Attach // once it is an agent
	proxy  bool        // that agent speaks through a plugin

	refusals refusals
	lane     lane // not the loop's: see lanes

	undecided bool             // it may be a board or an agent that has not said HELLO yet
	held      []*link.Prepared // what a board would have been shown meanwhile
	heldBytes int              // of all that was ever held

	gone bool // it was told to go: what it said and nobody looked at yet counts no more

	// Of a key: written by the loop while the read loop waits, or before either runs.
	keyed   bool
	key     keys.Hash
	outside bool                      // its agent has an outside role
	met     map[protocol.AgentID]bool // folded: whom an outside one exchanged messages with
	roster  []byte                    // what it was shown last

	greets atomic.Bool   // its HELLO has come
	spoke  atomic.Uint64 // when it said something last; 0: it never did

	calling
	read atomic.Uint64 // last frame that the peer has read
	told atomic.Bool   // a job for read is on its way
}

type sentFrame struct {
	seq uint64
	ref hub.Ref
}

// ServeSocket implements web.Sockets: it decides who may be what, then serves the socket in a goroutine of its own.
func (n *Node) ServeSocket(w http.ResponseWriter, r *http.Request, who web.Caller) {
	opening, status := n.opening(r, who)
	if status != 0 {
		http.Error(w, http.StatusText(status), status)
		return
	}
	if opening.Rejected != nil {
		if wait := n.knocks.refused("key "+keys.HashOf(presentedKey(r)).String(), time.Now()); wait > 0 {
			comeBack(w, wait)
			return
		}
	}
	s := &socket{n: n, id: hub.ConnID(n.connIDs.Add(1)), name: string(newID()), board: opening.Board, hostLocal: who.Loopback, from: remoteOf(r), known: func() {}, lane: make(lane, clientLane)}
	s.until, _ = r.Context().Deadline()       // of a browser's session
	token := r.URL.Query().Get("token") != "" // a good one, or there were no opening
	if opening.Board && !token {
		s.while = who.While
	}
	if !opening.Board {
		if s.known = n.strangers.enter(opening.Keyed, keys.HashOf(presentedKey(r))); s.known == nil {
			http.Error(w, "too many connections that nobody has authenticated on", http.StatusServiceUnavailable)
			return
		}
	}
	if secret := presentedKey(r); secret != "" {
		s.keyed, s.key = true, keys.HashOf(secret)
		s.kind, _ = keys.KindOf(secret)
	}
	conn, err := link.Upgrade(w, r, link.Options{OnRead: s.onRead, Subprotocols: subprotocols, Recode: recodings})
	if err != nil {
		n.log.Debug("socket refused", "err", err)
		s.known()
		return
	}
	s.conn = conn
	if opening.Board {
		conn.Authenticated()
		s.known = n.unnamed.enter(s, token || who.Standing == web.Operator || who.Standing == web.Token)
	}
	n.wait.Add(1)
	go s.serve(opening)
}

// opening applies DESIGN 6 "Without a key". A status other than 0 refuses the upgrade itself.
func (n *Node) opening(r *http.Request, who web.Caller) (asterism.Opening, int) {
	host, _, _ := net.SplitHostPort(r.RemoteAddr)
	o := asterism.Opening{IP: host}
	if !n.credentialsHold(r, &who) {
		return o, http.StatusUnauthorized
	}
	if secret := presentedKey(r); secret != "" {
		if err := n.openKeyed(r.Context(), &o, secret, who.Loopback); err != nil {
			return o, http.StatusServiceUnavailable
		}
		return o, 0
	}
	rules := n.web.Access()
	switch {
	case who.Standing != web.Nobody && !rules.Allows(access.UI, remoteOf(r)):
		return o, http.StatusForbidden // a person's credential, from where no person is let in
	case who.Standing == web.Operator || who.Standing == web.Token:
		o.Board = true
	case who.Origin:
		return o, http.StatusUnauthorized // a page needs the session of aster board
	case who.Loopback && n.cfg.Access.Keyless && !n.web.HasOperators() && sameUser(r):
		o.Board = true
	} // else nothing is shown, and only a HELLO with a key holds
	return o, 0
}

func (s *socket) serve(o asterism.Opening) {
	defer s.n.wait.Done()
	defer s.forgotten()
	var first asterism.Outcome
	s.session, first = asterism.NewSession(o)
	switch {
	case o.Rejected != nil:
		s.do(first)
	case !o.Board:
		_ = s.n.loop.post(s.n.ctx, func() {
			s.n.loop.sockets[s.id] = s
			s.n.loop.say(s, first, asterism.History{})
			s.n.loop.bar(s)
		})
		defer time.AfterFunc(s.n.cfg.silentWait, s.tooSilent).Stop()
	default:
		s.beginBoard(first)
	}
	ctx := s.n.ctx
	if !s.until.IsZero() { // a socket does not outlive the session that opened it
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, s.until)
		defer cancel()
	}
	if s.while != nil {
		var cancel context.CancelFunc
		ctx, cancel = context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(s.while, cancel)()
	}
	err := s.conn.Serve(ctx, s.message)
	s.n.log.Debug("socket closed", "agent", s.session.Sender().ID, "err", err)
	for _, f := range s.streams.Flush() {
		s.pass(&f)
	}
	s.session.End()
	_ = s.n.loop.post(context.WithoutCancel(s.n.ctx), func() {
		delete(s.n.loop.sockets, s.id)
		s.n.loop.keysDirty = s.n.loop.keysDirty || s.keyed
		s.n.loop.core.Step(s.n.loop.now, hub.Detach{Conn: s.id})
	})
}

// do sends what a session wants said.
func (s *socket) do(o asterism.Outcome) {
	if len(o.Say) == 0 && o.Close == 0 {
		return
	}
	s.post(func() { s.n.loop.say(s, o, asterism.History{}) })
}

// message takes one frame. It runs in the read loop.
func (s *socket) message(data []byte, binary bool) {
	f, no := s.decode(data, binary)
	if no != nil {
		s.do(s.session.Bad(no))
		return
	}
	s.heard()
	s.takeName()
	out := s.session.Frame(&f)
	switch out.Verdict {
	case asterism.Judge:
		s.judge(&f)
	case asterism.Pass:
		s.pass(&f)
	default:
		s.do(out)
	}
}

// pass takes a message of an authenticated sender.
func (s *socket) pass(f *asterism.Frame) {
	sender := s.session.Sender()
	name := f.Intent()
	switch {
	case f.Stream():
		s.live(f)
		for _, joined := range s.streams.Add(f) {
			s.kept(&joined, sender)
		}
		return
	case name == protocol.AckProcessed:
		s.acked(f, sender)
		return
	case keyVerbs[name] != nil:
		s.keyVerb(f, name)
		return
	case artifactVerbs[name] != nil:
		s.artifact(f, name)
		return
	case name == "SetMain" || name == "HandoffReady":
		s.mainVerb(f, name)
		return
	case name == "RequestChannelHistory":
		s.channelHistory(f, sender)
		return
	case channelVerbs[name] != "":
		s.channelVerb(f, name)
		return
	case name == protocol.ServerNotice && sender.ID != "":
		labelled(f, sender)
	case name == "SeatTelemetry" && f.TargetAgentID == "":
		s.live(f) // shown at once; the newest of a seat is kept now and then
		s.kept(f, sender)
		return
	case f.Live():
		s.live(f)
		return
	case protocol.Lookup(name).Keeping == protocol.Dropped && !hub.RoomVerb(name):
		return
	}
	s.kept(f, sender)
}

func (s *socket) refuse(f *asterism.Frame, r *protocol.Refusal) {
	s.do(asterism.Outcome{Say: []asterism.Say{{Kind: asterism.SayRefused, Refusal: r, MsgID: protocol.MsgID(f.MsgID)}}})
}

// live passes on a frame that is not kept. Its identity is the connection's, as with kept ones. The pieces of a stream are
// for boards alone: whom it is addressed to gets the joined utterance, once and acknowledged (fault B26).
func (s *socket) live(f *asterism.Frame) {
	env, no := f.Envelope(s.session.Sender(), newID())
	if no != nil {
		s.refuse(f, no)
		return
	}
	l := s.n.loop
	s.post(func() {
		if s.gone {
			return
		}
		frame := asterism.AppendDelivery(nil, l.by(s, &env), l.now.UnixMilli())
		if f.Telemetry {
			frame = append(frame[:len(frame)-1], `,"telemetry":true}`...)
		}
		to := env.To
		if f.Stream() {
			to = ""
		}
		l.core.Step(l.now, hub.SayLive{Conn: s.id, As: env.From, To: to, Frame: frame})
	})
}

func (s *socket) kept(f *asterism.Frame, sender asterism.Sender) {
	env, no := f.Envelope(sender, newID())
	if no == nil {
		no = s.n.mute()
	}
	if no == nil {
		no = s.spend(hub.Size(&env))
	}
	if no != nil {
		s.refuse(f, no)
		return
	}
	if err := s.prepare(&env); err != nil {
		s.unable(f, err, protocol.CodeDiskFull, "the value could not be stored")
		return
	}
	l := s.n.loop
	s.postSized(hub.Size(&env), func() {
		if s.gone {
			return
		}
		token := l.expect(func(t hub.Told) {
			if t.Repeat {
				l.repeatAck(s, t)
			}
			if t.Refusal == nil {
				l.meet(s, env.To)
				l.given(giverOf(sender.ID), &env)
			}
		})
		l.core.Step(l.now, l.said(hub.Say{Conn: s.id, As: l.as(s, sender.ID), Env: env, Token: token}))
	})
}

// acked takes AckProcessed. Without a tier the agent itself vouches; with delivered-persist its adapter does.
func (s *socket) acked(f *asterism.Frame, sender asterism.Sender) {
	if sender.ID == "" {
		return // boards acknowledge nothing
	}
	var v struct {
		AckFor   protocol.MsgID `json:"ackFor"`
		Tier     string         `json:"tier"`
		DedupHit bool           `json:"dedupHit"`
	}
	if json.Unmarshal(f.Value, &v) != nil || v.AckFor == "" {
		s.refuse(f, protocol.Refuse(protocol.CodeWrongType, "AckProcessed needs value.ackFor, a message id", ""))
		return
	}
	l := s.n.loop
	s.post(func() {
		if s.gone {
			return
		}
		l.core.Step(l.now, hub.Acked{Agent: l.as(s, sender.ID), Of: v.AckFor, From: f.TargetAgentID, Processed: v.Tier == "" && !v.DedupHit})
	})
}

// holder is the agent whose HELLO holds, or "". Call it in the loop: the session itself belongs to the read loop.
func (s *socket) holder() protocol.AgentID {
	if s.as == nil {
		return ""
	}
	return s.as.Agent
}

// say sends a session's frames and closes the socket if the session has ended.
func (l *loop) say(s *socket, o asterism.Outcome, history asterism.History) {
	for _, say := range o.Say {
		switch say.Kind {
		case asterism.SayHello:
			s.conn.Send(l.enc.ServerHello(l.now, s.name, asterism.CapArtifacts))
		case asterism.SayRoster:
			if s.outside {
				l.outsideRoster(s, l.core.Listed(l.now))
				continue
			}
			s.conn.Send(l.agentList())
			s.seen = true
		case asterism.SayHistory:
			l.showDeclared(&history, s.holder())
			if !history.Empty() {
				s.conn.Send(l.enc.History(l.now, history))
			}
		case asterism.SayInfo:
			s.conn.Send(l.enc.ConnectionInfo(l.now, say.Info))
		case asterism.SayRejected:
			s.conn.Send(l.enc.ConnectionRejected(l.now, say.Rejection))
		case asterism.SayRefused:
			s.conn.Send(l.enc.Refused(l.now, s.holder(), say.MsgID, say.Refusal))
			l.offended(s)
		}
	}
	if o.Close != 0 {
		s.conn.Close(o.Close, o.CloseReason)
	}
}
