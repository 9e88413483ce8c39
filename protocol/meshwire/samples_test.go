package meshwire

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/aster-mesh/aster/protocol"
)

func keyFor(name string) ed25519.PrivateKey {
	seed := sha256.Sum256([]byte(name))
	return ed25519.NewKeyFromSeed(seed[:])
}

func peerFor(name string) protocol.PeerID {
	return protocol.PeerIDOf(keyFor(name).Public().(ed25519.PublicKey))
}

func logFor(name string, scope protocol.Scope) protocol.LogID {
	return protocol.LogID{Peer: peerFor(name), Start: protocol.Start{At: 0x0198_0000_0000_0001, Rand: 0xdecade}, Scope: scope}
}

// rangeFor makes n records of bodies of size bytes from first on, signed at every commit-th and at the end.
func rangeFor(name string, first uint64, n, size, commit int) []protocol.Record {
	prev := protocol.Hash{}
	if first > 1 {
		prev = protocol.Hash(sha256.Sum256([]byte("before")))
	}
	rs := make([]protocol.Record, n)
	for i := range rs {
		rs[i] = protocol.Record{Log: logFor(name, protocol.ScopeInside), Seq: first + uint64(i), Prev: prev,
			At: protocol.HLC(7_000_000 + i), Wall: int64(1_700_000_000_000 + i), Kind: protocol.KindMessage,
			Body: []byte(strings.Repeat("b", size))}
		if (i+1)%commit == 0 || i == n-1 {
			rs[i].Sign(keyFor(name))
		}
		prev = rs[i].Hash()
	}
	return rs
}

// sample is one frame of every type, with every field set in at least one of them.
func samples() map[string]Frame {
	mark := func(name string, scope protocol.Scope, seq uint64) Mark {
		return Mark{Log: logFor(name, scope), Seq: seq}
	}
	hashed := mark("ada", protocol.ScopeInside, 1<<53)
	hashed.Hash = [8]byte{1, 2, 3, 4, 5, 6, 7, 8}
	out := protocol.ScopeOutside(peerFor("olaf"))
	agent := AgentPresence{ID: "codex-repo", Name: "Codex · repo", Role: protocol.RoleLocal, State: protocol.StateWorking,
		SinceMillis: 1_700_000_000_000, Unread: 3, Wakes: "its socket", Doing: "tests", Attached: []string{"ws", "files"}}
	sum := sha256.Sum256([]byte("blob"))
	blob := hex.EncodeToString(sum[:])
	return map[string]Frame{
		"hello": Hello{Version: Version, Mesh: "mesh-1", Start: protocol.Start{At: 9, Rand: 8}, Name: "laptop",
			Role: protocol.RoleLocal, Board: "127.0.0.1:7878", Wall: 1_700_000_000_000, Software: "aster 0.1"},
		"vector": Vector{Marks: []Mark{hashed, mark("ada", out, 7), mark("bob", protocol.ScopeRoom("plan:b", 12), 0)},
			Past: []Past{{Author: peerFor("ada"), Sum: [16]byte{15: 1}}}, More: true},
		"vector-of":  Vector{Of: []protocol.PeerID{peerFor("ada"), peerFor("bob")}},
		"records":    FromRecords(rangeFor("ada", 41, 3, 20, 2)),
		"records-1":  FromRecords(rangeFor("bob", 1, 1, 1, 1)),
		"have":       Have{Marks: []Mark{mark("ada", protocol.ScopeInside, 300), mark("ada", out, 2)}},
		"need":       Need{Log: logFor("ada", protocol.ScopeInside), From: 17},
		"need-proof": Need{Log: logFor("ada", out), From: 17, To: 18},
		"live":       Live{Agent: "main-agent", Kind: "TEXT_MESSAGE_CONTENT", Frame: []byte(`{"delta":"x"}`)},
		"presence":   Presence{Start: protocol.Start{At: 9, Rand: 8}, Counter: 77, Agents: []AgentPresence{agent, {ID: "a"}}, More: true},
		"roster": Roster{Counter: 5, Agents: []RosterAgent{{agent, peerFor("ada"), "laptop"}},
			Nodes: []RosterNode{{peerFor("ada"), "laptop", protocol.RoleLocal, true}}, More: true},
		"addrs":     SignAddrs(keyFor("ada"), []string{"/ip4/127.0.0.1/tcp/4001", "/ip4/127.0.0.1/udp/4001/quic-v1"}, 1_700_000_000_000),
		"started":   SignStarted(keyFor("ada"), protocol.Start{At: 9, Rand: 8}),
		"base":      Base{Digest: sum, Bytes: 1 << 20},
		"blob-get":  BlobGet{SHA256: blob, Offset: 262144, Length: 100},
		"blob-data": BlobData{SHA256: blob, Offset: 4, Total: 8, Data: []byte("data")},
		"blob-none": BlobData{SHA256: blob, Missing: true},
		"blob-left": BlobData{SHA256: blob, Missing: true, Left: true},
		"ping":      Ping{ID: 1 << 63, Wall: -5},
		"pong":      Pong{ID: 300, Wall: 1_700_000_000_000},
		"bye":       Bye{Reason: "the node stops", Code: protocol.CodeRevoked},
		"office": Office{Kind: 1, Term: protocol.Term{Number: 7, Peer: peerFor("ada")}, Seen: 8, Seq: 9, Strong: true, Resigned: true, OK: true, Pre: true,
			Number: 10, Stamp: protocol.Stamp{Term: protocol.Term{Number: 6, Peer: peerFor("bob")}, Number: 3}, Voters: []protocol.PeerID{peerFor("ada"), peerFor("bob")}},
		"office-0": Office{Kind: 3, Number: 2},
		"claims": Claims{Kind: 2, Token: 1 << 63, Term: protocol.Term{Number: 7, Peer: peerFor("ada")}, OK: true, Code: "busy", Reason: "held", Items: []ClaimItem{
			{ID: "c1", Agent: "a", Session: "1/2/b", Scopes: []string{"path:x/", "contract:api"}, Why: "w", Millis: 300_000, Term: protocol.Term{Number: 1, Peer: peerFor("bob")}}, {}}},
	}
}

// bigFrames are frames as large as real ones get.
func bigFrames() map[string]Frame {
	v := Vector{}
	for i := range splitMarks {
		m := Mark{Log: logFor(fmt.Sprint("author", i/32), protocol.ScopeInside), Seq: uint64(i)}
		m.Log.Start.Rand = uint64(i)
		v.Marks = append(v.Marks, m)
	}
	return map[string]Frame{"vector": v, "records": FromRecords(rangeFor("ada", 5, 64, 1000, 64)),
		"chunk": BlobData{SHA256: strings.Repeat("ab", 32), Total: protocol.BlobBytesMax, Data: make([]byte, protocol.BlobChunkBytes)}}
}
