//go:build unix

package keeper

import (
	"os/exec"
	"syscall"
)

// Detach makes cmd the head of its own session, so that it outlives the terminal and the node that started it.
func Detach(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
}

// shell runs an accept command as its author wrote it.
func shell(line string) []string { return []string{"sh", "-c", line} }

func prepareShell(*exec.Cmd, string) {}

// terminate asks the group of pid to end.
func terminate(pid int) { _ = syscall.Kill(-pid, syscall.SIGTERM) }

func killGroup(pid int) { _ = syscall.Kill(-pid, syscall.SIGKILL) }

// exitCode is the shell's convention: 128+n when signal n ended it.
func exitCode(cmd *exec.Cmd) int {
	if ws, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return 128 + int(ws.Signal())
	}
	return cmd.ProcessState.ExitCode()
}
