package journal

import (
	"sync"

	"github.com/ncruces/go-sqlite3/vfs"
)

// layerName is our file layer: the operating system's without memory maps. A connection that verifies page checksums
// has no use for maps, and go-sqlite3 v0.37.0 follows a nil pointer when such a database with maps is checkpointed.
const layerName = "aster-journal"

var registerLayer = sync.OnceFunc(func() { vfs.Register(layerName, layer{vfs.Find("").(vfs.VFSFilename)}) })

type layer struct{ vfs.VFSFilename }

// mapless is what a file of the operating system offers, but for vfs.FileMemoryMapper.
type mapless interface {
	vfs.FileSharedMemory
	vfs.FileLockState
	vfs.FileHasMoved
	vfs.FileSizeHint
	vfs.FilePersistWAL
	vfs.FilePowersafeOverwrite
}

func (l layer) OpenFilename(name *vfs.Filename, flags vfs.OpenFlag) (vfs.File, vfs.OpenFlag, error) {
	f, flags, err := l.VFSFilename.OpenFilename(name, flags)
	if m, ok := f.(mapless); ok && err == nil {
		return struct{ mapless }{m}, flags, nil
	}
	return f, flags, err
}
