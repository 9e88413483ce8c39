package node

import (
	"fmt"
	"sync"
	"time"

	"github.com/aster-mesh/aster/node/hub"
	"github.com/aster-mesh/aster/node/mesh"
	"github.com/aster-mesh/aster/protocol"
)

// diskGauge remembers for a second how much room the disk has.
type diskGauge struct {
	mu    sync.Mutex
	at    time.Time
	bytes int64
	known bool
}

func (g *diskGauge) left(dir string) (bytes int64, known bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if now := time.Now(); now.Sub(g.at) > time.Second {
		g.at = now
		g.bytes, g.known = diskLeft(dir)
	}
	return g.bytes, g.known
}

// DiskLeft is what may still be written on the disk that holds a folder; false: nobody can tell. Any goroutine may call it.
func DiskLeft(dir string) (int64, bool) { return diskLeft(dir) }

// DiskShort says whether a node takes nothing new with so many bytes left on its disk.
func DiskShort(left int64) bool { return left < fullReserve/4 }

// noRoom is full for want of room: in the store's share, or on the disk itself.
func (n *Node) noRoom() *protocol.Refusal {
	if left, known := n.disk.left(n.home.dir); known && DiskShort(left) {
		return protocol.Refuse(protocol.CodeDiskFull, "no new messages: %d MB left on this disk. Nothing is lost", "Free space; it goes on by itself", left>>20)
	}
	if used, free := n.store.Size(); free <= min((used+free)/16, fullReserve) {
		return protocol.Refuse(protocol.CodeDiskFull, "no new messages: %d MB are used and the store is full. Nothing is lost", "Raise store.bytes_max in config.toml and run aster up again", used>>20)
	}
	return nil
}

// diskShort says whether it is the disk itself that has no room, which a larger share for the store does not mend.
func (n *Node) diskShort() bool {
	left, known := n.disk.left(n.home.dir)
	return known && DiskShort(left)
}

// takeBack undoes a turn that found no room: the store wrote nothing, so hub and replica are made anew from it, whoever
// waited is refused by name, and who is attached is attached again. Reads and links go on.
func (l *loop) takeBack() error {
	l.warn("full", "no room for new messages; nothing is lost. Free space, it goes on by itself")
	return l.again(protocol.Refuse(protocol.CodeDiskFull, "there is no room for it here. Nothing is lost", "Free space and send it again"))
}

// again makes hub and replica anew from the store, within a turn of which the store has nothing.
func (l *loop) again(refusal *protocol.Refusal) error {
	heads, err := l.store.Heads()
	if err != nil {
		return fmt.Errorf("read heads: %w", err)
	}
	clear(l.chain)
	if err := l.restore(heads, l.core.Clock()); err != nil {
		return err
	}
	tokens, after := l.tokens, l.after
	l.tokens, l.after, l.foreign, l.values = map[hub.Token]func(hub.Told){}, nil, nil, nil
	clear(l.from)
	l.belief.Forget()
	for _, f := range tokens {
		f(hub.Told{Refusal: refusal})
	}
	for _, f := range after {
		f(refusal)
	}
	for _, s := range l.sockets {
		if s.as == nil && !s.board {
			continue // it has said nothing yet
		}
		if s.as == nil {
			l.core.Step(l.now, hub.OpenBoard{Conn: s.id})
		} else {
			again := *s.as
			again.Token = 0
			l.core.Step(l.now, again)
		}
	}
	if r := l.n.runner; r != nil && r.conn != 0 {
		if k, ok := l.core.Agent(r.agent); ok && k.Here { // else its binding is what found no room: again would be for ever
			l.core.Step(l.now, r.attached(0))
		}
	}
	for peer, p := range l.peers {
		l.rep.LinkUp(l.now, peer, l.n.standingOf(peer) == mesh.Inside)
		p.compared = false
	}
	l.membersDirty = true
	return nil
}
