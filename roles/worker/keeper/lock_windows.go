package keeper

import (
	"errors"
	"os"
	"path/filepath"

	"golang.org/x/sys/windows"
)

// lock takes dir's lock for the life of the process or until unlock. The system frees it however the process ends.
func lock(dir string) (unlock func(), err error) {
	f, err := os.OpenFile(filepath.Join(dir, FileLock), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	const flags = windows.LOCKFILE_EXCLUSIVE_LOCK | windows.LOCKFILE_FAIL_IMMEDIATELY
	if err := windows.LockFileEx(windows.Handle(f.Fd()), flags, 0, 1, 0, &windows.Overlapped{}); err != nil {
		f.Close()
		if errors.Is(err, windows.ERROR_LOCK_VIOLATION) {
			return nil, errHeld
		}
		return nil, err
	}
	return func() { f.Close() }, nil
}
