package journal

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ncruces/go-sqlite3/vfs"

	"github.com/aster-mesh/aster/protocol"
)

// truncated is a run in which records leave while others come: what was acknowledged, and what may be there.
type truncated struct {
	steps  map[protocol.LogID]int
	bases  []Base // that a Leave returned nil for
	trying []Base // of the last Leave that did not return
	say    func(word string, rest any)
}

func (s *truncated) tries(bases []Base) {
	s.trying = bases
	if s.say != nil {
		s.say("try", string(must(json.Marshal(bases))))
	}
}

// left notes that what was tried is in force.
func (s *truncated) left() {
	for _, b := range s.trying {
		s.bases = append(slices.DeleteFunc(s.bases, func(o Base) bool { return o.Log == b.Log }), b)
	}
	s.trying = nil
	if s.say != nil {
		s.say("left", "")
	}
}

// boardAt is what a run gives with bases, so that each tells which snapshot is theirs.
func boardAt(bases []Base) []byte {
	return fmt.Appendf(nil, "%v%s", bases, strings.Repeat("a board ", 9000))
}

// letLeave commits steps of a, has most of what is there leave and sweeps, with commits between, n rounds of it or until
// something fails.
func letLeave(j *Journal, a *author, dice *rand.Rand, rounds int, said *truncated) error {
	said.steps[a.log] = int(a.seq / 3)
	for range rounds {
		for range 3 + dice.IntN(6) {
			if err := oneMore(j, a, said); err != nil {
				return err
			}
		}
		if _, err := j.indexSome(); err != nil {
			return err
		}
		var bases []Base
		for log, steps := range said.steps {
			base, _ := j.Base(log)
			top := uint64(3 * (steps - 1)) // the last message waits in an inbox
			if top <= base.Seq {
				continue
			}
			st, ok, err := j.At(log, base.Seq+1+dice.Uint64N(top-base.Seq))
			if err != nil || !ok {
				return fmt.Errorf("a record above the base: %v, %w", ok, err)
			}
			bases = append(bases, Base{log, st.Record.Seq, st.Hash})
		}
		slices.SortFunc(bases, func(a, b Base) int { return strings.Compare(a.Log.String(), b.Log.String()) })
		said.tries(bases)
		if err := j.Leave(bases, boardAt(bases)); err != nil {
			return err
		}
		said.left()
		for more := true; more && dice.IntN(40) > 0; { // one that is not over goes on after the next Leave
			var err error
			if more, err = j.Sweep(1 + dice.IntN(8)); err != nil {
				return err
			}
			if dice.IntN(8) == 0 {
				if err := oneMore(j, a, said); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func oneMore(j *Journal, a *author, said *truncated) error {
	_, err := j.Commit(step(a, said.steps[a.log]+1))
	if err == nil {
		if said.steps[a.log]++; said.say != nil {
			said.say("step", said.steps[a.log])
		}
	}
	return err
}

// checkTruncated says that all is there that was acknowledged and is above the bases, that bases and snapshot belong together,
// and that nothing else is.
func checkTruncated(t testing.TB, j *Journal, said *truncated) {
	t.Helper()
	bases := j.Bases()
	snapshot, found, err := j.Snapshot()
	if err != nil || found != (len(bases) > 0) || found && string(snapshot) != string(boardAt(within(bases, snapshot))) {
		t.Fatalf("%d bases and %d bytes of snapshot, found %v, err %v", len(bases), len(snapshot), found, err)
	}
	for _, want := range said.bases {
		if b, ok := j.Base(want.Log); !ok || b.Seq < want.Seq {
			t.Fatalf("the base of %s is %d, %d was acknowledged", want.Log, b.Seq, want.Seq)
		}
	}
	for _, b := range bases {
		if !slices.Contains(said.bases, b) && !slices.Contains(said.trying, b) {
			if was := slices.IndexFunc(said.bases, func(o Base) bool { return o.Log == b.Log }); was >= 0 {
				t.Fatalf("%s begins behind %d, which nobody said", b.Log, b.Seq)
			}
		}
	}
	if len(said.trying) > 0 && slices.Contains(bases, said.trying[0]) {
		for _, b := range said.trying {
			if !slices.Contains(bases, b) {
				t.Fatalf("%v are in force in part: %v", said.trying, bases)
			}
		}
	}
	records := uint64(0)
	for log, steps := range said.steps {
		n := checkAbove(t, j, log, steps)
		records += n
	}
	if got := j.Records(); got != records {
		t.Fatalf("%d records counted, %d are there", got, records)
	}
	if all, err := j.Since(0, -1); err != nil || uint64(len(all)) != records {
		t.Fatalf("%d records in their order, want %d, err %v", len(all), records, err)
	}
}

// within picks of bases those that a snapshot is of: the others are of an earlier one.
func within(bases []Base, snapshot []byte) (out []Base) {
	for _, b := range bases {
		if strings.Contains(string(snapshot), fmt.Sprint(b)) {
			out = append(out, b)
		}
	}
	return out
}

// checkAbove checks one log from its base on, and returns how many records it has there.
func checkAbove(t testing.TB, j *Journal, log protocol.LogID, acked int) uint64 {
	t.Helper()
	base, _ := j.Base(log)
	prev, seq := base.Hash, base.Seq
	for {
		rs, err := j.Range(log, seq+1, 1<<20)
		if err != nil {
			t.Fatalf("range: %v", err)
		}
		if len(rs) == 0 {
			break
		}
		if prev, err = protocol.VerifyCommits(rs, prev); err != nil {
			t.Fatalf("%s behind %d: %v", log, seq, err)
		}
		seq += uint64(len(rs))
	}
	if seq < uint64(3*acked) || seq > uint64(3*acked+3) {
		t.Fatalf("%s ends with record %d, %d were acknowledged", log, seq, 3*acked)
	}
	for _, h := range must(j.Heads()) {
		if h.Log == log && (h.Seq != seq || h.Hash != prev) {
			t.Fatalf("the head of %s is %d, its last record %d", log, h.Seq, seq)
		}
	}
	steps := int(seq / 3)
	for n := int(base.Seq/3) + 1; n <= steps; n++ {
		m, found, err := j.Message(log, uint64(3*n))
		if err != nil || !found || (len(m.Tiers) == 1) != (n < steps) {
			t.Fatalf("message of step %d of %d: found %v, tiers %v, err %v", n, steps, found, m.Tiers, err)
		}
	}
	return seq - base.Seq
}

// finish sweeps to the end, and looks whether nothing is left of what left.
func finish(t testing.TB, j *Journal, said *truncated) {
	t.Helper()
	sweepAll(t, j)
	checkTruncated(t, j, said)
	left, err := j.writer.number("SELECT (SELECT count(*) FROM records r JOIN bases b ON b.log=r.log AND r.seq<=b.seq)" +
		"+(SELECT count(*) FROM tiers r JOIN bases b ON b.log=r.log AND r.seq<=b.seq)" +
		"+(SELECT count(*) FROM msgs WHERE pos NOT IN (SELECT pos FROM records))" +
		"+(SELECT count(*) FROM inbox WHERE pos NOT IN (SELECT pos FROM records))" +
		"+(SELECT count(*) FROM identities WHERE pos NOT IN (SELECT pos FROM records))" +
		"+(SELECT count(DISTINCT cut) FROM snapshots)")
	if err != nil || left > 1 { // of the snapshot that is in force
		t.Fatalf("%d rows of what left are there, err %v", left, err)
	}
	for more := true; more; {
		if more, err = j.indexSome(); err != nil {
			t.Fatal(err)
		}
	}
	found, err := positions(j.search.c, `SELECT rowid FROM words WHERE words MATCH '"number"'`)
	if all := must(j.Messages(Query{Limit: 1000})); err != nil || len(found) != len(all) {
		t.Fatalf("%d messages in the search index, %d in the store, err %v", len(found), len(all), err)
	}
}

// TestPowerLossWhileRecordsLeave: wherever the power goes while records leave and their rows are removed, either the old state
// is there or the new one, all that lies above the bases is, and the sweep goes on.
func TestPowerLossWhileRecordsLeave(t *testing.T) {
	t.Parallel()
	points := thorough(200, 100)
	if testing.Short() && points < 200 {
		points = 24
	}
	began := filepath.Join(t.TempDir(), "began")
	j := open(t, began, Options{})
	a := newAuthor(1, 1)
	start := truncated{steps: map[protocol.LogID]int{a.log: 0}}
	for range 12 {
		if err := oneMore(j, a, &start); err != nil {
			t.Fatal(err)
		}
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	all := 0
	for point := -1; point < points; point++ {
		dice := rand.New(rand.NewPCG(uint64(point+1), 7))
		dir := filepath.Join(t.TempDir(), "j")
		if err := os.CopyFS(dir, os.DirFS(began)); err != nil {
			t.Fatal(err)
		}
		d := &disk{keep: dice.IntN(3)}
		b := *a
		said := truncated{steps: map[protocol.LogID]int{a.log: 12}}
		j, err := Open(dir, Options{VFS: newDisk(t, d)})
		if err != nil {
			t.Fatal(err)
		}
		before := d.steps
		if point >= 0 {
			d.mu.Lock()
			d.failAt = before + 1 + dice.IntN(all)
			d.mu.Unlock()
		}
		err = letLeave(j, &b, rand.New(rand.NewPCG(uint64(point+1), 8)), 2, &said)
		j.Close()
		switch {
		case point < 0 && err != nil, err != nil && !d.crashed:
			t.Fatalf("point %d: %v", point, err)
		case point < 0:
			all = d.steps - before
			t.Logf("%d points are there", all)
		}
		k := open(t, dir, Options{VFS: newDisk(t, &disk{})})
		if r := k.Recovery(); r.SetAside != nil {
			t.Fatalf("point %d: store set aside: %s", point, r.Reason)
		}
		checkTruncated(t, k, &said)
		finish(t, k, &said)
		if err := k.Close(); err != nil {
			t.Fatal(err)
		}
		if faults, err := Examine(t.Context(), dir); err != nil || len(faults) > 0 {
			t.Fatalf("point %d: %v, %v", point, faults, err)
		}
	}
}

const childRebases = "ASTER_TEST_JOURNAL_REBASE" // DIR SEED STEP

// rebaseUntilKilled is the child of the next test. It says what it does, and kills itself before the change of the disk that it was
// told.
func rebaseUntilKilled(args string) {
	var dir string
	var seed uint64
	var killAt int
	_, err := fmt.Sscan(args, &dir, &seed, &killAt)
	steps := 0
	count := func(int) {
		if steps++; steps == killAt {
			self, _ := os.FindProcess(os.Getpid())
			self.Kill()
			select {}
		}
	}
	vfs.Register("killing", &disk{watch: count})
	var j *Journal
	if err == nil {
		j, err = Open(dir, Options{VFS: "killing", beforeStep: func(string) { count(0) }})
	}
	if err == nil {
		a := newAuthor(1, seed)
		fmt.Println("log", a.log.String())
		said := truncated{steps: map[protocol.LogID]int{}, say: func(word string, rest any) { fmt.Println(word, rest) }}
		err = letLeave(j, a, rand.New(rand.NewPCG(seed, 3)), 1000, &said)
	}
	fmt.Println(err)
	os.Exit(1)
}

// TestKilledWhileRecordsLeave ends real processes, each in the middle of a change of the disk.
func TestKilledWhileRecordsLeave(t *testing.T) {
	var dir string
	var said *truncated
	t.Parallel()
	kills := thorough(200, 20)
	if testing.Short() && kills < 200 {
		kills = 5
	}
	for seed := range uint64(kills) {
		if seed%10 == 0 {
			dir, said = tempDir(t), &truncated{steps: map[protocol.LogID]int{}}
		}
		dice := rand.New(rand.NewPCG(seed, 4))
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s %d %d", childRebases, dir, seed, 40+dice.IntN(400)))
		out, err := cmd.StdoutPipe()
		if err == nil {
			err = cmd.Start()
		}
		if err != nil {
			t.Fatal(err)
		}
		var log protocol.LogID
		for lines := bufio.NewScanner(out); lines.Scan(); {
			switch word, rest, _ := strings.Cut(lines.Text(), " "); word {
			case "log":
				log = must(protocol.ParseLogID(rest))
				said.steps[log] = 0
			case "step":
				said.steps[log]++
			case "try":
				said.trying = nil
				if err := json.Unmarshal([]byte(rest), &said.trying); err != nil {
					t.Fatal(err)
				}
			case "left":
				said.left()
			default:
				t.Fatalf("seed %d: child: %s", seed, lines.Text())
			}
		}
		cmd.Wait()
		j := open(t, dir, Options{})
		if r := j.Recovery(); r.SetAside != nil {
			t.Fatalf("seed %d: store set aside: %s", seed, r.Reason)
		}
		checkTruncated(t, j, said)
		if bases := j.Bases(); len(said.trying) > 0 && slices.Contains(bases, said.trying[0]) {
			said.left()
		}
		said.trying = nil
		if seed%2 == 0 { // else the next process has more to sweep
			finish(t, j, said)
		}
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
