package node

import (
	"bytes"
	"testing"

	"github.com/aster-mesh/aster/node/journal"
	"github.com/aster-mesh/aster/protocol"
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
	env.Blobs[0].SHA256 = "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881"
	n.runner.start(t.Context(), env)
	all, err := n.store.Messages(journal.Query{Intent: protocol.WorkerReport})
	if err != nil || len(all) != 1 {
		t.Fatalf("%d reports, %v", len(all), err)
	}
	v := all[0].Envelope.Value
	if valueOf[string](v, "outcome") != worker.Failed || valueOf[string](v, "code") != "attachment-unknown" {
		t.Errorf("reported %s", v)
	}
}
