package spec

import (
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Vector is one story that shows rules: who connects, what they send, what must and what must not come.
type Vector struct {
	Name   string // of the file, without .txtar
	Prose  string // why
	Guards []string
	Steps  []Step
	Wait   time.Duration // of all pass steps together
	Later  time.Duration // of all later steps: a host with a clock of its own need not wait
	Single bool          // all of its clients belong to one node
	Needs  []string      // what a client alone cannot do: names of Needs
}

// Needs are what a vector may ask of whoever owns the hub. Without it the vector cannot be played.
var Needs = map[string]string{
	"address":   "clients that come from other addresses",
	"token":     "the credential of a person, as $token",
	"restart":   "the end of the hub's process and a new one with the same home",
	"second":    "another node inside, which may be away",
	"outside":   "a node of somebody else's, let in as collab",
	"abroad":    "the hub of another mesh, whose board an agent of this one joins",
	"pace":      "an owner's limit of five messages at once",
	"deadlocks": "an owner who wants to hear of agents that wait for each other",
}

// Rules are the rules that the vector shows, in its order.
func (v *Vector) Rules() []string {
	var out []string
	for _, s := range v.Steps {
		if s.Rule != "" && !slices.Contains(out, s.Rule) {
			out = append(out, s.Rule)
		}
	}
	return out
}

// Step is one line of a script.
type Step struct {
	Line int    // of the file
	Text string // the line itself
	Rule string // the rule that the step shows; empty: it only prepares
	Verb string // one of verbs, "<", "!", ">", ">>"
	Who  string // the client; empty for a step that is nobody's
	Arg  string // the rest of the line
}

// verbs are the steps that begin with a word; README.md of the vectors explains each.
var verbs = []string{"open", "deny", "join", "board", "closed", "close", "drop", "mute", "mark", "raw", "fence", "pass", "later", "flood", "volley", "host", "http"}

// alone are those that no client does.
var alone = []string{"pass", "later", "host", "http"}

// Vectors returns all vectors by name.
func Vectors() ([]Vector, error) {
	names, err := fs.Glob(papers, "vectors/*.txtar")
	if err != nil {
		return nil, fmt.Errorf("list vectors: %w", err)
	}
	var out []Vector
	for _, name := range names {
		raw, err := papers.ReadFile(name)
		if err != nil {
			return nil, fmt.Errorf("read vector: %w", err)
		}
		v, err := ParseVector(strings.TrimSuffix(path.Base(name), ".txtar"), string(raw))
		if err != nil {
			return nil, err
		}
		out = append(out, v)
	}
	return out, nil
}

var (
	guards     = regexp.MustCompile(`(?s)\bGuards: ([^.]*)\.`)
	clientName = regexp.MustCompile(`^[a-z][a-z0-9]*$`)
)

// ParseVector reads one vector: prose, then the part "-- script --".
func ParseVector(name, text string) (Vector, error) {
	prose, script, ok := strings.Cut(text, "\n-- script --\n")
	if !ok {
		return Vector{}, fmt.Errorf("%s: no part -- script --", name)
	}
	v := Vector{Name: name, Prose: strings.TrimSpace(prose)}
	for _, m := range guards.FindAllStringSubmatch(prose, -1) {
		v.Guards = append(v.Guards, faultName.FindAllString(m[1], -1)...)
	}
	slices.SortFunc(v.Guards, byFault)
	first := strings.Count(prose, "\n") + 3 // line number of the script's first line
	rule := ""
	for n, line := range strings.Split(script, "\n") {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		if id, ok := strings.CutPrefix(line, "rule "); ok {
			if rule = strings.TrimSpace(id); rule == "none" {
				rule = ""
			}
			continue
		}
		if line == "single" {
			v.Single = true
			continue
		}
		if needs, ok := strings.CutPrefix(line, "needs "); ok {
			v.Needs = append(v.Needs, strings.Fields(needs)...)
			for _, need := range v.Needs {
				if Needs[need] == "" {
					return v, fmt.Errorf("%s.txtar:%d: nobody knows how to have %q", name, first+n, need)
				}
			}
			continue
		}
		s, err := parseStep(line)
		if err != nil {
			return v, fmt.Errorf("%s.txtar:%d: %w", name, first+n, err)
		}
		if (s.Verb == "host" || strings.Contains(s.Arg, "$token") || strings.HasPrefix(s.Arg, "@") && s.Arg[1] != '{') && len(v.Needs) == 0 {
			return v, fmt.Errorf("%s.txtar:%d: a vector that asks its host says first what it needs", name, first+n)
		}
		s.Line, s.Rule = first+n, rule
		if s.Verb == "pass" || s.Verb == "later" {
			d, err := time.ParseDuration(s.Arg)
			if err != nil {
				return v, fmt.Errorf("%s.txtar:%d: %w", name, first+n, err)
			}
			if s.Verb == "pass" {
				v.Wait += d
			} else {
				v.Later += d
			}
		}
		v.Steps = append(v.Steps, s)
	}
	return v, nil
}

func parseStep(line string) (Step, error) {
	word, rest, _ := strings.Cut(line, " ")
	rest = strings.TrimSpace(rest)
	s := Step{Text: line}
	if slices.Contains(verbs, word) {
		s.Verb = word
		if slices.Contains(alone, word) {
			s.Arg = rest
			return s, nil
		}
		s.Who, s.Arg, _ = strings.Cut(rest, " ")
		s.Arg = strings.TrimSpace(s.Arg)
	} else {
		s.Who = word
		s.Verb, s.Arg, _ = strings.Cut(rest, " ")
		if !slices.Contains([]string{"<", "!", ">", ">>"}, s.Verb) {
			return s, fmt.Errorf("no step %q", line)
		}
	}
	if !clientName.MatchString(s.Who) {
		return s, fmt.Errorf("%q is no name of a client", s.Who)
	}
	if s.Verb == "closed" || s.Verb == "close" || s.Verb == "deny" {
		code, _, _ := strings.Cut(s.Arg, " ")
		for _, c := range strings.Split(code, "|") {
			if _, err := strconv.Atoi(c); err != nil && c != "none" && c != "drop" {
				return s, fmt.Errorf("%q is no code", c)
			}
		}
	}
	return s, nil
}
