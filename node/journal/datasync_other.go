//go:build !linux

package journal

import "os"

// datasync makes what was written to f durable. Where the system has a cache below its sync, Sync goes through it.
func datasync(f *os.File) error { return f.Sync() }
