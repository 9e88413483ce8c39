//go:build unix

package main

import (
	"os"

	"golang.org/x/sys/unix"
)

// sessionLeader is the process that began this session: a shell or an agent. If it has ended, whoever called this program.
func sessionLeader() int {
	if sid, err := unix.Getsid(0); err == nil && sid > 0 && alive(sid) {
		return sid
	}
	return os.Getppid()
}
