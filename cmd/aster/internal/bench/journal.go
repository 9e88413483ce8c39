package bench

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/aster-mesh/aster/node/journal"
)

// groupOf is how many appends share a commit in the grouped case.
const groupOf = 64

// journal appends signed and chained messages beside a raw file.
func (b *Bench) journal(ctx context.Context) (rows []Row, err error) {
	b.say("journal: appends, alone and %d a commit", groupOf)
	raw, err := openDisk(b.Dir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, raw.close()) }()
	j, err := journal.Open(filepath.Join(b.Dir, "journal"), journal.Options{})
	if err != nil {
		return nil, fmt.Errorf("open a journal: %w", err)
	}
	defer func() { err = errors.Join(err, j.Close()) }()
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make a key: %w", err)
	}
	a := newAuthor(key)
	commit := func(n int) func() (time.Duration, error) {
		return func() (time.Duration, error) {
			began := time.Now()
			var batch journal.Batch
			for range n {
				batch.Entries = append(batch.Entries, a.message("writer", "reader"))
			}
			err := a.commit(j, batch)
			return time.Since(began), err
		}
	}
	for _, n := range []int{1, groupOf} {
		file, ours := &side{once: func() (time.Duration, error) { return raw.sync(n) }}, &side{once: commit(n)}
		if err := interleave(b.For, 0, file, ours); err != nil {
			return rows, err
		}
		rate := func(s samples) float64 { return float64(n) * 1000 / s.p50() }
		row := Row{Bench: "journal", Case: fmt.Sprintf("%d a commit", n), Value: rate(ours.got), Unit: "records/s",
			Raw: []Raw{{"raw file, fdatasync", rate(file.got), "records/s"}, {"commit p50", ours.got.p50(), "ms"}, {"commit p99", ours.got.p99(), "ms"},
				{"fdatasync p50", file.got.p50(), "ms"}, {"fdatasync p99", file.got.p99(), "ms"}}}
		row.Bar, row.Floor, row.Rule = rate(file.got)/1.6, true, "raw ÷ 1.6"
		if n > 1 {
			row.Bar, row.Rule = rate(file.got)/4, "raw ÷ 4"
		}
		rows = append(rows, row.judge())
	}
	return rows, ctx.Err()
}
