package spec

import (
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
)

// Fixture is an exchange with a hub of the earlier kind, condensed to what matters: what each client sent, and what it was told.
type Fixture struct {
	Name  string
	Moves []Move
}

// Move is one line of a fixture.
type Move struct {
	Line int
	Step string // moves of one step belong together
	Verb string // "open", "close", "post", ">" or "<"
	Who  string
	Arg  string
}

// Difference is one way in which a hub of this contract answers otherwise than the earlier one, on purpose.
type Difference struct {
	ID    string
	Why   string // names the faults or the decision
	Cases []Case
}

// Case says which frames, or which parts of them, a Difference is about.
type Case struct {
	Kind Kind
	Who  string // "agent", "board", "outside" (an agent by a key for outsiders), "turned" (whose HELLO was refused), "stays" (an agent
	// in a room that the earlier hub let another one take out) or "*"
	Pattern string
}

// Kind is in what way we differ.
type Kind string

const (
	Missing Kind = "missing" // a frame that the earlier hub sent
	Again   Kind = "again"   // one that it had sent before
	Earlier Kind = "earlier" // a roster that is not the last of its step
	Extra   Kind = "extra"   // a frame that it did not send
	Without Kind = "without" // a field, or a row of a list, that our frame has not
	Differs Kind = "differs" // a field that has another value in ours
)

// Fixtures returns all fixtures by name.
func Fixtures() ([]Fixture, error) {
	names, err := fs.Glob(papers, "fixtures/*.txtar")
	if err != nil {
		return nil, fmt.Errorf("list fixtures: %w", err)
	}
	var out []Fixture
	for _, name := range names {
		raw, err := papers.ReadFile(name)
		if err != nil {
			return nil, fmt.Errorf("read fixture: %w", err)
		}
		f := Fixture{Name: strings.TrimSuffix(path.Base(name), ".txtar")}
		_, script, ok := strings.Cut(string(raw), "\n-- script --\n")
		if !ok {
			return nil, fmt.Errorf("%s: no part -- script --", name)
		}
		first, step := strings.Count(string(raw), "\n")-strings.Count(script, "\n")+1, ""
		for n, line := range strings.Split(script, "\n") {
			if s, ok := strings.CutPrefix(line, "step "); ok {
				step = s
				continue
			}
			if line = strings.TrimSpace(line); line == "" {
				continue
			}
			if post, ok := strings.CutPrefix(line, "post "); ok {
				who, arg, _ := strings.Cut(post, " ")
				f.Moves = append(f.Moves, Move{first + n, step, "post", who, arg})
				continue
			}
			s, err := parseStep(line)
			if err != nil {
				return nil, fmt.Errorf("%s:%d: %w", name, first+n, err)
			}
			f.Moves = append(f.Moves, Move{first + n, step, s.Verb, s.Who, s.Arg})
		}
		out = append(out, f)
	}
	return out, nil
}

var (
	differenceLine = regexp.MustCompile(`^(D[0-9]+) (.+)$`)
	caseLine       = regexp.MustCompile(`^  (missing|again|earlier|extra|without|differs) (agent|board|outside|turned|stays|\*) (\{.*\})$`)
)

// Differences returns the rows of differences.txt.
func Differences() ([]Difference, error) {
	raw, err := papers.ReadFile("differences.txt")
	if err != nil {
		return nil, fmt.Errorf("read differences: %w", err)
	}
	var out []Difference
	for n, line := range strings.Split(string(raw), "\n") {
		if line == "" || line[0] == '#' {
			continue
		}
		if m := differenceLine.FindStringSubmatch(line); m != nil {
			if slices.ContainsFunc(out, func(d Difference) bool { return d.ID == m[1] }) {
				return nil, fmt.Errorf("differences.txt:%d: %s stands twice", n+1, m[1])
			}
			out = append(out, Difference{ID: m[1], Why: m[2]})
			continue
		}
		m := caseLine.FindStringSubmatch(line)
		if m == nil || len(out) == 0 {
			return nil, fmt.Errorf("differences.txt:%d: neither a difference nor a case of one", n+1)
		}
		d := &out[len(out)-1]
		d.Cases = append(d.Cases, Case{Kind(m[1]), m[2], m[3]})
	}
	return out, nil
}
