package node

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/aster-mesh/aster/node/hub"
	"github.com/aster-mesh/aster/node/journal"
	"github.com/aster-mesh/aster/node/mesh"
	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/api"
	"github.com/aster-mesh/aster/roles/worker"
)

// TestATaskWhoseFileIsNowhereIsRefusedByName, and one whose file is here is started with it.
func TestATaskWhoseFileIsNowhereIsRefusedByName(t *testing.T) {
	var n *Node
	r := start(t, func(c *Config) { c.Worker.Command = []string{"true"}; c.probe = func(x *Node) { n = x } })
	r.attach(t, "asker")
	ref, err := n.PutBlob(t.Context(), bytes.NewReader([]byte("the plan")), "")
	if err != nil {
		t.Fatal(err)
	}
	ref.Name = "plan.md"
	env := &protocol.Envelope{ID: newID(), From: "asker", To: n.runner.agent, Intent: protocol.Delegate, Value: []byte(`{"task":"x"}`), Blobs: []protocol.BlobRef{
		ref, {SHA256: ref.SHA256, Bytes: ref.Bytes, Use: "base", Name: "base.bundle"},
	}}
	task, err := n.runner.task(t.Context(), env)
	if err != nil || len(task.Files) != 1 || task.Files[0].Name != "plan.md" {
		t.Fatalf("%+v, %v", task.Files, err)
	}
	lost := protocol.BlobRef{SHA256: "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881", Bytes: 8, Name: "plan.md"}
	n.delegate(t, n, lost)
	var v []byte
	until(t, "a report", func() bool { v = n.reportedOn(t, ""); return v != nil })
	if valueOf[string](v, "outcome") != worker.Failed || valueOf[string](v, "code") != "attachment-unknown" {
		t.Errorf("reported %s", v)
	}
}

// TestAFieldOfTheWrongTypeDropsNoOther: each field of a Delegate is read by itself, and what its sender wants checked is never
// left out in silence.
func TestAFieldOfTheWrongTypeDropsNoOther(t *testing.T) {
	var n *Node
	start(t, func(c *Config) { c.Worker.Command = []string{"true"}; c.probe = func(x *Node) { n = x } })
	for value, want := range map[string]worker.Task{
		`{"task":"x","accept":["make","go vet"],"attempt":2}`:            {Text: "x", Accept: []string{"make", "go vet"}, Attempt: 2},
		`{"task":"x","accept":"make","repo":{"root":"abc"}}`:             {Text: "x", Accept: []string{"make"}, Attempt: 1, Repo: &worker.RepoSpec{Root: "abc"}},
		`{"task":"x","accept":null}`:                                     {Text: "x", Attempt: 1},
		`{"task":7,"text":"y","attempt":"3","repo":5,"accept":["make"]}`: {Text: "y", Accept: []string{"make"}, Attempt: 1},
	} {
		got, err := n.runner.task(t.Context(), &protocol.Envelope{ID: newID(), Intent: protocol.Delegate, Value: []byte(value)})
		if err != nil || got.Text != want.Text || !slices.Equal(got.Accept, want.Accept) || got.Attempt != want.Attempt ||
			(got.Repo == nil) != (want.Repo == nil) || want.Repo != nil && got.Repo.Root != want.Repo.Root {
			t.Errorf("%s: %+v, %v", value, got, err)
		}
	}
	for _, value := range []string{`{"task":"x","accept":{"cmd":"make"}}`, `{"task":"x","accept":[["make"]]}`, `{"task":"x","accept":true}`} {
		var no *protocol.Refusal
		if _, err := n.runner.task(t.Context(), &protocol.Envelope{ID: newID(), Intent: protocol.Delegate, Value: []byte(value)}); !errors.As(err, &no) || no.Code != protocol.CodeWrongType {
			t.Errorf("%s: %v", value, err)
		}
	}
}

// delegate says a Delegate to the runner of another node, of the agent asker here, whether or not its files are here.
func (n *Node) delegate(t *testing.T, to *Node, blobs ...protocol.BlobRef) protocol.MsgID {
	t.Helper()
	id := newID()
	env := protocol.Envelope{ID: id, To: to.runner.agent, Intent: protocol.Delegate, Value: []byte(`{"task":"x"}`), Blobs: blobs}
	n.tell(t, env)
	return id
}

func (n *Node) tell(t *testing.T, env protocol.Envelope) {
	t.Helper()
	if _, err := n.loop.ask(t.Context(), func(token hub.Token) hub.Input { return n.loop.said(hub.Say{As: "asker", Env: env, Token: token}) }); err != nil {
		t.Fatal(err)
	}
}

// reportedOn is the value of the last report on a task, of any if it names none; nil: there is none.
func (n *Node) reportedOn(t *testing.T, task protocol.MsgID) []byte {
	t.Helper()
	all, err := n.store.Messages(journal.Query{Intent: protocol.WorkerReport, Re: task})
	if err != nil {
		t.Fatal(err)
	}
	if len(all) == 0 {
		return nil
	}
	return all[len(all)-1].Envelope.Value
}

// TestARunnerWaitsForFilesThatAMemberMayStillHave: its Delegate stays unread while that member is away, holds up neither another
// nor its own Cancel, and starts when the member is linked again.
func TestARunnerWaitsForFilesThatAMemberMayStillHave(t *testing.T) {
	var na, nb *Node
	a := start(t, func(c *Config) {
		c.Worker.Command, c.Keeper = []string{"true"}, []string{"false"}
		c.probe = func(x *Node) { na = x }
	})
	inv, err := na.Invite(t.Context(), api.InviteRequest{Role: protocol.RoleLocal})
	if err != nil {
		t.Fatal(err)
	}
	b := start(t, func(c *Config) { c.Name, c.Join = "mac-mini", inv.Token; c.probe = func(x *Node) { nb = x } })
	a.attach(t, "asker")
	ref, err := nb.PutBlob(t.Context(), bytes.NewReader([]byte("the plan")), "")
	if err != nil {
		t.Fatal(err)
	}
	ref.Name = "plan.md"
	until(t, "the member is known", func() bool { return na.standingOf(nb.home.peer) == mesh.Inside })
	b.stop()
	until(t, "the member is away", func() bool { return len(na.mesh.Links()) == 0 })
	waits, dropped := na.delegate(t, na, ref), na.delegate(t, na, ref)
	other := na.delegate(t, na)
	started := func(id protocol.MsgID) bool {
		return errors.Is(na.runner.w.Started(id, 1, "asker"), worker.ErrStarted)
	}
	until(t, "the other task is started", func() bool { return started(other) })
	na.tell(t, protocol.Envelope{ID: newID(), To: na.runner.agent, Intent: protocol.Cancel, Re: dropped, Value: []byte(`{}`)})
	until(t, "the second is cancelled", func() bool { return valueOf[string](na.reportedOn(t, dropped), "outcome") == worker.Cancelled })
	if v := na.reportedOn(t, waits); v != nil || started(waits) || started(dropped) {
		t.Errorf("without its file: reported %s, started %t, %t", v, started(waits), started(dropped))
	}
	start(t, func(c *Config) { c.Home, c.Name = b.home, "mac-mini" })
	until(t, "the file has come", func() bool { return started(waits) })
	if started(dropped) {
		t.Error("a cancelled task is started")
	}
}

// TestARunnerLeavesADelegateUnreadWhileTheDiskIsFull: an error that may pass is no end of a task.
func TestARunnerLeavesADelegateUnreadWhileTheDiskIsFull(t *testing.T) {
	var n *Node
	r := start(t, func(c *Config) { c.Worker.Command = []string{"true"}; c.probe = func(x *Node) { n = x } })
	r.attach(t, "asker")
	for name, err := range map[string]error{
		"full":   protocol.Refuse(protocol.CodeDiskFull, "there is no room", ""),
		"broken": errors.New("input/output error"),
	} {
		env := &protocol.Envelope{ID: newID(), From: "asker", To: n.runner.agent, Intent: protocol.Delegate}
		n.runner.gate.Lock()
		settled := n.runner.settle(t.Context(), env, err)
		d := n.runner.delayed[env.ID]
		if settled || d == nil || !d.again.After(time.Now()) {
			t.Errorf("%s: settled %t, %+v", name, settled, d)
		}
		n.runner.gate.Unlock()
		if v := n.reportedOn(t, env.ID); v != nil {
			t.Errorf("%s: reported %s", name, v)
		}
	}
}

// TestMoreTasksThanMayWaitStayInTheInbox: they are no folders, and begin when others have.
func TestMoreTasksThanMayWaitStayInTheInbox(t *testing.T) {
	var n *Node
	gate := filepath.Join(t.TempDir(), "gate")
	r := start(t, func(c *Config) {
		c.Worker.Command = []string{"true"}
		c.Keeper = []string{"sh", "-c", `until [ -e "$0" ]; do sleep 0.2; done`, gate}
		c.probe = func(x *Node) { n = x }
	})
	r.attach(t, "asker")
	const more = 3
	var tasks []protocol.MsgID
	for range waitingMax + 1 + more { // one runs
		tasks = append(tasks, n.delegate(t, n))
	}
	started := func() (count int) {
		for _, id := range tasks {
			if errors.Is(n.runner.w.Started(id, 1, "asker"), worker.ErrStarted) {
				count++
			}
		}
		return count
	}
	until(t, "the queue is full", func() bool { return n.runner.full.Load() && n.runner.w.Waiting() == waitingMax })
	if got := started(); got > len(tasks)-more {
		t.Errorf("%d of %d are started", got, len(tasks))
	}
	if err := os.WriteFile(gate, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	until(t, "the rest begins", func() bool { return started() == len(tasks) })
}
