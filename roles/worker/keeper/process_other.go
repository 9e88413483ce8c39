//go:build unix && !linux && !darwin

package keeper

// describe knows only the number here, which is not enough to kill by.
func describe(pid int) Process { return Process{PID: pid} }
