package sim

import (
	"time"

	"github.com/aster-mesh/aster/board"
	"github.com/aster-mesh/aster/node/hub"
	"github.com/aster-mesh/aster/node/journal"
	"github.com/aster-mesh/aster/node/replica"
	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/meshwire"
	"github.com/aster-mesh/aster/roles/member"
)

// boot starts the process on what the disk holds: the twin of openLoop.
func (n *node) boot() {
	w := n.w
	n.starts++
	p := &proc{
		n: n, started: w.now, wall: n.wall(), chain: map[protocol.LogID]protocol.Hash{},
		fresh: map[protocol.LogID][]protocol.Record{}, from: map[protocol.LogID]protocol.PeerID{}, tokens: map[hub.Token]func(hub.Told){},
		conns: map[hub.ConnID]*client{}, bases: map[protocol.PeerID]meshwire.Base{}, peers: map[protocol.PeerID]*peerState{}, told: map[protocol.LogID]uint64{}, inside: n.role.Inside(),
	}
	p.now = p.clock()
	p.saved = p.now
	n.p = p
	w.logf("node %d starts, clock %v off", n.i, n.skew.Round(time.Second))
	w.note('B', n.i, n.starts, 0)
	p.foldBoard()
	heads, _ := n.disk.Heads()
	clock := max(protocol.HLCAt(p.now), p.board.From().At())
	for _, h := range heads {
		if rec, ok, _ := n.disk.At(h.Log, h.Seq); ok {
			clock = max(clock, rec.Record.At)
		}
	}
	if chain, err := member.ParseChain(n.home.chain); err == nil {
		clock = max(clock, chain[0].Cert.Lifts)
	}
	p.start = protocol.Start{At: clock + 1, Rand: w.rng.Uint64()}
	_, p.older, _ = n.disk.Value(keyOlder)
	if n.lost {
		n.lost, p.older = false, true
		p.value(keyOlder, []byte{1})
	}
	p.restore(heads, clock)
	for _, a := range p.board.Agents() {
		if p.older && a.Home == n.peer {
			p.regained = append(p.regained, a.ID)
		}
	}
	p.foundingRecords()
	p.dirty = true
	p.arrange(0)
}

// foldBoard is foldBoard: the checkpoint, and the tail after it.
func (p *proc) foldBoard() {
	st, pos := board.New(p.n.w.mesh.id), uint64(0)
	from := p.n.standsOn()
	if from != nil {
		st = from.State()
	}
	if at, raw, ok, _ := p.n.disk.Checkpoint(boardCheckpoint); ok {
		if st2, err := board.Decode(raw); err == nil && st2.Roster().Mesh() == p.n.w.mesh.id {
			if from != nil {
				st2.Settle(from)
			}
			if from == nil || !st2.Stale() {
				st, pos = st2, at
			}
		} else {
			p.n.w.fail("checkpoints are read", "node %d: %v", p.n.i, err)
		}
	}
	for left := foldings; ; left-- {
		page, _ := p.n.disk.Since(pos, 1<<30)
		for i := range page {
			if err := st.Apply(&page[i].Record, nil); err != nil {
				p.n.w.fail("the board folds", "node %d: %v", p.n.i, err)
			}
			pos = page[i].Pos
		}
		if !st.Stale() || !p.n.settles(left) {
			break
		}
		st, pos = st.Restart(), 0
	}
	p.board, p.pos, p.savedAt = st, pos, pos
}

// foldings is how often a board may be stale when all is folded: what is learned on the way makes it so once or twice.
const foldings = 64

// settles says whether a stale board may be folded once more. One that is stale however often is a fault, and no run without
// an end.
func (n *node) settles(left int) bool {
	if left > 0 {
		return true
	}
	n.w.fail("the board folds", "node %d: it is stale however often it is folded", n.i)
	return false
}

// restore is loop.restore: hub and replica from what is durable.
func (p *proc) restore(heads []journal.Head, clock protocol.HLC) {
	boot := p.bootOf(clock)
	boot.Seqs, boot.Held = map[protocol.Scope]uint64{}, map[protocol.LogID]uint64{}
	var held []replica.Head
	for _, h := range heads {
		held = append(held, replica.Head{Log: h.Log, Seq: h.Seq, Hash: h.Hash})
		boot.Held[h.Log] = h.Seq
		if h.Log.Peer == p.n.peer && h.Log.Start == p.start {
			boot.Seqs[h.Log.Scope], p.chain[h.Log] = h.Seq, h.Hash
		}
	}
	p.core = hub.New(boot)
	p.rep = replica.New(p.n.peer, held, p.maySee)
	for _, h := range held {
		if bound := p.roster().Bound(h.Log); bound != member.NoBound {
			p.rep.Cut(h.Log, bound)
		}
	}
	for _, b := range p.n.disk.Bases() {
		p.rep.Based(b.Log, b.Seq)
	}
	p.restoreOffice()
}

func (p *proc) foundingRecords() {
	if !p.n.home.founder {
		return
	}
	if _, ok := p.roster().Member(p.n.peer); !ok {
		p.core.Step(p.now, hub.Author{Scope: protocol.ScopeInside, Kind: protocol.KindMember, Body: protocol.EncodeBody(
			protocol.MemberBody{Peer: p.n.peer, Name: p.n.name, Role: protocol.RoleLocal, Chain: p.n.home.chain})})
	}
	if p.roster().Term().Number == 0 {
		p.core.Step(p.now, hub.Author{Scope: protocol.ScopeInside, Kind: protocol.KindTerm, Body: protocol.EncodeBody(
			protocol.TermBody{Number: 1, Peer: p.n.peer, Agent: agentName(0)})})
	}
}

// bootOf is Node.boot.
func (p *proc) bootOf(clock protocol.HLC) hub.Boot {
	st, d := p.board, p.n.disk
	b := hub.Boot{Self: p.n.peer, Start: p.start, Clock: clock, Members: map[protocol.PeerID]hub.Member{}, Term: st.Roster().Term(),
		Unread: map[protocol.AgentID][]hub.Letter{}, Presence: map[protocol.AgentID]hub.Noted{}, Now: p.now}
	for peer, m := range p.known() {
		b.Members[peer] = hub.Member{Name: m.Name, Role: m.Role, Inside: m.Inside, Gone: m.Revoked, Admitted: m.Since}
	}
	var err error
	if b.Rooms, err = st.Rooms(); err != nil {
		p.n.w.fail("the board folds", "node %d: %v", p.n.i, err)
	}
	if b.Shared, err = st.SharedRooms(); err != nil {
		p.n.w.fail("the board folds", "node %d: %v", p.n.i, err)
	}
	b.Parked, _ = d.ValuesWithPrefix(hub.ParkedPrefix)
	b.Early, _ = d.ValuesWithPrefix(hub.EarlyPrefix)
	for _, a := range st.Agents() {
		b.Agents = append(b.Agents, boundOf(&a))
		if a.Home != p.n.peer || a.Move != nil {
			continue
		}
		b.Presence[a.ID] = hub.Noted{State: a.State, At: time.UnixMilli(a.StateAt)}
		b.Unread[a.ID] = p.unread(a.ID)
		p.pending(&b, a.ID)
	}
	for _, f := range st.Withdrawn() {
		b.Ended = append(b.Ended, hub.Former(f))
	}
	for _, f := range st.Former() {
		b.Former = append(b.Former, hub.Former(f))
		if f.Bind.Home == p.n.peer {
			p.pending(&b, f.Bind.Agent)
		}
	}
	return b
}

func boundOf(a *board.Agent) hub.Bound {
	role := a.Role
	if role == protocol.RoleMain {
		role = protocol.RoleLocal
	}
	bind := protocol.BindBody{Agent: a.Bound, Home: a.Home, Since: a.Since, Name: a.Name, Role: role, Client: a.Client, Was: a.Was, Moves: a.Moves, Forced: a.Forced}
	if a.First != a.Home || a.Moves > 0 {
		bind.Origin = a.First
	}
	return hub.Bound{Bind: bind, At: a.At, Homes: a.Homes, Guest: a.Guest, Move: a.Move}
}

func (p *proc) unread(agent protocol.AgentID) (out []hub.Letter) {
	rows, _ := p.n.disk.Inbox(agent, journal.InboxQuery{})
	for i := range rows {
		m := &rows[i].Message
		own := m.Envelope
		own.To = agent
		l := hub.Letter{Ref: hub.Ref{Log: m.Log, Seq: m.Seq}, ID: m.Envelope.ID, From: m.Envelope.From, Report: hub.ReportOn(&m.Envelope), At: time.UnixMilli(m.Wall),
			Bytes: hub.Size(&m.Envelope), Wakes: protocol.Wakes(&own, agent)}
		for _, t := range m.Tiers {
			l.Given = l.Given || t.Tier == hub.Given
			l.Kept = l.Kept || t.Tier == hub.Kept
		}
		out = append(out, l)
	}
	return out
}

func (p *proc) pending(b *hub.Boot, agent protocol.AgentID) {
	out, _ := p.n.disk.Outbox(agent, false, 1000)
	for i := range out {
		m := &out[i]
		taken := m.Envelope.To == "" || m.Log.Peer != p.n.peer
		for _, t := range m.Tiers {
			taken = taken || t.Tier == protocol.Persisted || t.Tier == protocol.Processed || t.Tier == protocol.Refused
		}
		if !taken {
			b.Pending = append(b.Pending, hub.Pending{Ref: hub.Ref{Log: m.Log, Seq: m.Seq}, From: agent, To: m.Envelope.To, ID: m.Envelope.ID, At: time.UnixMilli(m.Wall)})
		}
	}
}

// takeBack is loop.takeBack: a turn that found no room is undone, and whoever waited is refused.
func (p *proc) takeBack() {
	p.n.w.Stats.Takebacks++
	p.n.w.logf("node %d has no room: the turn is taken back", p.n.i)
	p.again(protocol.Refuse(protocol.CodeDiskFull, "there is no room for it here", ""))
}

// again is loop.again.
func (p *proc) again(refusal *protocol.Refusal) {
	heads, _ := p.n.disk.Heads()
	clear(p.chain)
	p.restore(heads, p.core.Clock())
	tokens := p.tokens
	p.tokens, p.foreign, p.values = map[hub.Token]func(hub.Told){}, nil, nil
	clear(p.from)
	p.belief.Forget()
	for t := hub.Token(1); t <= p.lastTok; t++ {
		if f := tokens[t]; f != nil {
			f(hub.Told{Refusal: refusal})
		}
	}
	p.settleLater(refusal)
	for id := hub.ConnID(1); id <= p.lastID; id++ {
		if c := p.conns[id]; c != nil && c.attached {
			p.core.Step(p.now, c.attach(id, 0))
		}
	}
	for _, peer := range p.linked() {
		p.rep.LinkUp(p.now, peer, p.standing(peer) == insider)
	}
	p.dirty = true
}
