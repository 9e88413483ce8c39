package node

import (
	"os"
	"strconv"
	"strings"
)

// processStart says when a process began, in the system's own count; false: it has ended.
func processStart(pid int) (string, bool) {
	raw, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return "", false
	}
	_, rest, _ := strings.Cut(string(raw[max(strings.LastIndexByte(string(raw), ')'), 0):]), " ") // a name may hold anything
	fields := strings.Fields(rest)
	if len(fields) < 20 || fields[0] == "Z" || fields[0] == "X" {
		return "", false
	}
	return fields[19], true
}
