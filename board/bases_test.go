package board

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"

	"github.com/aster-mesh/aster/protocol"
)

func digestOf(n int) string { return fmt.Sprintf("%064x", n) }

// asks proposes a base in a log.
func (j *journal) asks(l *journalLog, prev string, of map[protocol.LogID]uint64) *protocol.Record {
	return j.write(l, protocol.KindCut, protocol.CutBody{Step: protocol.CutBase, Prev: prev, Marks: MarkTexts(of)})
}

func (j *journal) answers(l *journalLog, ask *protocol.Record, digest string) *protocol.Record {
	return j.write(l, protocol.KindCut, protocol.CutBody{Step: protocol.CutBaseAnswer, Log: ask.Log.String(), Seq: ask.Seq, Fold: FoldVersion, Digest: digest})
}

// says writes the word that a proposal holds, which change makes another.
func (j *journal) says(l *journalLog, ask *protocol.Record, digest string, change func(*protocol.CutBody)) *protocol.Record {
	body, err := protocol.DecodeBody[protocol.CutBody](ask)
	if err != nil {
		panic(err)
	}
	body.Step, body.Log, body.Seq, body.Fold, body.Digest = protocol.CutHold, ask.Log.String(), ask.Seq, FoldVersion, digest
	if change != nil {
		change(&body)
	}
	return j.write(l, protocol.KindCut, body)
}

// everyOrder folds a journal in orders in which it may arrive, over a checkpoint, and has all boards be one.
func everyOrder(t *testing.T, j *journal, see func(*State)) {
	t.Helper()
	var canonical, checkpoint []byte
	for n := range uint64(8) {
		records := j.merged(rand.New(rand.NewPCG(n, 1)))
		s := fold(t, New(j.id), records[:len(records)/2])
		s, err := Decode(s.Encode())
		if err != nil {
			t.Fatal(err)
		}
		if n%2 == 0 {
			s.BaseHeld() // whenever it is asked
		}
		s = fold(t, s, records)
		see(s)
		if canonical == nil {
			canonical, checkpoint = s.Canonical(), s.checkpoint(true)
		}
		if !bytes.Equal(s.Canonical(), canonical) || !bytes.Equal(s.checkpoint(true), checkpoint) {
			t.Fatalf("order %d makes another board\n%s\n%s", n, canonical, s.Canonical())
		}
	}
}

// baseLogs are where members say false words.
type baseLogs struct {
	j           *journal
	in, b, c, d *journalLog // d is outside
	base        map[protocol.LogID]uint64
}

// falseWords say one each, and whose it is.
func falseWords() map[string]func(l baseLogs) (by protocol.PeerID) {
	return map[string]func(l baseLogs) (by protocol.PeerID){
		"nothing was proposed": func(l baseLogs) protocol.PeerID {
			ask := l.j.answers(l.b, l.b.records[0], digestOf(1)) // no proposal
			l.j.write(l.b, protocol.KindCut, protocol.CutBody{Step: protocol.CutHold, Log: ask.Log.String(), Seq: ask.Seq, Marks: MarkTexts(l.base), Fold: FoldVersion, Digest: digestOf(1)})
			return l.b.id.Peer
		},
		"nobody answered": func(l baseLogs) protocol.PeerID {
			l.j.says(l.b, l.j.asks(l.b, "", l.base), digestOf(1), nil)
			return l.b.id.Peer
		},
		"one of three answered": func(l baseLogs) protocol.PeerID {
			ask := l.j.asks(l.b, "", l.base)
			l.j.answers(l.b, ask, digestOf(1))
			l.j.says(l.b, ask, digestOf(1), nil)
			return l.b.id.Peer
		},
		"one that is no member of the inside answered": func(l baseLogs) protocol.PeerID {
			ask := l.j.asks(l.b, "", l.base)
			l.j.answers(l.b, ask, digestOf(1))
			l.j.answers(l.d, ask, digestOf(1))
			l.j.says(l.b, ask, digestOf(1), nil)
			return l.b.id.Peer
		},
		"they answered otherwise": func(l baseLogs) protocol.PeerID {
			ask := l.j.asks(l.b, "", l.base)
			l.j.answers(l.in, ask, digestOf(2))
			l.j.answers(l.c, ask, digestOf(2))
			l.j.says(l.b, ask, digestOf(1), nil)
			return l.b.id.Peer
		},
		"the other answers came after it": func(l baseLogs) protocol.PeerID {
			ask := l.j.asks(l.b, "", l.base)
			l.j.answers(l.b, ask, digestOf(1))
			l.j.says(l.b, ask, digestOf(1), nil)
			l.j.answers(l.in, ask, digestOf(1))
			return l.b.id.Peer
		},
		"another than who proposed says it": func(l baseLogs) protocol.PeerID {
			ask := l.j.asks(l.in, "", l.base)
			l.j.answers(l.b, ask, digestOf(1))
			l.j.answers(l.c, ask, digestOf(1))
			l.j.says(l.b, ask, digestOf(1), nil)
			return l.b.id.Peer
		},
		"it goes further than was proposed": func(l baseLogs) protocol.PeerID {
			ask := l.j.asks(l.b, "", map[protocol.LogID]uint64{l.in.id: 4})
			l.j.answers(l.in, ask, digestOf(1))
			l.j.answers(l.b, ask, digestOf(1))
			l.j.says(l.b, ask, digestOf(1), func(b *protocol.CutBody) { b.Marks[l.c.id.String()] = 1 })
			return l.b.id.Peer
		},
		"it is of a proposal before the last": func(l baseLogs) protocol.PeerID {
			ask := l.j.asks(l.b, "", l.base)
			l.j.answers(l.in, ask, digestOf(1))
			l.j.answers(l.b, ask, digestOf(1))
			l.j.asks(l.b, "", map[protocol.LogID]uint64{l.in.id: 4})
			l.j.says(l.b, ask, digestOf(1), nil)
			return l.b.id.Peer
		},
		"its base is not there": func(l baseLogs) protocol.PeerID {
			ask := l.j.asks(l.b, "", map[protocol.LogID]uint64{l.in.id: 4, l.c.id: 99})
			l.j.answers(l.in, ask, digestOf(1))
			l.j.answers(l.b, ask, digestOf(1))
			l.j.says(l.b, ask, digestOf(1), nil)
			return l.b.id.Peer
		},
	}
}

// TestAFalseWordOnABaseHasNoEffect: whatever a member says, a base holds only once a majority of the members as of that base has
// answered so to its author's newest proposal. A false word is named with its author, and the next base holds all the same.
func TestAFalseWordOnABaseHasNoEffect(t *testing.T) {
	for what, lie := range falseWords() {
		t.Run(what, func(t *testing.T) {
			j := newJournal(t)
			l := baseLogs{j: j, in: j.founded(), b: j.open(1, protocol.ScopeInside), c: j.open(2, protocol.ScopeInside), d: j.open(3, protocol.ScopeOutside(j.peers[3]))}
			for _, log := range []*journalLog{l.b, l.c} {
				j.bind(log, "a")
			}
			l.base = map[protocol.LogID]uint64{l.in.id: 4, l.c.id: 1}
			by := lie(l)
			everyOrder(t, j, func(s *State) {
				if held, _ := s.BaseHeld(); held != nil {
					t.Fatal("it holds")
				}
				if said := s.BaseFalse(); len(said) != 1 || said[0].By() != by {
					t.Fatalf("named: %+v", said)
				}
			})
			ask := j.asks(l.in, "", l.base)
			j.answers(l.in, ask, digestOf(5))
			j.answers(l.c, ask, digestOf(5))
			j.says(l.in, ask, digestOf(5), nil)
			everyOrder(t, j, func(s *State) {
				if held, marks := s.BaseHeld(); held == nil || held.Digest != digestOf(5) || !maps.Equal(marks, l.base) {
					t.Fatalf("the next base does not hold: %+v %v", held, marks)
				}
			})
		})
	}
}

// TestAWordOfAnEarlierProgramIsNoLie: those took anybody's. It counts no more, and nobody is named for it.
func TestAWordOfAnEarlierProgramIsNoLie(t *testing.T) {
	j := newJournal(t)
	in, b := j.founded(), j.open(1, protocol.ScopeInside)
	ask := j.asks(in, "", map[protocol.LogID]uint64{in.id: 4})
	j.answers(in, ask, digestOf(1))
	j.answers(b, ask, digestOf(1))
	j.says(b, ask, digestOf(1), func(b *protocol.CutBody) { b.Fold = foldsThatCheck - 1 })
	everyOrder(t, j, func(s *State) {
		if held, _ := s.BaseHeld(); held != nil || len(s.BaseFalse()) > 0 {
			t.Fatalf("%+v %+v", held, s.BaseFalse())
		}
	})
}

// TestWhoIsAMemberAtABaseCounts: not who came later, and also who left since.
func TestWhoIsAMemberAtABaseCounts(t *testing.T) {
	j := newJournal(t)
	in := j.open(0, protocol.ScopeInside)
	b, c := j.open(1, protocol.ScopeInside), j.open(2, protocol.ScopeInside)
	j.write(in, protocol.KindMember, j.admits(0))
	j.write(in, protocol.KindMember, j.admits(1))
	j.write(in, protocol.KindMember, j.admits(2)) // above the base
	ask := j.asks(in, "", map[protocol.LogID]uint64{in.id: 2})
	j.answers(in, ask, digestOf(1))
	j.answers(c, ask, digestOf(1))
	first := j.says(in, ask, digestOf(1), nil)
	everyOrder(t, j, func(s *State) {
		if held, _ := s.BaseHeld(); held != nil {
			t.Fatal("a base holds by the word of one who was no member there")
		}
	})
	ask = j.asks(in, "", map[protocol.LogID]uint64{in.id: 2})
	j.answers(in, ask, digestOf(1))
	j.answers(b, ask, digestOf(1))
	second := j.says(in, ask, digestOf(1), nil)
	everyOrder(t, j, func(s *State) {
		held, marks := s.BaseHeld()
		if held == nil || marks[in.id] != 2 {
			t.Fatalf("%+v %v", held, marks)
		}
		if _, seq := held.Word(); seq != second.Seq || seq == first.Seq {
			t.Fatal("another word holds")
		}
	})
}

// TestBasesOnlyRise: of two that were agreed apart, each log has the higher; and what is remembered of words does not grow without end.
func TestBasesOnlyRise(t *testing.T) {
	j := newJournal(t)
	in, other := j.founded(), j.open(1, protocol.ScopeInside)
	j.bind(other, "a", "b")
	agree := func(by *journalLog, prev string, of map[protocol.LogID]uint64, digest string) {
		ask := j.asks(by, prev, of)
		j.answers(in, ask, digest)
		j.answers(other, ask, digest)
		j.says(by, ask, digest, nil)
	}
	agree(in, "p", map[protocol.LogID]uint64{in.id: 4, other.id: 1}, digestOf(7))
	agree(other, "p", map[protocol.LogID]uint64{in.id: 3, other.id: 2}, digestOf(8))
	ask := j.asks(other, "q", map[protocol.LogID]uint64{in.id: 5})
	j.answers(in, ask, digestOf(9))
	everyOrder(t, j, func(s *State) {
		held, marks := s.BaseHeld()
		if held == nil || held.At.log != other.id || marks[in.id] != 4 || marks[other.id] != 2 || len(marks) != 2 {
			t.Fatalf("%+v %v", held, marks)
		}
		asked := s.BasesAsked()
		if len(asked) != 1 || asked[0].Log() != ask.Log || asked[0].Seq() != ask.Seq || asked[0].Prev != "q" {
			t.Fatalf("%+v", asked)
		}
		if answers := s.BaseAnswers(&asked[0]); len(answers) != 1 || answers[0].Digest != digestOf(9) {
			t.Fatalf("%+v", answers)
		}
		if _, ok := s.BaseSaid(&asked[0]); ok {
			t.Fatal("one of three is no majority")
		}
	})
	for i := range 2 * keptWords {
		agree(in, "", map[protocol.LogID]uint64{in.id: uint64(5 + i)}, digestOf(20+i))
	}
	everyOrder(t, j, func(s *State) {
		if held, marks := s.BaseHeld(); held.Digest != digestOf(19+2*keptWords) || marks[in.id] != 4+2*keptWords || marks[other.id] != 2 {
			t.Fatalf("%+v %v", held, marks)
		}
		if len(s.bases.words) != keptWords || len(s.bases.answers) > keptWords+1 {
			t.Fatalf("%d words and answers to %d proposals are kept", len(s.bases.words), len(s.bases.answers))
		}
	})
}

// withBases is a random journal in whose logs members propose bases, answer, and say true and false words.
func withBases(t testing.TB, seed uint64) *journal {
	j := randomJournal(t, seed, 160)
	dice := rand.New(rand.NewPCG(seed, 0xBA5E5))
	inside := []*journalLog{j.logs[0], j.logs[1], j.logs[3], j.logs[6]}
	var asked []*protocol.Record
	for range 50 {
		l := inside[dice.IntN(len(inside))]
		switch n := dice.IntN(10); {
		case n < 3 || len(asked) == 0:
			of := map[protocol.LogID]uint64{j.logs[0].id: uint64(4 + dice.IntN(6))}
			if dice.IntN(2) == 0 {
				of[inside[dice.IntN(4)].id] = uint64(1 + dice.IntN(20))
			}
			asked = append(asked, j.asks(l, fmt.Sprint(dice.IntN(2)), of))
		case n < 8:
			j.answers(l, asked[max(0, len(asked)-1-dice.IntN(3))], digestOf(dice.IntN(6)/5))
		default:
			ask := asked[max(0, len(asked)-1-dice.IntN(2))]
			for _, log := range inside {
				if log.id == ask.Log && dice.IntN(5) > 0 {
					l = log
				}
			}
			j.says(l, ask, digestOf(dice.IntN(6)/5), nil)
		}
	}
	return j
}
