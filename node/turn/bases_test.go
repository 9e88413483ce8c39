package turn

import (
	"testing"
	"time"

	"github.com/aster-mesh/aster/node/journal"
	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/meshwire"
	"github.com/aster-mesh/aster/roles/cut"
)

type listed []journal.Stored

func (l listed) Since(pos uint64, limit int) ([]journal.Stored, error) {
	l = l[min(pos, uint64(len(l))):]
	return l[:min(limit, len(l))], nil
}

// TestABaseRisesPastWhatHasNone: a page of a busy room or of damaged records, which have no base, does not end the search: they stay
// for ever, and nothing behind them would ever leave.
func TestABaseRisesPastWhatHasNone(t *testing.T) {
	now := time.UnixMilli(1_800_000_000_000)
	in := protocol.LogID{Peer: author(1), Start: protocol.Start{At: 1, Rand: 1}, Scope: protocol.ScopeInside}
	out := in
	out.Scope = protocol.ScopeOutside(author(9))
	hurt := in
	hurt.Peer = author(2)
	for what, between := range map[string]protocol.LogID{"a room": out, "damaged": hurt} {
		var all listed
		seqs := map[protocol.LogID]uint64{}
		add := func(log protocol.LogID, age time.Duration, n int) {
			for range n {
				seqs[log]++
				all = append(all, journal.Stored{Pos: uint64(len(all) + 1), Damaged: log == hurt, Record: protocol.Record{
					Log: log, Seq: seqs[log], Kind: protocol.KindMessage, Wall: now.Add(-age).UnixMilli(), Sig: []byte{1}}})
			}
		}
		add(in, cut.BaseAge+time.Hour, cutPage)
		add(between, cut.BaseAge+time.Hour, 2*cutPage)
		add(in, cut.BaseAge+time.Hour, 3)
		add(in, time.Hour, 3*cutPage)
		rise := cut.NewRise(now, 0, []cut.Moment{{Wall: now.Add(-cut.BaseAge).UnixMilli(), Pos: 1 << 40}}, func(protocol.LogID) uint64 { return 0 })
		asked := 0
		if err := FindBase(all, rise, func(recs []protocol.Record) ([]string, error) {
			asked++
			return make([]string, len(recs)), nil
		}, func() error { return nil }); err != nil {
			t.Fatal(err)
		}
		if marks := rise.Marks(10); len(marks) != 1 || marks[in] != cutPage+3 {
			t.Errorf("%s: the base rises to %v", what, marks)
		}
		if asked > 5 {
			t.Errorf("%s: %d pages were read", what, asked)
		}
	}
}

// TestWhoseBaseIsTaken: members may begin at different bases for long, where one stopped letting records go. A newcomer begins all the
// same: where its inviter does.
func TestWhoseBaseIsTaken(t *testing.T) {
	one, other := meshwire.Base{Bytes: 1}, meshwire.Base{Bytes: 2}
	for _, c := range []struct {
		what   string
		told   map[protocol.PeerID]meshwire.Base
		linked bool
		whose  protocol.PeerID
	}{
		{"nobody told", nil, false, ""},
		{"the inviter alone", map[protocol.PeerID]meshwire.Base{"inv": one}, true, "inv"},
		{"all say the same", map[protocol.PeerID]meshwire.Base{"inv": one, "a": one}, true, "inv"},
		{"another begins elsewhere", map[protocol.PeerID]meshwire.Base{"inv": one, "a": other}, true, "inv"},
		{"the inviter has all of it", map[protocol.PeerID]meshwire.Base{"a": one}, true, ""},
		{"the inviter is away", map[protocol.PeerID]meshwire.Base{"b": one, "a": one}, false, "a"},
		{"it is away, and they differ", map[protocol.PeerID]meshwire.Base{"b": one, "a": other}, false, ""},
	} {
		if whose, ok := WhoseBase(c.told, "inv", c.linked); whose != c.whose || ok != (c.whose != "") {
			t.Errorf("%s: %q, %v", c.what, whose, ok)
		}
	}
}
