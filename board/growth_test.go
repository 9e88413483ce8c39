package board

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/roles/keys"
)

// flood is what a member inside may write without end.
type flood struct {
	write func(j *journal, l *journalLog, i int)
	n     int  // so many are above its bound, if it has one
	grows bool // with each record, as the journal does
}

func logOf(p protocol.PeerID, i int) protocol.LogID {
	return protocol.LogID{Peer: p, Start: protocol.Start{At: protocol.HLC(i + 1), Rand: 1}, Scope: protocol.ScopeInside}
}

// made is a node that is none.
func made(i int) protocol.PeerID {
	seed := sha256.Sum256(fmt.Append(nil, i))
	return protocol.PeerIDOf(ed25519.NewKeyFromSeed(seed[:]).Public().(ed25519.PublicKey))
}

// floods are all kinds of record that the fold reads. A new one belongs here.
func floods() map[string]flood {
	all := boundedFloods()
	maps.Copy(all, growingFloods())
	return all
}

func growingFloods() map[string]flood {
	says := func(make func(i int) protocol.Envelope) func(j *journal, l *journalLog, i int) {
		return func(j *journal, l *journalLog, i int) { j.write(l, protocol.KindMessage, make(i)) }
	}
	room := func(make func(i int) protocol.RoomBody) func(j *journal, l *journalLog, i int) {
		return func(j *journal, l *journalLog, i int) { j.write(l, protocol.KindRoom, make(i)) }
	}
	return map[string]flood{
		"ended tasks": {func(j *journal, l *journalLog, i int) {
			id := protocol.MsgID(fmt.Sprint("m", i))
			j.write(l, protocol.KindMessage, protocol.Envelope{ID: id, From: "x", To: "x", Intent: protocol.Delegate, Value: json.RawMessage(`{"task":"t"}`)})
			j.write(l, protocol.KindMessage, protocol.Envelope{ID: id + "r", From: "x", To: "x", Re: id, Intent: protocol.WorkerReport, Value: json.RawMessage(`{"status":"done","outcome":"done"}`)})
		}, 500, true},
		"open tasks": {says(func(i int) protocol.Envelope {
			return protocol.Envelope{ID: protocol.MsgID(fmt.Sprint("m", i)), From: "x", To: "x", Intent: protocol.Delegate, Value: json.RawMessage(`{"task":"t"}`)}
		}), 500, true},
		"reports on tasks that are none": {says(func(i int) protocol.Envelope {
			return protocol.Envelope{ID: protocol.MsgID(fmt.Sprint("m", i)), From: "x", To: "x", Re: protocol.MsgID(fmt.Sprint("n", i)), Intent: protocol.WorkerReport, Value: json.RawMessage(`{"status":"done","outcome":"done"}`)}
		}), 500, true},
		"declarations of roles": {says(func(i int) protocol.Envelope {
			return protocol.Envelope{ID: protocol.MsgID(fmt.Sprint("m", i)), From: "x", Intent: "RoleState", Value: json.RawMessage(fmt.Sprintf(`{"role":"r%d"}`, i))}
		}), 500, true},
		"agents": {func(j *journal, l *journalLog, i int) { j.bind(l, protocol.AgentID(fmt.Sprint("x", i))) }, 500, true},
		"presence": {func(j *journal, l *journalLog, i int) {
			j.write(l, protocol.KindPresence, protocol.PresenceBody{Agent: protocol.AgentID(fmt.Sprint("x", i)), State: "idle"})
		}, 500, true},
		"moves": {func(j *journal, l *journalLog, i int) {
			j.write(l, protocol.KindMove, protocol.MoveBody{Agent: protocol.AgentID(fmt.Sprint("x", i)), Origin: l.id.Peer, To: j.peers[2], Moves: 1})
		}, 500, true},
		"keys": {func(j *journal, l *journalLog, i int) {
			j.write(l, protocol.KindKey, protocol.KeyBody{Step: protocol.KeyIssue, Hash: keys.HashOf(fmt.Sprint(i)).String(), Kind: "collab", TTL: 1})
		}, 500, true},
		"rooms": {room(func(i int) protocol.RoomBody {
			return protocol.RoomBody{Room: protocol.RoomID(fmt.Sprint("r", i)), Op: protocol.RoomCreated, Participants: []protocol.AgentID{"x"}}
		}), 500, true},
		"who is in a room": {room(func(i int) protocol.RoomBody {
			return protocol.RoomBody{Room: "r", Op: protocol.RoomJoined, Agent: protocol.AgentID(fmt.Sprint("x", i))}
		}), 500, true},
		"who wants the floor of a room": {room(func(i int) protocol.RoomBody {
			return protocol.RoomBody{Room: "r", Op: protocol.RoomFloor, Agent: protocol.AgentID(fmt.Sprint("x", i)), Intent: "request"}
		}), 500, true},
		"channels": {func(j *journal, l *journalLog, i int) {
			j.write(l, protocol.KindChannel, protocol.ChannelBody{Step: protocol.ChannelArchive, Channel: fmt.Sprint("c", i)})
		}, 500, true},
		"decisions in terms that are none": {func(j *journal, l *journalLog, i int) {
			j.write(l, protocol.KindClaim, protocol.ClaimBody{ID: "c", Op: protocol.ClaimGrant, Term: protocol.Term{Number: uint64(i + 1), Peer: l.id.Peer}})
		}, 500, true},
		"terms": {func(j *journal, l *journalLog, i int) {
			j.write(l, protocol.KindTerm, protocol.TermBody{Number: uint64(i + 1), Peer: l.id.Peer})
		}, 100, true},
		"invites": {func(j *journal, l *journalLog, i int) {
			j.write(l, protocol.KindInviteUsed, protocol.InviteUsedBody{Invite: fmt.Sprintf("%016d", i), Peer: made(i)})
		}, 500, true},
		"receipts of what never comes": {func(j *journal, l *journalLog, i int) {
			var ranges []uint64
			for k := range uint64(1000) {
				ranges = append(ranges, uint64(i)*3000+3*k+1, uint64(i)*3000+3*k+1)
			}
			j.write(l, protocol.KindReceipts, protocol.ReceiptsBody{Tier: protocol.Persisted, Agent: "x", Of: []protocol.LogRange{{Log: logOf(j.peers[2], 1).String(), Ranges: ranges}}})
		}, 50, true},
	}
}

func boundedFloods() map[string]flood {
	return map[string]flood{
		"words on bases that hold nowhere": {func(j *journal, l *journalLog, _ int) {
			ask := j.asks(l, "", map[protocol.LogID]uint64{l.id: 1})
			j.answers(l, ask, digestOf(1))
			j.says(l, ask, digestOf(1), nil)
		}, protocol.BaseWordsMax + 50, false},
		"proposals of bases": {func(j *journal, l *journalLog, _ int) { j.asks(l, "", map[protocol.LogID]uint64{l.id: 1}) }, 100, false},
		"answers to bases that nobody proposes": {func(j *journal, l *journalLog, i int) {
			j.answers(l, &protocol.Record{Log: logOf(j.peers[i%4], i), Seq: 1 << 40}, digestOf(1))
		}, protocol.BaseAnswersMax + 50, false},
		"forks of nodes that are none": {func(j *journal, l *journalLog, i int) {
			j.write(l, protocol.KindFork, protocol.ForkBody{Log: logOf(made(i), 1).String(), Seq: 1})
		}, forksTold + 50, false},
		"fences": {func(j *journal, l *journalLog, i int) {
			j.write(l, protocol.KindFence, protocol.FenceBody{Start: l.id.Start.String(), By: protocol.Start{At: 1 << 40, Rand: uint64(i)}.String()})
		}, 100, false},
		"comparisons": {func(j *journal, l *journalLog, _ int) {
			j.write(l, protocol.KindCut, protocol.CutBody{Step: protocol.CutPropose, Marks: map[string]uint64{l.id.String(): 1}})
			j.write(l, protocol.KindCut, protocol.CutBody{Step: protocol.CutAnswer, Log: l.id.String(), Seq: 1, Digest: digestOf(1)})
		}, 100, false},
		"documents": {func(j *journal, l *journalLog, i int) {
			j.write(l, protocol.KindState, protocol.StateBody{Text: fmt.Sprint("t", i%10)})
		}, 100, false},
		"unheard-of kinds and intents": {func(j *journal, l *journalLog, i int) {
			j.write(l, protocol.Kind(fmt.Sprint("new-", i)), struct{}{})
			j.write(l, protocol.KindMessage, protocol.Envelope{From: "x", Intent: protocol.Intent(fmt.Sprint("New", i))})
		}, 100, false},
		"words in a room": {func(j *journal, l *journalLog, i int) {
			j.write(l, protocol.KindRoom, protocol.RoomBody{Room: "r", Op: protocol.RoomCreated, Participants: []protocol.AgentID{"x"}})
			j.write(l, protocol.KindRoom, protocol.RoomBody{Room: "r", Op: protocol.RoomArtifacts, Decision: &protocol.RoomText{Text: "d"}})
			j.write(l, protocol.KindMessage, protocol.Envelope{ID: protocol.MsgID(fmt.Sprint(i)), From: "x", Room: "r", Intent: "Say"})
		}, 200, false},
	}
}

// TestWhatOneMemberMakesTheBoardGrowBy: of some kinds a member inside may write as much as it likes, and the board stays as
// large as it was. Of the others it grows no faster than the journal, which is what members are believed with (TESTING.md names them):
// no record weighs more in the fold than on the disk.
func TestWhatOneMemberMakesTheBoardGrowBy(t *testing.T) {
	for what, f := range floods() {
		t.Run(strings.ReplaceAll(what, " ", "-"), func(t *testing.T) {
			j := newJournal(t)
			first, l := j.founded(), j.open(1, protocol.ScopeInside)
			j.bind(l, "x")
			s := emptyState(j, 100)
			for _, r := range first.records {
				if err := s.Apply(r, nil); err != nil {
					t.Fatal(err)
				}
			}
			written := 0
			until := func(n int) (size, bytes int) {
				for i := written; i < n; i++ {
					f.write(j, l, i)
				}
				written = n
				for _, r := range l.records {
					if err := s.Apply(r, nil); err != nil {
						t.Fatal(err)
					}
					bytes += len(r.Body) + 200 // log, times, hash of the one before
				}
				return len(s.Encode()), bytes
			}
			before, bytesBefore := until(f.n)
			after, bytes := until(2 * f.n)
			more, of := after-before, bytes-bytesBefore
			switch {
			case !f.grows && more > 200:
				t.Errorf("%d records more and %d bytes more", f.n, more)
			case f.grows && more > 2*of:
				t.Errorf("%d bytes of records are %d in the board", of, more)
			case f.grows && more < 1000:
				t.Errorf("it has a bound by now: %d bytes", more)
			}
		})
	}
}

// TestAMembersShareOfWordsOnBases: what it says of bases beyond its share counts nowhere, whatever came first, and holds up nobody else.
func TestAMembersShareOfWordsOnBases(t *testing.T) {
	j := newJournal(t)
	in, b, c := j.founded(), j.open(1, protocol.ScopeInside), j.open(2, protocol.ScopeInside)
	base := map[protocol.LogID]uint64{in.id: 4}
	agree := func(l *journalLog, digest string) {
		ask := j.asks(l, "", base)
		j.answers(in, ask, digest)
		j.answers(c, ask, digest)
		j.says(l, ask, digest, nil)
	}
	for range protocol.BaseWordsMax - 1 {
		j.says(b, j.asks(b, "", base), digestOf(1), nil)
	}
	agree(b, digestOf(2)) // its last
	last := b.records[len(b.records)-1]
	agree(b, digestOf(3))
	for i := range protocol.BaseAnswersToOneMax {
		j.answers(b, &protocol.Record{Log: logOf(j.peers[2], i), Seq: 9}, digestOf(1))
	}
	ask := j.asks(c, "", base)
	j.answers(b, ask, digestOf(6)) // one too many
	j.answers(c, ask, digestOf(6))
	j.says(c, ask, digestOf(6), nil)
	var held *BaseHeld
	everyOrder(t, j, func(s *State) {
		if held, _ = s.BaseHeld(); held == nil || held.At.seq != last.Seq {
			t.Fatalf("%+v", held)
		}
		if words := len(s.bases.words); words > protocol.BaseWordsMax+1 { // that of c, too
			t.Fatalf("%d words are kept", words)
		}
	})
	// Answers to the word that was one too many are kept nowhere, whether they came before it or after.
	later := fold(t, emptyState(j, 10), b.records)
	later = fold(t, later, j.all())
	first := fold(t, emptyState(j, 10), slices.Concat(in.records, c.records))
	first = fold(t, first, j.all())
	if !bytes.Equal(first.checkpoint(true), later.checkpoint(true)) {
		t.Fatal("whose records came first shows")
	}
	agree(in, digestOf(4))
	if held, _ = fold(t, emptyState(j, 10), j.all()).BaseHeld(); held == nil || held.Digest != digestOf(4) {
		t.Fatalf("it holds up others: %+v", held)
	}
}

// TestAMembersShareOfForks: it crowds out its own words alone, and which of them stay is the same in every order.
func TestAMembersShareOfForks(t *testing.T) {
	j := newJournal(t)
	in, b := j.founded(), j.open(1, protocol.ScopeInside)
	j.write(in, protocol.KindFork, protocol.ForkBody{Log: logOf(j.peers[2], 1).String(), Seq: 1})
	dice := rand.New(rand.NewPCG(1, 2))
	for range 5 * forksTold {
		j.write(b, protocol.KindFork, protocol.ForkBody{Log: logOf(made(dice.IntN(3*forksTold)), 1).String(), Seq: 1})
	}
	everyOrder(t, j, func(s *State) {
		told := s.Forks()
		if len(told) != forksTold+1 || !strings.Contains(fmt.Sprint(told), string(j.peers[2])) {
			t.Fatalf("%d forks: %v", len(told), told)
		}
	})
}
