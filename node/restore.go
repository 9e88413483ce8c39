package node

import (
	"crypto/rand"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"log/slog"
	"time"

	"github.com/aster-mesh/aster/board"
	"github.com/aster-mesh/aster/node/hub"
	"github.com/aster-mesh/aster/node/journal"
	"github.com/aster-mesh/aster/node/replica"
	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/asterism"
	"github.com/aster-mesh/aster/protocol/meshwire"
	"github.com/aster-mesh/aster/roles/member"
)

// foldBoard reads the board's checkpoint, or what it stands on, and the tail after it.
func foldBoard(store *journal.Journal, id member.MeshID, log *slog.Logger) (*board.State, uint64, error) {
	from, err := standsOn(store, id, log)
	if err != nil {
		return nil, 0, err
	}
	st := board.New(id)
	if from != nil {
		st = from.State()
	}
	pos, raw, ok, err := store.Checkpoint(boardCheckpoint)
	if err != nil {
		return nil, 0, fmt.Errorf("checkpoint of the board: %w", err)
	}
	if ok {
		st2, err := board.Decode(raw)
		if err == nil && st2.Roster().Mesh() == id && from != nil {
			st2.Settle(from)
		}
		switch {
		case err != nil || st2.Roster().Mesh() != id:
			log.Warn("the board's checkpoint is not usable: it is folded anew", "err", err)
			pos = 0
		case from != nil && st2.Stale():
			pos = 0 // it is of before the base
		default:
			st = st2
		}
	}
	for again := true; again; {
		again = false
		for {
			page, err := store.Since(pos, 2000)
			if err != nil {
				return nil, 0, fmt.Errorf("read journal: %w", err)
			}
			if len(page) == 0 {
				break
			}
			for i := range page {
				if err := st.Apply(&page[i].Record, nil); err != nil {
					log.Error("record not folded", "pos", page[i].Pos, "err", err)
				}
				pos = page[i].Pos
			}
		}
		if st.Stale() {
			st, pos, again = st.Restart(), 0, true
		}
	}
	return st, pos, nil
}

// openLoop restores what the loop owns from the store.
func (n *Node) openLoop() error {
	st, pos, err := foldBoard(n.store, member.MeshID(n.home.mesh.Mesh), n.log)
	if err != nil {
		return err
	}
	heads, err := n.store.Heads()
	if err != nil {
		return fmt.Errorf("read heads: %w", err)
	}
	clock := max(protocol.HLCAt(time.Now()), st.From().At())
	for _, h := range heads {
		if rec, ok, err := n.store.At(h.Log, h.Seq); err == nil && ok {
			clock = max(clock, rec.Record.At)
		}
	}
	if chain, err := member.ParseChain(n.home.mesh.Chain); err == nil {
		clock = max(clock, chain[0].Cert.Lifts) // logs that begin before the revocation it lifts would count nowhere
	}
	if n.startID, err = n.newStart(clock); err != nil {
		return err
	}
	n.mesh.SetStart(n.startID)
	l := &loop{
		n: n, log: n.log.With("part", "loop"), jobs: make(chan func(), jobsMax), ended: make(chan struct{}), now: time.Now(), store: n.store, board: st,
		chain: map[protocol.LogID]protocol.Hash{}, from: map[protocol.LogID]protocol.PeerID{}, fresh: map[protocol.LogID][]protocol.Record{},
		keyState: newKeyState(), tokens: map[hub.Token]func(hub.Told){}, tierWait: map[hub.Ref][]tierWaiter{}, sockets: map[hub.ConnID]*socket{},
		enc: asterism.NewEncoder(func() string { return "evt_" + string(newID()) }), peers: map[protocol.PeerID]*peerState{},
		lastSeen: map[protocol.PeerID]time.Time{}, addrs: map[protocol.PeerID]meshwire.Addrs{}, live: map[protocol.PeerID]*liveQueue{}, heardNames: names{},
		starts: map[protocol.PeerID]meshwire.Started{},
		pos:    pos, savedAt: pos, saved: time.Now(),
	}
	n.loop = l
	if err := l.restore(heads, clock); err != nil {
		return err
	}
	if err := n.restoreQuotas(); err != nil {
		return err
	}
	_, older, err := n.store.Value(keyOlder)
	if err != nil {
		return fmt.Errorf("read whether something was lost: %w", err)
	}
	if !older && len(n.store.Recovery().SetAside) > 0 { // what others have of it comes back in any order
		older = true
		l.value(keyOlder, []byte{1})
	}
	n.older.Store(older)
	for _, a := range st.Agents() {
		if older && a.Home == n.home.peer {
			l.regained = append(l.regained, a.ID) // it may have ended between a binding and the mail
		}
	}
	saved, err := n.store.ValuesWithPrefix(keyAddrs)
	if err != nil {
		return fmt.Errorf("read addresses: %w", err)
	}
	for _, raw := range saved {
		var a meshwire.Addrs
		if json.Unmarshal(raw, &a) == nil && a.Verify() == nil {
			l.addrs[a.Peer] = a
		}
	}
	l.foundingRecords()
	l.showState()
	l.showChannels()
	l.membersDirty = true
	return nil
}

// restore makes hub and replica from what is durable.
func (l *loop) restore(heads []journal.Head, clock protocol.HLC) error {
	boot, err := l.n.boot(l.board, clock)
	if err != nil {
		return err
	}
	boot.Seqs, boot.Held = map[protocol.Scope]uint64{}, map[protocol.LogID]uint64{}
	var held []replica.Head
	for _, h := range heads {
		held = append(held, replica.Head{Log: h.Log, Seq: h.Seq, Hash: h.Hash})
		boot.Held[h.Log] = h.Seq
		if h.Log.Peer == l.n.home.peer && h.Log.Start == l.n.startID {
			boot.Seqs[h.Log.Scope], l.chain[h.Log] = h.Seq, h.Hash
		}
	}
	l.core = hub.New(boot)
	if f := l.n.fenced.Load(); f != nil {
		l.core.Step(l.now, hub.Fence{Refusal: f.refusal()})
	}
	l.rep = replica.New(l.n.home.peer, held, l.n.maySee)
	for _, h := range held {
		if bound := l.roster().Bound(h.Log); bound != member.NoBound {
			l.rep.Cut(h.Log, bound)
		}
	}
	for _, b := range l.store.Bases() {
		l.rep.Based(b.Log, b.Seq)
	}
	return l.restoreOffice()
}

func randomNumber() uint64 {
	var b [8]byte
	_, _ = rand.Read(b[:]) // crypto/rand never fails
	return binary.BigEndian.Uint64(b[:])
}

// foundingRecords are the first of a mesh: its founder's membership, and the first term. A founder that died before
// they were durable writes them at its next start.
func (l *loop) foundingRecords() {
	m := &l.n.home.mesh
	if m.Inviter != "" || l.n.fenced.Load() != nil {
		return
	}
	if _, ok := l.roster().Member(l.n.home.peer); !ok {
		l.core.Step(l.now, hub.Author{Scope: protocol.ScopeInside, Kind: protocol.KindMember, Body: protocol.EncodeBody(
			protocol.MemberBody{Peer: l.n.home.peer, Name: m.Name, Role: protocol.RoleLocal, Chain: m.Chain, Addrs: l.n.mesh.Addrs()})})
	}
	if l.roster().Term().Number == 0 {
		l.core.Step(l.now, hub.Author{Scope: protocol.ScopeInside, Kind: protocol.KindTerm, Body: protocol.EncodeBody(
			protocol.TermBody{Number: 1, Peer: l.n.home.peer, Agent: protocol.AgentID(l.n.cfg.Agent)})})
	}
}

// boot is what the hub starts from.
func (n *Node) boot(st *board.State, clock protocol.HLC) (hub.Boot, error) {
	b := hub.Boot{Self: n.home.peer, Start: n.startID, Clock: clock, Members: map[protocol.PeerID]hub.Member{}, Term: st.Roster().Term(), Unread: map[protocol.AgentID][]hub.Letter{},
		Presence: map[protocol.AgentID]hub.Noted{}, Now: n.loop.now, Limits: hub.Limits(n.cfg.Limits)}
	for p, m := range n.loop.known() {
		b.Members[p] = hub.Member{Name: m.Name, Role: m.Role, Inside: m.Inside, Gone: m.Revoked, Admitted: m.Since}
	}
	var err error
	if b.Selections, err = n.selections(); err != nil {
		return b, err
	}
	if b.Rooms, err = st.Rooms(); err != nil {
		return b, err
	}
	if b.Shared, err = st.SharedRooms(); err != nil {
		return b, err
	}
	if b.Parked, err = n.store.ValuesWithPrefix(hub.ParkedPrefix); err != nil {
		return b, fmt.Errorf("read what waits in rooms: %w", err)
	}
	if b.Early, err = n.store.ValuesWithPrefix(hub.EarlyPrefix); err != nil {
		return b, fmt.Errorf("read what was said of messages to come: %w", err)
	}
	for _, a := range st.Agents() {
		b.Agents = append(b.Agents, boundOf(&a))
		if a.Home != n.home.peer || a.Move != nil {
			continue
		}
		b.Presence[a.ID] = hub.Noted{State: a.State, At: time.UnixMilli(a.StateAt)}
		rows, err := n.store.Inbox(a.ID, journal.InboxQuery{})
		if err != nil {
			return b, fmt.Errorf("read inbox of %s: %w", a.ID, err)
		}
		for i := range rows {
			m := &rows[i].Message
			own := m.Envelope
			own.To = a.ID // it may have had another name
			l := hub.Letter{Ref: hub.Ref{Log: m.Log, Seq: m.Seq}, ID: m.Envelope.ID, From: m.Envelope.From, Report: hub.ReportOn(&m.Envelope), At: time.UnixMilli(m.Wall),
				Bytes: hub.Size(&m.Envelope), Wakes: protocol.Wakes(&own, a.ID)}
			for _, t := range m.Tiers {
				l.Given = l.Given || t.Tier == hub.Given
				l.Kept = l.Kept || t.Tier == hub.Kept
			}
			b.Unread[a.ID] = append(b.Unread[a.ID], l)
		}
		if err := n.pending(&b, a.ID); err != nil {
			return b, err
		}
	}
	for _, f := range st.Withdrawn() {
		b.Ended = append(b.Ended, hub.Former(f))
	}
	for _, f := range st.Former() {
		b.Former = append(b.Former, hub.Former(f))
		if f.Bind.Home == n.home.peer {
			if err := n.pending(&b, f.Bind.Agent); err != nil {
				return b, err
			}
		}
	}
	return b, nil
}

// boundOf is an agent as the hub takes it from the board.
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

// pending lists an agent's messages that no home has confirmed yet.
func (n *Node) pending(b *hub.Boot, agent protocol.AgentID) error {
	out, err := n.store.Outbox(agent, false, outboxRowsMax)
	if err != nil {
		return fmt.Errorf("read outbox of %s: %w", agent, err)
	}
	for i := range out {
		m := &out[i]
		taken := m.Envelope.To == "" || m.Log.Peer != n.home.peer
		for _, t := range m.Tiers {
			taken = taken || t.Tier == protocol.Persisted || t.Tier == protocol.Processed || t.Tier == protocol.Refused
		}
		if !taken {
			b.Pending = append(b.Pending, hub.Pending{Ref: hub.Ref{Log: m.Log, Seq: m.Seq}, From: agent, To: m.Envelope.To, ID: m.Envelope.ID, At: time.UnixMilli(m.Wall)})
		}
	}
	return nil
}
