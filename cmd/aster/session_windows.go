package main

import (
	"os"
	"syscall"
)

// detachedProcess is DETACHED_PROCESS: no console, so that closing one does not end it.
const detachedProcess = 0x00000008

func ownSession() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{CreationFlags: detachedProcess | syscall.CREATE_NEW_PROCESS_GROUP, HideWindow: true}
}

// alive says whether a process exists.
func alive(pid int) bool {
	p, err := os.FindProcess(pid)
	if err != nil {
		return false
	}
	return p.Release() == nil
}
