package journal

import (
	"bufio"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/aster-mesh/aster/protocol"
)

// step n of a workload: three records, one of them a message into an inbox, and a value that counts the steps. All of
// it or nothing must be there.
func step(a *author, n int) Batch {
	b := Batch{
		Entries: []Entry{a.add("odd", fmt.Appendf(nil, "%d", n), false), a.add("odd", make([]byte, n*37%5000), false), a.say(note(n))},
		Values:  map[string][]byte{"step/" + a.log.String(): strconv.AppendInt(nil, int64(n), 10)},
	}
	b.Inbox = []InboxPut{{"ben", a.log, a.seq}}
	if n > 1 {
		b.Tiers = []TierPut{{Log: a.log, Seq: a.seq - 3, Tier: protocol.Processed, Agent: "ben", At: a.at}}
	}
	if last := &b.Entries[2]; a.owes && n%2 == 1 {
		last.Record.Sig, last.Sign = nil, true
	}
	return b
}

// checkSteps says that the journal holds whole steps only and at least acked of them, and returns how many.
func checkSteps(t testing.TB, j *Journal, log protocol.LogID, acked int) int {
	t.Helper()
	text, _, err := j.Value("step/" + log.String())
	if err != nil {
		t.Fatalf("value: %v", err)
	}
	steps, _ := strconv.Atoi(string(text))
	if steps < acked {
		t.Fatalf("%d steps are there, %d were acknowledged", steps, acked)
	}
	prev, seq := protocol.Hash{}, uint64(1)
	for {
		rs, err := j.Range(log, seq, 1<<20)
		if err != nil {
			t.Fatalf("range: %v", err)
		}
		if len(rs) == 0 {
			break
		}
		if prev, err = protocol.VerifyCommits(rs, prev); err != nil {
			t.Fatalf("after %d steps: %v", steps, err)
		}
		seq += uint64(len(rs))
	}
	if got, want := seq-1, uint64(3*steps); got != want {
		t.Fatalf("%d records are there, want %d", got, want)
	}
	for n := 1; n <= steps; n++ {
		m, found, err := j.Message(log, uint64(3*n))
		if err != nil || !found {
			t.Fatalf("message of step %d: found %v, err %v", n, found, err)
		}
		if done := len(m.Tiers) == 1; done != (n < steps) {
			t.Fatalf("step %d of %d: tiers %v", n, steps, m.Tiers)
		}
		if _, found, err := j.Identity(m.Envelope.Identity()); err != nil || !found {
			t.Fatalf("identity of step %d: found %v, err %v", n, found, err)
		}
	}
	return steps
}

// TestPowerLossAtEveryWrite: whatever the write at which the power goes, and whatever of the unsynced writes survives,
// all that was acknowledged is there and nothing half.
func TestPowerLossAtEveryWrite(t *testing.T) {
	stride := thorough(1, 5)
	for keep, name := range []string{"nothing unsynced survives", "the older half survives", "all survives, the last write half"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for failAt := 1 + keep%stride; ; failAt += stride {
				d := &disk{failAt: failAt, keep: keep}
				losePower(t, d)
				if !d.crashed {
					t.Logf("every one of %d steps has failed once", failAt-1)
					break
				}
			}
		})
	}
}

func losePower(t *testing.T, d *disk) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "j")
	acked := 0
	a := newAuthor(1, 1)
	a.owes = true
	j, err := Open(dir, Options{VFS: newDisk(t, d), Sign: a.sign})
	if err == nil {
		acked = work(j, a)
		j.Close()
	}
	k := open(t, dir, Options{VFS: newDisk(t, &disk{}), Sign: a.sign})
	defer k.Close()
	if r := k.Recovery(); r.SetAside != nil {
		t.Fatalf("power lost at step %d: store set aside: %s", d.failAt, r.Reason)
	}
	steps := checkSteps(t, k, a.log, acked)
	if steps > acked+1 {
		t.Fatalf("power lost at step %d: %d steps are there, %d were acknowledged", d.failAt, steps, acked)
	}
	if unread, err := k.Unread(); err != nil || unread["ben"].Items != min(steps, 1) {
		t.Fatalf("power lost at step %d: unread %v, err %v", d.failAt, unread, err)
	}
	found, err := k.Search("message number", 0, 50)
	if err != nil || len(found) != steps {
		t.Fatalf("power lost at step %d: search found %d of %d, err %v", d.failAt, len(found), steps, err)
	}
}

// work commits steps, with indexing and a move of the write-ahead log between, until one fails.
func work(j *Journal, a *author) (acked int) {
	for n := 1; n <= 6; n++ {
		if _, err := j.Commit(step(a, n)); err != nil {
			return acked
		}
		acked = n
		switch n {
		case 3:
			j.moveWAL()
		case 4:
			j.indexSome()
		}
	}
	return acked
}

func TestNothingIsAcknowledgedBeforeItsSync(t *testing.T) {
	dir := tempDir(t)
	d := &disk{}
	j := open(t, dir, Options{VFS: newDisk(t, d)})
	a := newAuthor(1, 1)
	for n := 1; n <= 200; n++ {
		before := d.syncs
		commit(t, j, step(a, n))
		for _, file := range aheadPaths(dir) {
			if left := d.unsynced(file); left > 0 || d.syncs != before+1 {
				t.Fatalf("commit %d returned with %d unsynced writes to %s after %d syncs, want none after one", n, left, file, d.syncs-before)
			}
		}
	}
}

func TestAFailedSyncIsFinal(t *testing.T) {
	dir := tempDir(t)
	d := &disk{}
	j := open(t, dir, Options{VFS: newDisk(t, d)})
	a := newAuthor(1, 1)
	commit(t, j, step(a, 1))
	d.mu.Lock()
	d.syncFail = d.steps + 1
	d.mu.Unlock()
	_, err := j.Commit(step(a, 2))
	if err == nil || errors.Is(err, ErrFull) {
		t.Fatalf("commit with a failing sync: got %v, want a final error", err)
	}
	syncs := d.syncs
	a.seq, a.prev = 3, protocol.Hash{}
	if _, again := j.Commit(Batch{Values: map[string][]byte{"k": nil}}); again == nil || again.Error() != err.Error() {
		t.Errorf("the next commit: got %v, want %v", again, err)
	}
	if d.syncs != syncs {
		t.Errorf("the sync was tried again")
	}
	j.Close()
	checkSteps(t, open(t, dir, Options{}), a.log, 1)
}

// TestNoRoomAtEveryWrite: whichever write finds the disk full, the commit is refused whole, reads go on, and so do
// commits when there is room again.
func TestNoRoomAtEveryWrite(t *testing.T) {
	for fullAt := 1; ; fullAt++ {
		dir := filepath.Join(t.TempDir(), "j")
		d := &disk{}
		j := open(t, dir, Options{VFS: newDisk(t, d)})
		a := newAuthor(1, 1)
		commit(t, j, step(a, 1))
		d.mu.Lock()
		d.fullAt = d.steps + fullAt
		d.mu.Unlock()
		held := *a
		refused := false
		for n := 2; n <= 4; n++ {
			if _, err := j.Commit(step(a, n)); err != nil {
				if !errors.Is(err, ErrFull) {
					t.Fatalf("write %d found no room: got %v, want ErrFull", fullAt, err)
				}
				refused = true
				break
			}
			held = *a
		}
		acked := int(held.seq) / 3
		if got := checkSteps(t, j, a.log, acked); got != acked {
			t.Fatalf("write %d found no room: %d steps, %d acknowledged", fullAt, got, acked)
		}
		if err := j.moveWAL(); err != nil { // as Run does when commits pause; its errors are final
			t.Fatalf("write %d found no room, and moving the write-ahead log: %v", fullAt, err)
		}
		d.heal()
		*a = held
		if _, err := j.Commit(step(a, acked+1)); err != nil {
			t.Fatalf("write %d found no room, then there was: %v", fullAt, err)
		}
		checkSteps(t, j, a.log, acked+1)
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
		if !refused {
			break
		}
	}
}

// commitUntilKilled is the child of the next test: it says each number once its step is acknowledged.
func commitUntilKilled(dir string) {
	a := newAuthor(1, uint64(os.Getpid()))
	a.owes = true
	j, err := Open(dir, Options{Sign: a.sign})
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println(a.log.String())
	for n := 1; ; n++ {
		if _, err := j.Commit(step(a, n)); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		fmt.Println(n)
		if n%50 == 0 {
			j.moveWAL()
		}
	}
}

func TestKilledInMidCommit(t *testing.T) {
	rounds := thorough(20, 5)
	dir := tempDir(t)
	acked := map[protocol.LogID]int{}
	for range rounds {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), "ASTER_TEST_JOURNAL_CHILD="+dir)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		var log protocol.LogID
		last, killAt := 0, 5+rand.IntN(150)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			text := strings.TrimSpace(lines.Text())
			if n, err := strconv.Atoi(text); err == nil {
				last = n
			} else if log, err = protocol.ParseLogID(text); err != nil {
				t.Fatalf("child: %s", text)
			}
			if last == killAt {
				cmd.Process.Kill() // the lines it had written already still come
			}
		}
		cmd.Wait()
		acked[log] = last
		j := open(t, dir, Options{Sign: newAuthor(1, 0).sign})
		for log, n := range acked {
			checkSteps(t, j, log, n)
		}
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
