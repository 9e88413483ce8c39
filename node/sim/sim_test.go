package sim

import (
	"bufio"
	_ "embed"
	"flag"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

var (
	oneSeed  = flag.Int64("seed", -1, "run this seed alone, twice, and print its digest")
	fromSeed = flag.Uint64("from", 1, "the first seed of the run")
	seeds    = flag.Int("seeds", 0, "how many seeds; 0: as many as the mode has")
	story    = flag.Bool("story", false, "with -seed: print what happens")
	brief    = flag.Bool("brief", false, "say which seed breaks what, and no more")
)

// The doses: of -short, of a full run, and of ASTER_LONG.
const (
	shortSeeds = 60
	fullSeeds  = 2_000
	longSeeds  = 100_000
)

// found are the seeds that broke something once, each with what it was.
//
//go:embed testdata/seeds.txt
var found string

// TestSeeds runs meshes by seed and judges them. One seed that breaks a promise is shrunk and told.
func TestSeeds(t *testing.T) {
	if *oneSeed >= 0 {
		replay(t, PlanOf(uint64(*oneSeed)))
		return
	}
	n := fullSeeds
	switch {
	case *seeds > 0:
		n = *seeds
	case testing.Short():
		n = shortSeeds
	case os.Getenv("ASTER_LONG") != "":
		n = longSeeds
	}
	if total := many(t, n, PlanOf); !t.Failed() {
		total.check(t)
	}
}

// many runs n seeds and says what they did.
func many(t *testing.T, n int, planOf func(uint64) Plan) (total Stats) {
	t.Helper()
	var next, broke atomic.Uint64
	next.Store(*fromSeed)
	var mu sync.Mutex
	var all sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		all.Go(func() {
			for {
				seed := next.Add(1) - 1
				if seed >= *fromSeed+uint64(n) || broke.Load() > 0 {
					return
				}
				w := New(planOf(seed))
				v := w.Run()
				mu.Lock()
				total.add(&w.Stats)
				mu.Unlock()
				if v != nil && broke.CompareAndSwap(0, seed) {
					tell(t, planOf(seed), v)
				}
			}
		})
	}
	all.Wait()
	t.Logf("%d seeds: %+v", n, total)
	return total
}

// replay runs a seed twice, which must be alike to the last bit.
func replay(t *testing.T, plan Plan) {
	w := New(plan)
	if *story {
		w.KeepTrace()
	}
	v := w.Run()
	for _, line := range w.Trace {
		fmt.Println(line)
	}
	fmt.Printf("seed %d digest %s\n", plan.Seed, w.Digest())
	t.Logf("%+v", w.Stats)
	again := New(plan)
	again.Run()
	if again.Digest() != w.Digest() {
		t.Errorf("the second run has digest %s", again.Digest())
	}
	if v != nil {
		tell(t, plan, v)
	}
}

// tell prints a failure with the shortest run that shows it.
func tell(t *testing.T, plan Plan, v *Violation) {
	seed := plan.Seed
	if *brief {
		t.Errorf("seed %d breaks %q: %v", seed, v.Rule, v)
		return
	}
	short := Shrink(plan, v.Rule, 300)
	w := New(short)
	w.KeepTrace()
	last := w.Run()
	var b strings.Builder
	for _, a := range short.Actions {
		fmt.Fprintf(&b, "\n   %s", a)
	}
	trace := w.Trace[max(0, len(w.Trace)-60):]
	t.Errorf("seed %d breaks %q: %s\nfirst seen: %v\nagain: go test ./node/sim -run %s -seed %d -story\n%d of %d actions show it:%s\n%s",
		seed, v.Rule, last, v, t.Name(), seed, len(short.Actions), len(plan.Actions), b.String(), strings.Join(trace, "\n"))
}

// TestFoundSeeds: what was found once is not found again.
func TestFoundSeeds(t *testing.T) {
	planOf := stillPlanOf
	for lines := bufio.NewScanner(strings.NewReader(found)); lines.Scan(); {
		if strings.HasPrefix(lines.Text(), "# elections") {
			planOf = PlanOf
		}
		number, why, ok := strings.Cut(lines.Text(), " ")
		if strings.HasPrefix(number, "#") || number == "" {
			continue
		}
		seed, err := strconv.ParseUint(number, 10, 64)
		if err != nil || !ok || why == "" {
			t.Fatalf("testdata/seeds.txt: %q is no seed with its reason", lines.Text())
		}
		if v := New(planOf(seed)).Run(); v != nil {
			t.Errorf("seed %d, %s: %v", seed, why, v)
		}
	}
}

// TestARunIsAlikeToTheLastBit: what a seed does depends on nothing else.
func TestARunIsAlikeToTheLastBit(t *testing.T) {
	for seed := range uint64(4) {
		a, b := New(PlanOf(seed)), New(PlanOf(seed))
		a.Run()
		b.KeepTrace() // which must change nothing
		b.Run()
		if a.Digest() != b.Digest() {
			t.Errorf("seed %d: digests %s and %s", seed, a.Digest(), b.Digest())
		}
	}
}

func (s *Stats) add(o *Stats) {
	s.Events += o.Events
	s.Frames += o.Frames
	s.Commits += o.Commits
	s.Crashes += o.Crashes
	s.Restores += o.Restores
	s.Logged += o.Logged
	s.Handled += o.Handled
	s.Repeats += o.Repeats
	s.Refused += o.Refused
	s.Cuts += o.Cuts
	s.Joins += o.Joins
	s.Fulls += o.Fulls
	s.Takebacks += o.Takebacks
	s.Terms += o.Terms
	s.HandOvers += o.HandOvers
	s.Takes += o.Takes
	s.Granted += o.Granted
	s.Ungranted += o.Ungranted
	s.Released += o.Released
	s.Wipes += o.Wipes
	s.Missed += o.Missed
	s.Bases += o.Bases
	s.Leaves += o.Leaves
	s.Begins += o.Begins
	s.Lies += o.Lies
}

// check says what no run did: a simulation that never crashes proves nothing.
func (s *Stats) check(t *testing.T) {
	if s.Commits == 0 || s.Crashes == 0 || s.Restores == 0 || s.Logged == 0 || s.Handled == 0 || s.Repeats == 0 ||
		s.Refused == 0 || s.Cuts == 0 || s.Joins == 0 || s.Fulls == 0 || s.Takebacks == 0 ||
		s.Terms == 0 || s.HandOvers == 0 || s.Takes == 0 || s.Granted == 0 || s.Ungranted == 0 || s.Released == 0 || s.Wipes == 0 {
		t.Errorf("something never happened: %+v", *s)
	}
}
