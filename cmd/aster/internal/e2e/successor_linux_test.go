package e2e

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aster-mesh/aster/protocol/api"
)

// Killing the main of four and of five nodes gives one successor, on whom all agree (of three: office_test.go).
func TestMainsDeathAmongFourAndFiveGivesOneSuccessor(t *testing.T) {
	for _, size := range []int{4, 5} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			t.Parallel() // they mostly wait
			var names []string
			for i := range size {
				names = append(names, fmt.Sprintf("n%d", i))
			}
			all := meshOf(t, nil, names...)
			for _, n := range all {
				n.elects(size)
			}
			all[0].kill()
			rest := all[1:]
			watch := watchMains(t, rest)
			successor, took := oneMain(t, patience, rest)
			if successor.Term < 2 {
				t.Errorf("the main is %+v", successor)
			}
			t.Logf("of %d nodes: one successor after %s", size, took.Round(time.Millisecond))
			if took > promised(10*time.Second) {
				t.Errorf("a successor after %s", took)
			}
			all[0].up("")
			eventually(t, patience, "the former main follows", func() (bool, string) {
				m, _ := all[0].main()
				return m.Term > 1 && !m.Here, fmt.Sprint(m)
			})
			watch.check(t)
		})
	}
}

// Of two nodes whose wire is cut the sitting main goes on alone and the other never elects itself. Taken by force there is
// a second main until they meet: it grants nothing that the former one may have granted, and that one is cut and follows.
func TestOfTwoHalvesTheFormerMainIsCut(t *testing.T) {
	t.Parallel() // it mostly waits
	l := newLab(t, 2)
	n := onLab(t, l)
	for _, x := range n {
		x.elects(2)
	}
	pid, _ := sleeper(t)
	must(t, l.hosts[1].plug(false))
	eventually(t, patience, "both notice", func() (bool, string) { return !n[0].sees(n[1]) && !n[1].sees(n[0]), "" })
	noticed, alone := time.Now(), 6*time.Second // twice what an election among three takes
	if long {
		alone = 30 * time.Second
	}
	for time.Since(noticed) < alone {
		if m, _ := n[1].main(); m.Here || m.Term != 1 {
			t.Fatalf("of two nodes the other elected itself: %+v", m)
		}
		instant(200 * time.Millisecond)
	}
	n[0].ok("claim", "acquire", "docs", "--from", "ann", "--pid", pid) // the sitting main goes on
	if r := n[1].run("claim", "acquire", "docs", "--from", "bob", "--pid", pid); r.code == 0 {
		t.Errorf("granted without a main: %s", r)
	}
	var took api.TakeResult
	must(t, json.Unmarshal([]byte(n[1].ok("main", "take", "--force", "--json")), &took))
	if r := n[1].run("claim", "acquire", "docs", "--from", "bob", "--pid", pid); r.code != 4 {
		t.Errorf("what the former main may have granted meanwhile was granted again: %s", r)
	}
	if m, _ := n[0].main(); !m.Here || m.Term != 1 {
		t.Errorf("the former main heard of it through a cut wire: %+v", m)
	}
	must(t, l.hosts[1].plug(true))
	began := time.Now()
	eventually(t, patience, "the former main is cut and follows", func() (bool, string) {
		m, _ := n[0].main()
		return m.Term == 2 && !m.Here && !m.Sure, fmt.Sprint(m)
	})
	t.Logf("cut %s after the wire was back", time.Since(began).Round(time.Millisecond))
	eventually(t, patience, "the one who took it grants when all have answered", func() (bool, string) {
		r := n[1].run("claim", "acquire", "spec", "--from", "bob", "--pid", pid)
		return r.code == 0, r.String()
	})
	held := func(x *node) (rows string) {
		all, err := x.api().Claims(t.Context())
		for _, c := range all {
			rows += fmt.Sprintf("%s %s %s term %d; ", c.ID, c.Agent, strings.Join(c.Scopes, " "), c.Term)
		}
		return rows + fmt.Sprint(err)
	}
	eventually(t, patience, "one holder, the same everywhere", func() (bool, string) {
		a, b := held(n[0]), held(n[1])
		return a == b && strings.Count(a, "path:docs") <= 1 && strings.Count(a, "path:spec") == 1, a + "\n" + b
	})
	t.Log(held(n[0]))
	sameEverywhere(t, n)
}
