package gossip

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/hashicorp/memberlist"

	"github.com/aster-mesh/aster/protocol"
)

// hooks are what memberlist calls. It holds its own locks meanwhile, so they only note.
type hooks Gossip

var (
	_ memberlist.Delegate      = (*hooks)(nil)
	_ memberlist.EventDelegate = (*hooks)(nil)
	_ memberlist.AliveDelegate = (*hooks)(nil)
	_ memberlist.MergeDelegate = (*hooks)(nil)
	_ memberlist.PingDelegate  = (*hooks)(nil)
)

var errNotInside = errors.New("not an inside member")

// NotifyAlive refuses whoever is not inside, or claims an address that is not its name's.
func (h *hooks) NotifyAlive(n *memberlist.Node) error {
	p := protocol.PeerID(n.Name)
	if p != h.cfg.Self && !h.cfg.Inside(p) {
		return fmt.Errorf("%s: %w", p.Short(), errNotInside)
	}
	if !n.Addr.Equal(addrOf(p)) || n.Port != port {
		return fmt.Errorf("%s: address is not the name's", p.Short())
	}
	return nil
}

// NotifyMerge refuses a state that no mesh of ours has. Single nodes that are not inside here (the other may know more
// by now) are left out by NotifyAlive, since a refusal here would cut off those that are.
func (h *hooks) NotifyMerge(peers []*memberlist.Node) error {
	if len(peers) > 4*protocol.NodesMax {
		return fmt.Errorf("%d nodes, at most %d", len(peers), 4*protocol.NodesMax)
	}
	known := func(n *memberlist.Node) bool { p := protocol.PeerID(n.Name); return p == h.cfg.Self || h.cfg.Inside(p) }
	if len(peers) > 0 && !slices.ContainsFunc(peers, known) {
		return errNotInside
	}
	return nil
}

// Before its meta a node says whether it is there to stay.
const (
	stays byte = 0
	goes  byte = 1
)

// NotifyJoin notes a node that is up.
func (h *hooks) NotifyJoin(n *memberlist.Node) { h.set(n, Alive) }

// NotifyUpdate notes a node's new meta.
func (h *hooks) NotifyUpdate(n *memberlist.Node) { h.set(n, Alive) }

// NotifyLeave notes a node that is gone.
func (h *hooks) NotifyLeave(n *memberlist.Node) { h.set(n, Dead) }

// NotifyPingComplete ends a suspicion: our own probe was answered.
func (h *hooks) NotifyPingComplete(n *memberlist.Node, _ time.Duration, _ []byte) {
	h.turn(protocol.PeerID(n.Name), Suspect, Alive)
}

// suspected notes that our own probe failed.
func (g *Gossip) suspected(p protocol.PeerID) { (*hooks)(g).turn(p, Alive, Suspect) }

// turn changes the state of a node that is in another.
func (h *hooks) turn(p protocol.PeerID, from, to State) {
	h.mu.Lock()
	m, ok := h.members[p]
	ok = ok && m.State == from
	if ok {
		m.State = to
		h.members[p] = m
	}
	h.mu.Unlock()
	if ok {
		signal(h.changed)
	}
}

func (h *hooks) set(n *memberlist.Node, s State) {
	p := protocol.PeerID(n.Name)
	if p == h.cfg.Self {
		return
	}
	var meta []byte
	if len(n.Meta) > 0 {
		if meta = slices.Clone(n.Meta[1:]); n.Meta[0] == goes {
			s = Left
		}
	}
	h.mu.Lock()
	before := h.members[p].State
	h.members[p] = Member{Peer: p, State: s, Meta: meta}
	h.mu.Unlock()
	if before != s {
		h.log.Info("member", "peer", p, "state", string(s))
	}
	signal(h.changed)
}

// NodeMeta is what this node says of itself.
func (h *hooks) NodeMeta(limit int) []byte {
	h.mu.Lock()
	defer h.mu.Unlock()
	first := stays
	if h.goes {
		first = goes
	}
	return append([]byte{first}, h.meta[:min(len(h.meta), limit-1)]...)
}

// Nothing else rides on gossip: records have links of their own.
func (h *hooks) NotifyMsg([]byte)                { /* nobody sends any */ }
func (h *hooks) GetBroadcasts(int, int) [][]byte { return nil }
func (h *hooks) LocalState(bool) []byte          { return nil }
func (h *hooks) MergeRemoteState([]byte, bool)   { /* empty by LocalState */ }
func (h *hooks) AckPayload() []byte              { return nil }
