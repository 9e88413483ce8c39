package journal

import (
	"errors"
	"os"
	"syscall"
)

// datasync makes what was written to f durable, with its length, without its times.
func datasync(f *os.File) error {
	for {
		if err := syscall.Fdatasync(int(f.Fd())); !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}
