package node

import (
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// uptime counts from the boot of the machine, its sleep included.
func uptime() time.Duration {
	var ts unix.Timespec
	if unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts) != nil {
		return time.Since(processBegan)
	}
	return time.Duration(ts.Nano())
}

// bootID names the boot that uptime counts from.
var bootID = sync.OnceValue(func() string {
	raw, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return randomText(8)
	}
	return strings.TrimSpace(string(raw))
})

var processBegan = time.Now()
