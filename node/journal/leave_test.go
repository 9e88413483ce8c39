package journal

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aster-mesh/aster/protocol"
)

// aged puts content that came two days ago.
func aged(t testing.TB, j *Journal, content []byte) string {
	t.Helper()
	ref, err := j.PutBlob(t.Context(), bytes.NewReader(content), "")
	if err != nil {
		t.Fatal(err)
	}
	path, _ := j.blobPath(ref.SHA256)
	old := time.Now().Add(-48 * time.Hour)
	if err := os.Chtimes(path, old, old); err != nil {
		t.Fatal(err)
	}
	return ref.SHA256
}

func naming(n int, sha string) protocol.Envelope {
	env := note(n)
	env.Blobs = []protocol.BlobRef{{SHA256: sha, Bytes: 1}}
	return env
}

func TestContentLeavesAndItsRecordsStay(t *testing.T) {
	dir := tempDir(t)
	j := open(t, dir, Options{})
	sha := aged(t, j, []byte("over"))
	a := newAuthor(1, 1)
	first := a.say(naming(1, sha))
	commit(t, j, Batch{Entries: []Entry{first}, Inbox: []InboxPut{{"ben", a.log, 1}}})
	said := note(2)
	said.Value = []byte(`{"text":"it is ` + sha + `"}`) // names nothing, speaks of it
	commit(t, j, Batch{Entries: []Entry{a.say(said)}})
	named, damaged, err := j.Namings(t.Context(), sha)
	if err != nil || damaged || len(named) != 1 || named[0].Seq != 1 || !named[0].Unread {
		t.Fatalf("named by %v, damaged %v, err %v", named, damaged, err)
	}
	commit(t, j, Batch{Tiers: []TierPut{{Log: a.log, Seq: 1, Tier: protocol.Processed, Agent: "ben", At: a.at}}})
	if named, _, err = j.Namings(t.Context(), sha); err != nil || len(named) != 1 || named[0].Unread || len(named[0].Tiers) != 1 {
		t.Fatalf("once processed: %v, %v", named, err)
	}
	before, digest := time.Now().Add(-time.Hour), must(j.Digest())
	if all := must(j.Contents(before)); len(all) != 1 || all[0].SHA256 != sha || all[0].Bytes != 4 {
		t.Errorf("contents %v", all)
	}
	reader, _, err := j.OpenBlob(sha)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	if gone, err := j.LetGo(sha, before); err != nil || !gone {
		t.Fatalf("gone %v, err %v", gone, err)
	}
	if got, err := io.ReadAll(reader); err != nil || string(got) != "over" {
		t.Errorf("whoever was reading it has %q, %v", got, err)
	}
	at, left := j.LeftAt(sha)
	if j.HasBlob(sha) || !left || time.Since(at) > time.Minute || j.blobBytes.Load() != 0 || must(j.Digest()) != digest {
		t.Errorf("here %v, left %v at %s, %d bytes counted", j.HasBlob(sha), left, at, j.blobBytes.Load())
	}
	if gone, err := j.LetGo(sha, before); err != nil || gone {
		t.Errorf("again: %v, %v", gone, err)
	}
	j.Close()
	j = open(t, dir, Options{})
	if rs, err := j.Range(a.log, 1, 1<<20); err != nil || len(rs) != 2 || rs[0].Hash() != first.Record.Hash() {
		t.Errorf("its records: %d, %v", len(rs), err)
	}
	if _, left := j.LeftAt(sha); !left {
		t.Error("after a start it is not known that it left")
	}
	if again := aged(t, j, []byte("over")); again != sha || !j.HasBlob(sha) || len(markFiles(t, dir)) > 0 {
		t.Errorf("given again: here %v, marks %v", j.HasBlob(sha), markFiles(t, dir))
	}
	if err := j.MarkLeft(sha); err != nil || !j.HasBlob(sha) || len(markFiles(t, dir)) > 0 {
		t.Errorf("marking what is here: %v, marks %v", err, markFiles(t, dir))
	}
	other := strings.Repeat("ab", 32)
	if err := j.MarkLeft(other); err != nil {
		t.Fatal(err)
	}
	if _, left := j.LeftAt(other); !left || j.HasBlob(other) {
		t.Error("what left elsewhere is not marked")
	}
	for _, bad := range []string{"", "../x", strings.Repeat("a", 63)} {
		if _, err := j.LetGo(bad, time.Now()); err == nil || j.MarkLeft(bad) == nil {
			t.Errorf("%q was let go or marked", bad)
		}
		if _, left := j.LeftAt(bad); left {
			t.Errorf("%q has left", bad)
		}
	}
}

// TestWhatIsKeptAgainStays: between the look and the leaving somebody may write a record that names it.
func TestWhatIsKeptAgainStays(t *testing.T) {
	j := open(t, tempDir(t), Options{})
	sha := aged(t, j, []byte("wanted"))
	before := time.Now().Add(-time.Hour)
	if !j.KeepBlob(sha) {
		t.Fatal("not kept")
	}
	if gone, err := j.LetGo(sha, before); err != nil || gone || !j.HasBlob(sha) {
		t.Errorf("gone %v, err %v, here %v", gone, err, j.HasBlob(sha))
	}
}

// TestWhoGaveItGivesItAgain: once content has left, having given it counts no more.
func TestWhoGaveItGivesItAgain(t *testing.T) {
	j := open(t, tempDir(t), Options{})
	content := []byte("given in pieces")
	sha := hashOf(content)
	give := func() {
		t.Helper()
		if row, err := j.BeginPart("w", sha, int64(len(content))); err != nil || row.Have != 0 {
			t.Fatalf("%+v, %v", row, err)
		}
		if _, err := j.AddPart("w", sha, 0, content); err != nil {
			t.Fatal(err)
		}
		if row, err := j.FinishPart(t.Context(), "w", sha); err != nil || !row.Whole {
			t.Fatalf("%+v, %v", row, err)
		}
	}
	give()
	if gone, err := j.LetGo(sha, time.Now().Add(time.Hour)); err != nil || !gone {
		t.Fatalf("gone %v, err %v", gone, err)
	}
	if row, ok := j.PartOf("w", sha); ok {
		t.Errorf("it counts as given: %+v", row)
	}
	give()
	if !j.HasBlob(sha) {
		t.Error("given again it is not here")
	}
}

// TestDamagedRecordsMayNameAnything: as long as one cannot be read it is not known whether it names the content.
func TestDamagedRecordsMayNameAnything(t *testing.T) {
	dir := tempDir(t)
	j := open(t, dir, Options{})
	sha := aged(t, j, []byte("perhaps"))
	a := newAuthor(1, 1)
	for n := range 3 {
		commit(t, j, Batch{Entries: []Entry{a.say(naming(n+1, sha))}})
	}
	if err := j.fill(true); err != nil {
		t.Fatal(err)
	}
	j.fmu.Lock()
	err := j.writer.exec("UPDATE records SET body=X'00' WHERE pos=2")
	j.fmu.Unlock()
	if err != nil {
		t.Fatal(err)
	}
	if _, damaged, err := j.Namings(t.Context(), sha); err != nil || !damaged {
		t.Errorf("damaged %v, err %v", damaged, err)
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func markFiles(t testing.TB, dir string) []string {
	t.Helper()
	marks, err := filepath.Glob(filepath.Join(dir, "blobs", "*", "*"+leftEnding))
	if err != nil {
		t.Fatal(err)
	}
	return marks
}

const childLeaves = "ASTER_TEST_JOURNAL_LEAVE" // DIR SEED STEP

func contentOf(seed uint64, n int) []byte {
	return bytes.Repeat(fmt.Appendf(nil, "content %d of seed %d. ", n, seed), 1+n%7*200)
}

// leaveUntilKilled is the child of the next test: it keeps content, commits records that name it, lets older content go and
// says each step, until it kills itself before the change of the disk that it was told.
func leaveUntilKilled(args string) {
	var dir string
	var seed uint64
	var killAt int
	if _, err := fmt.Sscan(args, &dir, &seed, &killAt); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	steps := 0
	j, err := Open(dir, Options{beforeStep: func(string) {
		if steps++; steps == killAt {
			self, _ := os.FindProcess(os.Getpid())
			self.Kill()
			select {}
		}
	}})
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	dice := rand.New(rand.NewPCG(seed, 1))
	a := newAuthor(1, seed)
	fmt.Println("log", a.log.String())
	var here []string
	for n := 1; ; n++ {
		ref, err := j.PutBlob(context.Background(), bytes.NewReader(contentOf(seed, n)), "")
		if err == nil {
			_, err = j.Commit(Batch{Entries: []Entry{a.say(naming(n, ref.SHA256))}})
		}
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		fmt.Println("put", ref.SHA256)
		here = append(here, ref.SHA256)
		for range dice.IntN(3) {
			at := dice.IntN(len(here))
			fmt.Println("try", here[at])
			if _, err := j.LetGo(here[at], time.Now().Add(time.Hour)); err != nil {
				fmt.Println(err)
				os.Exit(1)
			}
			fmt.Println("left", here[at])
		}
	}
}

// TestKilledWhileContentLeaves: wherever the process ends, no record is lost, content is whole or gone with a mark, and
// nothing goes that was not to go.
func TestKilledWhileContentLeaves(t *testing.T) {
	var dir string
	var was map[string]string // hash: put, try, left
	var logs map[protocol.LogID]int
	for seed := range uint64(thorough(200, 20)) {
		if seed%20 == 0 { // each look is at all of it
			dir, was, logs = tempDir(t), map[string]string{}, map[protocol.LogID]int{}
		}
		dice := rand.New(rand.NewPCG(seed, 2))
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s %d %d", childLeaves, dir, seed, 1+dice.IntN(40)))
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		var log protocol.LogID
		for lines := bufio.NewScanner(out); lines.Scan(); {
			word, rest, _ := strings.Cut(lines.Text(), " ")
			switch word {
			case "log":
				log = must(protocol.ParseLogID(rest))
			case "put":
				logs[log]++
				was[rest] = word
			case "try":
				if was[rest] != "left" {
					was[rest] = word
				}
			case "left":
				was[rest] = word
			default:
				t.Fatalf("seed %d: child: %s", seed, lines.Text())
			}
		}
		cmd.Wait()
		j := open(t, dir, Options{})
		checkLeft(t, j, seed, was, logs)
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func checkLeft(t *testing.T, j *Journal, seed uint64, was map[string]string, logs map[protocol.LogID]int) {
	t.Helper()
	for log, n := range logs {
		rs, err := j.Range(log, 1, 64<<20)
		if err != nil || len(rs) < n || len(rs) > n+1 {
			t.Fatalf("seed %d: %d records of %s, %d were acknowledged, err %v", seed, len(rs), log, n, err)
		}
		if _, err := protocol.VerifyCommits(rs, protocol.Hash{}); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
	sum := int64(0)
	for _, path := range j.blobPaths() {
		if ok, err := j.checkBlob(path); err != nil || !ok {
			t.Fatalf("seed %d: content %s is whole: %v, %v", seed, filepath.Base(path), ok, err)
		}
		fi, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		sum += fi.Size()
	}
	if got := j.blobBytes.Load(); got != sum {
		t.Fatalf("seed %d: %d bytes counted, %d are there", seed, got, sum)
	}
	for sha, word := range was {
		_, left := j.LeftAt(sha)
		if here := j.HasBlob(sha); here == left || word == "put" && !here || word == "left" && here {
			t.Fatalf("seed %d: %s of %s: here %v, left %v", seed, word, sha, here, left)
		}
	}
}
