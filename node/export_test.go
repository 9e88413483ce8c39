package node

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aster-mesh/aster/node/backup"
	"github.com/aster-mesh/aster/node/mesh"
	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/api"
)

// exported is a running node's home as a file.
func exported(t *testing.T, n *Node) []byte {
	t.Helper()
	copied, err := n.CopyStore(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var file bytes.Buffer
	if _, err := Export(t.Context(), n.home.dir, &copied, "test", &file); err != nil {
		t.Fatal(err)
	}
	if left, _ := filepath.Glob(n.home.path(copyPrefix + "*")); len(left) > 0 {
		t.Errorf("the copy of the store is still there: %v", left)
	}
	return file.Bytes()
}

// TestWhatAKilledExportLeftIsRemoved, whatever the folder is called that the home lies in; a file of somebody's stays.
func TestWhatAKilledExportLeftIsRemoved(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a[b")
	if err := os.MkdirAll(filepath.Join(dir, copyPrefix+"1", "journal"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, copyPrefix+"mine"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := sweepCopies(dir); err != nil {
		t.Fatal(err)
	}
	if isThere(filepath.Join(dir, copyPrefix+"1")) || !isThere(filepath.Join(dir, copyPrefix+"mine")) {
		t.Error("what was left is there still, or a file is not")
	}
}

// TestWhatBelongsToTheHomeIsInTheExport, and nothing of the process that runs.
func TestWhatBelongsToTheHomeIsInTheExport(t *testing.T) {
	var n *Node
	r := start(t, func(c *Config) { c.probe = func(x *Node) { n = x } })
	for name, words := range map[string]string{
		"config.toml": "name = \"here\"\n", "agents/bob/outbox.jsonl": "", "local-keys/a.key": "lk-1", "runs/gone": "", "runs/t-1/start.json": "{}",
		"runs/t-1/lock": "", "runs/t-1/work/big": "x", "bundles/b.bundle": "b", "log": "l", "somebody/else": "x",
	} {
		path := filepath.Join(r.home, filepath.FromSlash(name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(words), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("/etc/passwd", filepath.Join(r.home, "agents", "link")); err != nil {
		t.Fatal(err)
	}
	parts, err := backup.Read(bytes.NewReader(exported(t, n)), func(backup.Head) error { return nil }, func(_ string, _ int64, in io.Reader) error {
		_, err := io.Copy(io.Discard, in)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, p := range parts {
		names = append(names, p.Name)
	}
	for _, want := range []string{"node.key", "mesh.key", "mesh.json", "session.key", "config.toml", "agents/bob/outbox.jsonl", "local-keys/a.key",
		"runs/gone", "runs/t-1/start.json", "bundles/b.bundle", "journal/journal.db"} {
		if !slices.Contains(names, want) {
			t.Errorf("%s is not in the export: %v", want, names)
		}
	}
	for _, no := range []string{"lock", "node.json", "log", "runs/t-1/lock", "runs/t-1/work/big", "somebody/else", "agents/link"} {
		if slices.Contains(names, no) {
			t.Errorf("%s is in the export", no)
		}
	}
}

// TestAnImportedHomeAsksTheOthersFirst: with another inside member that does not answer it waits its time, serves then and
// says what may happen; it asks again at its next start. Alone it does not wait.
func TestAnImportedHomeAsksTheOthersFirst(t *testing.T) {
	a, b, na, _ := pair(t, protocol.RoleLocal)
	file := exported(t, na)
	a.stop()
	b.stop()
	home := filepath.Join(t.TempDir(), "home")
	got, err := Import(t.Context(), bytes.NewReader(file), home)
	if err != nil || got.Name != "devbox" || got.Records == 0 {
		t.Fatalf("import: %+v, %v", got, err)
	}
	began := time.Now()
	r := start(t, func(c *Config) { c.Home, c.askTime = home, 500*time.Millisecond })
	if took := time.Since(began); took < 500*time.Millisecond {
		t.Errorf("ready after %s, without asking", took)
	}
	if r.Peer != a.Peer || !slices.ContainsFunc(r.Warnings, func(w string) bool { return strings.Contains(w, "may be given out once more") }) {
		t.Errorf("ready says %+v", r.Ready)
	}
	if !isThere(filepath.Join(home, importedFile)) {
		t.Error("it will not ask again")
	}
	var alone *Node
	start(t, func(c *Config) { c.probe = func(x *Node) { alone = x } })
	home = filepath.Join(t.TempDir(), "home")
	if _, err := Import(t.Context(), bytes.NewReader(exported(t, alone)), home); err != nil {
		t.Fatal(err)
	}
	start(t, func(c *Config) { c.Home, c.askTime = home, time.Hour })
	if isThere(filepath.Join(home, importedFile)) {
		t.Error("a node that is alone still wants to ask")
	}
}

// TestDamagedContentKeepsNobodyWaiting: mail is given out though the one who has an attachment does not come on with it.
func TestDamagedContentKeepsNobodyWaiting(t *testing.T) {
	a, _, na, nb := pair(t, protocol.RoleLocal)
	a.stop()
	asked, over := make(chan struct{}, 100), make(chan struct{})
	t.Cleanup(func() { close(over) })
	nb.mesh.Handle(mesh.Blob, false, func(protocol.PeerID, mesh.Stream) {
		asked <- struct{}{}
		<-over
	})
	sha := strings.Repeat("ab", 32)
	dir := na.home.path("journal", "blobs", sha[:2])
	if err := errors.Join(os.MkdirAll(dir, 0o700), os.WriteFile(filepath.Join(dir, sha+".damaged"), []byte("x"), 0o600),
		writeFile(na.home.path(importedFile), imported{Exported: 1, Repaired: true})); err != nil {
		t.Fatal(err)
	}
	var said safeBuffer
	start(t, func(c *Config) { c.Home, c.askTime, c.Log = a.home, time.Second, said.logger() }) // ready within 20 s
	select {
	case <-asked:
	case <-time.After(20 * time.Second):
		t.Error("nobody was asked for it")
	}
	if log := said.String(); !strings.Contains(log, "the store of this home was damaged") || strings.Contains(log, "was imported") {
		t.Error("a repaired home is said to be something else")
	}
}

// TestTheMeshKeyMayBeElsewhere: it leaves the home whole, comes back into no other mesh's, and a founder that is alone and
// whose certificate is due says what it lacks.
func TestTheMeshKeyMayBeElsewhere(t *testing.T) {
	var n *Node
	r := start(t, func(c *Config) { c.probe = func(x *Node) { n = x } })
	file := filepath.Join(t.TempDir(), "mesh.json")
	broken := errors.New("the stick is gone")
	if _, err := takeMeshKey(r.home, file, func(string) error { return broken }); !errors.Is(err, broken) || !isThere(n.home.path("mesh.key")) || isThere(file) {
		t.Errorf("with a folder that is not on the disk: %v", err)
	}
	if mesh, err := TakeMeshKey(r.home, file); err != nil || mesh != n.home.mesh.Mesh {
		t.Fatalf("took %q, %v", mesh, err)
	}
	if isThere(n.home.path("mesh.key")) {
		t.Error("it is still here")
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file: %v, %v", info.Mode(), err)
	}
	code := func(_ string, err error) string {
		var no *protocol.Refusal
		errors.As(err, &no)
		if no == nil {
			return ""
		}
		return no.Code
	}
	if got := code(TakeMeshKey(r.home, filepath.Join(t.TempDir(), "again"))); got != codeNoMeshKey {
		t.Errorf("a second time: %q", got)
	}
	due := func() (warned bool, ends int64) {
		if err := n.loop.call(t.Context(), func() {
			l := n.loop
			l.now, l.lookAt = l.now.Add(40*24*time.Hour), time.Time{}
			l.lookAtCertificates()
		}); err != nil {
			t.Fatal(err)
		}
		if err := n.loop.call(context.Background(), func() {
			m, _ := n.loop.roster().Member(n.home.peer)
			ends = m.Cert.NotAfter
		}); err != nil {
			t.Fatal(err)
		}
		return slices.ContainsFunc(n.warnings.all(), func(w string) bool { return strings.Contains(w, "aster import --mesh-key") }), ends
	}
	warned, before := due()
	if !warned {
		t.Error("nothing is said of what it lacks")
	}
	other := start(t, nil)
	if got := code(GiveMeshKey(other.home, file)); got != codeWrongMeshKey {
		t.Errorf("another mesh's home took it: %q", got)
	}
	var f api.MeshKeyFile
	raw, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(raw, &f)
	}
	if err != nil {
		t.Fatal(err)
	}
	bad := filepath.Join(t.TempDir(), "bad")
	if err := os.WriteFile(bad, bytes.Replace(raw, []byte(f.Key[:4]), []byte("AAAA"), 1), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := code(GiveMeshKey(r.home, bad)); got != codeWrongMeshKey {
		t.Errorf("a damaged one was taken: %q", got)
	}
	if _, err := GiveMeshKey(r.home, file); err != nil {
		t.Fatal(err)
	}
	if _, after := due(); after <= before {
		t.Errorf("with the key the certificate still ends at %d", after)
	}
}
