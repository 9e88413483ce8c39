package retain

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/aster-mesh/aster/protocol"
)

var now = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

const day = 24 * time.Hour

func ago(d time.Duration) time.Time { return now.Add(-d) }

// over is a message that nobody owes anything to.
func over(age time.Duration) Naming {
	return Naming{Said: ago(age), To: "Ben", Settled: map[protocol.AgentID]bool{"ben": true}}
}

func TestWhatHoldsContent(t *testing.T) {
	month := Rules{Age: 30 * day}
	with := func(change func(*Naming)) []Naming {
		m := over(40 * day)
		change(&m)
		return []Naming{over(40 * day), m}
	}
	for _, tt := range []struct {
		name  string
		rules Rules
		since time.Duration
		named []Naming
		want  Held
	}{
		{"nothing", month, 31 * day, []Naming{over(31 * day)}, Held{}},
		{"it came lately", month, 29 * day, []Naming{over(31 * day)}, Held{Why: Young}},
		{"it was said lately", month, 31 * day, []Naming{over(31 * day), over(29 * day)}, Held{Why: Young}},
		{"nothing may leave", Rules{}, 400 * day, []Naming{over(400 * day)}, Held{Why: Young}},
		{"unread here", month, 40 * day, with(func(m *Naming) { m.Unread = true }), Held{Why: Unread}},
		{"not processed", Rules{Age: day}, 9 * day, []Naming{{Said: ago(8 * day), To: "ben"}}, Held{Why: Unread}},
		{"not processed, and expired everywhere", month, 40 * day, []Naming{{Said: ago(31*day + time.Hour), To: "ben"}}, Held{}},
		{"expired, and still unread here", month, 40 * day, []Naming{{Said: ago(40 * day), To: "ben", Unread: true}}, Held{Why: Unread}},
		{"one of a room is missing", Rules{Age: day}, 9 * day,
			[]Naming{{Said: ago(8 * day), Rcpt: []protocol.AgentID{"Ben", "Cy"}, Settled: map[protocol.AgentID]bool{"ben": true}}}, Held{Why: Unread}},
		{"all of a room", Rules{Age: day}, 9 * day,
			[]Naming{{Said: ago(8 * day), Rcpt: []protocol.AgentID{"Ben", "Cy"}, Settled: map[protocol.AgentID]bool{"ben": true, "cy": true}}}, Held{}},
		{"for nobody in particular", Rules{Age: day}, 2 * day, []Naming{{Said: ago(2 * day)}}, Held{}},
		{"its task runs", month, 400 * day, with(func(m *Naming) { m.Open = true }), Held{Why: Open}},
		{"a question waits", month, 400 * day, with(func(m *Naming) { m.Waiting = true }), Held{Why: Asked}},
		{"boards show it", month, 400 * day, with(func(m *Naming) { m.Shown = true }), Held{Why: Shown}},
		{"it may still be asked for an answer", Rules{Age: day}, 9 * day, []Naming{{Said: ago(6 * day), Asks: true}}, Held{Why: Asked}},
		{"it asked long ago", Rules{Age: day}, 9 * day, []Naming{{Said: ago(8 * day), Asks: true}}, Held{}},
		{"a member may lack it", month, 40 * day, with(func(m *Naming) { m.Lacking = "attic" }), Held{Lacking, "attic"}},
		{"owed comes before lacking", month, 40 * day, with(func(m *Naming) { m.Lacking, m.Open = "attic", true }), Held{Why: Open}},
		{"room is short and nobody else keeps it", Rules{Age: 30 * day, Pressed: true}, 2 * day, []Naming{over(2 * day)}, Held{Why: Young}},
		{"room is short and another keeps it", Rules{Age: 30 * day, Pressed: true}, 2 * day, []Naming{elsewhere(2 * day)}, Held{}},
		{"another keeps it for one message alone", Rules{Age: 30 * day, Pressed: true}, 2 * day, []Naming{elsewhere(2 * day), over(2 * day)}, Held{Why: Young}},
		{"room is short, it is of this hour", Rules{Age: 30 * day, Pressed: true}, 59 * time.Minute, []Naming{elsewhere(2 * day)}, Held{Why: Young}},
		{"room is short where nothing leaves for its age", Rules{Pressed: true}, 2 * day, []Naming{elsewhere(2 * day)}, Held{}},
		{"room is short, owed all the same", Rules{Pressed: true}, 2 * day, []Naming{func() Naming { m := elsewhere(2 * day); m.Unread = true; return m }()}, Held{Why: Unread}},
	} {
		if got := tt.rules.Holds(now, ago(tt.since), tt.named); got != tt.want {
			t.Errorf("%s: held by %+v, want %+v", tt.name, got, tt.want)
		}
	}
}

func elsewhere(age time.Duration) Naming {
	m := over(age)
	m.Elsewhere = true
	return m
}

func anyNaming(t *rapid.T) Naming {
	b, ids := rapid.Bool(), rapid.SliceOfN(rapid.SampledFrom([]protocol.AgentID{"Ann", "Ben"}), 0, 2)
	rare := func(what string) bool { return rapid.IntRange(0, 11).Draw(t, what) == 11 }
	m := Naming{
		Said: ago(time.Duration(rapid.IntRange(0, 100*24).Draw(t, "hours")) * time.Hour), Asks: b.Draw(t, "asks"), Elsewhere: b.Draw(t, "elsewhere"),
		Unread: rare("unread"), Open: rare("open"), Waiting: rare("waiting"), Shown: rare("shown"), Settled: map[protocol.AgentID]bool{},
	}
	if b.Draw(t, "to") {
		m.To = "Ben"
	} else {
		m.Rcpt = ids.Draw(t, "room")
	}
	for _, id := range ids.Draw(t, "settled") {
		m.Settled[protocol.FoldAgentID(id)] = true
	}
	if rare("lacks") {
		m.Lacking = "attic"
	}
	return m
}

// TestWhatIsOwedNeverLeaves, whatever the rules, the ages and what else names it; and what one more message names, or what is
// younger, is held no less.
func TestWhatIsOwedNeverLeaves(t *testing.T) {
	if h := (Rules{Age: 30 * day}).Holds(now, ago(60*day), []Naming{over(60 * day)}); h.Why != "" {
		t.Errorf("nothing ever leaves, so the test proves nothing: held by %+v", h)
	}
	rapid.Check(t, func(t *rapid.T) {
		rules := Rules{Age: time.Duration(rapid.IntRange(0, 60).Draw(t, "days")) * day, Pressed: rapid.Bool().Draw(t, "pressed")}
		since := ago(time.Duration(rapid.IntRange(0, 100*24).Draw(t, "since")) * time.Hour)
		named := rapid.SliceOfN(rapid.Custom(anyNaming), 1, 3).Draw(t, "named")
		if h := rules.Holds(now, since, named); h.Why != "" {
			more := append(named, anyNaming(t))
			if rules.Holds(now, since, more).Why == "" || rules.Holds(now.Add(-time.Hour), since, named).Why == "" {
				t.Fatalf("held by %+v, and not when more names it or earlier", h)
			}
			return
		}
		for i := range named {
			m := &named[i]
			age := now.Sub(m.Said)
			switch {
			case m.Unread, m.Open, m.Waiting, m.Shown, m.Lacking != "":
				t.Fatalf("%+v is owed and leaves", m)
			case rules.Age == 0 && !rules.Pressed, age < PressedAge, now.Sub(since) < PressedAge, m.Asks && age < AskedFor:
				t.Fatalf("%+v is young and leaves", m)
			case (age < rules.Age || now.Sub(since) < rules.Age || rules.Age == 0) && !m.Elsewhere:
				t.Fatalf("%+v leaves before its time though no other node keeps it", m)
			}
			if age >= expired {
				continue
			}
			if m.To != "" && len(m.Settled) == 0 {
				t.Fatalf("%s has not processed it and it leaves", m.To)
			}
			for _, id := range m.Rcpt {
				if !m.Settled[protocol.FoldAgentID(id)] {
					t.Fatalf("%s has not processed it and it leaves", id)
				}
			}
		}
	})
}
