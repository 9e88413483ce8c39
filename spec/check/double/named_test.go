package double

import (
	"context"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aster-mesh/aster/spec/check"
)

// owner is who has the hub's clock.
type owner struct{ h *hub }

func (owner) Can(need string) bool { return need == "clock" }

func (owner) Address(string) string { return "" }

func (owner) Token() string { return "" }

func (o owner) Do(_ context.Context, act string) error {
	d, err := time.ParseDuration(strings.TrimPrefix(act, "later "))
	if err == nil {
		o.h.clock.step(d)
	}
	return err
}

// run plays the vectors against a hub with a fault, or with none. In the quick suite a fault meets only the vectors that guard
// against it.
func run(t *testing.T, fault string, patience time.Duration) *check.Report {
	t.Helper()
	opt := check.Options{Patience: patience, Slow: fault == "" && os.Getenv("ASTER_LONG") != ""}
	if testing.Short() || slices.Contains(faults[fault], "ROL-5") { // with that one main is another agent from then on
		opt.Filter = fault
	}
	h := start(t, fault)
	opt.Host = owner{h}
	report, err := check.Run(context.Background(), []string{h.url}, opt)
	if err != nil {
		t.Error(err)
	}
	return report
}

func TestHubWithoutFaultsKeepsEveryRule(t *testing.T) {
	report := run(t, "", 10*time.Second)
	if report == nil {
		return
	}
	for _, r := range report.Results {
		for _, f := range r.Failures {
			t.Errorf("%s: %s.txtar:%d %s: %s\n%s", r.Rule, f.Vector, f.Line, f.Step, f.Why, strings.Join(f.Got, "\n"))
		}
	}
	if !report.OK() {
		t.Error("not every rule holds")
	}
}

// faults are what the hub can have wrong, with the rules that then do not hold: those and no others.
var faults = map[string][]string{
	"B11":  {"RTE-4"},
	"B13":  {"RTE-9", "CHN-1", "SEL-4"},
	"B17":  {"HSK-7", "SEC-4"}, // no HELLO is refused any more
	"B18":  {"KEY-16"},
	"B19":  {"SND-3"},
	"B22":  {"DLV-5"},
	"B24":  {"RTE-5", "RTE-6", "DLV-2", "DLV-10", "DLV-15", "DLV-17"}, // what went to main does not wait
	"B32":  {"KEY-15"},
	"B38":  {"KEY-8"},
	"B50":  {"ATT-3"},
	"KA6":  {"ROM-8"},
	"B14":  {"ROL-5"},
	"B20":  {"DEC-4"},
	"KB19": {"ROL-5"},
	"KD8":  {"ROM-9"},
	"KB4":  {"HSK-7", "KEY-6"},
	"KB5":  {"KEY-10"},
	"KB8":  {"HSK-4"},
	"KB10": {"KEY-5"},
	"KB11": {"KEY-2"},
	"KB12": {"KEY-14"},
	"KC6":  {"DLV-3"},
	"KC7":  {"DLV-2", "DLV-15", "DLV-17", "ROM-3"}, // all of them look at who comes back
	"KC13": {"ROM-3"},
	"KC14": {"ROM-5"},
	"KC18": {"SEL-2"},
	"KC19": {"SEL-3"},
}

// atOnce is how many hubs are played against at a time: more would keep each other waiting.
const atOnce = 9

func TestEachKnownFaultIsNamedWhenItAloneIsOn(t *testing.T) {
	reports := map[string]*check.Report{}
	var mu sync.Mutex
	var running sync.WaitGroup
	turn := make(chan struct{}, atOnce)
	for fault := range faults {
		running.Go(func() { // they mostly wait for what does not come
			turn <- struct{}{}
			defer func() { <-turn }()
			report := run(t, fault, 5*time.Second) // the slowest right answer takes 2 s (KEY-16)
			mu.Lock()
			defer mu.Unlock()
			reports[fault] = report
		})
	}
	running.Wait()
	for _, fault := range slices.Sorted(maps.Keys(faults)) {
		var broken []string
		named := map[string]bool{}
		report := reports[fault]
		if report != nil && slices.ContainsFunc(report.Results, func(r check.Result) bool {
			return r.Status == check.Broken && !slices.Contains(faults[fault], r.Rule)
		}) {
			report = run(t, fault, 10*time.Second) // on a busy machine something may only have been late
		}
		if report == nil {
			continue
		}
		for _, r := range report.Results {
			if r.Status != check.Broken {
				continue
			}
			broken = append(broken, r.Rule)
			for _, f := range r.Faults {
				named[f] = true
			}
			if len(r.Failures) == 0 || r.Failures[0].Step == "" {
				t.Errorf("%s: %s is broken and no step says where", fault, r.Rule)
			}
		}
		if !named[fault] {
			t.Errorf("%s is not named; broken: %v", fault, broken)
		}
		// Which of its rules a fault breaks first can depend on who was quicker; no rule but its own may break.
		for _, rule := range broken {
			if !slices.Contains(faults[fault], rule) {
				t.Errorf("%s breaks %s, which is none of its rules %v", fault, rule, faults[fault])
			}
		}
	}
}
