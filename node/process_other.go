//go:build !linux

package node

import (
	"os"
	"runtime"
	"syscall"
)

// processStart says whether a process runs; when it began is not asked of this system.
func processStart(pid int) (string, bool) {
	p, err := os.FindProcess(pid)
	if err != nil {
		return "", false
	}
	defer func() { _ = p.Release() }()
	return "", runtime.GOOS == "windows" || p.Signal(syscall.Signal(0)) == nil
}
