package journal

import (
	"errors"
	"sync"

	"github.com/ncruces/go-sqlite3/vfs"
)

// gatherPrefix and the name of a file layer are the name of that layer with gathered writes.
const gatherPrefix = "gather-"

var gatherMu sync.Mutex // so that a layer is registered once

// gathered returns the name of a layer over base whose write-ahead logs gather the writes of a commit into one. The
// engine writes two pieces a page there and then syncs; each piece would be a system call.
//
// It is for connections that sync at every commit (synchronous=FULL): what other connections may read was synced
// first, and a sync writes out. A connection's own reads write out too.
func gathered(base string) string {
	name := gatherPrefix + base
	gatherMu.Lock()
	defer gatherMu.Unlock()
	if vfs.Find(name) == nil {
		vfs.Register(name, gather{base})
	}
	return name
}

type gather struct{ base string }

func (g gather) over() vfs.VFS { return vfs.Find(g.base) }

func (g gather) Open(name string, flags vfs.OpenFlag) (vfs.File, vfs.OpenFlag, error) {
	f, out, err := g.over().Open(name, flags)
	return wrapWAL(f, flags), out, err
}

func (g gather) OpenFilename(name *vfs.Filename, flags vfs.OpenFlag) (vfs.File, vfs.OpenFlag, error) {
	if v, ok := g.over().(vfs.VFSFilename); ok {
		f, out, err := v.OpenFilename(name, flags)
		return wrapWAL(f, flags), out, err
	}
	f, out, err := g.over().Open(name.String(), flags)
	return wrapWAL(f, flags), out, err
}

func (g gather) Delete(name string, syncDir bool) error { return g.over().Delete(name, syncDir) }

func (g gather) Access(name string, flags vfs.AccessFlag) (bool, error) {
	return g.over().Access(name, flags)
}

func (g gather) FullPathname(name string) (string, error) { return g.over().FullPathname(name) }

func wrapWAL(f vfs.File, flags vfs.OpenFlag) vfs.File {
	if f == nil || flags&vfs.OPEN_WAL == 0 {
		return f
	}
	return &gatherFile{File: f}
}

// gatherMax bounds what is gathered, so that a connection holds no more.
const gatherMax = 512 << 10

// gatherFile is a write-ahead log. One connection, so one goroutine, uses it.
type gatherFile struct {
	vfs.File
	at  int64 // where buf belongs
	buf []byte
}

func (f *gatherFile) WriteAt(p []byte, off int64) (int, error) {
	if len(f.buf) > 0 && (off != f.at+int64(len(f.buf)) || len(f.buf)+len(p) > gatherMax) {
		if err := f.out(); err != nil {
			return 0, err
		}
	}
	if len(f.buf) == 0 {
		f.at = off
	}
	if f.buf == nil {
		f.buf = make([]byte, 0, gatherMax)
	}
	f.buf = append(f.buf, p...)
	return len(p), nil
}

// out writes what is gathered. After an error it is gone, as the engine expects of a write that failed: it begins the
// commit again or gives it up.
func (f *gatherFile) out() error {
	if len(f.buf) == 0 {
		return nil
	}
	_, err := f.File.WriteAt(f.buf, f.at)
	f.buf = f.buf[:0]
	return err
}

func (f *gatherFile) ReadAt(p []byte, off int64) (int, error) {
	if off < f.at+int64(len(f.buf)) && off+int64(len(p)) > f.at {
		if err := f.out(); err != nil {
			return 0, err
		}
	}
	return f.File.ReadAt(p, off)
}

func (f *gatherFile) Sync(flags vfs.SyncFlag) error {
	if err := f.out(); err != nil {
		return err
	}
	return f.File.Sync(flags)
}

func (f *gatherFile) Truncate(size int64) error {
	if err := f.out(); err != nil {
		return err
	}
	return f.File.Truncate(size)
}

func (f *gatherFile) Size() (int64, error) {
	if err := f.out(); err != nil {
		return 0, err
	}
	return f.File.Size()
}

func (f *gatherFile) Close() error { return errors.Join(f.out(), f.File.Close()) }
