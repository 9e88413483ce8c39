//go:build unix && !linux

package keeper

import (
	"os/exec"
	"syscall"
	"time"
)

// adoptOrphans: these systems have no such thing; a run is held by its process group, and what makes a session of its
// own escapes.
func adoptOrphans() error { return nil }

func ownGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
}

func terminateAll(pid int) { terminate(pid) }

func killNow(pid int) { killGroup(pid) }

func reap(int) {}

// endAll kills what is left of the command's group.
func endAll(pid int) int {
	for deadline := time.Now().Add(5 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		if syscall.Kill(-pid, syscall.SIGKILL) != nil {
			return 0 // the group is empty
		}
		if time.Now().After(deadline) {
			return 1
		}
	}
}

// Sweep ends what a run left when its keeper is gone: the command's group, if its head is still the process we started.
func Sweep(dir string) {
	var child Process
	if ReadJSON(dir, FileChild, &child) == nil && child.PID > 1 && child.Begun != "" && describe(child.PID) == child {
		killGroup(child.PID)
	}
}
