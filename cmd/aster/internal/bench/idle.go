package bench

import (
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"
)

// idleNodes and idleAgents are what the bars of an idle node are for.
const (
	idleNodes  = 3
	idleAgents = 10
)

func (b *Bench) idle(ctx context.Context) (rows []Row, err error) {
	nodes, err := b.startMesh(ctx, "idle", idleNodes)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, stopAll(nodes)) }()
	for i := range idleAgents {
		a, err := attach(ctx, nodes[i%idleNodes].url(), fmt.Sprintf("idle-%d", i), nil)
		if err != nil {
			return nil, err
		}
		defer a.stop()
	}
	b.say("idle: %d nodes and %d agents settle for 5 s, then do nothing for %s", idleNodes, idleAgents, b.For)
	if err := pause(ctx, 5*time.Second); err != nil {
		return nil, err
	}
	cpu := make([]time.Duration, len(nodes))
	known := true
	for i, n := range nodes {
		var ok bool
		cpu[i], ok = cpuTime(n.ready.PID)
		known = known && ok
	}
	began := time.Now()
	if err := pause(ctx, b.For); err != nil {
		return nil, err
	}
	took := time.Since(began)
	most, resident, routines := 0.0, 0.0, 0.0
	for i, n := range nodes {
		now, _ := cpuTime(n.ready.PID)
		most = max(most, 100*float64(now-cpu[i])/float64(took))
		bytes, _ := residentBytes(n.ready.PID)
		s, err := n.client.Status(ctx)
		if err != nil {
			return nil, err
		}
		resident = max(resident, float64(max(bytes, s.ResidentBytes))/(1<<20))
		routines = max(routines, float64(s.Goroutines))
	}
	if known {
		rows = append(rows, Row{Bench: "idle", Case: "processor of the busiest node", Value: most, Unit: "% of a core", Bar: 0.5,
			Note: fmt.Sprintf("over %s, in steps of 10 ms", took.Round(time.Second))}.judge())
	}
	rows = append(rows,
		Row{Bench: "idle", Case: "memory of the largest node", Value: resident, Unit: "MiB", Bar: 60}.judge(),
		Row{Bench: "idle", Case: "goroutines", Value: routines, Unit: "at most"}.judge(),
	)
	size, note, err := strippedBytes(b.Self)
	if err != nil {
		return rows, err
	}
	return append(rows, Row{Bench: "idle", Case: "program, stripped", Value: float64(size) / (1 << 20), Unit: "MiB", Bar: 45, Note: note}.judge()), nil
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}

// strippedBytes is the size of a program without what strip takes away.
func strippedBytes(path string) (size int64, note string, err error) {
	fi, err := os.Stat(path)
	if err != nil {
		return 0, "", fmt.Errorf("measure the program: %w", err)
	}
	size = fi.Size()
	f, err := elf.Open(path)
	if err != nil {
		return size, "the file as it is, which may hold symbols", nil
	}
	defer f.Close()
	for _, s := range f.Sections {
		if strings.HasPrefix(s.Name, ".debug_") || s.Name == ".symtab" || s.Name == ".strtab" {
			size -= int64(s.FileSize)
		}
	}
	return size, "", nil
}
