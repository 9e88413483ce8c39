package turn

import (
	"bytes"
	"crypto/ed25519"
	"maps"
	"testing"
	"time"

	"github.com/aster-mesh/aster/node/replica"
	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/roles/member"
)

// TestACutNamesTheSameRecordsOnEveryNode: nodes that hold what a proposal names find the same marks, also of former starts, and
// those that lack some, or hold more of an author's past, do not answer.
func TestACutNamesTheSameRecordsOnEveryNode(t *testing.T) {
	log := func(peer, start int, scope protocol.Scope) protocol.LogID {
		return protocol.LogID{Peer: author(peer), Start: protocol.Start{At: protocol.HLC(start), Rand: 1}, Scope: scope}
	}
	in, out := protocol.ScopeInside, protocol.ScopeOutside(author(9))
	held := map[protocol.LogID]uint64{log(1, 1, in): 5, log(1, 1, out): 2, log(1, 2, in): 7, log(1, 3, in): 4, log(1, 3, out): 1, log(2, 1, in): 9}
	node := func(change map[protocol.LogID]uint64) *replica.Replica {
		all := maps.Clone(held)
		maps.Copy(all, change)
		var heads []replica.Head
		for l, seq := range all {
			heads = append(heads, replica.Head{Log: l, Seq: seq, Hash: protocol.Hash{1}})
		}
		return replica.New(author(2), heads, func(protocol.PeerID, protocol.Scope) bool { return true })
	}
	roster := member.NewRoster("mesh")
	body, ok := ProposeCut(node(nil), roster)
	if !ok || len(body.Marks) != 3 || len(body.Past) != 1 || body.Records != 28 {
		t.Fatalf("the proposal is %+v, %v", body, ok)
	}
	for _, c := range []struct {
		what   string
		change map[protocol.LogID]uint64
		holds  bool
	}{
		{"the same", nil, true},
		{"more of a last start", map[protocol.LogID]uint64{log(1, 3, in): 40}, true},
		{"a later start", map[protocol.LogID]uint64{log(1, 4, in): 2, log(2, 2, in): 1}, true},
		{"an author that it does not name", map[protocol.LogID]uint64{log(3, 1, in): 2}, true},
		{"less of a last start", map[protocol.LogID]uint64{log(1, 3, in): 3}, false},
		{"a last start missing", map[protocol.LogID]uint64{log(2, 1, in): 0}, false},
		{"less of a former start", map[protocol.LogID]uint64{log(1, 1, out): 1}, false},
		{"more of a former start", map[protocol.LogID]uint64{log(1, 2, in): 8}, false},
	} {
		marks, holds, err := CutMarks(node(c.change), roster, &body)
		if err != nil || holds != c.holds || holds && !maps.Equal(marks, held) {
			t.Errorf("%s: %v %v, %v", c.what, holds, marks, err)
		}
	}
	body.Marks["no log"] = 1
	if _, _, err := CutMarks(node(nil), roster, &body); err == nil {
		t.Error("a name that is none was taken")
	}
}

func author(n int) protocol.PeerID {
	key := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{byte(n + 1)}, ed25519.SeedSize))
	return protocol.PeerIDOf(key.Public().(ed25519.PublicKey))
}

// TestACutOfManyStartsStaysSmall: a mesh of nodes that start every day for ten years names its last starts alone.
func TestACutOfManyStartsStaysSmall(t *testing.T) {
	var heads []replica.Head
	for peer := range 8 {
		for day := range 3650 {
			start := protocol.Start{At: protocol.HLCAt(time.UnixMilli(int64(day) * 86_400_000)), Rand: 7}
			heads = append(heads, replica.Head{Log: protocol.LogID{Peer: author(peer), Start: start, Scope: protocol.ScopeInside}, Seq: 3, Hash: protocol.Hash{1}})
		}
	}
	body, ok := ProposeCut(replica.New(author(1), heads, func(protocol.PeerID, protocol.Scope) bool { return true }), member.NewRoster("mesh"))
	if raw := protocol.EncodeBody(body); !ok || len(raw) > 4096 || body.Records != 8*3650*3 {
		t.Errorf("%d bytes, %v, %d records", len(raw), ok, body.Records)
	}
}
