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
	"time"

	"github.com/aster-mesh/aster/node/backup"
	"github.com/aster-mesh/aster/node/journal"
	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/api"
)

// importedFile says that this home came out of an export and has not yet been given back what its node did since.
const importedFile = "imported.json"

// imported is imported.json.
type imported struct {
	Exported int64 `json:"exported"` // ms since 1970
	Imported int64 `json:"imported"`
	// Repaired: it was no import; the store was damaged, and what it lost may be with others.
	Repaired bool `json:"repaired,omitempty"`
}

const (
	codeHomeTaken     = "home-taken"
	codeExportDamaged = "export-damaged"
	codeExportNewer   = "export-newer"
)

// Import makes the home dir, which must not exist or be empty, of an export. It is looked at whole, file by file and as a
// store, beside its place, and put there only then: after an error dir is as before.
func Import(ctx context.Context, in io.Reader, dir string) (x api.Imported, err error) {
	if err := freePlace(dir); err != nil {
		return x, err
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
		return x, fmt.Errorf("make home: %w", err)
	}
	beside, err := os.MkdirTemp(filepath.Dir(dir), "."+filepath.Base(dir)+"-import-") // 0700
	if err != nil {
		return x, fmt.Errorf("make home: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(beside))
		}
	}()
	if x, err = unpack(ctx, in, beside); err != nil {
		return x, err
	}
	if err := checkUnpacked(beside, &x); err != nil {
		return x, err
	}
	if err := writeFile(filepath.Join(beside, importedFile), imported{Exported: x.At, Imported: time.Now().UnixMilli()}); err != nil {
		return x, err
	}
	if err := os.Remove(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return x, fmt.Errorf("put the home in its place: %w", err)
	}
	if err := os.Rename(beside, dir); err != nil {
		return x, fmt.Errorf("put the home in its place: %w", err)
	}
	x.Home = dir
	return x, nil
}

func freePlace(dir string) error {
	entries, err := os.ReadDir(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("look at home: %w", err)
	case len(entries) > 0:
		return protocol.Refuse(codeHomeTaken, "%s is not empty, and nothing is written over a home", "Choose a place of its own: aster --home DIR import FILE", dir)
	}
	return nil
}

// unpack writes the files of an export below dir.
func unpack(ctx context.Context, in io.Reader, dir string) (x api.Imported, err error) {
	parts, err := backup.Read(in, func(h backup.Head) error {
		x.Peer, x.Name, x.Mesh, x.Version, x.At = protocol.PeerID(h.Peer), h.Name, h.Mesh, h.Version, h.At.UnixMilli()
		x.Records, x.MeshKey, x.Fenced = h.Records, h.MeshKey, h.Fenced
		return nil
	}, func(name string, _ int64, r io.Reader) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return err
		}
		f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			return err
		}
		_, err = io.Copy(f, r)
		return errors.Join(err, f.Sync(), f.Close())
	})
	switch {
	case errors.Is(err, backup.ErrNewer):
		return x, protocol.Refuse(codeExportNewer, "the export is %v", "Import it with that version or a newer one", err)
	case errors.Is(err, backup.ErrDamaged):
		return x, protocol.Refuse(codeExportDamaged, "the export is %v. Nothing was imported", "Take another copy of the file, or make a new one where the home still is: aster export FILE", err)
	case err != nil:
		return x, fmt.Errorf("unpack: %w", err)
	}
	x.Parts = len(parts)
	for _, p := range parts {
		x.Bytes += p.Bytes
	}
	return x, nil
}

// checkUnpacked opens what was unpacked as a node would: the key is that of the node that the export names, and the store
// is whole and has the records that it had.
func checkUnpacked(dir string, x *api.Imported) error {
	wrong := func(what string, args ...any) error {
		return protocol.Refuse(codeExportDamaged, "the export does not fit together: %s. Nothing was imported", "Make a new one where the home still is: aster export FILE", fmt.Sprintf(what, args...))
	}
	key, err := keyFile(filepath.Join(dir, "node.key"), false)
	if err != nil {
		return wrong("part node.key: %v", err)
	}
	if peer := protocol.PeerIDOf(key.Public().(ed25519.PublicKey)); peer != x.Peer {
		return wrong("part node.key is the key of %s, and the export is of %s", peer.Short(), x.Peer.Short())
	}
	var m meshFile
	raw, err := os.ReadFile(filepath.Join(dir, "mesh.json"))
	if err == nil {
		err = json.Unmarshal(raw, &m)
	}
	if err != nil || m.Mesh != x.Mesh {
		return wrong("part mesh.json is of mesh %q, and the export of %q (%v)", protocol.CutText(m.Mesh, 16), protocol.CutText(x.Mesh, 16), err)
	}
	store, err := journal.Open(filepath.Join(dir, "journal"), journal.Options{BytesMax: 1 << 62, Log: slog.New(slog.DiscardHandler), Sign: signer(key)})
	if errors.Is(err, journal.ErrNewer) {
		return protocol.Refuse(codeExportNewer, "the export's store is of a newer version (aster %s)", "Import it with that version or a newer one", x.Version)
	}
	if err != nil {
		return wrong("part journal: %v", err)
	}
	if r := store.Recovery(); r.Reason != "" {
		err = wrong("part journal: %s", r.Reason)
	} else if n := store.Records(); n != x.Records {
		err = wrong("part journal has %d records of %d", n, x.Records)
	} else {
		err = forgetPlaces(store)
	}
	return errors.Join(err, store.Close())
}

// forgetPlaces forgets how far agents' files had got in this store: its positions may be given out anew, and the files be
// further than it is. They are then compared message by message.
func forgetPlaces(store *journal.Journal) error {
	saved, err := store.ValuesWithPrefix(keyInboxStore)
	if err != nil || len(saved) == 0 {
		return err
	}
	for k := range saved {
		saved[k] = nil
	}
	_, err = store.Commit(journal.Batch{Values: saved})
	return err
}

// keyInboxStore begins the values by which an agent's inbox file knows this store (node/bridge).
const keyInboxStore = "bridge/inbox/"
