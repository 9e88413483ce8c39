package demo

import "syscall"

// apart keeps a terminal's Ctrl-C from the nodes: the demo stops them in order.
func apart() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP, HideWindow: true}
}
