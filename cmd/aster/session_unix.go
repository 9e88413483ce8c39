//go:build unix

package main

import (
	"errors"
	"syscall"
)

// ownSession keeps the child alive when the terminal closes.
func ownSession() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

// alive says whether a process exists.
func alive(pid int) bool {
	err := syscall.Kill(pid, 0)
	return err == nil || errors.Is(err, syscall.EPERM)
}
