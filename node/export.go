package node

import (
	"context"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/aster-mesh/aster/node/backup"
	"github.com/aster-mesh/aster/node/journal"
	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/api"
)

// copyPrefix begins the folders in a home that hold a copy of its store while it is exported.
const copyPrefix = "export-"

const exportWarning = "private: it holds this node's keys and every message that the node has. Who has it can run as this node"

// CopyStore implements web.Backups: the store as of now, in a folder of the home.
func (n *Node) CopyStore(ctx context.Context) (api.StoreCopy, error) {
	c := api.StoreCopy{Dir: n.home.path(copyPrefix + randomText(6)), At: time.Now().UnixMilli()}
	if err := os.Mkdir(c.Dir, 0o700); err != nil {
		return c, fmt.Errorf("make room for a copy of the store: %w", err)
	}
	var err error
	if c.Records, err = n.store.CopyTo(ctx, filepath.Join(c.Dir, "journal")); err == nil {
		return c, nil
	}
	err = errors.Join(err, os.RemoveAll(c.Dir))
	switch {
	case errors.Is(err, journal.ErrFull):
		return c, protocol.Refuse(protocol.CodeDiskFull, "there is no room for a copy of the store beside it (%v)", "Free space and try again", err)
	case errors.Is(err, journal.ErrDamaged):
		return c, protocol.Refuse(codeStoreDamaged, "the store is damaged (%v)", "aster down, then aster doctor --repair", err)
	}
	return c, err
}

const codeStoreDamaged = "store-damaged"

// Export writes the home in dir into out. copied is the copy that the home's running node has made (CopyStore); nil: no node
// runs, and this call holds the home meanwhile. *RunningError: one does.
func Export(ctx context.Context, dir string, copied *api.StoreCopy, version string, out io.Writer) (x api.Exported, err error) {
	if _, err := os.Stat(filepath.Join(dir, "mesh.json")); err != nil {
		return x, protocol.Refuse(codeNoHome, "%s is no home of a node", "Say which: aster --home DIR export FILE", dir)
	}
	if copied == nil {
		lock, err := lockFile(filepath.Join(dir, "lock"))
		if errors.Is(err, errLocked) {
			f, _ := ReadNodeFile(dir)
			return x, &RunningError{f}
		}
		if err != nil {
			return x, fmt.Errorf("lock home: %w", err)
		}
		defer lock.Close()
		if copied, x.Damage, err = copyAtRest(ctx, dir); err != nil {
			return x, err
		}
	}
	defer func() { err = errors.Join(err, os.RemoveAll(copied.Dir)) }()
	head, err := headOf(dir)
	if err != nil {
		return x, err
	}
	head.Version, head.At, head.Records = version, time.UnixMilli(copied.At).UTC(), copied.Records
	w, err := backup.NewWriter(out, head)
	if err != nil {
		return x, fmt.Errorf("write export: %w", err)
	}
	a := archiving{ctx: ctx, dir: dir, w: w}
	if err := errors.Join(a.home(), a.tree(filepath.Join(copied.Dir, "journal"), "journal")); err != nil {
		return x, fmt.Errorf("write export: %w", err)
	}
	parts, err := w.Close()
	if err != nil {
		return x, fmt.Errorf("write export: %w", err)
	}
	x.Peer, x.Name, x.Mesh, x.At, x.Records = protocol.PeerID(head.Peer), head.Name, head.Mesh, copied.At, head.Records
	x.Parts, x.MeshKey, x.Fenced, x.Left = len(parts), head.MeshKey, head.Fenced, a.left
	for _, p := range parts {
		x.Bytes += p.Bytes
	}
	return x, nil
}

const codeNoHome = "no-home"

// retiredPrefix begins the folders of journals of meshes that this home left.
const retiredPrefix = "journal-of-"

// copyAtRest copies the store of a home that no node runs in. damage: what of it was not whole.
func copyAtRest(ctx context.Context, dir string) (c *api.StoreCopy, damage string, err error) {
	if err := sweepCopies(dir); err != nil {
		return nil, "", err
	}
	sign, err := signerIn(dir)
	if err != nil {
		return nil, "", fmt.Errorf("copy the store: %w", err)
	}
	c = &api.StoreCopy{Dir: filepath.Join(dir, copyPrefix+randomText(6)), At: time.Now().UnixMilli()}
	if err := os.Mkdir(c.Dir, 0o700); err != nil {
		return nil, "", fmt.Errorf("make room for a copy of the store: %w", err)
	}
	store, err := journal.Open(filepath.Join(dir, "journal"), journal.Options{BytesMax: 1 << 62, Log: slog.New(slog.DiscardHandler), Sign: sign})
	if err == nil {
		damage = store.Recovery().Reason
		if l, is := journal.LossIn(filepath.Join(dir, "journal")); is {
			damage = l.String()
		}
		c.Records, err = store.CopyTo(ctx, filepath.Join(c.Dir, "journal"))
		err = errors.Join(err, store.Close())
	}
	if err == nil {
		return c, damage, nil
	}
	err = errors.Join(err, os.RemoveAll(c.Dir))
	if errors.Is(err, journal.ErrDamaged) {
		return nil, "", protocol.Refuse(codeStoreDamaged, "the store of this home is damaged, so it was not exported", "See what is damaged: aster doctor. Mend it: aster doctor --repair. Then export")
	}
	return nil, "", err
}

// sweepCopies removes what an export left that was killed. The caller holds the home.
func sweepCopies(dir string) error {
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		if e.IsDir() && strings.HasPrefix(e.Name(), copyPrefix) {
			err = errors.Join(err, os.RemoveAll(filepath.Join(dir, e.Name())))
		}
	}
	return err
}

// headOf reads whose home it is.
func headOf(dir string) (h backup.Head, err error) {
	key, err := keyFile(filepath.Join(dir, "node.key"), false)
	if err != nil {
		return h, err
	}
	var m meshFile
	raw, err := os.ReadFile(filepath.Join(dir, "mesh.json"))
	if err == nil {
		err = json.Unmarshal(raw, &m)
	}
	if err != nil {
		return h, fmt.Errorf("read mesh.json: %w", err)
	}
	h = backup.Head{Peer: string(protocol.PeerIDOf(key.Public().(ed25519.PublicKey))), Name: m.Name, Mesh: m.Mesh, Warning: exportWarning}
	h.MeshKey = isThere(filepath.Join(dir, "mesh.key"))
	h.Fenced = isThere(filepath.Join(dir, fenceFile))
	return h, nil
}

func isThere(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// archiving is one export under way.
type archiving struct {
	ctx  context.Context
	dir  string
	w    *backup.Writer
	left []string
}

// notExported are the home's own files that mean nothing elsewhere: of the process that runs, and diagnostics.
var notExported = []string{"lock", "node.json", "log", "log.1", importedFile}

// exportedTrees are the home's folders that come along whole. Of runs only what was started and how it ended does: a work
// tree can be of any size, and its commits are in the repository that it belongs to.
var exportedTrees = []string{"agents", "bundles", localKeys}

func (a *archiving) home() error {
	entries, err := os.ReadDir(a.dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		name := e.Name()
		switch {
		case slices.Contains(notExported, name), name == "journal", strings.HasPrefix(name, "."), strings.HasPrefix(name, copyPrefix):
		case e.Type().IsRegular():
			err = a.file(filepath.Join(a.dir, name), name)
		case e.IsDir() && (slices.Contains(exportedTrees, name) || strings.HasPrefix(name, retiredPrefix)):
			err = a.tree(filepath.Join(a.dir, name), name)
		case e.IsDir() && name == "runs":
			err = a.runs()
		default:
			a.left = append(a.left, name)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// runs takes the records of attempts, so that none is started again.
func (a *archiving) runs() error {
	entries, err := os.ReadDir(filepath.Join(a.dir, "runs"))
	if err != nil {
		return err
	}
	works := 0
	for _, e := range entries {
		path, name := filepath.Join(a.dir, "runs", e.Name()), "runs/"+e.Name()
		if e.Type().IsRegular() && !strings.HasPrefix(e.Name(), ".") {
			if err := a.file(path, name); err != nil {
				return err
			}
		}
		if !e.IsDir() {
			continue
		}
		inside, err := os.ReadDir(path)
		if err != nil {
			return err
		}
		for _, f := range inside {
			switch {
			case f.IsDir():
				works++
			case f.Type().IsRegular() && f.Name() != "lock" && !strings.HasPrefix(f.Name(), "."):
				if err := a.file(filepath.Join(path, f.Name()), name+"/"+f.Name()); err != nil {
					return err
				}
			}
		}
	}
	if works > 0 {
		a.left = append(a.left, fmt.Sprintf("work trees of %d attempts in runs", works))
	}
	return nil
}

func (a *archiving) tree(dir, name string) error {
	return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil || d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		part := name + "/" + filepath.ToSlash(rel)
		if !d.Type().IsRegular() {
			a.left = append(a.left, part)
			return nil
		}
		return a.file(path, part)
	})
}

// file takes one file as it is now; one that is gone by now was not to be kept.
func (a *archiving) file(path, name string) error {
	if err := a.ctx.Err(); err != nil {
		return err
	}
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	return a.w.Add(name, info.Size(), f)
}
