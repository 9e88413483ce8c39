package cut

import (
	"strings"
	"testing"
	"time"
)

func TestWhyNoBaseRises(t *testing.T) {
	now := time.Date(2026, 3, 9, 16, 0, 0, 0, time.UTC)
	day, asked := now.Add(-40*24*time.Hour).UnixMilli(), now.Add(-2*time.Hour+2*time.Minute)
	on := func(s Standstill) Standstill {
		s.Age = 90 * 24 * time.Hour
		return s
	}
	for _, c := range []struct {
		what string
		s    Standstill
		want string // "": no line
	}{
		{"off", Standstill{}, "off: old records stay. They leave once [retention] records is set"},
		{"nobody looked", on(Standstill{Mine: true}), "nobody has looked yet"},
		{"another's turn", on(Standstill{Proposer: "mac-mini"}), "mac-mini is to propose the next base"},
		{"nobody's turn", on(Standstill{}), "nobody has looked yet"},
		{"one rises", on(Standstill{Mine: true, Looked: now, Rose: true, Young: day}), ""},
		{"young", on(Standstill{Mine: true, Looked: now, Young: day}), "nothing is old enough: the oldest record that is kept is from 2026-01-28, and records leave after 90 days"},
		{"young at the least age", Standstill{Age: 1, Mine: true, Looked: now, Young: day}, "records leave after 31 days"},
		{"owed", on(Standstill{Mine: true, Looked: now, Young: day, Owed: Owed{"an open task", day}}), "an open task from 2026-01-28 holds it"},
		{"owed, of no time", on(Standstill{Mine: true, Looked: now, Owed: Owed{"a damaged record", 0}}), "a damaged record holds it"},
		{"nothing", on(Standstill{Mine: true, Looked: now}), "there are no records to leave"},
		{"an answer", on(Standstill{By: "a", Since: asked, Open: []string{"b"}}), "waits for the answer of b since 14:02"},
		{"an answer, also where it is off", Standstill{By: "a", Since: asked, Open: []string{"b"}}, "waits for the answer of b since 14:02"},
		{"for days", on(Standstill{By: "a", Since: asked.Add(-48 * time.Hour), Open: []string{"b", "c"}}), "waits for the answer of b and c since 2026-03-07 14:02"},
		{"of many", on(Standstill{By: "a", Since: asked, Open: []string{"b", "c", "d", "e", "f"}}), "b, c, d and 2 more since"},
		{"never here", on(Standstill{By: "a", Since: asked, Never: []string{"old"}}), "a member that was never here. If it will not come: aster member revoke old"},
		{"never here, and another", on(Standstill{By: "a", Since: asked, Never: []string{"old"}, Open: []string{"b"}}), "waits for the answer of b and old since 14:02"},
		{"enough", on(Standstill{By: "a", Since: asked, Open: []string{"b"}, Enough: true}), ""},
		{"others", on(Standstill{By: "a", Since: asked, Others: []string{"b", "c"}, Open: []string{"d"}}), "differs: b and c make different things"},
		{"behind", on(Standstill{Behind: true, By: "a"}), "not all that lies below it is here yet"},
		{"clock", on(Standstill{Clock: true, Behind: true}), "young by this node's clock"},
		{"differs", on(Standstill{Differs: true, Clock: true, Behind: true, By: "a", Open: []string{"b"}}), "differs: this node makes something else"},
	} {
		c.s.Now = now
		if got := c.s.Why(); (got == "") != (c.want == "") || !strings.Contains(got, c.want) || strings.Contains(got, "\n") {
			t.Errorf("%s: %q, want %q", c.what, got, c.want)
		}
	}
}
