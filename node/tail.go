package node

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/aster-mesh/aster/node/mesh"
	"github.com/aster-mesh/aster/node/replica"
	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/meshwire"
)

// A peer links one start of a node, the newest. What an older one had taken before it learnt of that reaches the mesh by a
// stream of its own: Started of who comes and of whom the peer links, a Vector of what the peer has of the node's logs,
// Records of what it lacks, and at the end a Have of what is then on its disk.

// tailTime bounds one handing over; what is left goes with the next.
const tailTime = time.Minute

// twins is what is under way with other starts of this node.
type twins struct {
	port int           // of the mesh, that this home had before and somebody holds; 0: none. Fixed before anything runs
	seen chan []string // capacity 1: addresses at which this node's own id was announced

	mu     sync.Mutex
	giving map[protocol.PeerID]bool
	met    *meshwire.Started // an older start that answered
}

// onOlder runs in the goroutine that dials a peer: the peer links a newer start of this node.
func (n *Node) onOlder(peer protocol.PeerID) {
	n.twins.mu.Lock()
	busy := n.twins.giving[peer]
	if n.twins.giving == nil {
		n.twins.giving = map[protocol.PeerID]bool{}
	}
	n.twins.giving[peer] = true
	n.twins.mu.Unlock()
	if busy {
		return
	}
	defer func() {
		n.twins.mu.Lock()
		delete(n.twins.giving, peer)
		n.twins.mu.Unlock()
	}()
	ctx, cancel := context.WithTimeout(n.ctx, tailTime)
	defer cancel()
	if err := n.giveTail(ctx, peer); err != nil && ctx.Err() == nil {
		n.log.Info("what this start wrote is not handed over yet", "peer", peer, "err", err)
	}
}

func (n *Node) giveTail(ctx context.Context, peer protocol.PeerID) error {
	s, err := n.mesh.OpenStream(ctx, peer, mesh.Tail)
	if err != nil {
		return err
	}
	defer s.Reset()
	defer context.AfterFunc(ctx, func() { _ = s.Reset() })()
	if err := writeFrame(s, meshwire.SignStarted(n.home.key, n.startID)); err != nil {
		return err
	}
	in := bufio.NewReader(s)
	newest, err := readFrame[meshwire.Started](in)
	if err != nil {
		return fmt.Errorf("read who is linked: %w", err)
	}
	if newest.Peer != n.home.peer || newest.Verify() != nil {
		return errors.New("the peer does not show whose start it links")
	}
	if err := n.loop.call(ctx, func() { n.loop.learnStarted(peer, newest) }); err != nil { // durable with it: our last record
		return err
	}
	has, err := readVector(in)
	if err != nil {
		return fmt.Errorf("read what it has: %w", err)
	}
	if err := n.sendTail(ctx, s, peer, has); err != nil {
		return err
	}
	if err := s.CloseWrite(); err != nil {
		return err
	}
	_, err = readFrame[meshwire.Have](in)
	return err
}

// sendTail writes what a peer may see of our logs and lacks.
func (n *Node) sendTail(ctx context.Context, w io.Writer, peer protocol.PeerID, has map[protocol.LogID]uint64) error {
	heads, err := n.store.Heads()
	if err != nil {
		return fmt.Errorf("read heads: %w", err)
	}
	for _, h := range heads {
		if h.Log.Peer != n.home.peer || !n.maySee(peer, h.Log.Scope) {
			continue
		}
		for next := has[h.Log] + 1; next <= h.Seq; {
			recs, err := n.store.Range(h.Log, next, protocol.MeshFrameBytesMax/2)
			if err != nil || len(recs) == 0 {
				return errors.Join(err, ctx.Err())
			}
			parts, err := meshwire.SplitRecords(recs)
			if err != nil {
				return err
			}
			for _, p := range parts {
				if err := writeFrame(w, p); err != nil {
					return err
				}
			}
			next = recs[len(recs)-1].Seq + 1
		}
	}
	return nil
}

// serveTail takes what an older start of a member wrote.
func (n *Node) serveTail(from protocol.PeerID, s mesh.Stream) {
	if err := n.takeTail(from, s); err != nil {
		n.log.Info("records of an older start not taken", "peer", from, "err", err)
	}
}

func (n *Node) takeTail(from protocol.PeerID, s mesh.Stream) error {
	in := bufio.NewReader(s)
	if _, err := readFrame[meshwire.Started](in); err != nil {
		return err
	}
	var newest meshwire.Started
	var known bool
	if err := n.loop.call(n.ctx, func() { newest, known = n.loop.starts[from] }); err != nil {
		return err
	}
	if !known {
		return errors.New("no start of it is known here yet")
	}
	if err := writeFrame(s, newest); err != nil {
		return err
	}
	before := n.heldOf(from)
	for _, part := range meshwire.Split(before) {
		if err := writeFrame(s, part); err != nil {
			return err
		}
	}
	for {
		f, _, err := meshwire.ReadFrame(in, protocol.MeshFrameBytesMax)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		if recs, ok := f.(meshwire.Records); ok && recs.Log.Peer == from {
			if err := n.onRecords(from, recs); err != nil {
				return err
			}
		}
	}
	if err := n.loop.call(n.ctx, func() {}); err != nil { // what came is durable
		return err
	}
	if err := n.loop.call(n.ctx, func() { n.loop.passBack(from, before) }); err != nil {
		return err
	}
	return writeFrame(s, meshwire.Have{})
}

// passBack sends the newer start what the older one handed over: as its own logs it would be taken to hold them.
func (l *loop) passBack(to protocol.PeerID, before meshwire.Vector) {
	had := map[protocol.LogID]uint64{}
	for _, m := range before.Marks {
		had[m.Log] = m.Seq
	}
	for _, m := range l.n.heldOf(to).Marks {
		if m.Seq > had[m.Log] && m.Log.Start != l.starts[to].Start {
			l.rep.Wanted(l.now, to, replica.Need{Log: m.Log, From: had[m.Log] + 1})
		}
	}
}

// heldOf is what is held here of a node's logs.
func (n *Node) heldOf(of protocol.PeerID) (v meshwire.Vector) {
	heads, err := n.store.Heads()
	if err != nil {
		n.log.Error("heads not readable", "err", err)
		return v
	}
	for _, h := range heads {
		if h.Log.Peer == of {
			v.Marks = append(v.Marks, meshwire.Mark{Log: h.Log, Seq: h.Seq})
		}
	}
	return v
}

func writeFrame(w io.Writer, f meshwire.Frame) error {
	raw, err := meshwire.Encode(f)
	if err != nil {
		return err
	}
	_, err = w.Write(raw)
	return err
}

func readFrame[F meshwire.Frame](r *bufio.Reader) (F, error) {
	f, _, err := meshwire.ReadFrame(r, protocol.MeshFrameBytesMax)
	if err != nil {
		var none F
		return none, err
	}
	want, ok := f.(F)
	if !ok {
		return want, fmt.Errorf("%w: type %d here", meshwire.ErrBadFrame, f.Type())
	}
	return want, nil
}

func readVector(r *bufio.Reader) (map[protocol.LogID]uint64, error) {
	out := map[protocol.LogID]uint64{}
	for {
		v, err := readFrame[meshwire.Vector](r)
		if err != nil {
			return nil, err
		}
		for _, m := range v.Marks {
			out[m.Log] = m.Seq
		}
		if !v.More {
			return out, nil
		}
	}
}
