package node

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/aster-mesh/aster/node/mesh"
	"github.com/aster-mesh/aster/node/turn"
	"github.com/aster-mesh/aster/protocol"
)

// outsideBytesMax is what one outside member may take here over its whole life, records and attachments together, so that
// it cannot use up the stores of the inside (promise 6); so may whoever comes with one key of outsiders, and one board that
// agents here have joined. Some 200,000 messages, or eight full repositories.
const outsideBytesMax = 512 << 20

// keyOutside is how much each has taken, committed with the records themselves.
const keyOutside = "outside/"

// affords says whether an author may take so many bytes more here. Any goroutine may ask.
func (n *Node) affords(author protocol.PeerID, bytes int64) bool {
	if n.standingOf(author) != mesh.Outside {
		return true
	}
	used, _ := n.outsideUsed.Load(author)
	have, _ := used.(int64)
	return have+bytes <= outsideBytesMax
}

// What every node keeps of a log, and of a name in one, for good: so much of a share goes for each, however few bytes they
// are. It leaves a member outside some 7,000 starts, or 100,000 names. A presence costs its bytes alone: an agent at work has
// one a minute, and of each name the newest is kept.
const (
	logCosts  = 64 << 10
	nameCosts = 4 << 10
)

// weigh is what records and their attachments take.
func weigh(recs []protocol.Record, envs []*protocol.Envelope) (bytes int64) {
	for i := range recs {
		bytes += int64(turn.RecordBytes(&recs[i]))
		if recs[i].Seq == 1 {
			bytes += logCosts
		}
		if recs[i].Kind == protocol.KindBind {
			bytes += nameCosts
		}
		if envs[i] == nil {
			continue
		}
		for _, b := range envs[i].AllBlobs() {
			bytes += b.Bytes
		}
	}
	return bytes
}

// spend books what was taken of an outside member's log.
func (l *loop) spend(author protocol.PeerID, bytes int64) {
	if l.n.standingOf(author) != mesh.Outside {
		return
	}
	used, _ := l.n.outsideUsed.Load(author)
	have, _ := used.(int64)
	l.n.outsideUsed.Store(author, have+bytes)
	l.value(keyOutside+string(author), protocol.EncodeBody(have+bytes))
}

// overQuota tells a person, once, that a member outside is not listened to any more.
func (l *loop) overQuota(author protocol.PeerID) {
	name := l.n.nameOf(author)
	l.warn("quota/"+string(author), fmt.Sprintf("%s has used its %d MB here: nothing more of it is taken. If that is not what it is for: aster member revoke %s", name, outsideBytesMax>>20, name))
}

// spend books what a client that came with a key of outsiders gives, before it is kept: what is refused after that was on
// the disk, too. It says when the key has used all that it has here. Call it in the read loop.
func (s *socket) spend(bytes int) *protocol.Refusal {
	if !s.keyed || !s.outside || s.n.book("key/"+s.key.String(), int64(bytes), "the key "+s.key.Ref(), "aster key revoke "+s.key.Ref()) {
		return nil
	}
	return protocol.Refuse(protocol.CodeTooMany, "your key has used its %d MB here", "ask the board's owner for another key", outsideBytesMax>>20)
}

// spend books what another board sends, before it is kept.
func (b *farBoard) spend(bytes int) *protocol.Refusal {
	name := b.name()
	if b.n.book(boardQuota(name), int64(bytes), "the board "+name, "aster join-board --leave "+name) {
		return nil
	}
	return protocol.Refuse(protocol.CodeTooMany, "this board has used its %d MB at this node", "", outsideBytesMax>>20)
}

// giveBack takes back what was booked and not kept. Not for the loop's goroutine.
func (b *farBoard) giveBack(bytes int) {
	if bytes > 0 {
		b.n.book(boardQuota(b.name()), -int64(bytes), "", "")
	}
}

func boardQuota(name string) string { return "board/" + strings.ToLower(name) }

// book counts what somebody who is no member gives, and says whether it may. Any goroutine but the loop's may call it.
func (n *Node) book(who string, bytes int64, whose, end string) bool {
	n.booking.Lock() // several sockets and seats may book for one
	defer n.booking.Unlock()
	used, _ := n.outsideUsed.Load(protocol.PeerID(who))
	have, _ := used.(int64)
	if have = max(have+bytes, 0); bytes > 0 && have > outsideBytesMax {
		_ = n.loop.post(n.ctx, func() {
			n.loop.warn("quota/"+who, fmt.Sprintf("%s has used its %d MB here: nothing more of it is taken. If that is not what it is for: %s", whose, outsideBytesMax>>20, end))
		})
		return false
	}
	n.outsideUsed.Store(protocol.PeerID(who), have)
	_ = n.loop.post(n.ctx, func() { n.loop.value(keyOutside+who, protocol.EncodeBody(have)) })
	return true
}

// restoreQuotas reads what was booked.
func (n *Node) restoreQuotas() error {
	saved, err := n.store.ValuesWithPrefix(keyOutside)
	if err != nil {
		return fmt.Errorf("read quotas: %w", err)
	}
	for key, raw := range saved {
		var bytes int64
		if json.Unmarshal(raw, &bytes) == nil {
			n.outsideUsed.Store(protocol.PeerID(key[len(keyOutside):]), bytes)
		}
	}
	return nil
}
