package cut

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/aster-mesh/aster/protocol"
)

func logOf(name string) protocol.LogID {
	return protocol.LogID{Peer: protocol.PeerID(name), Start: protocol.Start{At: 1, Rand: 1}, Scope: protocol.ScopeInside}
}

// line is a log, a letter for each record: o old, y young, f of a time to come, n new here, w somebody owes something for it; upper case
// ends a commit.
func rise(now time.Time, age time.Duration, base map[protocol.LogID]uint64, lines map[string]string) *Rise {
	held := []Moment{{now.Add(-max(age, BaseAge)).UnixMilli(), 1000}}
	r := NewRise(now, age, held, func(log protocol.LogID) uint64 { return base[log] })
	var later []func()
	for _, name := range slices.Sorted(maps.Keys(lines)) {
		for i, c := range lines[name] {
			letter, last := c|0x20, c&0x20 == 0
			wall := now.Add(-max(age, BaseAge))
			switch letter {
			case 'y':
				wall = wall.Add(time.Millisecond)
			case 'f':
				wall = now.Add(time.Hour)
			}
			pos := uint64(1000)
			if letter == 'n' { // it came here of late, whatever its author's clock showed
				pos++
			}
			if r.Wants(logOf(name), uint64(i+1), pos, wall.UnixMilli()) {
				take := func() {
					r.Take(logOf(name), uint64(i+1), Owed{map[bool]string{true: "an open task"}[letter == 'w'], wall.UnixMilli()}, last)
				}
				if age > 0 { // a page is looked through before what of it is owed is asked for
					later = append(later, take)
				} else {
					take()
				}
			}
		}
	}
	for _, take := range later {
		take()
	}
	return r
}

func TestHowFarABaseRises(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	for _, c := range []struct {
		what, log string
		base      uint64
		want      uint64
	}{
		{"nothing is there", "", 0, 0},
		{"all is old", "ooOoO", 0, 5},
		{"to the end of a commit", "ooOoo", 0, 3},
		{"no commit is over", "ooo", 0, 0},
		{"what is young stays", "oOoY", 0, 2},
		{"and all after it", "oOYoO", 0, 2},
		{"what came of late is young, whatever its author's clock showed", "oONoO", 0, 2},
		{"a time to come is no age", "oOFoO", 0, 2},
		{"somebody owes something", "oOwOoO", 0, 2},
		{"at the end of a commit too", "oOoWoO", 0, 2},
		{"only above the base that is", "oOoOoO", 4, 6},
		{"what was owed below it is settled", "oWoOoO", 4, 6},
		{"it rises no further", "oOoOy", 4, 0},
	} {
		got := rise(now, time.Hour, map[protocol.LogID]uint64{logOf("a"): c.base}, map[string]string{"a": c.log}).Marks(9)
		if got[logOf("a")] != c.want || c.want == 0 && len(got) > 0 {
			t.Errorf("%s: %v, want %d", c.what, got, c.want)
		}
	}
	r := rise(now, 100*24*time.Hour, nil, map[string]string{"a": "oO", "b": "oYoO", "c": "oOy"})
	if got := r.Marks(9); got[logOf("a")] != 2 || len(got) != 2 {
		t.Errorf("one log that does not rise holds up another: %v", got)
	}
	if got := r.Marks(1); len(got) != 1 || got[logOf("a")] != 2 {
		t.Errorf("of more than may be named: %v", got)
	}
	if r.Old(1, now.Add(-99*24*time.Hour).UnixMilli()) {
		t.Error("younger than the age that is asked for")
	}
}

// TestAMemberKnowsHowLongItHeldRecords by its own clock alone, also over one that was wrong, and in little room.
func TestAMemberKnowsHowLongItHeldRecords(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	var moments []Moment
	noted := 0
	for i := range 24 * 365 { // each hour of a year a hundred records come
		if at := now.Add(time.Duration(i) * time.Hour); i == 7000 {
			moments, _ = Note(moments, at.Add(1000*24*time.Hour), 0, uint64(100*i)) // and once the clock is wrong
		} else {
			var is bool
			if moments, is = Note(moments, at, 0, uint64(100*i)); is {
				noted++
			}
		}
	}
	end := now.Add(24 * 365 * time.Hour)
	if len(moments) > momentsKept || noted > 2000 {
		t.Errorf("%d moments are kept, %d were noted", len(moments), noted)
	}
	for _, age := range []time.Duration{BaseAge, 2*BaseAge - 24*time.Hour} {
		exact := uint64(100 * (24*365 - int(age/time.Hour)))
		if held := Held(moments, end, age); held > exact || held < exact-1000 {
			t.Errorf("it has held all up to %d for %v, and says %d", exact, age, held)
		}
	}
	if held := Held(moments, end, 1000*24*time.Hour); held > 0 {
		t.Errorf("it says that it has held records for longer than it is there: %d", held)
	}
	if moments, _ = Note(moments, now.Add(-time.Hour), 0, 1); len(moments) != 1 {
		t.Errorf("%d moments of a time to come", len(moments)-1)
	}
}

func TestWhichBasesAMemberBears(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	r := rise(now, 0, map[protocol.LogID]uint64{logOf("a"): 2}, map[string]string{"a": "oOoOoO", "b": "oOy"})
	for _, c := range []struct {
		a, b uint64
		want bool
	}{{6, 2, true}, {4, 0, true}, {0, 2, true}, {2, 2, false}, {8, 2, false}, {6, 3, false}, {0, 0, false}} {
		marks := map[protocol.LogID]uint64{}
		for log, seq := range map[string]uint64{"a": c.a, "b": c.b} {
			if seq > 0 {
				marks[logOf(log)] = seq
			}
		}
		if got := r.Bears(marks); got != c.want {
			t.Errorf("%d and %d: %v", c.a, c.b, got)
		}
	}
}

// TestABaseHoldsWithAMajority: answers are written NODE:FOLD:DIGEST, a letter each.
func TestABaseHoldsWithAMajority(t *testing.T) {
	for _, c := range []struct {
		inside  string
		answers []string
		want    string
	}{
		{"a", nil, ""}, {"a", []string{"a1x"}, "x"}, {"ab", []string{"a1x"}, ""}, {"ab", []string{"a1x", "b1x"}, "x"}, {"ab", []string{"a1x", "b1y"}, ""},
		{"abc", []string{"a1x", "b1x"}, "x"}, {"abc", []string{"a1x", "b1y"}, ""}, {"abcd", []string{"a1x", "b1x"}, ""},
		{"abcd", []string{"a1x", "b1y", "c1x", "d1x"}, "x"}, {"abc", []string{"a1x", "b2x"}, ""}, {"abc", []string{"a1x", "z1x", "y1x"}, ""},
	} {
		var answers []Answer
		for _, a := range c.answers {
			answers = append(answers, Answer{protocol.PeerID(a[:1]), int(a[1] - '0'), a[2:]})
		}
		a, ok := Holds(peers(c.inside), answers)
		if ok != (c.want != "") || a.Digest != c.want {
			t.Errorf("%s %v: %v %v", c.inside, c.answers, a, ok)
		}
	}
}

// TestNothingYoungOrOwedEverLiesBelowABase, by seeds: whatever lies below is older than the age and owed by nobody, a base never
// falls, and two members that see the same bear what the other finds.
func TestNothingYoungOrOwedEverLiesBelowABase(t *testing.T) {
	rose := 0
	for seed := range uint64(300) {
		dice := rand.New(rand.NewPCG(seed, 0xBA5E))
		now := time.Unix(1_800_000_000, 0)
		lines, base := map[string]string{}, map[protocol.LogID]uint64{}
		for _, name := range []string{"a", "b", "c"}[:1+dice.IntN(3)] {
			line := ""
			for range dice.IntN(20) {
				line += string("ooooooOOOOyYwWfF"[dice.IntN(10+dice.IntN(7))])
			}
			lines[name], base[logOf(name)] = line, uint64(dice.IntN(len(line)+1))
		}
		one, other := rise(now, time.Hour, base, lines), rise(now, 0, base, lines)
		marks := one.Marks(3)
		if len(marks) > 0 && !other.Bears(marks) {
			t.Fatalf("seed %d: who sees the same does not bear %v of %v", seed, marks, lines)
		}
		for log, seq := range marks {
			rose++
			line := lines[string(log.Peer)]
			below := line[base[log]:seq]
			if seq <= base[log] || line[seq-1]&0x20 != 0 {
				t.Fatalf("seed %d: %q rises from %d to %d", seed, line, base[log], seq)
			}
			for _, c := range below {
				if c|0x20 != 'o' {
					t.Fatalf("seed %d: %q of %q lies below", seed, c, line)
				}
			}
		}
	}
	if rose < 100 {
		t.Errorf("only %d bases rose", rose)
	}
}
