package journal

import (
	"errors"
	"sync"
	"syscall"

	"github.com/ncruces/go-sqlite3"
	"github.com/ncruces/go-sqlite3/vfs"
)

// layerName is our file layer: the operating system's without memory maps, and with a disk that is full called so. A connection that verifies page checksums
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
		return layerFile{m}, flags, nil
	}
	return f, flags, err
}

// layerFile says of a write that finds no room that it found none. go-sqlite3 v0.37.0 looks for that in an error that the
// standard library has wrapped, and so calls it an error of the disk, which is final.
type layerFile struct{ mapless }

func (f layerFile) WriteAt(p []byte, off int64) (int, error) {
	n, err := f.mapless.WriteAt(p, off)
	return n, fullOr(err)
}

func fullOr(err error) error {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return sqlite3.FULL
	}
	return err
}
