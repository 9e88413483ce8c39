package main

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestALineSaidOverAndOverIsCountedNotRepeated: so many go out, others are not held back, and how many were left out is told
// with the next of them, or beside another line when none comes.
func TestALineSaidOverAndOverIsCountedNotRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		log := slog.New(newPacedLog(slog.NewTextHandler(&out, nil)))
		for range 1000 {
			log.With("peer", "x").Warn("records refused")
		}
		log.Warn("another")
		log.Info("records refused") // of another level
		if n := strings.Count(out.String(), "records refused"); n != linesPerSpan+1 {
			t.Errorf("%d lines, want %d", n, linesPerSpan+1)
		}
		if !strings.Contains(out.String(), "another") {
			t.Error("another line was held back")
		}
		out.Reset()
		time.Sleep(lineSpan)
		log.Warn("records refused")
		if !strings.Contains(out.String(), "leftOut=980") {
			t.Errorf("not told how many were left out: %s", out.String())
		}
		for range linesPerSpan + 4 {
			log.Warn("records refused")
		}
		out.Reset()
		time.Sleep(2 * lineSpan)
		log.Info("something else")
		if !strings.Contains(out.String(), `msg="records refused" leftOut=5`) || !strings.Contains(out.String(), "something else") {
			t.Errorf("beside another line: %s", out.String())
		}
	})
}
