package bench

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"time"
)

// residentBytes is what a process holds in memory now; false: not known.
func residentBytes(pid int) (int64, bool) {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		return 0, false
	}
	fields := bytes.Fields(raw)
	if len(fields) < 2 {
		return 0, false
	}
	pages, err := strconv.ParseInt(string(fields[1]), 10, 64)
	return pages * int64(os.Getpagesize()), err == nil
}

// tick is the unit of times in /proc, which the kernel fixes for all programs.
const tick = time.Second / 100

// cpuTime is what a process has computed so far, in ticks of 10 ms; false: not known.
func cpuTime(pid int) (time.Duration, bool) {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, false
	}
	end := bytes.LastIndexByte(raw, ')') // the name before it may hold anything
	if end < 0 {
		return 0, false
	}
	fields := bytes.Fields(raw[end+1:])
	if len(fields) < 13 {
		return 0, false
	}
	user, err := strconv.ParseInt(string(fields[11]), 10, 64)
	system, err2 := strconv.ParseInt(string(fields[12]), 10, 64)
	return time.Duration(user+system) * tick, err == nil && err2 == nil
}
