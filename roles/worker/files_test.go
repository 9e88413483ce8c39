package worker

import (
	"context"
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

// send makes content one that tasks of this stage may name.
func (s *stage) send(name, content string) File {
	sum := sha256.Sum256([]byte(content))
	f := File{Name: name, SHA256: hex.EncodeToString(sum[:]), Bytes: int64(len(content))}
	s.offer(f, func(bool) (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(content)), nil })
	return f
}

// offer says how a file is opened from now on; of a stage whose worker runs already too.
func (s *stage) offer(f File, open func(accepting bool) (io.ReadCloser, error)) {
	s.contents.Store(f.SHA256, open)
	s.cfg.Open = func(_ context.Context, f File, accepting bool) (io.ReadCloser, error) {
		open, ok := s.contents.Load(f.SHA256)
		if !ok {
			return nil, errors.New("nobody offered it")
		}
		return open.(func(bool) (io.ReadCloser, error))(accepting)
	}
}

// TestACommandFindsTheFilesOfItsTask: outside its work tree, under safe names of which none is another, also after the process
// that took the task has gone; and when the task is reported they go.
func TestACommandFindsTheFilesOfItsTask(t *testing.T) {
	t.Parallel()
	s := newStage(t, "files")
	s.cfg.Repo = newRepo(t, "one\n")
	task := s.task("t1")
	task.Files = []File{s.send("spec.md", "the spec"), s.send("../../spec.md", "another"), s.send("..", "nameless"), s.send("spec.md", "a third"), s.send("empty", "")}
	w, err := New(s.cfg)
	if err != nil {
		t.Fatal(err)
	}
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
	task := s.task("t1")
	gone := protocol.Refuse("attachment-unknown", "it is not here", "")
	present, missing, wrong, torn := s.send("a", "a"), s.send("b", "b"), s.send("b", "c"), s.send("b", "d")
	s.offer(missing, func(bool) (io.ReadCloser, error) { return nil, gone })
	s.offer(wrong, func(bool) (io.ReadCloser, error) { return io.NopCloser(strings.NewReader("b")), nil })
	s.offer(torn, func(bool) (io.ReadCloser, error) {
		return io.NopCloser(io.MultiReader(strings.NewReader("d"), broken{})), nil
	})
	w, _ := s.open()
	for name, f := range map[string]File{"attachment-unknown": missing, "wrong-hash": wrong, "": torn} {
		task.Files = []File{present, f}
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

// TestFilesOfAQueueAreNotCopiedBeforeTheirSlot: a queue has no bound, and what waits in it holds no disk. In its slot an attempt
// gets its files, outlasts an error that may pass, and where they are gone it ends by name without its command.
func TestFilesOfAQueueAreNotCopiedBeforeTheirSlot(t *testing.T) {
	t.Parallel()
	s := newStage(t, "files")
	kept, lost := s.send("a", "a"), s.send("b", "b")
	w, err := New(s.cfg)
	if err != nil {
		t.Fatal(err)
	}
	one, two := s.task("t1"), s.task("t2")
	one.Files, two.Files = []File{kept}, []File{kept, lost}
	s.start(w, one)
	s.start(w, two)
	for _, task := range []Task{one, two} {
		if _, err := os.Lstat(filepath.Join(s.dir(task), keeper.DirFiles)); !os.IsNotExist(err) {
			t.Errorf("files of %s, which waits, are on the disk: %v", task.ID, err)
		}
	}
	full := true // of the first attempt's slot only: there is one
	s.offer(kept, func(bool) (io.ReadCloser, error) {
		if full {
			full = false
			return nil, errors.New("no room")
		}
		return io.NopCloser(strings.NewReader("a")), nil
	})
	s.offer(lost, func(bool) (io.ReadCloser, error) {
		return nil, protocol.Refuse("attachment-unknown", "attachment b is not here", "")
	})
	again, _ := s.open() // by a later process
	if r := s.final(again); r.Task != one.ID || r.Outcome != Done || !strings.Contains(r.Tail, "a=a") {
		t.Errorf("%+v", r)
	}
	r := s.final(again)
	if r.Task != two.ID || r.Outcome != Failed || r.Refusal == nil || r.Refusal.Code != "attachment-unknown" || !r.Started.IsZero() {
		t.Errorf("%+v", r)
	}
	if _, err := os.Lstat(filepath.Join(s.dir(two), keeper.DirFiles)); !os.IsNotExist(err) {
		t.Errorf("files of an attempt that never began are on the disk: %v", err)
	}
	s.wantOneStart()
}

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, errors.New("broken") }
