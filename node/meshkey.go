package node

import (
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/aster-mesh/aster/node/mesh"
	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/api"
	"github.com/aster-mesh/aster/roles/member"
)

// The mesh key signs issuers, and every inside member is one: after the founding nothing needs it but the founder's own
// certificate, and that only while no other inside member is there to renew it. So it may be kept elsewhere.

const (
	codeNoMeshKey    = "no-mesh-key"
	codeWrongMeshKey = "wrong-mesh-key"
	codeFileThere    = "file-exists"
)

// TakeMeshKey moves the mesh key of the home dir into a new file. A node may run in it meanwhile. It returns the mesh's id.
func TakeMeshKey(dir, file string) (mesh string, err error) {
	return takeMeshKey(dir, file, syncFolder)
}

// takeMeshKey removes the key from the home once the new file and its name are on the disk, or stick, that it is on: sync
// does the name.
func takeMeshKey(dir, file string, sync func(folder string) error) (mesh string, err error) {
	m, err := readMesh(dir)
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "mesh.key")
	key, err := keyFile(path, false)
	if errors.Is(err, fs.ErrNotExist) {
		return "", protocol.Refuse(codeNoMeshKey, "there is no mesh key in %s: it is in the home that founded the mesh, unless it was put away before", "Where it is kept: aster import --mesh-key FILE", dir)
	}
	if err != nil {
		return "", err
	}
	if id := meshIDOf(key); id != m.Mesh {
		return "", protocol.Refuse(codeWrongMeshKey, "the mesh key in %s is of mesh %s, and the home is in %s", "", dir, id, m.Mesh)
	}
	raw, err := json.MarshalIndent(api.MeshKeyFile{What: api.MeshKeyWhat, Mesh: m.Mesh, Key: base64.StdEncoding.EncodeToString(key.Seed())}, "", "  ")
	if err != nil {
		return "", err
	}
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return "", protocol.Refuse(codeFileThere, "%s exists already", "Name another file", file)
	}
	if err != nil {
		return "", fmt.Errorf("write mesh key: %w", err)
	}
	_, err = f.Write(append(raw, '\n'))
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = sync(filepath.Dir(file))
	}
	if err != nil {
		return "", errors.Join(fmt.Errorf("write mesh key: %w", err), os.Remove(file))
	}
	if _, err := readMeshKey(file); err != nil { // before the only other one goes
		return "", fmt.Errorf("read the mesh key back: %w", err)
	}
	return m.Mesh, os.Remove(path)
}

// GiveMeshKey puts a mesh key that TakeMeshKey took away back into the home dir. A node may run in it meanwhile.
func GiveMeshKey(dir, file string) (mesh string, err error) {
	m, err := readMesh(dir)
	if err != nil {
		return "", err
	}
	key, err := readMeshKey(file)
	if err != nil {
		return "", err
	}
	if id := meshIDOf(key); id != m.Mesh {
		return "", protocol.Refuse(codeWrongMeshKey, "%s holds the key of mesh %s, and %s is in mesh %s", "", file, id, dir, m.Mesh)
	}
	return m.Mesh, writeBytes(filepath.Join(dir, "mesh.key"), []byte(base64.StdEncoding.EncodeToString(key.Seed())+"\n"))
}

func readMeshKey(file string) (ed25519.PrivateKey, error) {
	raw, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read mesh key: %w", err)
	}
	var f api.MeshKeyFile
	if err := json.Unmarshal(raw, &f); err != nil || f.What != api.MeshKeyWhat {
		return nil, protocol.Refuse(codeWrongMeshKey, "%s is no file of a mesh key", "It is made by aster export --mesh-key FILE", file)
	}
	seed, err := base64.StdEncoding.DecodeString(f.Key)
	if err != nil || len(seed) != ed25519.SeedSize || meshIDOf(ed25519.NewKeyFromSeed(seed)) != f.Mesh {
		return nil, protocol.Refuse(codeWrongMeshKey, "%s is damaged: its key is not the key of mesh %s", "Take another copy of the file", file, protocol.CutText(f.Mesh, 64))
	}
	return ed25519.NewKeyFromSeed(seed), nil
}

func readMesh(dir string) (m meshFile, err error) {
	raw, err := os.ReadFile(filepath.Join(dir, "mesh.json"))
	if err == nil {
		err = json.Unmarshal(raw, &m)
	}
	if err != nil || m.Mesh == "" {
		return m, protocol.Refuse(codeNoHome, "%s is no home of a node in a mesh", "Say which: aster --home DIR …", dir)
	}
	return m, nil
}

func meshIDOf(key ed25519.PrivateKey) string {
	return string(member.MeshIDOf(key.Public().(ed25519.PublicKey)))
}

// missMeshKey says that the founder's certificate is due and nobody is there to renew it, while the mesh key is elsewhere.
func (l *loop) missMeshKey(m member.Member) {
	if m.Peer != l.n.home.peer || l.n.home.mesh.Inviter != "" || isThere(l.n.home.path("mesh.key")) {
		return
	}
	for peer := range l.peers {
		if l.n.standingOf(peer) == mesh.Inside {
			return // it renews this node's
		}
	}
	l.warn("mesh-key", "this node's certificate ends on "+time.UnixMilli(m.Cert.NotAfter).Format(time.DateOnly)+", no other inside node is linked to renew it, and the mesh key is not here: "+
		"start another inside node, or bring the key back: aster import --mesh-key FILE")
}
