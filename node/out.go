package node

import (
	"runtime"
	"time"

	"github.com/aster-mesh/aster/node/hub"
	"github.com/aster-mesh/aster/node/link"
	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/api"
	"github.com/aster-mesh/aster/protocol/asterism"
	"github.com/aster-mesh/aster/protocol/meshwire"
)

// out lets one consequence out. What it says is durable by now.
func (l *loop) out(o hub.Out) {
	l.n.abroad.heard(l, o)
	switch o := o.(type) {
	case hub.Deliver:
		l.deliver(o)
	case hub.Copy:
		l.copy(o)
	case hub.TierReached:
		l.tier(o)
	case hub.Told:
		if f := l.tokens[o.Token]; f != nil {
			delete(l.tokens, o.Token)
			f(o)
		}
	case hub.Refused:
		l.refused(o)
	case hub.LiveCopy:
		l.liveCopy(o)
	case hub.LiveOut:
		l.liveOut(o)
	case hub.HintDelivered:
		l.sendTo(o.Home, hintFrame(o))
	case hub.QueuedNotice:
		l.queued(o)
	case hub.Roster:
		l.rosterOut(o)
	case hub.Replaced:
		l.replaced(o)
	case hub.MovedAway:
		l.movedAway(o)
	case hub.Recalled:
		l.recalled(o)
	case hub.PresenceChanged:
		for peer := range l.peers {
			l.sendPresence(peer)
		}
		l.agentsChanged()
	case hub.Mail:
		l.n.mail(o.Agent)
	case hub.RoomEvent:
		l.roomEvent(o)
	case hub.RoomAcked:
		l.roomAcked(o)
	case hub.MainChanged:
		l.mainChanged(o)
	case hub.Storm:
		l.storm(o)
	case hub.StormOver:
		l.n.warnings.clear(stormKey(o.A, o.B))
	}
}

// cork holds back what a turn says to a socket until all of it is said.
func (l *loop) cork(s *socket) {
	if !s.corked {
		s.corked, l.corked = true, append(l.corked, s)
		s.conn.Cork()
	}
}

// uncorkedAtOnce is how many sockets the loop itself writes to in a turn. Of a turn that speaks to more the write loops take
// care, side by side.
const uncorkedAtOnce = 4

// uncork lets the sockets have what was held back. It comes before what goes to other nodes: a message before its receipt.
func (l *loop) uncork() {
	few, others := len(l.corked) <= uncorkedAtOnce, false
	for _, s := range l.corked {
		s.corked = false
		others = !s.conn.Uncork(few) || others
	}
	clear(l.corked)
	l.corked = l.corked[:0]
	if others {
		runtime.Gosched() // else their writers come behind those of the links
	}
}

// deliver writes a message to a socket, behind what is on its way there.
func (l *loop) deliver(o hub.Deliver) {
	s := l.sockets[o.Conn]
	if s == nil {
		return
	}
	if s.feed.reading {
		s.feed.behind = append(s.feed.behind, o)
		return
	}
	l.cork(s)
	env, wall := o.Env, l.now.UnixMilli()
	if env == nil {
		if m := l.recent.get(o.Ref); m != nil {
			env, wall = m.env, m.wall
		} else if m, ok, err := l.store.Message(o.Ref.Log, o.Ref.Seq); err == nil && ok {
			env, wall = &m.Envelope, m.Wall
		} else {
			l.log.Error("unread message not readable", "log", o.Ref.Log.String(), "seq", o.Ref.Seq, "err", err)
			return
		}
	}
	env = l.core.Aliases().Shown(o.Ref.Log.Peer, env)
	if s.as != nil && env.To != "" && protocol.FoldAgentID(env.To) != protocol.FoldAgentID(s.as.Agent) {
		renamed := *env // it was sent to the agent's former name
		renamed.To = s.as.Agent
		env = &renamed
	}
	if env.Room != "" { // one record for all; each copy says for whom it is
		copied := *env
		copied.To = o.To
		env = &copied
	}
	if env.ValueBlob != nil {
		l.large(s, o, env, wall)
		return
	}
	l.deliverFrame(s, o, env, asterism.AppendDelivery(make([]byte, 0, len(env.Value)+384), env, wall))
}

// copy shows a message to boards and pages.
func (l *loop) copy(o hub.Copy) {
	w := &showing{wall: l.now.UnixMilli(), except: o.Except, told: l.recent.get(o.Ref)}
	if w.told != nil {
		w.told.conn = o.Except
		l.n.health.message()
	}
	if o.Env.Room != "" {
		w.except = 0 // in a room a person sees its own words where everybody does
	}
	if !asterism.Streamed(o.Env) {
		w.boards = l.core.Boards()
	}
	declared := protocol.Lookup(o.Env.Intent).Class == protocol.ClassDeclaration
	switch {
	case o.Env.ValueBlob != nil && (len(w.boards) > 0 || declared || l.n.pages.watched()):
		w.large, w.ref = o.Env, o.Ref
	case len(w.boards) > 0:
		w.frame = asterism.AppendDelivery(nil, o.Env, w.wall)
	}
	l.show(w)
}

// messageOf is the API's view of a recent message.
func (l *loop) messageOf(m *recentMessage) *api.Message {
	text := m.text
	if m.env.ValueBlob == nil {
		text = l.n.textOf(m.env)
	}
	return &api.Message{
		Pos: m.pos, Short: shortOf(m.env), At: m.wall, Node: m.ref.Log.Peer, NodeName: l.n.nameOf(m.ref.Log.Peer),
		Log: m.ref.Log.String(), Seq: m.ref.Seq, Doubt: l.n.doubt(m.ref.Log.Peer), Envelope: tame(*m.env), Text: text, Tiers: l.tiersOf(m),
	}
}

func (l *loop) tiersOf(m *recentMessage) []api.TierAt {
	tiers := append([]api.TierAt{{Tier: protocol.Logged, At: m.wall, By: m.ref.Log.Peer}}, m.tiers...)
	if l.n.replicatedHas(m.ref.Log, m.ref.Seq) {
		tiers = addTier(tiers, api.TierAt{Tier: protocol.Replicated})
	}
	sortTiers(tiers)
	return tiers
}

// tier tells whoever should know that a message came further: its sender's sockets, waiters, pages.
func (l *loop) tier(o hub.TierReached) {
	if !o.Delivered && !o.Kept {
		l.wakeTier(o.Ref, o.Tier)
	}
	m := l.recent.get(o.Ref)
	if m == nil {
		if o.Ref.Log.Peer != l.n.home.peer && !l.n.pages.watched() && !l.core.CameHere() {
			return
		}
		if l.startedHere(o.Ref.Log) && !l.ours.has(o.Ref) {
			return // a receipt, a binding: nobody waits for their tiers
		}
		stored, ok, err := l.store.Message(o.Ref.Log, o.Ref.Seq)
		if err != nil || !ok {
			return
		}
		m = &recentMessage{pos: stored.Pos, ref: o.Ref, wall: stored.Wall, env: &stored.Envelope, tiers: l.n.tiersOf(&stored)}
	} else if !o.Delivered && !o.Kept && o.Tier != protocol.Logged {
		m.tiers = addTier(m.tiers, api.TierAt{Tier: o.Tier, At: l.now.UnixMilli(), Agent: o.Agent, Reason: o.Reason})
	}
	if o.Ref.Log.Peer == l.n.home.peer || m.env.From != "" && l.core.MovedHere(m.env.From) {
		if o.Tier == protocol.Persisted && !o.Delivered && !o.Kept {
			l.n.health.persisted(l.now.Sub(time.UnixMilli(m.wall)))
		}
		l.tellSender(o, m)
	}
	l.showAck(o, m)
	l.replicatedSpan(o, m)
	if l.n.pages.watched() && !o.Delivered && !o.Kept && o.Tier != protocol.Logged {
		l.n.pages.publish(api.Event{Type: "tiers", MsgID: m.env.ID, From: m.env.From, Tiers: l.tiersOfWord(m)})
	}
}

// tellSender writes what the contract's table of facts says (DESIGN 6) to the sockets of whoever sent the message.
func (l *loop) tellSender(o hub.TierReached, m *recentMessage) {
	conns := l.core.Conns(m.env.From)
	if m.env.From == "" && m.conn != 0 {
		conns = []hub.ConnID{m.conn}
	}
	by := o.Agent
	if by == "" {
		by = m.env.To
	}
	for _, id := range conns {
		s := l.sockets[id]
		if s == nil {
			continue
		}
		l.cork(s)
		switch {
		case o.Delivered && m.env.Room != "": // a room's speaker heard it for all at once
		case o.Delivered:
			s.conn.Send(l.enc.Ack(l.now, m.env.From, asterism.Ack{For: m.env.ID, Kind: asterism.KindDelivered, From: by}))
		case o.Kept:
			s.conn.Send(l.enc.AckProcessed(l.now, m.env.From, asterism.Processed{From: asterism.Sender{ID: by}, For: m.env.ID, Tier: "delivered-persist"}))
		case o.Tier == protocol.Processed:
			s.conn.Send(l.enc.AckProcessed(l.now, m.env.From, asterism.Processed{From: asterism.Sender{ID: by}, For: m.env.ID}))
		case o.Tier == protocol.Refused:
			msg := m.env.ID
			s.conn.Send(l.enc.RelayUnreachable(l.now, m.env.From, asterism.Unreachable{
				MsgID: &msg, TargetAgentID: by, LastError: asterism.UnreachableAbsent, Reason: l.whyRefused(by, m.env.From, o.Reason)}))
			if o.Reason == protocol.CodeInboxFull { // the contract's word for it says something else
				s.conn.Send(l.enc.Refused(l.now, m.env.From, m.env.ID, l.fullElsewhere(by, m.env.From)))
			}
		}
		if l.core.WantsTiers(id) && !o.Delivered && !o.Kept {
			s.conn.Send(l.enc.Ack(l.now, m.env.From, asterism.Ack{For: m.env.ID, Kind: string(o.Tier), From: by, Reason: o.Reason}))
		}
	}
}

// showAck lets boards see that a message was taken: they mark its row.
func (l *loop) showAck(o hub.TierReached, m *recentMessage) {
	tier := ""
	switch {
	case o.Kept:
		tier = "delivered-persist"
	case o.Delivered || o.Tier != protocol.Processed:
		return
	}
	by, but := o.Agent, hub.ConnID(0)
	if by == "" {
		by = m.env.To
	}
	if m.env.From == "" {
		but = m.conn // it heard so as the sender
	}
	if len(l.core.Boards()) > 0 {
		l.toBoards(l.enc.AckProcessed(l.now, m.env.From, asterism.Processed{From: asterism.Sender{ID: by}, For: m.env.ID, Tier: tier}), but)
	}
}

// repeatAck gives the sender of a repeat the receipt that the first copy has.
func (l *loop) repeatAck(s *socket, t hub.Told) {
	m, ok, err := l.store.Message(t.Ref.Log, t.Ref.Seq)
	if err != nil || !ok {
		return
	}
	l.roomRepeat(s, t.ID, &m)
	for _, tier := range m.Tiers {
		by := m.Envelope.To
		if m.Envelope.Room != "" {
			by = tier.Agent
		}
		switch tier.Tier {
		case protocol.Persisted:
			if m.Envelope.Room == "" {
				s.conn.Send(l.enc.Ack(l.now, m.Envelope.From, asterism.Ack{For: t.ID, Kind: asterism.KindDelivered, From: by}))
			}
		case protocol.Processed:
			s.conn.Send(l.enc.AckProcessed(l.now, m.Envelope.From, asterism.Processed{From: asterism.Sender{ID: by}, For: t.ID}))
		}
		if l.core.WantsTiers(s.id) && tier.Tier != hub.Given && tier.Tier != hub.Kept && tier.Tier != protocol.Handed {
			s.conn.Send(l.enc.Ack(l.now, m.Envelope.From, asterism.Ack{For: t.ID, Kind: string(tier.Tier), From: by, Reason: tier.Reason}))
		}
	}
}

// refused tells a socket that its message was not let in: in the contract's words for a dead message, and in ours.
func (l *loop) refused(o hub.Refused) {
	s := l.sockets[o.Conn]
	if s == nil {
		return
	}
	defer l.offended(s)
	if o.Env.To != "" {
		msg := o.Env.ID
		s.conn.Send(l.enc.RelayUnreachable(l.now, o.Env.From, asterism.Unreachable{
			MsgID: &msg, TargetAgentID: o.Env.To, LastError: asterism.UnreachableAbsent, Reason: o.Refusal.Error()}))
	}
	s.conn.Send(l.enc.Refused(l.now, o.Env.From, o.Env.ID, o.Refusal))
}

func (l *loop) queued(o hub.QueuedNotice) {
	for _, id := range l.core.Conns(o.Sender) {
		if s := l.sockets[id]; s != nil {
			s.conn.Send(l.enc.ServerNotice(l.now, o.Sender, asterism.Notice{
				Kind: "queued", Text: string(o.Target) + " has not been here for ten minutes; your message waits for it", Target: string(o.Target), MsgID: o.ID}))
		}
	}
}

// rosterOut sends AgentList: to one, or prepared once for all.
func (l *loop) rosterOut(o hub.Roster) {
	if o.Conn != 0 {
		return // a session's own first frames hold it
	}
	p := link.Prepare(l.agentList())
	var present []hub.Known
	for _, s := range l.sockets {
		if s.seen && s.outside {
			if present == nil {
				present = l.core.Listed(l.now)
			}
			l.outsideRoster(s, present)
		} else if s.seen {
			s.conn.SendPrepared(p)
		}
	}
	l.agentsChanged()
}

// agentList is the roster as clients see it, encoded once for all that join in one turn.
func (l *loop) agentList() []byte {
	if l.list != nil {
		return l.list
	}
	known := l.core.Listed(l.now)
	rows := make([]asterism.Agent, len(known))
	for i, k := range known {
		rows[i] = asterism.Agent{ID: k.Agent, Name: k.Name, Role: k.Role}
	}
	list := l.enc.AgentList(l.now, rows)
	if l.letting {
		l.list = list
	}
	return list
}

// replaced closes a socket: the older one without a code, as the contract does; the newcomer of a flap with a reason.
func (l *loop) replaced(o hub.Replaced) {
	s := l.sockets[o.Conn]
	if s == nil {
		return
	}
	if o.Flap {
		s.conn.Send(l.enc.ServerNotice(l.now, "", asterism.Notice{Kind: "flap-rejected", Text: "another client holds this agent id", Code: protocol.CodeFlap}))
		return // the refusal that comes with it closes the session
	}
	delete(l.sockets, o.Conn)
	s.conn.Close(closeReplaced, "replaced by a newer connection of this agent")
}

// closeReplaced: the contract sends an empty close here; 1000 is what clients take for the same, with a reason beside.
const closeReplaced = 1000

func (l *loop) agentsChanged() {
	if l.n.pages.watched() {
		l.n.pages.publish(api.Event{Type: "agents", Agents: l.agents()})
	}
}

// liveFrames and the others name what a meshwire.Live carries.
const (
	liveFrames    = "frames"
	liveDelivered = "delivered"
	liveKept      = "kept"
)

func hintFrame(o hub.HintDelivered) meshwire.Live {
	kind := liveDelivered
	if o.Kept {
		kind = liveKept
	}
	return meshwire.Live{Agent: o.Agent, Kind: kind, Frame: protocol.EncodeBody(liveRef{o.Ref.Log.String(), o.Ref.Seq})}
}

type liveRef struct {
	Log string `json:"log"`
	Seq uint64 `json:"seq"`
}
