package spec

import (
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "gather what says Guards: into faults.md")

// faultNumbers are all numbers of the two lists of faults.
var faultNumbers = strings.Fields(`
	B1 B2 B3 B4 B5 B6 B7 B8 B9 B11 B13 B14 B15 B16 B17 B18 B19 B20 B21 B22 B23 B24 B25 B26 B28 B29 B30 B31 B32 B33 B34 B35
	B36 B37 B38 B39 B40 B41 B42 B43 B46 B47 B49 B50
	KA1 KA2 KA3 KA5 KA6 KA8 KA9 KA10 KA12 KA15
	KB1 KB3 KB4 KB5 KB7 KB8 KB9 KB10 KB11 KB12 KB14 KB15 KB16 KB17 KB18 KB19 KB21 KB23 KB24
	KC1 KC3 KC4 KC5 KC6 KC7 KC8 KC9 KC11 KC12 KC13 KC14 KC16 KC18 KC19 KC20 KC22 KC23
	KD1 KD2 KD3 KD7 KD8
	KF1 KF2 KF3 KF5 KF6 KF8 KF9 KF10 KF11 KF12 KF13 KF14 KF15 KF16 KF17`)

// guardians are what can guard: "vector NAME", "play NAME", "DIR.TestName".
type guardians struct {
	exist  map[string]bool
	guards map[string][]string // fault → those that say so
}

var testFunc = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`)

// find reads the repository's vectors, plays and tests.
func find(t *testing.T) guardians {
	t.Helper()
	g := guardians{map[string]bool{}, map[string][]string{}}
	note := func(name, prose string) {
		for _, m := range guards.FindAllStringSubmatch(prose, -1) {
			for _, f := range faultName.FindAllString(m[1], -1) {
				if !slices.Contains(g.guards[f], name) {
					g.guards[f] = append(g.guards[f], name)
				}
			}
		}
	}
	err := filepath.WalkDir("..", func(name string, d fs.DirEntry, err error) error {
		name = filepath.ToSlash(name)
		base, dir := path.Base(name), strings.TrimPrefix(path.Dir(name), "../")
		kind := ""
		switch {
		case err != nil || d.IsDir() && (strings.HasPrefix(base, ".") && base != ".." || base == "static"):
			if d != nil && d.IsDir() && err == nil {
				return fs.SkipDir
			}
			return err
		case strings.HasSuffix(base, ".txtar") && dir == "spec/vectors":
			kind = "vector " + strings.TrimSuffix(base, ".txtar")
		case strings.HasSuffix(base, ".txt") && dir == "node/hub/testdata/plays":
			kind = "play " + strings.TrimSuffix(base, ".txt")
		case strings.HasSuffix(base, "_test.go"):
		default:
			return nil
		}
		raw, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		if kind != "" {
			prose, _, _ := strings.Cut(string(raw), "\n-- script --")
			g.exist[kind] = true
			note(kind, prose)
			return nil
		}
		last := 0
		for _, m := range testFunc.FindAllSubmatchIndex(raw, -1) {
			test := dir + "." + string(raw[m[2]:m[3]])
			g.exist[test] = true
			note(test, comment(string(raw[last:m[0]])))
			last = m[1]
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// comment is the comment at the end of text, without its slashes.
func comment(text string) string {
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	from := len(lines)
	for from > 0 && strings.HasPrefix(lines[from-1], "//") {
		from--
	}
	return strings.ReplaceAll(strings.Join(lines[from:], "\n"), "//", "")
}

// row is one line of the table in faults.md.
type row struct {
	fault, what, by string
	names           []string // of by
}

func (r *row) String() string { return fmt.Sprintf("| %s | %s | %s |", r.fault, r.what, r.by) }

func faultRow(line string) (row, bool) {
	cells := strings.Split(strings.Trim(line, "| "), " | ")
	if len(cells) != 3 || !faultName.MatchString(cells[0]) {
		return row{}, false
	}
	r := row{fault: cells[0], what: cells[1], by: cells[2]}
	for _, m := range inQuotes.FindAllStringSubmatch(r.by, -1) {
		r.names = append(r.names, m[1])
	}
	return r, true
}

func TestFaultsAreAllGuardedOrSaidNotToBe(t *testing.T) {
	raw, err := os.ReadFile("faults.md")
	if err != nil {
		t.Fatal(err)
	}
	g := find(t)
	seen := map[string]int{}
	lines := strings.Split(string(raw), "\n")
	notYet := 0
	for i, line := range lines {
		r, ok := faultRow(line)
		if !ok {
			continue
		}
		seen[r.fault]++
		if *update {
			r.gather(&g)
			lines[i] = r.String()
		}
		switch {
		case strings.HasPrefix(r.by, "not applicable: "):
		case r.by == "not yet":
			notYet++
			if by := g.guards[r.fault]; len(by) > 0 {
				t.Logf("faults.md does not know yet that %v guard %s: go test ./spec -run TestFaults -update", by, r.fault)
			}
		case len(r.names) == 0:
			t.Errorf("faults.md:%d: %s names nothing that guards it", i+1, r.fault)
		}
		for _, n := range r.names {
			if !g.exist[n] {
				t.Errorf("faults.md:%d: %s names %s, which is not there", i+1, r.fault, n)
			}
		}
	}
	if *update {
		if err := os.WriteFile("faults.md", []byte(strings.Join(lines, "\n")), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, f := range faultNumbers {
		if seen[f] != 1 {
			t.Errorf("%s stands %d times in faults.md", f, seen[f])
		}
		delete(seen, f)
	}
	if len(seen) > 0 {
		t.Errorf("faults.md has rows for %v, which are on no list", slices.Sorted(maps.Keys(seen)))
	}
	t.Logf("%d faults, %d not guarded yet", len(faultNumbers), notYet)
}

// gather adds who says Guards: to a row, and drops who is gone.
func (r *row) gather(g *guardians) {
	names := append(slices.Clone(g.guards[r.fault]), r.names...)
	var kept []string
	for _, n := range names {
		if g.exist[n] && !slices.Contains(kept, n) {
			kept = append(kept, n)
		}
	}
	slices.SortStableFunc(kept, func(a, b string) int { return rank(a) - rank(b) })
	if len(kept) > 0 {
		r.by = "`" + strings.Join(kept, "`, `") + "`"
	} else if !strings.HasPrefix(r.by, "not applicable: ") {
		r.by = "not yet"
	}
	r.names = kept
}

// rank puts vectors first, then plays, then tests.
func rank(name string) int {
	switch {
	case strings.HasPrefix(name, "vector "):
		return 0
	case strings.HasPrefix(name, "play "):
		return 1
	}
	return 2
}

func TestEveryRuleNamesTestsThatExist(t *testing.T) {
	rules, _ := papersOf(t)
	g := find(t)
	for _, r := range rules {
		for _, name := range r.Tests {
			if !g.exist[name] {
				t.Errorf("%s names %s, which is not there", r.ID, name)
			}
		}
		for _, f := range r.Faults {
			if !slices.Contains(faultNumbers, f) {
				t.Errorf("%s names %s, which is on no list", r.ID, f)
			}
		}
	}
}
