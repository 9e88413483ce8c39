package keeper

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// describe names pid so that it can be recognised later.
func describe(pid int) Process {
	p := Process{PID: pid}
	if info, err := unix.SysctlKinfoProc("kern.proc.pid", pid); err == nil {
		p.Begun = fmt.Sprintf("%d.%06d", info.Proc.P_starttime.Sec, info.Proc.P_starttime.Usec)
	}
	if boot, err := unix.Sysctl("kern.bootsessionuuid"); err == nil {
		p.Boot = boot
	}
	return p
}
