package journal

import (
	"errors"
	"io/fs"
	"syscall"
	"testing"

	"github.com/ncruces/go-sqlite3"
)

// fullFile finds no room, and says so as package os does.
type fullFile struct{ mapless }

func (fullFile) WriteAt([]byte, int64) (int, error) {
	return 0, &fs.PathError{Op: "write", Path: "journal.db-wal", Err: syscall.ENOSPC}
}

// TestAFullDiskIsCalledSo: a gathered write fails within the sync, which would call it an error of the sync: final.
func TestAFullDiskIsCalledSo(t *testing.T) {
	g := &gatherFile{File: layerFile{fullFile{}}}
	if _, err := g.WriteAt([]byte("page"), 0); err != nil {
		t.Fatal(err)
	}
	if err := g.Sync(0); !errors.Is(err, sqlite3.FULL) || !isFull(err) {
		t.Errorf("got %v, want %v", err, sqlite3.FULL)
	}
}
