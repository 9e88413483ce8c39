package sim

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// mutation is one mistake, planted by replacing texts that stand once in their files.
type mutation struct {
	what  string
	edits []edit
	runs  string // the test that must find it; empty: TestSeeds
}

type edit struct{ file, from, to string }

// mutations are mistakes that the simulation must find. Those in node/sim are mistakes of the shell, whose twin is there.
var mutations = []mutation{
	{"sent before the sync: consequences leave while the commit is still under way", []edit{
		{"node/sim/process.go", "	p.n.reaches(atWrite)\n", "	p.n.reaches(atWrite)\n	for _, o := range rd.Out {\n		p.out(o)\n	}\n	rd.Out = nil\n"}}, ""},
	{"receipt before the inbox: persisted is said of what is in no inbox", []edit{
		{"node/hub/deliver.go", "	c.ready.Inbox = append(c.ready.Inbox, InboxPut{a.bind.Agent, ref})\n", ""}}, ""},
	{"repeats forgotten at a restart: what the journal knows of an id is not asked", []edit{
		{"node/hub/say.go", "	if seen != nil {\n		return *seen, true\n	}\n", ""}}, ""},
	{"a log goes on after a restore: a start is called as the one before", []edit{
		{"node/sim/boot.go", "protocol.Start{At: clock + 1, Rand: w.rng.Uint64()}", "protocol.Start{At: protocol.HLCAt(epoch), Rand: w.rng.Uint64()*0 + uint64(n.i)}"}}, ""},
	{"a cut ignored: records beyond it are taken", []edit{
		{"node/replica/replica.go", "	l.end = min(l.cut, l.fork)\n	l.author.sumOK = false\n	r.look()\n", "	l.author.sumOK = false\n	r.look()\n"}}, ""},
	{"a gap applied: a range is taken above what is missing", []edit{
		{"node/replica/offer.go", "	case first > held+1:\n		return r.gap(now, peer, id, last)\n	default:\n		return r.take(now, peer, id, recs[held+1-first:], hashAt)", "	case first > held+1:\n		return r.take(now, peer, id, recs, hashAt)\n	default:\n		return r.take(now, peer, id, recs[held+1-first:], hashAt)"}}, ""},
	{"decided at arrival: rights are judged again where a message arrives", []edit{
		{"node/hub/apply.go", "	if role.Inside() {\n		return nil\n	}\n", ""}}, ""},
	{"receipts by everybody: a node that is not the home speaks for the recipient", []edit{
		{"node/hub/apply.go", "	a := c.takes(env.To)\n	if a == nil {\n		return\n	}\n", "	a := c.takes(env.To)\n	if a == nil {\n		c.receipts.add(protocol.Persisted, env.To, \"\", c.receiptScope(ref), ref)\n		return\n	}\n"}}, ""},
	{"replicated before the peer's sync: what was taken is stated at once", []edit{
		{"node/replica/ready.go", "Mark{Log: l.id, Seq: l.limit()}", "Mark{Log: l.id, Seq: min(l.takenSeq, l.end)}"},
		{"node/replica/offer.go", "		k.takenAt = now\n", "		k.takenAt = now\n		k.confirm(l, now)\n"},
		{"node/sim/process.go", "	p.n.reaches(atWrite)\n", "	p.replicate()\n	p.n.reaches(atWrite)\n"}}, ""},
	{"MaySee skipped: whatever a node holds it passes on", []edit{
		{"node/replica/link.go", "	return k.inside || k.peer == id.Peer || r.see(k.peer, id.Scope)\n", "	return true\n"}}, ""},
	{"read is processed: a delivery counts as the agent's own word", []edit{
		{"node/hub/deliver.go", "		if l.tries == 1 && !l.Given {\n", "		c.receipts.add(protocol.Processed, a.bind.Agent, \"\", c.receiptScope(ref), ref)\n		if l.tries == 1 && !l.Given {\n"}}, ""},
	{"acknowledgements not kept: an inbox begins anew with what was processed", []edit{
		{"node/sim/boot.go", "p.n.disk.Inbox(agent, journal.InboxQuery{})", "p.n.disk.Inbox(agent, journal.InboxQuery{All: true})"}}, ""},
	{"comparison believes too much: a log that a peer does not name counts as held", []edit{
		{"node/replica/compare.go", "	r.advance(now, k, h, m.Seq)\n	if h.has > m.Seq", "	r.advance(now, k, h, max(m.Seq, limit))\n	if h.has > m.Seq"}}, ""},
	{"a checkpoint of the future: the board's checkpoint claims one record more than it folded", []edit{
		{"node/sim/process.go", "SaveCheckpoint(boardCheckpoint, p.pos, p.board.Encode())", "SaveCheckpoint(boardCheckpoint, p.pos+1, p.board.Encode())"}}, ""},
	{"a lease by one clock: a holder counts on the calendar alone", []edit{
		{"protocol/moment.go", "	return max(up, wall)\n", "	return wall + 0*up\n"},
		{"protocol/moment.go", "	if up < 0 || wall < up-clockSlack {\n		return Forever\n	}\n", ""}}, claimsTest},
	{"a term's cut ignored: what a former main decided beyond it counts", []edit{
		{"board/claim.go", "	ok := at.seq <= s.roster.DecisionBound(t, at.log)\n", "	ok := true\n"}}, claimsTest},
	{"a new main without waiting: it grants what a silent member may hold", []edit{
		{"roles/claim/granter.go", "	if len(g.silent) == 0 {\n		return 0\n	}\n	return max(", "	return 0 * max("}}, claimsTest},
	{"a new start overtakes the one before: its log is sent to a peer that lacks the end of that", []edit{
		{"node/replica/order.go", "	if h.sent > 0 {\n", "	if h.sent >= 0 {\n"}}, orderTest},
	{"a base with what is owed: an open task lies below it", []edit{
		{"roles/cut/bases.go", "	case owed.Why != \"\":\n		r.owed[log] = true\n", "	case owed.Why == \"-\":\n"}}, agedTest},
	{"a false word holds: one member's word is a base, whatever was answered", []edit{
		{"board/bases.go", "w.holds = ok && a.Digest == w.Digest && a.Fold == w.Fold; w.holds", "w.holds = ok || a.Digest == \"\"; w.holds"}}, agedTest},
}

const (
	claimsTest = "TestNothingIsHeldTwice"
	orderTest  = "TestOneNodesWordsComeInItsOrder"
	agedTest   = "TestRecordsLeaveWholeMeshes"
)

const (
	mutationSeeds = 500
	mutationsFile = "MUTATIONS.md"
)

var brokenBy = regexp.MustCompile(`seed (\d+) breaks "([^"]+)"`)

// TestMutations plants each mistake in a copy of the repository, runs the simulation there, and writes what caught it.
// It takes minutes, so it runs when asked: make mutations.
func TestMutations(t *testing.T) {
	if os.Getenv("ASTER_MUTATIONS") == "" {
		t.Skip("make mutations runs it")
	}
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	copied := filepath.Join(t.TempDir(), "aster")
	copyModule(t, root, copied)
	var table strings.Builder
	for i, m := range mutations {
		undo := plant(t, copied, m)
		begun := time.Now()
		seed, rule := caught(t, copied, m.runs)
		undo()
		if seed == "" {
			t.Errorf("not caught by %d seeds: %s", mutationSeeds, m.what)
			seed, rule = "none", "–"
		}
		t.Logf("%s: seed %s, %v", m.what, seed, time.Since(begun).Round(time.Second))
		fmt.Fprintf(&table, "| %d | %s | %s | %s | %s |\n", i+1, m.what, files(m), seed, rule)
	}
	head := "# Mistakes that the simulation finds\n\n`make mutations` plants each of these in a copy of the repository, runs at most " +
		fmt.Sprint(mutationSeeds) + " seeds from seed 1 on\n(of runs about claims or order alone where the mistake is about them), and writes this table. The files under `node/sim` are the shell's twin: there a mistake stands for the same one in package `node`.\n\n" +
		"| | mistake | planted in | first seed | the promise that it breaks |\n|---|---|---|---|---|\n"
	if t.Failed() {
		return
	}
	if err := os.WriteFile(mutationsFile, []byte(head+table.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}

func files(m mutation) string {
	var out []string
	for _, e := range m.edits {
		if name := "`" + e.file + "`"; !strings.Contains(strings.Join(out, " "), name) {
			out = append(out, name)
		}
	}
	return strings.Join(out, ", ")
}

// copyModule copies what go test needs.
func copyModule(t *testing.T, from, to string) {
	t.Helper()
	err := filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(from, path)
		if d.IsDir() {
			if name := d.Name(); name == ".git" || name == "node_modules" || rel == ".ci/cache" {
				return filepath.SkipDir
			}
			return os.MkdirAll(filepath.Join(to, rel), 0o755)
		}
		if ext := filepath.Ext(path); ext != ".go" && ext != ".mod" && ext != ".sum" && ext != ".txt" {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(to, rel), text, 0o644)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// plant makes the mistake; undo takes it back.
func plant(t *testing.T, root string, m mutation) (undo func()) {
	t.Helper()
	before := map[string][]byte{}
	for _, e := range m.edits {
		path := filepath.Join(root, e.file)
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if n := bytes.Count(text, []byte(e.from)); n != 1 {
			t.Fatalf("%s: the text to replace stands %d times in %s: %q", m.what, n, e.file, e.from)
		}
		if before[path] == nil {
			before[path] = text
		}
		if err := os.WriteFile(path, bytes.Replace(text, []byte(e.from), []byte(e.to), 1), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return func() {
		for path, text := range before {
			if err := os.WriteFile(path, text, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// caught runs the seeds and says which one found it.
func caught(t *testing.T, root, runs string) (seed, rule string) {
	t.Helper()
	if runs == "" {
		runs = "TestSeeds"
	}
	cmd := exec.Command("go", "test", "./node/sim", "-run", "^"+runs+"$", "-count=1", "-args", "-seeds", fmt.Sprint(mutationSeeds), "-brief")
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "ASTER_MUTATIONS=", "GOFLAGS=-vet=off")
	out, err := cmd.CombinedOutput()
	if err == nil {
		return "", ""
	}
	found := brokenBy.FindSubmatch(out)
	if found == nil {
		t.Fatalf("the mutant does not run: %s", out)
	}
	return string(found[1]), string(found[2])
}
