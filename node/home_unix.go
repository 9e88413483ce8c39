//go:build unix

package node

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

var errLocked = errors.New("locked by another process")

// lockFile takes an exclusive lock that the system drops with the process.
func lockFile(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		f.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, errLocked
		}
		return nil, err
	}
	return f, nil
}

// checkOwner refuses a home that is another user's or that others may read.
func checkOwner(dir string) error {
	st, err := os.Stat(dir)
	if err != nil {
		return fmt.Errorf("look at home: %w", err)
	}
	if sys, ok := st.Sys().(*syscall.Stat_t); ok && int(sys.Uid) != os.Geteuid() {
		return fmt.Errorf("home %s belongs to user %d, not to you (%d). Use your own: aster --home DIR", dir, sys.Uid, os.Geteuid())
	}
	if st.Mode().Perm()&0o077 != 0 {
		if !IsHome(dir) {
			return fmt.Errorf("%s is not the home of a node, and holds other things. Use a folder of its own: aster --home DIR", dir)
		}
		return fmt.Errorf("home %s can be read by others (mode %04o). Mend it: chmod 700 %s", dir, st.Mode().Perm(), dir)
	}
	return nil
}

// syncFolder puts the names of a folder onto its disk. A file system that cannot has nothing to wait for.
func syncFolder(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	err = d.Sync()
	if errors.Is(err, errors.ErrUnsupported) || errors.Is(err, syscall.EINVAL) {
		err = nil
	}
	return errors.Join(err, d.Close())
}
