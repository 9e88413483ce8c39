package spec

import (
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/aster-mesh/aster/protocol"
)

func papersOf(t *testing.T) ([]Rule, []Vector) {
	t.Helper()
	rules, err := Rules()
	if err != nil {
		t.Fatal(err)
	}
	vectors, err := Vectors()
	if err != nil {
		t.Fatal(err)
	}
	if len(rules) == 0 || len(vectors) == 0 {
		t.Fatalf("%d rules, %d vectors", len(rules), len(vectors))
	}
	return rules, vectors
}

func TestEveryRuleIsShownAndEveryVectorShowsRules(t *testing.T) {
	rules, vectors := papersOf(t)
	shown := map[string]bool{}
	for _, v := range vectors {
		if len(v.Rules()) == 0 || v.Prose == "" {
			t.Errorf("vector %s shows no rule, or does not say why it is there", v.Name)
		}
		for _, id := range v.Rules() {
			shown[id] = true
			if !slices.ContainsFunc(rules, func(r Rule) bool { return r.ID == id }) {
				t.Errorf("vector %s shows %s, which is no rule", v.Name, id)
			}
		}
	}
	for _, r := range rules {
		if !shown[r.ID] {
			t.Errorf("%s is shown by no vector", r.ID)
		}
	}
}

func TestRulesAreNumberedThroughInTheirChapters(t *testing.T) {
	rules, _ := papersOf(t)
	last, count := "", 0
	chapters := map[string]bool{}
	for _, r := range rules {
		if r.Chapter() != last {
			if chapters[r.Chapter()] {
				t.Errorf("chapter %s begins twice", r.Chapter())
			}
			last, count = r.Chapter(), 0
			chapters[last] = true
		}
		if count++; r.ID != last+"-"+strconv.Itoa(count) {
			t.Errorf("%s stands where %s-%d is due", r.ID, last, count)
		}
		if !strings.HasSuffix(r.Text, ".") {
			t.Errorf("%s is no sentence: %q", r.ID, r.Text)
		}
	}
}

func TestVectorsGuardAgainstWhatTheirRulesForbid(t *testing.T) {
	rules, vectors := papersOf(t)
	for _, v := range vectors {
		var want []string
		for _, r := range rules {
			if slices.Contains(v.Rules(), r.ID) {
				want = append(want, r.Faults...)
			}
		}
		slices.SortFunc(want, byFault)
		want = slices.Compact(want)
		for _, g := range v.Guards {
			if !slices.Contains(want, g) {
				t.Errorf("%s guards against %s, which none of its rules names", v.Name, g)
			}
		}
		if len(v.Guards) == 0 && len(want) > 0 {
			t.Errorf("%s guards against %v and does not say so", v.Name, want)
		}
	}
	for _, r := range rules {
		for _, f := range r.Faults {
			guarded := len(r.Tests) > 0
			for _, v := range vectors {
				guarded = guarded || slices.Contains(v.Rules(), r.ID) && slices.Contains(v.Guards, f)
			}
			if !guarded {
				t.Errorf("%s names %s, and no vector that shows the rule has it among its guards", r.ID, f)
			}
		}
	}
}

func TestCatalogueIsTheTableOfTheProtocol(t *testing.T) {
	names, err := Catalogue()
	if err != nil {
		t.Fatal(err)
	}
	want, got := map[string]protocol.IntentInfo{}, map[string]protocol.IntentInfo{}
	for _, row := range protocol.Catalogue() {
		want[string(row.Name)] = row
	}
	for _, n := range names {
		got[n.Name] = protocol.IntentInfo{Name: protocol.Intent(n.Name), Class: protocol.Class(n.Class), Keeping: protocol.Keeping(n.Keeping),
			Wakes: n.Wakes, Escalation: n.Escalation, HubOnly: n.HubOnly}
		if from, _, ok := strings.Cut(n.Direction, ">"); !ok || n.HubOnly != (from == "hub") {
			t.Errorf("%s: direction %q, hub only: %v", n.Name, n.Direction, n.HubOnly)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("protocol's table and spec/catalogue.txt differ (-protocol +spec):\n%s", diff)
	}
}

func TestDifferencesAreFewAndNameWhatTheyComeFrom(t *testing.T) {
	rules, _ := papersOf(t)
	differences, err := Differences()
	if err != nil || len(differences) == 0 || len(differences) > 40 {
		t.Fatalf("%d differences, at most 40; %v", len(differences), err)
	}
	for _, d := range differences {
		reason, _, ok := strings.Cut(d.Why, ": ")
		named := ok
		for _, word := range strings.Split(reason, ", ") {
			decision, _ := filepath.Glob("decisions/" + strings.TrimPrefix(word, "decision ") + "-*.md")
			named = named && (slices.Contains(faultNumbers, word) || len(decision) == 1 || slices.ContainsFunc(rules, func(r Rule) bool { return r.ID == word }))
		}
		if !named || len(d.Cases) == 0 {
			t.Errorf("%s does not name its fault, rule or decision, or no case: %s", d.ID, d.Why)
		}
	}
	fixtures, err := Fixtures()
	if err != nil || len(fixtures) == 0 {
		t.Errorf("%d fixtures, %v", len(fixtures), err)
	}
}

func TestPapersThatSayNothingClearAreRefused(t *testing.T) {
	for _, text := range []string{
		"- **WIR-1** a.\n- **WIR-1** b.\n", "- **WIR1** a.\n", "- **wir-1** a.\n",
	} {
		if _, err := parseRules(text); err == nil {
			t.Errorf("rules pass: %q", text)
		}
	}
	for _, script := range []string{
		"w ? {}\n", "W > {}\n", "closed w often\n", "pass long\n", "w\n", "deny w x\n",
	} {
		if _, err := ParseVector("x", "why\n-- script --\n"+script); err == nil {
			t.Errorf("a script passes: %q", script)
		}
	}
	if _, err := ParseVector("x", "why\n"); err == nil {
		t.Error("a vector without a script passes")
	}
	for _, table := range []string{
		"A run a>b kept wakes routine anyone\n", "A run a>b kept maybe routine anyone x\n", "A run a>b kept wakes routine anyone x\nA run a>b kept wakes routine anyone x\n",
	} {
		if _, err := parseCatalogue(table); err == nil {
			t.Errorf("a catalogue passes: %q", table)
		}
	}
}

func TestVectorTellsItsRulesGuardsAndWaits(t *testing.T) {
	v, err := ParseVector("x", "Why.\nGuards: B7,\nKC6.\n-- script --\njoin w\n# note\nrule DLV-1\nw > {}\npass 6s\nrule none\nw < {}\n")
	if err != nil {
		t.Fatal(err)
	}
	want := Vector{Name: "x", Prose: "Why.\nGuards: B7,\nKC6.", Guards: []string{"B7", "KC6"}, Wait: 6e9, Steps: []Step{
		{Line: 5, Text: "join w", Verb: "join", Who: "w"}, {Line: 8, Text: "w > {}", Rule: "DLV-1", Verb: ">", Who: "w", Arg: "{}"},
		{Line: 9, Text: "pass 6s", Rule: "DLV-1", Verb: "pass", Arg: "6s"}, {Line: 11, Text: "w < {}", Verb: "<", Who: "w", Arg: "{}"},
	}}
	if diff := cmp.Diff(want, v); diff != "" {
		t.Error(diff)
	}
}
