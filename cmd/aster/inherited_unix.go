//go:build unix

package main

import (
	"fmt"
	"net"
	"os"
	"strconv"
	"syscall"
)

// firstInherited is the file that systemd passes first (sd_listen_fds).
const firstInherited = 3

// inherited returns the board's socket that a service manager opened for this process, or nil. It stays open over a
// restart, since the manager keeps it.
func inherited() (net.Listener, error) {
	pid, count := os.Getenv("LISTEN_PID"), os.Getenv("LISTEN_FDS")
	if count == "" || pid != strconv.Itoa(os.Getpid()) {
		return nil, nil
	}
	for _, name := range []string{"LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"} { // not for what we start
		if err := os.Unsetenv(name); err != nil {
			return nil, fmt.Errorf("prepare environment: %w", err)
		}
	}
	if count != "1" {
		return nil, usage("the service manager passed %s sockets: the node takes one, the board's", count)
	}
	syscall.CloseOnExec(firstInherited)
	f := os.NewFile(firstInherited, "board")
	defer f.Close() // the listener has its own copy
	ln, err := net.FileListener(f)
	if err != nil {
		return nil, usage("what the service manager passed is no listening socket: %s", err)
	}
	if _, ok := ln.Addr().(*net.TCPAddr); !ok {
		return nil, usage("what the service manager passed listens on %s: the board needs TCP", ln.Addr())
	}
	return ln, nil
}
