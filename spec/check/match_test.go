package check

import (
	"encoding/json"
	"testing"

	"github.com/aster-mesh/aster/spec"
)

func TestPatternsMatchWhatTheySay(t *testing.T) {
	for _, c := range []struct {
		pattern, got string
		ok           bool
	}{
		{`{"a":1}`, `{"a":1,"b":2}`, true},
		{`{"a":1}`, `{"a":2}`, false},
		{`{"a":1}`, `{"b":1}`, false},
		{`{"a":1}`, `[1]`, false},
		{`{"a":"-"}`, `{"b":1}`, true},
		{`{"a":"-"}`, `{"a":null}`, true},
		{`{"a":"-"}`, `{"a":0}`, false},
		{`{"a":"*"}`, `{"a":[]}`, true},
		{`{"a":"*"}`, `{}`, false},
		{`{"a":"*text"}`, `{"a":""}`, false},
		{`{"a":"*number"}`, `{"a":"1"}`, false},
		{`{"a":"*now"}`, `{"a":1}`, false},
		{`{"a":"*in:ell"}`, `{"a":"hello"}`, true},
		{`{"a":"*in:elk"}`, `{"a":"hello"}`, false},
		{`[1,2]`, `[1,2]`, true},
		{`[1,2]`, `[1,2,3]`, false},
		{`["...",2,3]`, `[1,2,0,3]`, true},
		{`["...",3,2]`, `[1,2,3]`, false},
		{`["-",4]`, `[1,2,3]`, true},
		{`["-",2]`, `[1,2,3]`, false},
		{`{"a":["...",{"b":true}]}`, `{"a":[{"b":false},{"b":true,"c":1}]}`, true},
		{`null`, `null`, true},
		{`{"a":"*x=","b":"$x"}`, `{"a":"id","b":"id"}`, false}, // $x is filled in before the step, not in it
	} {
		var got any
		if err := json.Unmarshal([]byte(c.got), &got); err != nil {
			t.Fatal(err)
		}
		pattern, err := parsePattern(c.pattern)
		if err != nil {
			t.Fatal(err)
		}
		if diff := (words{}).match(pattern, got, "frame"); (diff == "") != c.ok {
			t.Errorf("%s against %s: %q", c.pattern, c.got, diff)
		}
	}
}

func TestNamesAreNewInEveryRunAndKeptWithinIt(t *testing.T) {
	w := words{"main": "boss"}
	if got := w.fill(`{"a":"$w","b":"$main","c":"@{3:[}@{2:x]}"}`, "t1"); got != `{"a":"w-t1","b":"boss","c":"[[[x]x]"}` {
		t.Errorf("got %s", got)
	}
	if diff := w.match("*id=", "evt-1", "frame"); diff != "" || w.fill("$id", "t1") != "evt-1" {
		t.Errorf("what was kept is lost: %v %s", w, diff)
	}
}

func TestClientsAreSpreadOverNodesAndStayThere(t *testing.T) {
	p := &play{urls: []string{"a", "b", "c"}, at: map[string]int{"main": 0}}
	for _, c := range [][2]string{{"b", "a"}, {"m", "b"}, {"w", "c"}, {"main", "a"}, {"v", "a"}, {"m", "b"}, {"w", "c"}} {
		if got := p.address(c[0]); got != c[1] {
			t.Errorf("%s connects at %s, want %s", c[0], got, c[1])
		}
	}
}

// TestAFailedStepBreaksItsRuleAlone and leaves those behind it unproved; a step that prepares speaks for all.
func TestAFailedStepBreaksItsRuleAlone(t *testing.T) {
	v, err := spec.ParseVector("x", "why\n-- script --\njoin w\nrule AAA-1\nw > {}\nrule AAA-2\nw > {}\nrule AAA-3\nw > {}\n")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		failed *failure
		want   [3]Status
		ok     bool
	}{
		{nil, [3]Status{Holds, Holds, Holds}, true},
		{&failure{rule: "AAA-2", step: 2}, [3]Status{Holds, Broken, Unproved}, false},
		{&failure{rule: "", step: 0}, [3]Status{Broken, Broken, Broken}, false},
	} {
		tl := &tally{report: &Report{}, at: map[string]int{}}
		for _, id := range []string{"AAA-1", "AAA-2", "AAA-3"} {
			tl.add(spec.Rule{ID: id, Text: id})
		}
		tl.shown(&v, nil)
		tl.ran(&v, c.failed)
		report := tl.close("")
		for i, want := range c.want {
			if got := report.Results[i].Status; got != want {
				t.Errorf("%+v: %s is %s, want %s", c.failed, report.Results[i].Rule, got, want)
			}
		}
		if report.OK() != c.ok {
			t.Errorf("%+v: OK is %v", c.failed, report.OK())
		}
	}
}
