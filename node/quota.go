package node

import (
	"encoding/json"
	"fmt"

	"github.com/aster-mesh/aster/node/mesh"
	"github.com/aster-mesh/aster/protocol"
)

// outsideBytesMax is what one outside member may take here over its whole life, records and attachments together, so that
// it cannot use up the stores of the inside (promise 6). Some 200,000 messages, or eight full repositories.
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

// weigh is what records and their attachments take.
func weigh(recs []protocol.Record, envs []*protocol.Envelope) (bytes int64) {
	for i := range recs {
		bytes += int64(recordBytes(&recs[i]))
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
