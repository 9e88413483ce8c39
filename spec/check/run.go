package check

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/aster-mesh/aster/spec"
)

// Options say what to run and how long to wait.
type Options struct {
	Filter   string        // only vectors whose name, a rule or a fault of which begins with it
	Slow     bool          // also vectors that wait for longer than SlowAfter
	Without  []string      // chapters that the hub does not serve, such as KEY: vectors that show their rules are left out
	Main     string        // the id that is main at this hub; default main-agent
	Msgpack  bool          // speak msgpack, with the subprotocol aster.msgpack.1
	Patience time.Duration // how long an expected frame may take; default 5 s
	Host     Host          // owns the hub; nil: nobody here does
}

// SlowAfter is how long a vector may wait on purpose and still be a quick one.
const SlowAfter = 5 * time.Second

// Status is what is known of a rule after a run.
type Status string

const (
	Holds     Status = "holds"
	Broken    Status = "broken"
	Unproved  Status = "unproved"  // every vector that shows it was left out, or ended before
	Unchecked Status = "unchecked" // every vector that shows it needs what nobody here has
)

// Result is what a run found out about one rule.
type Result struct {
	Rule     string    `json:"rule"`
	Text     string    `json:"text"`
	Status   Status    `json:"status"`
	Faults   []string  `json:"faults,omitempty"` // of a broken rule: the known faults that look like this
	Vectors  []string  `json:"vectors,omitempty"`
	Needs    []string  `json:"needs,omitempty"` // of a rule that is not checked here
	Failures []Failure `json:"failures,omitempty"`
}

// Failure is one step that did not go as the rule says.
type Failure struct {
	Vector string   `json:"vector"`
	Line   int      `json:"line"`
	Step   string   `json:"step"`
	Why    string   `json:"why"`
	Got    []string `json:"got,omitempty"` // frames that came instead, newest last
}

// Report is the outcome of a run.
type Report struct {
	Results []Result
	Ran     int
	Slow    []string // vectors left out since they wait
	Needy   []string // vectors left out since nobody here has what they need
	Broken  int      // rules
}

// Run runs vectors, one after the other, against the hub at urls[0], or against a mesh whose nodes have those addresses: the
// clients of a vector are then spread over them, main at the first. An error means that a hub could not be reached or that
// the vectors are bad, not that a rule is broken.
func Run(ctx context.Context, urls []string, opt Options) (*Report, error) {
	rules, err := spec.Rules()
	if err != nil {
		return nil, err
	}
	vectors, err := spec.Vectors()
	if err != nil {
		return nil, err
	}
	if opt.Main == "" {
		opt.Main = "main-agent"
	}
	if opt.Patience == 0 {
		opt.Patience = 5 * time.Second
	}
	run := make([]byte, 3)
	if _, err := rand.Read(run); err != nil {
		return nil, fmt.Errorf("make a name for this run: %w", err)
	}
	var watch []*socket // a board at each address
	for _, url := range urls {
		header := http.Header{}
		if opt.Msgpack {
			header.Set("Sec-WebSocket-Protocol", subprotocol)
		}
		s, err := dial(ctx, url, "", header)
		if err != nil {
			return nil, fmt.Errorf("reach the hub: %w", err)
		}
		defer s.shut()
		if opt.Msgpack && !s.pack {
			return nil, fmt.Errorf("the hub at %s does not offer %s", url, subprotocol)
		}
		watch = append(watch, s)
	}
	t, ahead := &tally{report: &Report{}, at: map[string]int{}}, "0s"
	for _, r := range rules {
		if !slices.Contains(opt.Without, r.Chapter()) {
			t.add(r)
		}
	}
	for i, v := range vectors {
		if !t.wanted(&v, opt.Filter) || without(&v, opt.Without) {
			continue
		}
		lacks := opt.lacks(&v)
		t.shown(&v, lacks)
		switch {
		case len(lacks) > 0:
			t.report.Needy = append(t.report.Needy, v.Name)
			continue
		case opt.waits(&v) > SlowAfter && !opt.Slow:
			t.report.Slow = append(t.report.Slow, v.Name)
			continue
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		p := &play{ctx: ctx, urls: urls, watch: watch, at: map[string]int{"main": 0}, opt: opt, tag: fmt.Sprintf("%s%02d", hex.EncodeToString(run), i), words: words{"main": opt.Main, stepped: ahead}, clients: map[string]*socket{}, beside: map[string]string{}}
		if opt.Host != nil {
			p.words["token"] = opt.Host.Token()
		}
		if v.Single {
			p.urls, p.watch = urls[:1], watch[:1]
		}
		t.ran(&v, p.run(&v))
		ahead = p.words[stepped]
	}
	return t.close(opt.Filter), nil
}

func without(v *spec.Vector, chapters []string) bool {
	return slices.ContainsFunc(v.Rules(), func(id string) bool {
		chapter, _, _ := strings.Cut(id, "-")
		return slices.Contains(chapters, chapter)
	})
}

// tally gathers results by rule.
type tally struct {
	report *Report
	rules  []spec.Rule
	at     map[string]int // rule → place in rules and report.Results
}

func (t *tally) add(r spec.Rule) {
	t.at[r.ID] = len(t.rules)
	t.rules = append(t.rules, r)
	t.report.Results = append(t.report.Results, Result{Rule: r.ID, Text: r.Text, Status: Unproved})
}

// wanted says whether a vector shows something that begins with filter.
func (t *tally) wanted(v *spec.Vector, filter string) bool {
	begins := func(s string) bool { return strings.HasPrefix(strings.ToLower(s), strings.ToLower(filter)) }
	return filter == "" || begins(v.Name) || slices.ContainsFunc(v.Rules(), begins) || slices.ContainsFunc(v.Guards, begins)
}

// shown notes which rules a vector is about, and what it lacks.
func (t *tally) shown(v *spec.Vector, lacks []string) {
	for _, id := range v.Rules() {
		if i, ok := t.at[id]; ok {
			r := &t.report.Results[i]
			r.Vectors = append(r.Vectors, v.Name)
			for _, need := range lacks {
				if !slices.Contains(r.Needs, need) {
					r.Needs = append(r.Needs, need)
				}
			}
		}
	}
}

// ran notes one vector's end. A step that only prepares speaks for all rules of its vector.
func (t *tally) ran(v *spec.Vector, failed *failure) {
	t.report.Ran++
	for _, id := range v.Rules() {
		i, ok := t.at[id]
		if !ok {
			continue
		}
		r := &t.report.Results[i]
		last := -1 // of the vector's steps that show the rule
		for n, s := range v.Steps {
			if s.Rule == id {
				last = n
			}
		}
		switch {
		case failed != nil && (failed.rule == id || failed.rule == ""):
			r.Status = Broken
			r.Failures = append(r.Failures, failed.Failure)
		case failed != nil && last >= failed.step: // it was not reached
		case r.Status == Unproved:
			r.Status = Holds
		}
	}
}

// close keeps the rules that the run was about.
func (t *tally) close(filter string) *Report {
	kept := t.report.Results[:0]
	for i, r := range t.report.Results {
		if filter != "" && len(r.Vectors) == 0 {
			continue
		}
		left := func(names []string) bool {
			return slices.ContainsFunc(r.Vectors, func(v string) bool { return slices.Contains(names, v) })
		}
		switch {
		case r.Status == Broken:
			t.report.Broken++
			r.Faults = t.rules[i].Faults
		case r.Status == Unproved && left(t.report.Needy) && !left(t.report.Slow):
			r.Status = Unchecked
		}
		if r.Status != Unchecked {
			r.Needs = nil
		}
		kept = append(kept, r)
	}
	t.report.Results = kept
	return t.report
}

// OK says that no rule is broken and that none went unproved for another reason than time, or that nobody here has what it needs.
func (r *Report) OK() bool {
	for _, x := range r.Results {
		if x.Status == Broken {
			return false
		}
		if x.Status == Unproved && !slices.ContainsFunc(x.Vectors, func(v string) bool { return slices.Contains(r.Slow, v) }) {
			return false
		}
	}
	return true
}
