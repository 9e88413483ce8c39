package journal

import (
	"fmt"
	"slices"
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

// million makes a store of n messages in commits of 256.
func million(b *testing.B, dir string, n int) {
	b.Helper()
	j := open(b, dir, Options{BytesMax: 64 << 30, VFS: newDisk(b, &disk{})})
	a := newAuthor(1, 1)
	words := []string{"build", "failed", "passed", "빌드", "실패", "review", "merge", "parser", "lease", "claim"}
	for i := 0; i < n; {
		batch := Batch{}
		for range 256 {
			i++
			env := note(i)
			env.Value = fmt.Appendf(nil, `{"text":"%s of the %s number %d, then %s"}`, words[i%10], words[i/10%10], i, words[i/100%10])
			e := a.add(protocol.KindMessage, protocol.EncodeBody(env), false)
			e.Envelope = &env
			batch.Entries = append(batch.Entries, e)
		}
		commit(b, j, batch)
	}
	if err := j.Close(); err != nil {
		b.Fatal(err)
	}
}

func BenchmarkOpen(b *testing.B) {
	n := thorough(1_000_000, 100_000)
	dir := tempDir(b)
	million(b, dir, n)
	for b.Loop() {
		j, err := Open(dir, Options{BytesMax: 64 << 30})
		if err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		if j.Records() < uint64(n) {
			b.Fatalf("%d records", j.Records())
		}
		j.Close()
		b.StartTimer()
	}
	b.ReportMetric(float64(n), "records")
}

func BenchmarkSearch(b *testing.B) {
	n := thorough(200_000, 20_000)
	dir := tempDir(b)
	million(b, dir, n)
	j := open(b, dir, Options{BytesMax: 64 << 30})
	at := time.Now()
	for more := true; more; {
		var err error
		if more, err = j.indexSome(); err != nil {
			b.Fatal(err)
		}
	}
	b.Logf("%d messages indexed in %v, %d MiB", n, time.Since(at).Round(time.Millisecond), j.searchBytes.Load()>>20)
	for _, words := range []string{"build", "failed", "number 12345", "빌드 실패", "패", "n", "the par", "anna build"} {
		b.Run(words, func(b *testing.B) {
			var took []time.Duration
			for b.Loop() {
				at := time.Now()
				if _, err := j.Search(words, 0, 50); err != nil {
					b.Fatal(err)
				}
				took = append(took, time.Since(at))
			}
			quantiles(b, took)
		})
	}
}
