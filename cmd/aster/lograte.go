package main

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// A line that says the same over and over hides the others and wears the disk: of one text and level so many go out in
// lineSpan, and how many did not is told with the first of the next span, or beside another line when none comes.
const (
	linesPerSpan = 20
	lineSpan     = 10 * time.Second
	// textsMax bounds how many texts are counted; beyond it the counts begin anew.
	textsMax = 1024
)

// pacedLog lets so many lines of one text through. Safe for concurrent use.
type pacedLog struct {
	to    slog.Handler
	lines *lineCounts // shared by all that were derived with attributes
}

type lineCounts struct {
	mu   sync.Mutex
	of   map[lineKey]*lineCount
	look time.Time // no span ends before
}

type lineKey struct {
	level slog.Level
	text  string
}

type lineCount struct {
	since     time.Time
	out, left int
	to        slog.Handler // of the last one left out
}

func newPacedLog(to slog.Handler) *pacedLog {
	return &pacedLog{to, &lineCounts{of: map[lineKey]*lineCount{}}}
}

func (p *pacedLog) Enabled(ctx context.Context, level slog.Level) bool {
	return p.to.Enabled(ctx, level)
}

func (p *pacedLog) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &pacedLog{p.to.WithAttrs(attrs), p.lines}
}

func (p *pacedLog) WithGroup(name string) slog.Handler {
	return &pacedLog{p.to.WithGroup(name), p.lines}
}

// Handle counts by the record's own time.
func (p *pacedLog) Handle(ctx context.Context, r slog.Record) error {
	left, pass, told := p.lines.count(r, p.to)
	for _, t := range told {
		_ = t.to.Handle(ctx, t.line) // as good as the line itself
	}
	if !pass {
		return nil
	}
	if left > 0 {
		r = r.Clone()
		r.AddAttrs(slog.Int("leftOut", left))
	}
	return p.to.Handle(ctx, r)
}

// toldLine says what became of lines that nobody said again.
type toldLine struct {
	to   slog.Handler
	line slog.Record
}

// count says whether a line goes out, how many like it were left out before, and what is to be told of others.
func (c *lineCounts) count(r slog.Record, to slog.Handler) (left int, pass bool, told []toldLine) {
	c.mu.Lock()
	defer c.mu.Unlock()
	key := lineKey{r.Level, r.Message}
	if !r.Time.Before(c.look) {
		c.look = r.Time.Add(lineSpan)
		for k, n := range c.of {
			if r.Time.Sub(n.since) < lineSpan || k == key {
				continue
			}
			if n.left > 0 {
				line := slog.NewRecord(r.Time, k.level, k.text, 0)
				line.AddAttrs(slog.Int("leftOut", n.left))
				told = append(told, toldLine{n.to, line})
			}
			delete(c.of, k)
		}
		if len(c.of) >= textsMax {
			clear(c.of)
		}
	}
	n := c.of[key]
	if n == nil {
		if len(c.of) >= textsMax {
			return 0, true, told
		}
		n = &lineCount{since: r.Time}
		c.of[key] = n
	}
	if r.Time.Sub(n.since) >= lineSpan || r.Time.Before(n.since) { // or the clock was set back
		left, n.left, n.out, n.since = n.left, 0, 0, r.Time
	}
	if n.out >= linesPerSpan {
		n.left++
		n.to = to
		return 0, false, told
	}
	n.out++
	return left, true, told
}
