package node

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/aster-mesh/aster/node/journal"
	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/api"
	"github.com/aster-mesh/aster/roles/member"
)

// home is a node's directory: its key, its place in a mesh, its lock. Everything in it is 0700/0600.
//
//	node.key    the node's Ed25519 seed, base64
//	mesh.key    the mesh key's seed, on the founding node until it is put away
//	mesh.json   meshFile: which mesh, the certificate chain, ports
//	node.json   api.NodeFile: of the running process
//	imported.json  imported: since an import, until others gave back what was done after the export
//	lock        held while a process runs
//	journal/ agents/ runs/ log
type home struct {
	dir  string
	key  ed25519.PrivateKey
	peer protocol.PeerID
	lock *os.File
	mesh meshFile
}

// meshFile is mesh.json.
type meshFile struct {
	Mesh    string          `json:"mesh,omitempty"` // mesh id; empty: in no mesh yet
	Name    string          `json:"name,omitempty"`
	Chain   []byte          `json:"chain,omitempty"` // certificates, roles/member's encoding
	Port    int             `json:"port,omitempty"`  // of the mesh, chosen once
	Board   string          `json:"board,omitempty"` // host:port, chosen once
	LAN     bool            `json:"lan,omitempty"`   // listen on this machine's networks
	Inviter protocol.PeerID `json:"inviter,omitempty"`
	Seeds   []seedMember    `json:"seeds,omitempty"` // members known from the join answer
	Agent   string          `json:"agent,omitempty"`
	Retired []string        `json:"retired,omitempty"` // journals of meshes that this home left
	Voted   bool            `json:"voted,omitempty"`   // the journal holds this node's votes: if it does not, it has lost them
	Revoked string          `json:"revoked,omitempty"` // name of a member that refuses this node as revoked
}

// seedMember is a member known before its record has arrived.
type seedMember struct {
	Peer  protocol.PeerID `json:"peer"`
	Chain []byte          `json:"chain"`
	Addrs []string        `json:"addrs,omitempty"`
}

// RunningError says that another process holds the home.
type RunningError struct{ File api.NodeFile }

func (e *RunningError) Error() string {
	if e.File.PID == 0 {
		return "already running; its node.json was removed and is written again within a second"
	}
	return fmt.Sprintf("already running pid %d", e.File.PID)
}

// IsHome says whether a folder is a node's, or holds nothing and may become one. The rights of any other are not for a node to mend.
func IsHome(dir string) bool {
	if _, err := os.Stat(filepath.Join(dir, "node.key")); err == nil {
		return true
	}
	names, err := os.ReadDir(dir)
	return err == nil && len(names) == 0
}

// openHome makes or opens dir, takes its lock and reads its key. It returns *RunningError when a process holds it.
func openHome(dir string) (*home, error) {
	if dir == "" {
		return nil, errors.New("no home directory given: use --home DIR")
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make home: %w", unwritable(dir, err))
	}
	if err := checkOwner(dir); err != nil {
		return nil, err
	}
	lock, err := lockFile(filepath.Join(dir, "lock"))
	if errors.Is(err, errLocked) {
		f, _ := ReadNodeFile(dir)
		return nil, &RunningError{f}
	}
	if err != nil {
		return nil, fmt.Errorf("lock home: %w", unwritable(dir, err))
	}
	h := &home{dir: dir, lock: lock}
	if err := sweepCopies(dir); err != nil {
		return nil, errors.Join(fmt.Errorf("remove what an export left: %w", err), lock.Close())
	}
	if err := lostFile(dir); err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	if h.key, err = keyFile(filepath.Join(dir, "node.key"), true); err != nil {
		return nil, errors.Join(unwritable(dir, err), lock.Close())
	}
	h.peer = protocol.PeerIDOf(h.key.Public().(ed25519.PublicKey))
	raw, err := os.ReadFile(filepath.Join(dir, "mesh.json"))
	if err == nil {
		err = json.Unmarshal(raw, &h.mesh)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, errors.Join(fmt.Errorf("read %s: %w. Put a backup of this file back, or join again with a new home", filepath.Join(dir, "mesh.json"), err), lock.Close())
	}
	return h, nil
}

// lostFile refuses a home that was used and has lost the file that says who it is or which mesh it is in: another node would
// begin over the words of the old one, or a new mesh over the records of the old one.
func lostFile(dir string) error {
	hasMesh, used := isThere(filepath.Join(dir, "mesh.json")), journal.Used(filepath.Join(dir, "journal"))
	if (hasMesh || used) && !isThere(filepath.Join(dir, "node.key")) {
		return lost(dir, "node.key", "which node it is")
	}
	if used && !hasMesh {
		return lost(dir, "mesh.json", "which mesh it is in")
	}
	return nil
}

func lost(dir, file, what string) error {
	return fmt.Errorf("%s is missing, and this home was used before: without the file it does not know %s. Put a backup of it back, "+
		"restore an export elsewhere (aster --home DIR import FILE), or begin with a new home (aster up --home DIR)", filepath.Join(dir, file), what)
}

// unwritable says what to do about a home that may not be written.
func unwritable(dir string, err error) error {
	if !errors.Is(err, fs.ErrPermission) && !errors.Is(err, syscall.EROFS) {
		return err
	}
	return fmt.Errorf("%w. A node writes in its home %s: make that writable for you, or use another: aster up --home DIR", err, dir)
}

func (h *home) path(parts ...string) string {
	return filepath.Join(append([]string{h.dir}, parts...)...)
}

func (h *home) saveMesh() error { return writeFile(h.path("mesh.json"), h.mesh) }

func (h *home) close() error {
	return errors.Join(removeIfThere(h.path("node.json")), h.lock.Close())
}

func removeIfThere(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// ReadNodeFile reads node.json of a home; it may be left over from a process that died.
func ReadNodeFile(dir string) (api.NodeFile, error) {
	var f api.NodeFile
	raw, err := os.ReadFile(filepath.Join(dir, "node.json"))
	if err != nil {
		return f, err
	}
	return f, json.Unmarshal(raw, &f)
}

var errNoKey = errors.New("holds no key. Put a backup of it back, or use a new home")

// keyFile reads an Ed25519 seed, making one if create. errNoKey: the file has another content.
func keyFile(path string, create bool) (ed25519.PrivateKey, error) {
	raw, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) && create {
		key, err := member.NewKey(rand.Reader)
		if err != nil {
			return nil, err
		}
		return key, writeBytes(path, []byte(base64.StdEncoding.EncodeToString(key.Seed())+"\n"))
	}
	if err != nil {
		return nil, fmt.Errorf("read key: %w", err)
	}
	seed, err := base64.StdEncoding.DecodeString(strings.TrimSpace(string(raw)))
	if err != nil || len(seed) != ed25519.SeedSize {
		return nil, fmt.Errorf("%s %w", path, errNoKey)
	}
	return ed25519.NewKeyFromSeed(seed), nil
}

// writeFile replaces a JSON file whole: readers see the old or the new one, also after a crash.
func writeFile(path string, v any) error {
	raw, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return writeBytes(path, append(raw, '\n'))
}

func writeBytes(path string, raw []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".new-*") // 0600
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	_, err = f.Write(raw)
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("write %s: %w", path, err), removeIfThere(f.Name()))
	}
	return nil
}
