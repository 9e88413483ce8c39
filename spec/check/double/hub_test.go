package double

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aster-mesh/aster/node/link"
	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/asterism"
)

const mainAgent = "main-agent"

// hub is one hub behind one lock. Its faults are fixed at creation.
type hub struct {
	fault string // the known fault that it has, or nothing
	url   string
	clock clock
	ids   atomic.Uint64

	mu     sync.Mutex
	enc    *asterism.Encoder
	conns  []*conn
	agents map[protocol.AgentID]*agent
	said   map[string]protocol.Digest // from and id → content
	events []asterism.Event
	window map[protocol.AgentID]protocol.AgentID // of B11: who answers whom

	main      protocol.AgentID
	keys      []*key
	questions map[string]*question // by promptId
	declared  map[protocol.Intent]map[string]json.RawMessage
	away      map[string]bool // channels that were put away
	rooms     map[protocol.RoomID]*room
	parts     map[part]*upload
	gifts     []gift
	next      protocol.AgentID // is to be main
	noise     int              // declarations, of B20
	turns     map[[2]protocol.AgentID]turns
}

type agent struct {
	id       protocol.AgentID
	name     string
	role     protocol.Role
	conn     *conn
	box      []*letter
	acks     bool
	replaced []time.Time
	cool     time.Time
}

type letter struct {
	env         protocol.Envelope
	by          *conn // a board that sent it
	given, kept bool
	room        bool // its sender has heard of it
	tries       int  // on the connection that it was given to last
	last        time.Time
}

type conn struct {
	h       *hub
	link    *link.Conn
	session *asterism.Session
	streams asterism.Streams
	key     *key
	waits   *key // its HELLO is still to come
	seen    bool // it was given a roster
	layer   bool // its HELLO lists ack-layer
	forced  protocol.AgentID
	sent    []counted
	owed    float64 // refusals, less fifty a second
	owedAt  time.Time
}

type counted struct {
	seq uint64
	l   *letter
}

// start serves a hub until the test ends.
func start(t *testing.T, fault string) *hub {
	h := &hub{fault: fault, main: mainAgent, agents: map[protocol.AgentID]*agent{}, said: map[string]protocol.Digest{}, window: map[protocol.AgentID]protocol.AgentID{},
		questions: map[string]*question{}, declared: map[protocol.Intent]map[string]json.RawMessage{}, away: map[string]bool{}, rooms: map[protocol.RoomID]*room{}, parts: map[part]*upload{}, turns: map[[2]protocol.AgentID]turns{}}
	h.enc = asterism.NewEncoder(func() string { return string(h.id()) })
	ctx, cancel := context.WithCancel(context.Background())
	var serving sync.WaitGroup
	ts := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/ws" || r.Header.Get("Origin") != "" {
			http.Error(w, "no", http.StatusForbidden)
			return
		}
		if r.URL.Query().Get("token") != "" || r.URL.Query().Has("key") && r.URL.Query().Has("peerKey") {
			http.Error(w, "no", http.StatusUnauthorized) // it has no token, and no client has two keys
			return
		}
		c := &conn{h: h}
		if !c.enter(keyIn(r.URL.Query())) {
			http.Error(w, "no", http.StatusServiceUnavailable)
			return
		}
		var err error
		if c.link, err = link.Upgrade(w, r, link.Options{OnRead: c.read, Subprotocols: []string{asterism.SubprotocolMsgpack}, Recode: map[string]func([]byte) []byte{asterism.SubprotocolMsgpack: packed}}); err != nil {
			return
		}
		serving.Go(func() { c.serve(ctx, r) })
	}))
	t.Cleanup(func() { cancel(); serving.Wait(); ts.Close() })
	h.url = "ws" + strings.TrimPrefix(ts.URL, "http") + "/ws"
	return h
}

func packed(frame []byte) []byte { b, _ := asterism.AppendMsgpack(nil, frame); return b }

func (h *hub) id() protocol.MsgID { return protocol.MsgID(fmt.Sprintf("evt-%d", h.ids.Add(1))) }

func (c *conn) serve(ctx context.Context, r *http.Request) {
	h := c.h
	h.mu.Lock()
	o := asterism.Opening{Board: true}
	k, no := h.shown(keyIn(r.URL.Query()))
	if c.key = k; k != nil || no != nil {
		o = asterism.Opening{Keyed: true, Rejected: no}
	}
	c.link.Authenticated()
	var out asterism.Outcome
	c.session, out = asterism.NewSession(o)
	h.conns = append(h.conns, c)
	c.do(out)
	h.mu.Unlock()
	_ = c.link.Serve(ctx, func(data []byte, binary bool) {
		h.mu.Lock()
		defer h.mu.Unlock()
		if binary && c.link.Subprotocol() != "" {
			raw, no := asterism.FromMsgpack(data, 0)
			if no != nil {
				c.do(c.session.Bad(no))
				return
			}
			data = raw
		}
		c.frame(data)
	})
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, f := range c.streams.Flush() {
		c.kept(&f)
	}
	c.entered()
	c.session.End()
	h.conns = slices.DeleteFunc(h.conns, func(o *conn) bool { return o == c })
	for _, a := range h.agents {
		if a.conn == c {
			a.conn = nil
		}
	}
	h.roster()
}

func (c *conn) do(out asterism.Outcome) {
	now, enc := c.h.clock.now(), c.h.enc
	for _, say := range out.Say {
		switch say.Kind {
		case asterism.SayHello:
			if c.h.fault == keepsNone {
				c.link.Send(enc.ServerHello(now, "session"))
			} else {
				c.link.Send(enc.ServerHello(now, "session", asterism.CapArtifacts))
			}
		case asterism.SayRoster:
			c.seen = true
			c.link.Send(c.h.list(c))
		case asterism.SayHistory:
			if past := c.history(); !past.Empty() {
				c.link.Send(enc.History(now, past))
			}
		case asterism.SayInfo:
			c.link.Send(enc.ConnectionInfo(now, say.Info))
		case asterism.SayRejected:
			c.link.Send(enc.ConnectionRejected(now, say.Rejection))
		case asterism.SayRefused:
			c.link.Send(enc.Refused(now, c.session.Sender().ID, say.MsgID, say.Refusal))
			c.offends(now)
		}
	}
	if out.Close != 0 {
		c.link.Close(out.Close, out.CloseReason)
	}
}

// offends counts what a connection was refused, and cuts it off when that is more than a thousand, and fifty a second.
func (c *conn) offends(now time.Time) {
	c.owed = max(c.owed-now.Sub(c.owedAt).Seconds()*50, 0) + 1
	if c.owedAt = now; c.owed > 1000 {
		c.session.End()
		c.link.Close(1008, "too much was refused")
	}
}

// list is the roster as a connection may see it: whom somebody outside does not speak to is not listed there.
func (h *hub) list(to *conn) []byte {
	var rows []asterism.Agent
	for _, a := range h.agents {
		if a.conn != nil && (!to.key.outside() || h.leads(a.id) || a.conn == to) {
			rows = append(rows, asterism.Agent{ID: a.id, Name: a.name, Role: h.roleOf(a)})
		}
	}
	slices.SortFunc(rows, func(a, b asterism.Agent) int { return strings.Compare(string(a.ID), string(b.ID)) })
	return h.enc.AgentList(h.clock.now(), rows)
}

func (h *hub) leads(id protocol.AgentID) bool {
	return protocol.FoldAgentID(id) == protocol.FoldAgentID(h.main)
}

func (h *hub) roleOf(a *agent) protocol.Role {
	switch {
	case h.leads(a.id):
		return protocol.RoleMain
	case a.role == "":
		return protocol.RoleLocal
	}
	return a.role
}

func (h *hub) roster() {
	for _, c := range h.conns {
		if c.seen {
			c.link.Send(h.list(c))
		}
	}
}

// toBoards shows a frame to everybody who watches, without its sender.
func (h *hub) toBoards(frame []byte, but *conn) {
	for _, c := range h.conns {
		if c != but && (c.session.Watches() || h.fault == "KB10" && c.key != nil && !c.session.Agent()) {
			c.link.Send(frame)
		}
	}
}

// post puts a message into an agent's box and gives it to it if it is there. After ten minutes its sender hears if it is not.
func (h *hub) post(to *agent, l *letter) {
	to.box = append(to.box, l)
	if to.conn != nil {
		to.conn.give(l)
		return
	}
	h.clock.after(10*time.Minute, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		if by := h.sender(l); by != nil && !l.given && l.env.Source != protocol.SourceServer {
			by.link.Send(h.enc.ServerNotice(h.clock.now(), l.env.From, asterism.Notice{Kind: "queued", Text: "it waits", MsgID: l.env.ID, Target: string(to.id)}))
		}
	})
}

func (h *hub) agent(id protocol.AgentID) *agent { return h.agents[protocol.FoldAgentID(id)] }

// judge lets an agent in, in place of an older connection of its id.
func (c *conn) judge(f *asterism.Frame) {
	h, now := c.h, c.h.clock.now()
	if no := c.lockedOut(f); no != nil {
		if h.fault == "KB4" { // it is told, and heard until the close
			c.forced = f.AgentID
			c.link.Send(h.enc.ConnectionRejected(now, *no))
			time.AfterFunc(50*time.Millisecond, func() { c.link.Close(asterism.CloseRejected, no.Code) })
			return
		}
		c.do(c.session.Reject(*no))
		return
	}
	a := h.agent(f.AgentID)
	if a == nil {
		a = &agent{id: f.AgentID}
		h.agents[protocol.FoldAgentID(f.AgentID)] = a
	}
	if now.Before(a.cool) {
		c.link.Send(h.enc.ServerNotice(now, "", asterism.Notice{Kind: "flap-rejected", Text: "held by another client"}))
		c.do(c.session.Reject(asterism.Rejection{Code: protocol.CodeFlap, Reason: "held by another client"}))
		return
	}
	if h.fault == "B50" {
		h.forget(a.id)
	}
	c.entered()
	if old := a.conn; old != nil {
		old.session.End()
		old.seen = false
		old.link.Close(1000, "replaced")
		if a.replaced = append(a.replaced, now); len(a.replaced) >= 3 {
			a.cool, a.replaced = now.Add(30*time.Second), nil
		}
	}
	taken := func(id protocol.AgentID) bool { o := h.agent(id); return o != nil && o.conn != nil }
	a.name, a.conn, c.layer = asterism.CleanName(f.AgentName, f.AgentID, taken), c, f.Can(asterism.CapAckLayer)
	if c.key != nil {
		a.role = c.key.role()
	}
	c.do(c.session.Accept(asterism.Accepted{Name: a.name, Role: h.roleOf(a), Keyed: c.key != nil, MayManageKeys: h.leads(a.id)}))
	h.roster()
	c.flush(a)
}

// lockedOut judges the key of a HELLO or of the address, and whose it is.
func (c *conn) lockedOut(f *asterism.Frame) *asterism.Rejection {
	if f.Key != "" {
		k, no := c.h.shown(f.Key)
		if no != nil {
			return no
		}
		c.key = k
	}
	if c.key == nil {
		return nil
	}
	return c.key.mayEnter(f.AgentID)
}

// flush gives an agent what waited for it.
func (c *conn) flush(a *agent) {
	waiting := slices.Clone(a.box)
	for _, l := range waiting {
		l.tries = 0
	}
	switch c.h.fault {
	case "KC7":
		return
	case "KC6":
		slices.Reverse(waiting)
	}
	for _, l := range waiting {
		if !l.kept && (!l.given || a.acks || c.layer) {
			c.give(l)
		}
	}
}

func (c *conn) give(l *letter) {
	l.tries, l.last = l.tries+1, c.h.clock.now()
	c.h.clock.after(tryEvery, c.again)
	frame := c.h.copyFor(&l.env)
	if seq, ok := c.link.SendCounted(frame); ok {
		c.sent = append(c.sent, counted{seq, l})
		c.link.Probe()
	}
}

const (
	tryEvery = 30 * time.Second
	triesMax = 3
)

// again gives once more what is due, oldest first, to a client that acknowledges.
func (c *conn) again() {
	h := c.h
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, a := range h.agents {
		if a.conn != c || !a.acks && !c.layer {
			continue
		}
		for _, l := range slices.Clone(a.box) {
			if !l.kept && l.given && l.tries < triesMax && h.clock.now().Sub(l.last) > tryEvery-time.Second {
				c.give(l)
			}
		}
	}
}

// copyFor is what agents get of a message.
func (h *hub) copyFor(env *protocol.Envelope) []byte {
	frame := asterism.AppendDelivery(nil, env, h.clock.now().UnixMilli())
	if h.fault != "B19" {
		return frame
	}
	var fields map[string]json.RawMessage
	_ = json.Unmarshal(frame, &fields)
	delete(fields, "timestamp")
	delete(fields, "declaredTs")
	frame, _ = json.Marshal(fields)
	return frame
}

// read says to senders that their messages were read.
func (c *conn) read(seq uint64) {
	c.h.mu.Lock()
	defer c.h.mu.Unlock()
	for len(c.sent) > 0 && c.sent[0].seq <= seq {
		l := c.sent[0].l
		c.sent = c.sent[1:]
		if !l.given {
			c.h.delivered(l)
		}
	}
}

func (h *hub) delivered(l *letter) {
	l.given = true
	if to := h.sender(l); to != nil && !l.room && l.env.Source != protocol.SourceServer {
		to.link.Send(h.enc.Ack(h.clock.now(), l.env.From, asterism.Ack{For: l.env.ID, Kind: asterism.KindDelivered, From: l.env.To}))
	}
}

// sender is where the sender of a message hears of it.
func (h *hub) sender(l *letter) *conn {
	if l.env.From == "" {
		return l.by
	}
	if a := h.agent(l.env.From); a != nil {
		return a.conn
	}
	return nil
}
