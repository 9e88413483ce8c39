package sim

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"

	"github.com/aster-mesh/aster/board"
	"github.com/aster-mesh/aster/node/hub"
	"github.com/aster-mesh/aster/node/journal"
	"github.com/aster-mesh/aster/protocol"
)

// broken is what is not, or not yet, as it should be.
type broken struct{ rule, what string }

// inside are the nodes whose word counts.
func (w *World) inside() (out []*node) {
	for _, n := range w.nodes {
		if n.inMesh && !n.out && n.role.Inside() {
			out = append(out, n)
		}
	}
	return out
}

// converged says what the nodes of the inside do not agree on yet.
func (w *World) converged() *broken {
	all := w.inside()
	for _, n := range all {
		if n.p == nil {
			return &broken{"every node runs again", fmt.Sprintf("node %d does not", n.i)}
		}
	}
	first := all[0]
	want, counted := w.heads(first), first.p.board.Canonical()
	for _, n := range all[1:] {
		if b := w.sameHeads(first, n, want); b != nil {
			return b
		}
		if got := n.p.board.Canonical(); string(got) != string(counted) {
			return &broken{"all boards are alike", fmt.Sprintf("of nodes %d and %d: %s", first.i, n.i, difference(counted, got))}
		}
	}
	for _, check := range []func() *broken{w.promises, w.outsidersHave, w.mailIsDone, w.oneNameOneAgent, w.oneMain} {
		if b := check(); b != nil {
			return b
		}
	}
	return nil
}

// difference is where two texts part.
func difference(a, b []byte) string {
	i := 0
	for i < len(a) && i < len(b) && a[i] == b[i] {
		i++
	}
	around := func(t []byte) string { return string(t[max(0, i-60):min(len(t), i+90)]) }
	return fmt.Sprintf("%q, %q", around(a), around(b))
}

// heads are a node's logs as far as they count.
func (w *World) heads(n *node) map[protocol.LogID]journal.Head {
	out := map[protocol.LogID]journal.Head{}
	all, _ := n.disk.Heads()
	for _, h := range all {
		if bound := n.p.roster().Bound(h.Log); h.Seq > bound {
			h.Seq = bound
			if h.Hash = (protocol.Hash{}); bound > 0 && bound == n.disk.bases[h.Log].Seq {
				h.Hash = n.disk.bases[h.Log].Hash
			} else if r := n.disk.record(h.Log, bound); r != nil {
				h.Hash = r.Hash // else it has left
			}
		}
		if h.Seq > 0 {
			out[h.Log] = h
		}
	}
	return out
}

func (w *World) sameHeads(a, b *node, want map[protocol.LogID]journal.Head) *broken {
	got := w.heads(b)
	logs := slices.SortedFunc(maps.Keys(want), func(x, y protocol.LogID) int { return cmp.Compare(x.String(), y.String()) })
	for _, log := range slices.SortedFunc(maps.Keys(got), func(x, y protocol.LogID) int { return cmp.Compare(x.String(), y.String()) }) {
		if _, ok := want[log]; !ok {
			return &broken{"all journals are alike", fmt.Sprintf("node %d lacks %s, which node %d holds", a.i, w.logName(log), b.i)}
		}
	}
	for _, log := range logs {
		if x, y := want[log], got[log]; x.Seq != y.Seq || x.Hash != y.Hash && x.Hash != (protocol.Hash{}) && y.Hash != (protocol.Hash{}) {
			return &broken{"all journals are alike", fmt.Sprintf("%s goes to %d at node %d and to %d at node %d", w.logName(log), want[log].Seq, a.i, got[log].Seq, b.i)}
		}
	}
	return nil
}

// promises says which promise is not kept: what was called logged is everywhere, and its recipient's home has spoken.
func (w *World) promises() *broken {
	for _, e := range w.ledger.order {
		counts, spoken := false, false
		for _, ref := range e.places {
			if !w.counts(ref) || w.gone(ref) {
				continue
			}
			if b := w.everywhere(e, ref); b != nil {
				return b
			}
			counts = true
			spoken = spoken || w.spokenOf(ref)
		}
		if counts && !spoken && w.reachable(e.env.To) {
			return &broken{"every message has a receipt", fmt.Sprintf("%s from %q to %q%s", e.env.ID, e.env.From, e.env.To, w.tiersOf(e))}
		}
	}
	return nil
}

// counts says whether a place is of a member, and before its cut if it was revoked.
func (w *World) counts(ref hub.Ref) bool {
	roster := w.inside()[0].p.roster()
	_, ok := roster.Member(ref.Log.Peer)
	return ok && ref.Seq <= roster.Bound(ref.Log)
}

// gone says whether the disk that held a place was replaced, and only revoked members have what it held.
func (w *World) gone(ref hub.Ref) bool {
	return w.Stats.Restores+w.Stats.Wipes > 0 &&
		!slices.ContainsFunc(w.inside(), func(n *node) bool { return n.left(ref) || n.disk.record(ref.Log, ref.Seq) != nil })
}

func (w *World) everywhere(e *promised, ref hub.Ref) *broken {
	for _, n := range w.inside() {
		rec := n.disk.record(ref.Log, ref.Seq)
		if n.left(ref) {
			continue
		}
		if rec == nil {
			return &broken{"nothing acknowledged is lost", fmt.Sprintf("node %d lacks %s/%d, message %s", n.i, w.logName(ref.Log), ref.Seq, e.env.ID)}
		}
		if body, err := protocol.DecodeBody[protocol.Envelope](&rec.Record); err != nil || body.Identity() != e.env.Identity() {
			return &broken{"nothing acknowledged is lost", fmt.Sprintf("node %d has something else at %s/%d", n.i, w.logName(ref.Log), ref.Seq)}
		}
	}
	return nil
}

// spokenOf says whether the recipient's home has said something of a message that its author, or if that is gone
// anybody, knows.
func (w *World) spokenOf(ref hub.Ref) bool {
	author := w.byPeer[ref.Log.Peer]
	if author.out {
		author = w.inside()[0]
	}
	if author.left(ref) {
		return true // else it would be above the base
	}
	tiers, _ := author.disk.Tiers(ref.Log, ref.Seq)
	return slices.ContainsFunc(tiers, func(t journal.TierPut) bool { return t.Tier == protocol.Persisted || t.Tier == protocol.Refused })
}

// tiersOf is what each node knows of a message, in words.
func (w *World) tiersOf(e *promised) (out string) {
	for _, ref := range e.places {
		out += fmt.Sprintf("; %s/%d:", w.logName(ref.Log), ref.Seq)
		for _, n := range w.nodes {
			tiers, _ := n.disk.Tiers(ref.Log, ref.Seq)
			for _, t := range tiers {
				out += fmt.Sprintf(" node %d %s by %s", n.i, t.Tier, w.byPeer[t.By].name)
			}
		}
	}
	return out
}

// reachable says whether an agent is where its mail can be taken: known, never called otherwise, on a node that counts.
func (w *World) reachable(id protocol.AgentID) bool {
	if id == "" || w.ledger.moved[protocol.FoldAgentID(id)] {
		return false
	}
	found := false
	for _, c := range w.clients {
		if protocol.FoldAgentID(c.id) != protocol.FoldAgentID(id) {
			continue
		}
		if found || c.over || c.at.out || !c.at.inMesh || !c.attached {
			return false
		}
		found = true
	}
	return found
}

// outsidersHave says which member outside does not hold what is for it.
func (w *World) outsidersHave() *broken {
	want := w.heads(w.inside()[0])
	for _, n := range w.nodes {
		if !n.inMesh || n.out || n.role.Inside() || n.p == nil {
			continue
		}
		for log, h := range want {
			if out, ok := log.Scope.Outsider(); ok && out == n.peer && uint64(n.disk.logs[log].len()) < h.Seq {
				return &broken{"an outsider has what is for it", fmt.Sprintf("node %d lacks %s from %d on", n.i, w.logName(log), n.disk.logs[log].len()+1)}
			}
		}
	}
	return nil
}

// mailIsDone says whose mail is unread though its agent is here and acknowledges everything.
func (w *World) mailIsDone() *broken {
	for _, c := range w.clients {
		if !c.attached || c.at.out || c.over {
			continue
		}
		rows, _ := c.at.disk.Inbox(c.id, journal.InboxQuery{})
		if len(rows) > 0 {
			return &broken{"no mail is stuck", fmt.Sprintf("%d messages for %s at node %d, first %s", len(rows), c.id, c.at.i, rows[0].Envelope.ID)}
		}
	}
	return nil
}

// oneNameOneAgent says where two nodes know different agents, or a hub others than its board.
func (w *World) oneNameOneAgent() *broken {
	var want []string
	for _, n := range w.inside() {
		if n.p.refolded {
			continue
		}
		var hubs, boards []string
		for _, k := range n.p.core.Agents(n.p.now) {
			if _, ok := n.p.roster().Member(k.Home); !ok {
				continue // of a node that is known by its certificate alone
			}
			hubs = append(hubs, string(protocol.FoldAgentID(k.Agent))+"@"+w.byPeer[k.Home].name)
		}
		for _, a := range n.p.board.Agents() {
			if m, ok := n.p.roster().Member(a.Home); ok && !m.Revoked {
				boards = append(boards, string(protocol.FoldAgentID(a.ID))+"@"+w.byPeer[a.Home].name)
			}
		}
		slices.Sort(hubs)
		slices.Sort(boards)
		if !slices.Equal(hubs, boards) {
			return &broken{"hub and board name alike", fmt.Sprintf("node %d: hub %v, board %v", n.i, hubs, boards)}
		}
		if want == nil {
			want = hubs
		} else if !slices.Equal(want, hubs) {
			return &broken{"all hubs name alike", fmt.Sprintf("node %d: %v, want %v", n.i, hubs, want)}
		}
	}
	return nil
}

// sound judges what must hold at rest, and cannot become true by waiting.
func (w *World) sound() *broken {
	for _, n := range w.nodes {
		for _, check := range []func(*node) *broken{w.contiguous, w.onceAnInbox, w.inboxesInOrder, w.receiptsAreOfHomes} {
			if b := check(n); b != nil {
				return b
			}
		}
		if n.p == nil {
			continue
		}
		if b := w.foldsAnew(n); b != nil {
			return b
		}
	}
	return w.cutsAlike()
}

func (w *World) contiguous(n *node) *broken {
	for log, rs := range n.disk.logs {
		prev, i := n.disk.bases[log].Hash, n.disk.bases[log].Seq
		for r := range rs.from(0) {
			if r.Record.Seq != i+1 || r.Record.Prev != prev || r.Record.Log != log {
				return &broken{"logs are contiguous", fmt.Sprintf("node %d: %s at %d", n.i, w.logName(log), i+1)}
			}
			prev = r.Hash
			i++
		}
		if uint64(rs.len()) > n.disk.bases[log].Seq && len(rs.last().Record.Sig) == 0 {
			return &broken{"logs end with a signature", fmt.Sprintf("node %d: %s", n.i, w.logName(log))}
		}
	}
	return nil
}

// onceAnInbox: two rows of one message, of which neither was refused.
func (w *World) onceAnInbox(n *node) *broken {
	for agent, rows := range n.disk.inbox {
		seen := map[protocol.Digest]bool{}
		for _, row := range rows {
			if row.rec.env == nil || row.state == dead {
				continue
			}
			id := row.rec.env.Identity()
			if seen[id] {
				return &broken{"an inbox holds a message once", fmt.Sprintf("%s of %s at node %d", row.rec.env.ID, agent, n.i)}
			}
			seen[id] = true
		}
	}
	return nil
}

// receiptsAreOfHomes: who gives a receipt for an agent has bound that agent once, under this name or one like it.
func (w *World) receiptsAreOfHomes(n *node) *broken {
	if len(n.disk.bases) > 0 {
		return nil // who bound whom has left
	}
	homes := map[protocol.AgentID]map[protocol.PeerID]bool{}
	for r := range n.disk.order.from(0) {
		if r.Record.Kind != protocol.KindBind {
			continue
		}
		if b, err := protocol.DecodeBody[protocol.BindBody](&r.Record); err == nil && b.Home == r.Record.Log.Peer {
			id := protocol.FoldAgentID(b.Agent)
			if homes[id] == nil {
				homes[id] = map[protocol.PeerID]bool{}
			}
			homes[id][b.Home] = true
		}
	}
	for at, tiers := range n.disk.tiers {
		for _, t := range tiers {
			switch t.Tier {
			case protocol.Persisted, protocol.Processed, protocol.Refused:
			default:
				continue
			}
			if !boundLike(homes, protocol.FoldAgentID(t.Agent), t.By) {
				return &broken{"no receipt is forged", fmt.Sprintf("node %d has %s of %s/%d for %s by %s", n.i, t.Tier, w.logName(at.log), at.seq, t.Agent, w.byPeer[t.By].name)}
			}
		}
	}
	return nil
}

// boundLike says whether a node has bound a name, or one that a clash makes it of: NAME-2, NAME-2-2.
func boundLike(homes map[protocol.AgentID]map[protocol.PeerID]bool, id protocol.AgentID, by protocol.PeerID) bool {
	for {
		if homes[id][by] {
			return true
		}
		at := len(id) - 2
		if at < 1 || id[at] != '-' || id[at+1] < '2' || id[at+1] > '9' {
			return false
		}
		id = id[:at]
	}
}

// foldsAnew: the board that grew is the board of the journal.
func (w *World) foldsAnew(n *node) *broken {
	st := board.New(w.mesh.id)
	if from := n.p.board.From(); from != nil {
		st = from.State()
	}
	for left := foldings; ; left-- {
		for r := range n.disk.order.from(0) {
			if err := st.Apply(&r.Record, r.env); err != nil {
				return &broken{"the board folds", fmt.Sprintf("node %d: %v", n.i, err)}
			}
		}
		if !st.Stale() || !n.settles(left) {
			break
		}
		st = st.Restart()
	}
	if a, b := st.Canonical(), n.p.board.Canonical(); string(a) != string(b) {
		return &broken{"the board is the journal's", fmt.Sprintf("node %d: %s", n.i, difference(a, b))}
	}
	return nil
}

// Digest stands for all that happened and all that is left of it.
func (w *World) Digest() string {
	h := sha256.New()
	h.Write(w.sum.Sum(nil))
	for _, n := range w.nodes {
		d, _ := n.disk.Digest()
		h.Write([]byte(d))
		if n.p != nil {
			h.Write(n.p.board.Canonical())
		}
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}
