package journal

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// BenchmarkRawSync is the yardstick of BenchmarkCommit: one page and one fdatasync.
func BenchmarkRawSync(b *testing.B) {
	f, err := os.Create(filepath.Join(b.TempDir(), "raw"))
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	page := make([]byte, 4096)
	var took []time.Duration
	for b.Loop() {
		at := time.Now()
		if _, err := f.Write(page); err != nil {
			b.Fatal(err)
		}
		if err := syscall.Fdatasync(int(f.Fd())); err != nil {
			b.Fatal(err)
		}
		took = append(took, time.Since(at))
	}
	quantiles(b, took)
}
