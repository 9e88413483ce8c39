package journal

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/aster-mesh/aster/protocol"
)

// quantiles reports p50 and p99 of what took took.
func quantiles(b *testing.B, took []time.Duration) {
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-µs")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-µs")
}

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

func BenchmarkCommit(b *testing.B) {
	for _, n := range []int{1, 64, 256} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			j := open(b, tempDir(b), Options{})
			a := newAuthor(1, 1)
			i := 0
			var took []time.Duration
			for b.Loop() {
				b.StopTimer()
				batch := Batch{}
				for range n {
					i++
					env := note(i)
					env.ID = protocol.MsgID(fmt.Sprintf("%08x-0000-7000-8000-%012x", i*2654435761&0xffffffff, i))
					batch.Entries = append(batch.Entries, a.say(env))
				}
				b.StartTimer()
				at := time.Now()
				if _, err := j.Commit(batch); err != nil {
					b.Fatal(err)
				}
				took = append(took, time.Since(at))
			}
			quantiles(b, took)
			b.ReportMetric(float64(n*len(took))/b.Elapsed().Seconds(), "records/s")
		})
	}
}

func BenchmarkIdentity(b *testing.B) {
	j := open(b, tempDir(b), Options{})
	a := newAuthor(1, 1)
	for i := range 100 {
		batch := Batch{}
		for k := range 100 {
			batch.Entries = append(batch.Entries, a.say(note(i*100+k)))
		}
		commit(b, j, batch)
	}
	i := 0
	for b.Loop() {
		i++
		if _, _, err := j.Identity(protocol.IdentityOf("anna", note(i%20000).ID)); err != nil {
			b.Fatal(err)
		}
	}
}
