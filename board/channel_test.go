package board

import (
	"slices"
	"testing"

	"github.com/aster-mesh/aster/protocol"
)

// Of each kind of step the latest counts, in whatever order records come: what stands before a deletion is deleted, what
// stands behind it is not, also when a member outside says otherwise; a deletion ends that a channel is put away; and a
// checkpoint keeps it all.
func TestTheLatestStepsOnAChannelCount(t *testing.T) {
	j := newJournal(t)
	first, second, out := j.open(0, protocol.ScopeInside), j.open(1, protocol.ScopeInside), j.open(3, protocol.ScopeOutside(j.peers[3]))
	for i := range j.peers {
		j.write(first, protocol.KindMember, j.admits(i))
	}
	step := func(l *journalLog, step protocol.ChannelStep, key string) *protocol.Record {
		return j.write(l, protocol.KindChannel, protocol.ChannelBody{Step: step, Channel: key, Count: 2, Last: 7})
	}
	before := step(second, protocol.ChannelArchive, "other")
	deleted := step(first, protocol.ChannelDelete, "Worker")
	between := step(second, protocol.ChannelRestore, "other")
	put := step(first, protocol.ChannelArchive, "worker")
	closed := step(second, protocol.ChannelClose, "gone")
	again := step(first, protocol.ChannelArchive, "Gone")
	last := step(second, protocol.ChannelDelete, "gone")
	foreign := step(out, protocol.ChannelDelete, "worker")
	all := []*protocol.Record{before, deleted, between, put, closed, again, last, foreign}
	admitted := first.records[:len(j.peers)]
	var digest string
	for _, order := range [][]*protocol.Record{all, {foreign, before, between, closed, last, deleted, put, again}, {deleted, before, put, between, again, foreign, closed, last}} {
		s := New(j.id)
		for _, r := range slices.Concat(admitted, order) {
			if err := s.Apply(r, nil); err != nil {
				t.Fatal(err)
			}
		}
		restored, err := Decode(s.Encode())
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range []*State{s, restored} {
			c := s.Channels()
			if away := c.Archived(); len(away) != 1 || away[0].Key != "Worker" || away[0].Count != 2 || away[0].Last != 7 {
				t.Fatalf("put away: %+v", away)
			}
			for _, m := range []struct {
				key           string
				r             *protocol.Record
				deleted, away bool
			}{
				{"WORKER", before, true, true}, {"worker", between, false, true}, {"worker", closed, false, false}, {"gone", again, true, false},
				{"gone", foreign, false, false}, {"other", before, false, false}, {"nobody", before, false, false},
			} {
				deleted, away := c.Of(m.key).Hides(m.r.At, m.r.Log, m.r.Seq)
				if deleted != m.deleted || away != m.away {
					t.Errorf("%s at %d: deleted %v, put away %v", m.key, m.r.Seq, deleted, away)
				}
			}
			if digest == "" {
				digest = s.Digest()
			}
			if s.Digest() != digest {
				t.Error("two orders, two boards")
			}
		}
	}
}
