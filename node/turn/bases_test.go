package turn

import (
	"strings"
	"testing"
	"time"

	"github.com/aster-mesh/aster/node/journal"
	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/meshwire"
	"github.com/aster-mesh/aster/roles/cut"
	"github.com/aster-mesh/aster/roles/member"
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
// same: where its inviter does. While that one is away one member's word is not enough, nor that of all whom it let in.
func TestWhoseBaseIsTaken(t *testing.T) {
	one, other := meshwire.Base{Bytes: 1}, meshwire.Base{Bytes: 2}
	house := func(p protocol.PeerID) protocol.PeerID { return p[:1] } // b2 was let in by b
	for _, c := range []struct {
		what   string
		told   map[protocol.PeerID]meshwire.Base
		linked bool
		others int
		whose  protocol.PeerID
	}{
		{"nobody told", nil, false, 9, ""},
		{"the inviter alone", map[protocol.PeerID]meshwire.Base{"inv": one}, true, 9, "inv"},
		{"all say the same", map[protocol.PeerID]meshwire.Base{"inv": one, "a": one}, true, 9, "inv"},
		{"another begins elsewhere", map[protocol.PeerID]meshwire.Base{"inv": one, "a": other}, true, 9, "inv"},
		{"the inviter has all of it", map[protocol.PeerID]meshwire.Base{"a": one, "b": one}, true, 9, ""},
		{"the inviter is away", map[protocol.PeerID]meshwire.Base{"b": one, "a": one}, false, 9, "a"},
		{"it is away, and one alone says so", map[protocol.PeerID]meshwire.Base{"a": one}, false, 3, ""},
		{"one and whom it let in", map[protocol.PeerID]meshwire.Base{"b1": one, "b2": one, "b3": one}, false, 9, ""},
		{"they are most members, which costs them nothing", map[protocol.PeerID]meshwire.Base{"b1": one, "b2": one}, false, 3, ""},
		{"nobody else is left", map[protocol.PeerID]meshwire.Base{"b1": one, "b2": one}, false, 2, "b1"},
		{"nobody else is left, and one says otherwise", map[protocol.PeerID]meshwire.Base{"b1": one, "b2": other}, false, 2, ""},
		{"it is away, and they differ", map[protocol.PeerID]meshwire.Base{"b": one, "a": other}, false, 9, ""},
		{"one lies beside others", map[protocol.PeerID]meshwire.Base{"b": one, "a": other, "c": one}, false, 9, "b"},
		{"one lies with all whom it let in", map[protocol.PeerID]meshwire.Base{"b": one, "a1": other, "a2": other, "a3": other, "c": one}, false, 9, "b"},
		{"the only other member", map[protocol.PeerID]meshwire.Base{"a": one}, false, 1, "a"},
		{"one of them gives nothing", map[protocol.PeerID]meshwire.Base{"a": one, "z": one}, false, 9, "a"},
		{"both give nothing", map[protocol.PeerID]meshwire.Base{"z1": one, "y1": one}, false, 9, ""},
		{"the inviter gives nothing, another has the same", map[protocol.PeerID]meshwire.Base{"inv": one, "a": other, "b": one, "c": other}, true, 9, "b"},
		{"the inviter gives nothing, nobody has the same", map[protocol.PeerID]meshwire.Base{"inv": one, "a": other, "c": other}, true, 9, "a"},
		{"the inviter gives nothing, and one alone says another", map[protocol.PeerID]meshwire.Base{"inv": one, "a": other}, true, 9, ""},
		{"as many say another", map[protocol.PeerID]meshwire.Base{"a": one, "b": one, "c": other, "d": other}, false, 9, ""},
	} {
		b := Beginning{Told: c.told, Inviter: "inv", Linked: c.linked, Others: c.others, House: house, Stalled: func(p protocol.PeerID) bool {
			return p[0] == 'z' || p[0] == 'y' || p == "inv" && strings.HasPrefix(c.what, "the inviter gives nothing")
		}}
		if whose, ok := b.Whose(); whose != c.whose || ok != (c.whose != "") {
			t.Errorf("%s: %q, %v", c.what, whose, ok)
		}
	}
}

// TestTheHouseOfAMember is the first in its chain whom a node's own word does not rest on.
func TestTheHouseOfAMember(t *testing.T) {
	chain := func(peers ...protocol.PeerID) (out member.Chain) {
		for _, p := range peers {
			out = append(out, member.Link{Cert: member.Cert{Peer: p}})
		}
		return out
	}
	own := chain("me", "inv", "founder")
	for want, c := range map[protocol.PeerID]member.Chain{
		"b": chain("b", "founder"), "c": chain("c", "inv", "founder"), "d": chain("e", "d", "founder"), "f": chain("g", "h", "f", "inv", "founder"), "": chain("founder"),
	} {
		if got := HouseOf(c, own); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
