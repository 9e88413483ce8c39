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

func run(t *testing.T, fault string) *check.Report {
	t.Helper()
	patience := 10 * time.Second
	if fault != "" {
		patience = time.Second // what does not come is not waited for long
	}
	report, err := check.Run(context.Background(), []string{start(t, fault)}, check.Options{Patience: patience, Slow: fault == "" && os.Getenv("ASTER_LONG") != "", Without: []string{"KEY", "SEL", "DEC", "ROM", "ATT", "CHN"}})
	if err != nil {
		t.Error(err)
	}
	return report
}

func TestHubWithoutFaultsKeepsEveryRule(t *testing.T) {
	report := run(t, "")
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
	"B11": {"RTE-4"},
	"B13": {"RTE-9"},
	"B17": {"HSK-7", "SEC-4"}, // no HELLO is refused any more
	"B19": {"SND-3"},
	"B22": {"DLV-5"},
	"B24": {"RTE-5", "DLV-2", "DLV-10"}, // what went to main does not wait
	"KB4": {"HSK-7"},
	"KB8": {"HSK-4"},
	"KC6": {"DLV-3"},
	"KC7": {"DLV-2"},
}

func TestEachKnownFaultIsNamedWhenItAloneIsOn(t *testing.T) {
	reports := map[string]*check.Report{}
	var mu sync.Mutex
	var running sync.WaitGroup
	for fault := range faults {
		running.Go(func() { // they mostly wait for what does not come
			report := run(t, fault)
			mu.Lock()
			defer mu.Unlock()
			reports[fault] = report
		})
	}
	running.Wait()
	for _, fault := range slices.Sorted(maps.Keys(faults)) {
		var broken []string
		named := map[string]bool{}
		if reports[fault] == nil {
			continue
		}
		for _, r := range reports[fault].Results {
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
