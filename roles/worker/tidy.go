package worker

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/roles/worker/keeper"
	"github.com/aster-mesh/aster/roles/worker/repo"
)

const (
	// foldersKept is how many reported attempts keep their folder.
	foldersKept = 50
	// outputKept is the largest whole output that a reported attempt keeps; of a larger one the tail stays.
	outputKept = 1 << 20
	// goneFile names the attempts whose folder is gone, one a line with the second in which it went: they were started,
	// and must not be again.
	goneFile = "gone"
	// goneLife outlasts every message that could ask for such an attempt again.
	goneLife = 2 * protocol.MessageLife
)

// load takes up what an earlier process left in the folder of attempts.
func (w *Worker) load() error {
	var err error
	if w.gone, err = readGone(w.cfg.Dir, time.Now()); err != nil {
		return err
	}
	entries, err := os.ReadDir(w.cfg.Dir)
	if err != nil {
		return fmt.Errorf("read folder of runs: %w", err)
	}
	for _, e := range entries {
		dir := filepath.Join(w.cfg.Dir, e.Name())
		if !e.IsDir() {
			continue
		}
		if keeper.Has(dir, keeper.FileReported) {
			w.untidy.Store(true)
			continue
		}
		a := &attempt{name: e.Name(), dir: dir}
		err := keeper.ReadJSON(dir, keeper.FileStart, &a.order)
		if errors.Is(err, fs.ErrNotExist) {
			continue // cut off before it was accepted; a second Start fills the folder
		}
		if err != nil || folderName(a.order.Task, a.order.Attempt) != a.name {
			w.cfg.Log.Warn("folder of an attempt cannot be read and is left alone", "path", dir, "err", err)
			continue
		}
		a.begun, a.cancelled = keeper.Has(dir, keeper.FileLaunch), keeper.Has(dir, keeper.FileCancel)
		w.attempts[a.name] = a
		w.queue = append(w.queue, a)
	}
	slices.SortStableFunc(w.queue, func(a, b *attempt) int { return a.order.Accepted.Compare(b.order.Accepted) })
	return nil
}

// tidy takes away what reported attempts no longer need, and the folders beyond foldersKept, oldest first.
func (w *Worker) tidy(ctx context.Context) {
	select {
	case w.tidying <- struct{}{}:
	case <-ctx.Done():
		return
	}
	defer func() { <-w.tidying }()
	type folder struct {
		name string
		at   time.Time
	}
	var done []folder
	entries, err := os.ReadDir(w.cfg.Dir)
	if err != nil {
		w.cfg.Log.Warn("folder of runs cannot be read", "err", err)
		return
	}
	for _, e := range entries {
		dir := filepath.Join(w.cfg.Dir, e.Name())
		info, err := os.Stat(filepath.Join(dir, keeper.FileReported))
		if err != nil {
			continue
		}
		done = append(done, folder{e.Name(), info.ModTime()})
		w.removeTree(ctx, dir)
		if err := os.RemoveAll(filepath.Join(dir, keeper.DirFiles)); err != nil { // the message still has them
			w.cfg.Log.Warn("files of a task cannot be removed", "path", dir, "err", err)
		}
		if out, err := os.Stat(filepath.Join(dir, keeper.FileOutput)); err == nil && out.Size() > outputKept {
			_ = os.Remove(filepath.Join(dir, keeper.FileOutput)) // tried again with the next report
		}
	}
	slices.SortFunc(done, func(a, b folder) int { return a.at.Compare(b.at) })
	for _, f := range done[:max(0, len(done)-foldersKept)] {
		if ctx.Err() != nil {
			return
		}
		w.mu.Lock()
		err := w.gone.add(w.cfg.Dir, f.name, time.Now())
		w.mu.Unlock()
		if err == nil {
			err = repo.Remove(ctx, repo.Tree{Work: filepath.Join(w.cfg.Dir, f.name)})
		}
		if err != nil {
			w.cfg.Log.Warn("folder of an attempt cannot be removed", "path", f.name, "err", err)
		}
	}
}

// goneList is goneFile in memory.
type goneList map[string]bool

func (g goneList) has(name string) bool { return g[name] }

// add is durable when it returns nil; the folder may go only then.
func (g goneList) add(dir, name string, now time.Time) error {
	if g[name] {
		return nil
	}
	f, err := os.OpenFile(filepath.Join(dir, goneFile), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(f, "\n%s %d\n", name, now.Unix())
	if err := errors.Join(err, f.Sync(), f.Close(), keeper.SyncDir(dir)); err != nil {
		return err
	}
	g[name] = true
	return nil
}

// readGone reads the list and drops what is older than goneLife.
func readGone(dir string, now time.Time) (goneList, error) {
	g := goneList{}
	f, err := os.Open(filepath.Join(dir, goneFile))
	if errors.Is(err, fs.ErrNotExist) {
		return g, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var keep strings.Builder
	old := false
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		name, second, _ := strings.Cut(lines.Text(), " ")
		if name == "" {
			continue // each entry begins with a line end, in case the one before was torn
		}
		at, err := strconv.ParseInt(second, 10, 64)
		if err == nil && now.Sub(time.Unix(at, 0)) > goneLife {
			old = true
			continue
		}
		g[name] = true
		fmt.Fprintf(&keep, "%s\n", lines.Text())
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("read %s: %w", goneFile, err)
	}
	if old {
		return g, keeper.WriteFile(dir, goneFile, []byte(keep.String()), true)
	}
	return g, nil
}
