package worker

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/roles/worker/keeper"
)

// sent is a file as a delegator gives it.
func sent(name, content string) File {
	sum := sha256.Sum256([]byte(content))
	return File{Name: name, SHA256: hex.EncodeToString(sum[:]), Open: func() (io.ReadCloser, error) {
		return io.NopCloser(strings.NewReader(content)), nil
	}}
}

// TestACommandFindsTheFilesOfItsTask: outside its work tree, under safe names of which none is another, also after the process
// that took the task has gone; and when the task is reported they go.
func TestACommandFindsTheFilesOfItsTask(t *testing.T) {
	t.Parallel()
	s := newStage(t, "files")
	s.cfg.Repo = newRepo(t, "one\n")
	w, err := New(s.cfg)
	if err != nil {
		t.Fatal(err)
	}
	task := s.task("t1")
	task.Files = []File{sent("spec.md", "the spec"), sent("../../spec.md", "another"), sent("..", "nameless"), sent("spec.md", "a third"), sent("empty", "")}
	s.start(w, task)
	if err := w.Start(task); !errors.Is(err, ErrStarted) {
		t.Errorf("started again: %v", err)
	}
	again, _ := s.open()
	r := s.final(again)
	out, err := os.ReadFile(filepath.Join(s.dir(task), keeper.FileOutput))
	want := "attachment-3=nameless\nempty=\nspec-2.md=another\nspec-3.md=a third\nspec.md=the spec\n"
	if r.Outcome != Done || err != nil || string(out) != want {
		t.Fatalf("%+v %v: the command found\n%s", r, err, out)
	}
	if r.Diff != nil {
		t.Errorf("the files are in the result: %+v", r.Diff)
	}
	again.Reported(task.ID, task.Attempt)
	eventually(t, "the files are gone", func() bool {
		_, err := os.Lstat(filepath.Join(s.dir(task), keeper.DirFiles))
		return os.IsNotExist(err)
	})
	s.wantOneStart()
}

func TestATaskWithoutFilesHasNoFolderOfThem(t *testing.T) {
	t.Parallel()
	s := newStage(t, "files")
	w, _ := s.open()
	s.start(w, s.task("t1"))
	if r := s.final(w); r.Outcome != Done || strings.TrimSpace(r.Tail) != "none" {
		t.Errorf("%+v", r)
	}
}

// TestAnAttemptWithoutAllItsFilesIsNotBegun, and may be once they are to be had.
func TestAnAttemptWithoutAllItsFilesIsNotBegun(t *testing.T) {
	t.Parallel()
	s := newStage(t, "files")
	w, _ := s.open()
	task := s.task("t1")
	gone := protocol.Refuse("attachment-unknown", "it is not here", "")
	missing, wrong, torn := sent("b", "b"), sent("b", "b"), sent("b", "b")
	missing.Open = func() (io.ReadCloser, error) { return nil, gone }
	wrong.SHA256 = strings.Repeat("0", 64)
	torn.Open = func() (io.ReadCloser, error) {
		return io.NopCloser(io.MultiReader(strings.NewReader("b"), broken{})), nil
	}
	for name, f := range map[string]File{"attachment-unknown": missing, "wrong-hash": wrong, "": torn} {
		task.Files = []File{sent("a", "a"), f}
		err := w.Start(task)
		var no *protocol.Refusal
		if errors.As(err, &no); err == nil || name != "" && (no == nil || no.Code != name) || errors.Is(err, ErrStarted) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := os.Lstat(s.dir(task)); !os.IsNotExist(err) {
			t.Errorf("%s: the folder is there: %v", name, err)
		}
	}
	task.Files = task.Files[:1]
	s.start(w, task)
	if r := s.final(w); r.Outcome != Done || !strings.Contains(r.Tail, "a=a") {
		t.Errorf("%+v", r)
	}
	s.wantOneStart()
}

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, errors.New("broken") }
