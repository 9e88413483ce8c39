package journal

import (
	"fmt"
	"io"
	"os"
	"sync"
	"syscall"
	"testing"

	"github.com/ncruces/go-sqlite3"
	"github.com/ncruces/go-sqlite3/vfs"
)

// disk is a file layer under the real engine that can lose its power, fill up and fail a sync. It does its work on
// real files and remembers, for every write since a file's last sync, what was there before.
type disk struct {
	mu       sync.Mutex
	steps    int // writes, truncations, syncs and deletions so far
	failAt   int // step at which the power goes; 0: never
	keep     int // of what was not synced then survives: 0 nothing, 1 the older half, 2 all and half of the last write
	crashed  bool
	fullAt   int // step from which writes find no room; 0: never
	syncFail int // step from which the next sync fails, once; 0: never
	syncs    int
	undo     []undo
	watch    func(steps int) // before each
}

type undo struct {
	path string
	off  int64
	old  []byte
	size int64 // of the file before
}

// newDisk registers a disk for one test.
func newDisk(t testing.TB, d *disk) (name string) {
	name = fmt.Sprintf("disk-%p", d)
	vfs.Register(name, d)
	t.Cleanup(func() { vfs.Unregister(name) })
	return name
}

// step counts one change. False: the power is gone.
func (d *disk) step(path string, off int64, p []byte) bool {
	d.steps++
	if d.watch != nil {
		d.watch(d.steps)
	}
	if !d.crashed && d.steps == d.failAt {
		d.crashed = true
		from := map[int]int{0: 0, 1: len(d.undo) / 2, 2: len(d.undo)}[d.keep]
		for i := len(d.undo) - 1; i >= from; i-- {
			d.undo[i].apply()
		}
		if d.keep == 2 && len(p) > 0 {
			writeTo(path, p[:len(p)/2], off)
		}
	}
	return !d.crashed
}

func (u undo) apply() {
	writeTo(u.path, u.old, u.off)
	os.Truncate(u.path, u.size)
}

func writeTo(path string, p []byte, off int64) {
	if f, err := os.OpenFile(path, os.O_WRONLY, 0); err == nil {
		f.WriteAt(p, off)
		f.Close()
	}
}

// unsynced counts the writes to a file since its last sync.
func (d *disk) unsynced(path string) (n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, u := range d.undo {
		if u.path == path {
			n++
		}
	}
	return n
}

func (d *disk) heal() {
	d.mu.Lock()
	d.fullAt = 0
	d.mu.Unlock()
}

// openAhead is the same for the files that commits go to first.
func (d *disk) openAhead(path string) (aheadFile, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	return &aheadOnDisk{f, d}, err
}

type aheadOnDisk struct {
	*os.File
	d *disk
}

func (f *aheadOnDisk) WriteAt(p []byte, off int64) (int, error) {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	if !f.d.step(f.Name(), off, p) {
		return 0, sqlite3.IOERR_WRITE
	}
	if f.d.fullAt > 0 && f.d.steps >= f.d.fullAt {
		f.File.WriteAt(p[:len(p)/2], off) // as far as there was room
		return len(p) / 2, syscall.ENOSPC
	}
	size, err := fileSize(f.Name())
	if err != nil {
		panic(err)
	}
	old := make([]byte, max(min(int64(len(p)), size-off), 0))
	if _, err := f.ReadAt(old, off); err != nil && err != io.EOF {
		panic(err)
	}
	f.d.undo = append(f.d.undo, undo{f.Name(), off, old, size})
	return f.File.WriteAt(p, off)
}

func (f *aheadOnDisk) Sync() error {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	return f.d.sync(f.Name())
}

var osVFS = vfs.Find("").(vfs.VFSFilename)

func (d *disk) Open(name string, flags vfs.OpenFlag) (vfs.File, vfs.OpenFlag, error) {
	return osVFS.Open(name, flags)
}

func (d *disk) OpenFilename(name *vfs.Filename, flags vfs.OpenFlag) (vfs.File, vfs.OpenFlag, error) {
	f, flags, err := osVFS.OpenFilename(name, flags)
	if err != nil || name == nil {
		return f, flags, err
	}
	return &diskFile{File: f, d: d, path: name.String()}, flags, nil
}

func (d *disk) Delete(name string, syncDir bool) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.step(name, 0, nil) {
		return sqlite3.IOERR_DELETE
	}
	return osVFS.Delete(name, syncDir)
}

func (d *disk) Access(name string, flags vfs.AccessFlag) (bool, error) {
	return osVFS.Access(name, flags)
}
func (d *disk) FullPathname(name string) (string, error) { return osVFS.FullPathname(name) }

type diskFile struct {
	vfs.File
	d    *disk
	path string
}

var _ vfs.FileSharedMemory = (*diskFile)(nil)

func (f *diskFile) SharedMemory() vfs.SharedMemory {
	return f.File.(vfs.FileSharedMemory).SharedMemory()
}

func (f *diskFile) remember(off int64, n int) {
	size, err := f.File.Size()
	if err != nil {
		panic(err)
	}
	old := make([]byte, max(min(int64(n), size-off), 0))
	if _, err := f.File.ReadAt(old, off); err != nil && err != io.EOF {
		panic(err)
	}
	f.d.undo = append(f.d.undo, undo{f.path, off, old, size})
}

func (f *diskFile) WriteAt(p []byte, off int64) (int, error) {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	if !f.d.step(f.path, off, p) {
		return 0, sqlite3.IOERR_WRITE
	}
	if f.d.fullAt > 0 && f.d.steps >= f.d.fullAt {
		return 0, sqlite3.FULL
	}
	f.remember(off, len(p))
	return f.File.WriteAt(p, off)
}

func (f *diskFile) Truncate(size int64) error {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	if !f.d.step(f.path, 0, nil) {
		return sqlite3.IOERR_TRUNCATE
	}
	if now, err := f.File.Size(); err == nil && now > size {
		f.remember(size, int(now-size))
	}
	return f.File.Truncate(size)
}

func (f *diskFile) Sync(flags vfs.SyncFlag) error {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	return f.d.sync(f.path)
}

func (d *disk) sync(path string) error {
	d.syncs++
	if !d.step(path, 0, nil) {
		return sqlite3.IOERR_FSYNC
	}
	if d.syncFail > 0 && d.steps >= d.syncFail {
		d.syncFail = 0
		return sqlite3.IOERR_FSYNC
	}
	kept := d.undo[:0]
	for _, u := range d.undo {
		if u.path != path {
			kept = append(kept, u)
		}
	}
	d.undo = kept
	return nil // the real disk may take its time: it is not the one that fails
}
