package turn

import (
	"crypto/ed25519"
	"testing"

	"github.com/aster-mesh/aster/node/hub"
	"github.com/aster-mesh/aster/node/journal"
	"github.com/aster-mesh/aster/protocol"
)

// A commit's records are chained, each log's last one is signed, and replication hears of every log once, in their order.
func TestACommitIsChainedSignedAndToldOnceALog(t *testing.T) {
	key := ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))
	peer := protocol.PeerIDOf(key.Public().(ed25519.PublicKey))
	start := protocol.Start{At: 1, Rand: 2}
	in := protocol.LogID{Peer: peer, Start: start, Scope: protocol.ScopeInside}
	out := protocol.LogID{Peer: peer, Start: start, Scope: protocol.ScopeOutside(peer)}
	var drafts []hub.Draft
	for i, log := range []protocol.LogID{out, in, out, in, in} {
		drafts = append(drafts, hub.Draft{Record: protocol.Record{Log: log, Seq: []uint64{1, 1, 2, 2, 3}[i], At: protocol.HLC(i+2) << 32, Kind: protocol.KindMessage, Body: []byte("{}")}})
	}
	chain := map[protocol.LogID]protocol.Hash{}
	entries := Chain(chain, drafts)
	byLog := map[protocol.LogID][]protocol.Record{}
	for _, e := range entries {
		if e.Sign {
			e.Record.SignHash(key, e.Hash)
		}
		byLog[e.Record.Log] = append(byLog[e.Record.Log], e.Record)
	}
	for log, recs := range byLog {
		if _, err := protocol.VerifyCommits(recs, protocol.Hash{}); err != nil {
			t.Errorf("%s: %v", log, err)
		}
	}
	commits := Commits(entries, map[protocol.LogID]protocol.PeerID{in: "who sent it"})
	if len(commits) != 2 || commits[0].Log != out || commits[0].Seq != 2 || commits[1].Seq != 3 || commits[1].From != "who sent it" || commits[1].Hash != chain[in] {
		t.Errorf("replication hears %+v", commits)
	}
}

// What an agent that moved away leaves is part of the commit, also when nothing else is.
func TestWhatIsLeftIsCommitted(t *testing.T) {
	rd := hub.Ready{Left: []protocol.AgentID{"a"}}
	if !Owes(nil, &rd, nil) || len(Batch([]journal.Entry{}, &rd, nil).Left) != 1 {
		t.Error("it is not")
	}
	if rd = (hub.Ready{Inbox: []hub.InboxPut{{Agent: "a"}}}); !Owes(nil, &rd, nil) {
		t.Error("mail that is taken up without a receipt is not committed")
	}
	if Owes(nil, &hub.Ready{}, nil) {
		t.Error("nothing owes a commit")
	}
}
