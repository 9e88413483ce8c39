package node

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

var errLocked = errors.New("locked by another process")

const errorSharingViolation = syscall.Errno(32)

// lockFile opens the file so that no other process can while this one has it; the system drops that with the process.
func lockFile(path string) (*os.File, error) {
	name, err := syscall.UTF16PtrFromString(path)
	if err != nil {
		return nil, err
	}
	h, err := syscall.CreateFile(name, syscall.GENERIC_READ|syscall.GENERIC_WRITE, 0, nil, syscall.OPEN_ALWAYS, syscall.FILE_ATTRIBUTE_NORMAL, 0)
	if errors.Is(err, errorSharingViolation) {
		return nil, errLocked
	}
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	return os.NewFile(uintptr(h), path), nil
}

// checkOwner: a home under %LOCALAPPDATA% inherits rights for its user alone.
func checkOwner(dir string) error {
	if _, err := os.Stat(dir); err != nil {
		return fmt.Errorf("look at home: %w", err)
	}
	return nil
}

// syncFolder: this system writes names with their files.
func syncFolder(string) error { return nil }
