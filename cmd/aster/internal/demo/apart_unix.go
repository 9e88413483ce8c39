//go:build unix

package demo

import "syscall"

// apart keeps a terminal's Ctrl-C from the nodes: the demo stops them in order.
func apart() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
