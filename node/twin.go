package node

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aster-mesh/aster/node/mesh"
	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/meshwire"
)

// Two starts of one node meet through others, as a rule (fence). On one machine, and on one network that both are open to,
// they also meet directly: who finds the port of its home taken, or hears its own id announced, asks there.

const (
	twinEvery = 5 * time.Second // while nobody has answered at the port that was taken
	twinAgain = time.Minute     // afterwards
	twinTime  = 8 * time.Second
)

func (n *Node) onTwin(addrs []string) {
	select {
	case n.twins.seen <- addrs:
	default:
	}
}

// lookForTwins asks other starts of this node where it has a hint of one, until ctx ends.
func (n *Node) lookForTwins(ctx context.Context) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		var at []string
		select {
		case <-ctx.Done():
			return nil
		case at = <-n.twins.seen:
		case <-timer.C:
			if n.twins.port == 0 {
				continue
			}
			at = mesh.ListenOn(loopback, n.twins.port)
		}
		pause := twinEvery
		if err := n.askTwin(ctx, at); err == nil {
			pause = twinAgain
		} else {
			n.log.Debug("no other start of this node there", "addrs", at, "err", err)
		}
		timer.Reset(pause)
	}
}

func (n *Node) askTwin(ctx context.Context, addrs []string) error {
	ctx, cancel := context.WithTimeout(ctx, twinTime)
	defer cancel()
	ours, err := meshwire.Encode(meshwire.SignStarted(n.home.key, n.startID))
	if err != nil {
		return err
	}
	raw, err := n.mesh.AskTwin(ctx, addrs, append([]byte{askTwin}, ours...))
	if err != nil {
		return err
	}
	theirs, err := n.twinOf(raw)
	if err != nil {
		return err
	}
	return n.loop.call(ctx, func() { n.loop.meetTwin(theirs) })
}

// answerTwin answers another start of this node with which one this is; nil to anybody else.
func (n *Node) answerTwin(ctx context.Context, raw []byte) []byte {
	theirs, err := n.twinOf(raw)
	if err != nil || n.loop.call(ctx, func() { n.loop.meetTwin(theirs) }) != nil {
		return nil
	}
	answer, err := meshwire.Encode(meshwire.SignStarted(n.home.key, n.startID))
	if err != nil {
		return nil
	}
	return answer
}

// twinOf reads the word of another start of this node, which only the node's own key can have signed.
func (n *Node) twinOf(raw []byte) (meshwire.Started, error) {
	s, err := readFrame[meshwire.Started](bufio.NewReader(bytes.NewReader(raw)))
	switch {
	case err != nil:
		return s, err
	case s.Peer != n.home.peer:
		return s, fmt.Errorf("it is of %s", s.Peer.Short())
	case s.Start == n.startID:
		return s, errors.New("it is this one")
	}
	return s, s.Verify()
}

// meetTwin takes the word of another start that was met: the older one of the two stops.
func (l *loop) meetTwin(s meshwire.Started) {
	l.learnStarted(l.n.home.peer, s)
	if l.n.fenced.Load() != nil {
		return
	}
	l.n.twins.mu.Lock()
	fresh := l.n.twins.met == nil
	l.n.twins.met = &s
	l.n.twins.mu.Unlock()
	if fresh {
		for _, c := range l.copies() {
			l.tellCopy(&c)
		}
	}
}

// metTwin is an older start that was met directly.
func (n *Node) metTwin() (protocol.Start, bool) {
	n.twins.mu.Lock()
	defer n.twins.mu.Unlock()
	if n.twins.met == nil {
		return protocol.Start{}, false
	}
	return n.twins.met.Start, true
}
