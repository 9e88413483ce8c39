package journal

import (
	"slices"
	"testing"

	"github.com/aster-mesh/aster/protocol"
)

// TestARenamedInboxKeepsItsOrderAndWhatIsSettled: also what the same commit settles under the old and the new name.
func TestARenamedInboxKeepsItsOrderAndWhatIsSettled(t *testing.T) {
	dir, where := tempDir(t), newDisk(t, &disk{})
	j := open(t, dir, Options{VFS: where})
	a := newAuthor(1, 1)
	for i := 1; i <= 6; i++ {
		e := a.say(note(i))
		commit(t, j, Batch{Entries: []Entry{e}, Inbox: []InboxPut{{"ben", a.log, e.Record.Seq}}})
	}
	tier := func(seq uint64, agent protocol.AgentID, tier protocol.Tier) TierPut {
		return TierPut{Log: a.log, Seq: seq, Tier: tier, Agent: agent, At: a.at, By: a.log.Peer, Reason: "why"}
	}
	commit(t, j, Batch{Tiers: []TierPut{tier(1, "ben", protocol.Processed)}})
	late := a.say(note(7))
	commit(t, j, Batch{
		Entries: []Entry{late}, Inbox: []InboxPut{{"Bert", a.log, late.Record.Seq}, {"bert", a.log, 6}},
		Tiers:   []TierPut{tier(2, "ben", protocol.Processed), tier(3, "bert", protocol.Processed), tier(4, "bert", protocol.Refused)},
		Renames: []InboxRename{{"ben", "Bert"}},
	})
	check := func(when string) {
		t.Helper()
		for _, c := range []struct {
			agent protocol.AgentID
			q     InboxQuery
			want  []uint64
		}{
			{"bert", InboxQuery{}, []uint64{5, 6, 7}},
			{"bert", InboxQuery{All: true}, []uint64{1, 2, 3, 4, 5, 6, 7}},
			{"bert", InboxQuery{Dead: true}, []uint64{4}},
			{"ben", InboxQuery{All: true}, nil},
		} {
			rows, err := j.Inbox(c.agent, c.q)
			if err != nil {
				t.Fatal(err)
			}
			var got []uint64
			for _, r := range rows {
				got = append(got, r.Seq)
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("%s: %s %+v: %v, want %v", when, c.agent, c.q, got, c.want)
			}
		}
	}
	check("renamed")
	commit(t, j, Batch{Renames: []InboxRename{{"Bert", "ben"}}})
	commit(t, j, Batch{Renames: []InboxRename{{"ben", "bert"}}})
	check("there and back")
	if unread, err := j.Unread(); err != nil || len(unread) != 1 || unread["bert"].Items != 3 {
		t.Errorf("unread %+v, %v", unread, err)
	}
}
