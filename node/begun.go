package node

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/aster-mesh/aster/protocol"
)

// A node that began at another's snapshot knows nothing of what lies below but that one's word. The words on record that came
// after it are by others too: until one of them has the same digest, or this node made the same as a majority from there on, people
// are told whose word it is.

// begunCheckpoint is the name of what the store keeps of it.
const begunCheckpoint = "begun"

// warnBegun is about a beginning that nobody confirms.
const warnBegun = "begun"

// begun is where a node began that nobody has confirmed yet.
type begun struct {
	Of     protocol.PeerID `json:"of"`
	Digest string          `json:"digest"`
	At     int64           `json:"at"` // ms
}

func (n *Node) keepBegun(b *begun) error {
	n.begun.Store(b)
	return n.store.SaveCheckpoint(begunCheckpoint, 0, protocol.EncodeBody(b))
}

func (n *Node) readBegun() error {
	_, raw, ok, err := n.store.Checkpoint(begunCheckpoint)
	if err != nil {
		return fmt.Errorf("of whom the records that left came: %w", err)
	}
	var b *begun
	if ok && json.Unmarshal(raw, &b) == nil && b != nil && b.Digest != "" {
		n.begun.Store(b)
	}
	return nil
}

// begunConfirmed takes that the members agreed on what this node makes.
func (l *loop) begunConfirmed() {
	b := l.n.begun.Load()
	if b == nil {
		return
	}
	l.log.Info("a word of the members confirms where this node began", "of", b.Of)
	if err := l.n.keepBegun(&begun{}); err != nil {
		l.log.Warn("that it is confirmed is not kept", "err", err)
	}
	l.n.begun.Store(nil)
	l.n.warnings.clear(warnBegun)
}

// noteBegun looks whether what others say confirms where this node began, and warns if nothing does for long, or says otherwise.
func (l *loop) noteBegun() {
	b := l.n.begun.Load()
	if b == nil {
		return
	}
	if l.board.BaseSettled(b.Digest) {
		l.begunConfirmed()
		return
	}
	whose := "this node began at what " + l.n.nameOf(b.Of) + " gave it"
	anew := "If it stays so, begin anew by an invite of another member, in a new home: aster up --home DIR --join -"
	switch {
	case slices.Contains(l.verdict().Differ, l.n.home.peer) && l.verdict().Digest != "":
		l.warn(warnBegun, whose+", and its board is not what a majority makes of the same records: do not go by it. "+anew)
	case l.now.UnixMilli()-b.At >= falseAfter.Milliseconds():
		l.warn(warnBegun, whose+", and no word of a majority of the members confirms that yet. Compare with them: aster doctor --compare. "+anew)
	default:
		l.n.warnings.clear(warnBegun) // boards that differed are alike by now
	}
}
