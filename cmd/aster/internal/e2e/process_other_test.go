//go:build !linux

package e2e

import (
	"os/exec"
	"syscall"
)

func dieWithUs() *syscall.SysProcAttr { return nil }

func startProcess(cmd *exec.Cmd) error { return cmd.Start() }

// tidyRuns does nothing where processes cannot be looked up: every run here ends by itself.
func (n *node) tidyRuns() {}
