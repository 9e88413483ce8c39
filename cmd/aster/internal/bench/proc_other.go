//go:build !linux

package bench

import "time"

func residentBytes(int) (int64, bool) { return 0, false }

func cpuTime(int) (time.Duration, bool) { return 0, false }
