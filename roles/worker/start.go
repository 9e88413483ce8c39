package worker

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/roles/worker/keeper"
)

// attempt is one folder with what this process knows of it.
type attempt struct {
	// Fixed at creation.
	name, dir string
	order     keeper.Order

	// Guarded by Worker.mu.
	begun     bool // it was launched before this process
	cancelled bool
	ended     bool // its final report is made

	// Owned by attend.
	told time.Time // last progress report

	// Set by Worker.next, owned by attend. stop is called by Cancel too, under Worker.mu.
	ctx  context.Context
	stop context.CancelCauseFunc
}

// errCancelled interrupts the preparation of an attempt.
var errCancelled = errors.New("cancelled")

// Start accepts one attempt. When it returns nil the attempt is on stable storage and will be run once and reported, by
// this process or a later one, as soon as a slot is free. It returns ErrStarted if the attempt was accepted before, a
// *protocol.Refusal if its id is in use by another sender's task or cannot be a task's, or if a file of it is not what it
// should be, and any other error, also of Config.Open, if nothing was accepted. It may be called before Run.
func (w *Worker) Start(t Task) error {
	if err := protocol.CheckMsgID(t.ID); err != nil || t.Attempt < 1 {
		return protocol.Refuse(protocol.CodeBadFrame, "a task needs an id and an attempt from 1", "")
	}
	name := folderName(t.ID, t.Attempt)
	a := &attempt{name: name, dir: filepath.Join(w.cfg.Dir, name), order: w.order(t)}
	w.starting.Lock() // two calls for one attempt must not both write
	defer w.starting.Unlock()
	if err := w.before(name, t.From); err != nil {
		return err
	}
	err := w.checkFiles(t.Files)
	if err == nil {
		err = a.accept(t.Text)
	}
	if err != nil {
		return fmt.Errorf("accept task: %w", err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.attempts[name] = a
	w.queue = append(w.queue, a)
	w.poke()
	return nil
}

// Started returns what Start would where it does not look at the rest of the task, or nil: this attempt is a new one.
func (w *Worker) Started(id protocol.TaskID, attemptNo int, from protocol.AgentID) error {
	return w.before(folderName(id, attemptNo), from)
}

// before says that an attempt was started before, or nil.
func (w *Worker) before(name string, from protocol.AgentID) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.gone.has(name) {
		return ErrStarted
	}
	var before keeper.Order
	switch err := keeper.ReadJSON(filepath.Join(w.cfg.Dir, name), keeper.FileStart, &before); {
	case err == nil && before.From != from:
		return protocol.Refuse(protocol.CodeMsgIDReused, "another agent's task has this id", "send it under a new id")
	case err == nil:
		return ErrStarted
	case !errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%w (%w)", ErrStarted, err) // there was one; what it was is damaged
	}
	return nil
}

func (w *Worker) order(t Task) keeper.Order {
	// An empty command is none: it would pass without having checked anything.
	accept := slices.DeleteFunc(slices.Clone(t.Accept), protocol.Blank)
	o := keeper.Order{
		Task: t.ID, Attempt: t.Attempt, From: t.From, To: t.To,
		Command: w.cfg.Command, Accept: accept, Env: t.Env, Files: len(t.Files), Attached: t.Files,
		Wall: t.Wall, OutputBytesMax: w.cfg.OutputBytesMax, TokensMax: w.cfg.Tokens,
		Author: w.cfg.AgentName, Accepted: time.Now(),
	}
	if o.Wall <= 0 || o.Wall > w.cfg.Wall {
		o.Wall = w.cfg.Wall // the owner's limit is the upper one
	}
	if o.Author == "" {
		o.Author = string(t.To)
	}
	if t.Repo != nil {
		o.Repo = &keeper.Repository{Root: t.Repo.Root, Head: t.Repo.Head, Name: t.Repo.Name, Bundle: t.Repo.Bundle}
		if o.Repo.Bundle != "" {
			if abs, err := filepath.Abs(o.Repo.Bundle); err == nil {
				o.Repo.Bundle = abs
			}
		}
	}
	return o
}

// accept writes the folder; the start file comes last and makes it count.
func (a *attempt) accept(text string) error {
	if err := os.Mkdir(a.dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	if err := os.RemoveAll(filepath.Join(a.dir, keeper.DirFiles)); err != nil {
		return err // of an earlier call that was cut off, by a version that put them there so early
	}
	if err := keeper.WriteFile(a.dir, keeper.FileText, []byte(text), true); err != nil {
		return err
	}
	if err := keeper.SyncDir(filepath.Dir(a.dir)); err != nil {
		return err
	}
	return keeper.WriteJSON(a.dir, keeper.FileStart, a.order, true)
}

// Cancel ends every attempt of a task that is queued or running here; the final report says cancelled, or how it ended if
// it ended first. It returns ErrNotRunning if there is none. The wish is on disk when Cancel returns nil.
func (w *Worker) Cancel(id protocol.TaskID) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	err := ErrNotRunning
	for _, a := range w.attempts {
		if a.order.Task != id || a.ended {
			continue
		}
		if e := keeper.WriteFile(a.dir, keeper.FileCancel, nil, true); e != nil {
			return fmt.Errorf("cancel task: %w", e)
		}
		a.cancelled = true
		if a.stop != nil {
			a.stop(errCancelled)
		}
		err = nil
	}
	w.poke()
	return err
}

var plainID = regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)

// folderName is safe on every file system, also where case does not count: a UUID as it stands, of any other id what
// people may recognise and a hash.
func folderName(id protocol.TaskID, attempt int) string {
	name := string(id)
	if !plainID.MatchString(name) {
		sum := sha256.Sum256([]byte(name))
		name = strings.Map(func(r rune) rune {
			if (r >= 'a' && r <= 'z') || (r >= '0' && r <= '9') {
				return r
			}
			return '_'
		}, strings.ToLower(name))
		name = "x" + name[:min(len(name), 40)] + "." + hex.EncodeToString(sum[:8])
	}
	return fmt.Sprintf("%s-%d", name, attempt)
}
