//go:build unix

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/api"
)

// putBack is the mesh of the backup tests: ada stays, bee is exported; bob has his mail at bee, and bee runs tasks.
type putBack struct {
	t        *testing.T
	ada, bee *node
	ledger   string // one line a start of a task
	acked    []protocol.MsgID
	logged   []protocol.MsgID
	tasks    []protocol.MsgID
	file     string
}

func newPutBack(t *testing.T) *putBack {
	dir := t.TempDir()
	s := &putBack{t: t, ledger: filepath.Join(dir, "ledger"), file: filepath.Join(dir, "bee.tgz")}
	config := fmt.Sprintf("[worker]\ncommand = [\"sh\", \"-c\", %s]\n", quoted(fmt.Sprintf(`echo "$ASTER_TASK_ID" >> %s`, s.ledger)))
	mesh := meshOf(t, map[string]string{"bee": config}, "ada", "bee")
	s.ada, s.bee = mesh[0], mesh[1]
	s.ada.declare("ann")
	s.bee.declare("bob")
	s.bee.declare("dot") // who answers at once would be held back
	for _, id := range []protocol.AgentID{"bob", "bee"} {
		s.ada.knows(id)
	}
	s.bee.knows("ann")
	return s
}

func (s *putBack) send(at *node, from, to protocol.AgentID, intent protocol.Intent, words string) protocol.MsgID {
	s.t.Helper()
	id := protocol.MsgID(fmt.Sprintf("p-%s-%s", at.name, words))
	_, err := at.say(s.t.Context(), api.SendRequest{From: from, To: to, Intent: intent, Value: text(words), MsgID: id})
	must(s.t, err)
	s.logged = append(s.logged, id)
	return id
}

// day is what goes on between two looks: mail for bob, some of it acknowledged, mail from bee, and a task that runs.
func (s *putBack) day(name string) {
	s.t.Helper()
	for i := range 6 {
		id := s.send(s.ada, "ann", "bob", protocol.Request, fmt.Sprintf("%s-%d", name, i))
		s.here(s.bee, id)
		if i%2 == 0 {
			_, err := s.bee.api().Ack(s.t.Context(), api.AckRequest{Agent: "bob", IDs: []string{string(id)}})
			must(s.t, err)
			s.acked = append(s.acked, id)
		}
		s.here(s.ada, s.send(s.bee, "dot", "ann", protocol.Request, fmt.Sprintf("%s-%d", name, i)))
	}
	task := s.send(s.ada, "ann", "bee", protocol.Delegate, name)
	s.tasks = append(s.tasks, task)
	eventually(s.t, patience, "the task is done", func() (bool, string) {
		got, err := s.ada.api().Task(s.t.Context(), string(task))
		return err == nil && got.State == "done", fmt.Sprintf("%+v %v", got, err)
	})
	eventually(s.t, patience, "ada has what bee said", func() (bool, string) {
		a, b := s.ada.mustStatus(), s.bee.mustStatus()
		return a.Journal == b.Journal, fmt.Sprint(a.Records, b.Records)
	})
}

func (s *putBack) here(at *node, id protocol.MsgID) {
	s.t.Helper()
	eventually(s.t, patience, fmt.Sprintf("%s has %s", at.name, id), func() (bool, string) {
		_, err := at.api().Message(s.t.Context(), string(id))
		return err == nil, fmt.Sprint(err)
	})
}

// unread is bob's mail as bee gives it out now.
func (s *putBack) unread() (out []protocol.MsgID) {
	s.t.Helper()
	for _, line := range strings.Split(s.bee.ok("inbox", "--agent", "bob", "--json"), "\n") {
		var item struct{ MsgID protocol.MsgID }
		if line != "" {
			must(s.t, json.Unmarshal([]byte(line), &item))
			out = append(out, item.MsgID)
		}
	}
	return out
}

// TestAHomeThatIsPutBackGoesOn: an export that was made while the node ran, and a home that is gone since. After the import
// the node is the same, what anybody was told is logged is there, what was acknowledged is not given out again, and no task
// runs a second time, those of after the export included.
func TestAHomeThatIsPutBackGoesOn(t *testing.T) {
	s := newPutBack(t)
	s.day("before")
	was := s.bee.mustStatus()
	s.bee.ok("export", s.file)
	if info, err := os.Stat(s.file); err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("the file is for others too: %v %v", info.Mode(), err)
	}
	s.day("after")
	s.bee.kill()
	must(t, os.RemoveAll(s.bee.home))

	s.bee.ok("import", s.file)
	if r := s.bee.run("import", s.file); r.code != 4 || !strings.Contains(r.stderr, "not empty") {
		t.Errorf("a home was written over: %s", r)
	}
	s.bee.up("")
	now := s.bee.mustStatus()
	if now.Peer != was.Peer || now.MeshID != was.MeshID || now.Name != was.Name {
		t.Errorf("it is another node: %s %s, was %s %s", now.Name, now.Peer, was.Name, was.Peer)
	}
	// From the first moment on nothing is given out before the others were asked; what ada said meanwhile comes soon.
	eventually(t, patience, "bob has the 6 that he never acknowledged", func() (bool, string) {
		got := s.unread()
		s.neverAgain(got)
		return len(got) == 6 || t.Failed(), fmt.Sprint(got)
	})
	for _, id := range s.logged {
		s.here(s.bee, id)
		s.here(s.ada, id)
	}
	s.tasks = append(s.tasks, s.send(s.ada, "ann", "bee", protocol.Delegate, "later"))
	eventually(t, patience, "a task of now is done", func() (bool, string) {
		task, err := s.ada.api().Task(t.Context(), string(s.tasks[len(s.tasks)-1]))
		return err == nil && task.State == "done", fmt.Sprintf("%+v %v", task, err)
	})
	s.startedOnce()
	eventually(t, patience, "both show the same", func() (bool, string) {
		a, b := s.ada.mustStatus(), s.bee.mustStatus()
		return a.Journal == b.Journal && a.BoardDigest == b.BoardDigest, fmt.Sprint(a.Records, b.Records)
	})
	if st := s.bee.mustStatus(); len(st.Copies) > 0 {
		t.Errorf("there is no other, and it says %+v", st.Copies)
	}
}

// neverAgain looks at what bob is given: nothing that he acknowledged, and nothing twice.
func (s *putBack) neverAgain(got []protocol.MsgID) {
	s.t.Helper()
	seen := map[protocol.MsgID]bool{}
	for _, id := range got {
		if slices.Contains(s.acked, id) {
			s.t.Errorf("%s was acknowledged and is given out again", id)
		}
		if seen[id] {
			s.t.Errorf("%s is there twice", id)
		}
		seen[id] = true
	}
}

func (s *putBack) startedOnce() {
	s.t.Helper()
	raw, err := os.ReadFile(s.ledger)
	must(s.t, err)
	starts := map[string]int{}
	for _, line := range strings.Fields(string(raw)) {
		starts[line]++
	}
	for _, id := range s.tasks {
		if starts[string(id)] != 1 {
			s.t.Errorf("task %s was started %d times", id, starts[string(id)])
		}
	}
}

// TestAnImportBesideItsOriginal: the original runs on and sleeps through nothing. The one that was started last serves, the
// other writes nothing more, and both persons are told.
func TestAnImportBesideItsOriginal(t *testing.T) {
	s := newPutBack(t)
	s.bee.ok("export", s.file)
	c := newNode(t, "bee", "")
	must(t, os.Remove(c.home))
	c.ok("import", s.file)
	c.up("")
	eventually(t, promised(patience), "both persons are told", func() (bool, string) {
		older, err1 := s.bee.status()
		newer, err2 := c.status()
		ok := len(older.Copies) == 1 && older.Copies[0].This && len(newer.Copies) == 1 && !newer.Copies[0].This
		return ok, fmt.Sprint(older.Copies, err1, newer.Copies, err2)
	})
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	_, err := c.say(ctx, api.SendRequest{From: "bob", To: "ann", Intent: protocol.Request, Value: text("from the import"), MsgID: "p-import"})
	must(t, err)
	s.here(s.ada, "p-import")
}

// TestAnExportThatIsNotWholeIsRefused: cut short or changed, at the command line as a person meets it; nothing is left.
func TestAnExportThatIsNotWholeIsRefused(t *testing.T) {
	n := newNode(t, "ada", "")
	n.up("")
	n.declare("ann")
	n.down()
	file := filepath.Join(t.TempDir(), "ada.tgz")
	n.ok("export", file) // nothing runs
	whole, err := os.ReadFile(file)
	must(t, err)
	bad := func(name string, raw []byte) {
		t.Helper()
		path := filepath.Join(t.TempDir(), "bad.tgz")
		must(t, os.WriteFile(path, raw, 0o600))
		to := filepath.Join(t.TempDir(), "home")
		r := command(t, "", built, "--home", to, "import", path)
		if r.code != 4 || !strings.Contains(r.stderr, "part ") || !strings.Contains(r.stderr, "aster export") {
			t.Errorf("%s: %s", name, r)
		}
		left, err := os.ReadDir(filepath.Dir(to))
		if err != nil || len(left) != 0 {
			t.Errorf("%s: it left %v %v", name, left, err)
		}
	}
	bad("cut in the middle", whole[:len(whole)/2])
	bad("without its end", whole[:len(whole)-20])
	changed := append([]byte{}, whole...)
	changed[len(changed)/2] ^= 0x10
	bad("one bit", changed)
	if r := n.run("export", file); r.code != 1 || !strings.Contains(r.stderr, "exists already") {
		t.Errorf("an export was written over: %s", r)
	}
}
