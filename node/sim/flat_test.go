package sim

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/aster-mesh/aster/protocol"
)

// The doses: simulated time at flatRate messages a second, among agents of three nodes.
const (
	flatRate  = 50
	shortFlat = 40 * time.Second
	fullFlat  = 2 * time.Minute
	longFlat  = 24 * time.Hour
	settled   = 10 * time.Second // from when on memory is compared
)

var flat = flag.Duration("flat", 0, "how long the mesh of the memory test lives; 0: as long as the mode has")

// What the cores of three nodes hold is bounded: a day at 50 messages a second leaves no more in memory than its first
// moments. The journals grow; here they are models that forget what all have dealt with.
func TestADayOfMessagesLeavesMemoryFlat(t *testing.T) {
	length := fullFlat
	switch {
	case *flat > 0:
		length = *flat
	case testing.Short():
		length = shortFlat
	case os.Getenv("ASTER_LONG") != "":
		length = longFlat
	}
	w := New(Plan{Seed: 1, Nodes: 3, Clients: 6, Length: length, Delay: 2 * time.Millisecond, SyncTime: 2 * time.Millisecond, Office: true})
	w.calm, w.lean = true, true
	w.found()
	w.runUntil(prelude)
	var talk, forget func()
	talk = func() {
		c, d := w.clients[w.rng.IntN(len(w.clients))], w.clients[w.rng.IntN(len(w.clients))]
		w.say(c.at, c, protocol.Envelope{ID: w.newID(), To: d.id, Intent: "Inform", Value: fmt.Appendf(nil, `{"text":"%d"}`, w.ledger.ids)})
		w.after(time.Second/flatRate, talk)
	}
	forget = func() {
		clear(w.proven)
		for _, n := range w.nodes {
			n.disk.forget(n.disk.Position() - min(n.disk.Position(), 3000))
		}
		w.after(5*time.Second, forget)
	}
	talk()
	forget()
	w.runUntil(prelude + settled)
	goroutines, first := runtime.NumGoroutine(), held(w)
	most := first
	for i := range 8 {
		w.runUntil(prelude + settled + (length-settled)*time.Duration(i+1)/8)
		now := held(w)
		most = max(most, now)
		t.Logf("after %v: %d KiB beside the journals, %d messages", w.now.Round(time.Second), now>>10, w.Stats.Logged)
	}
	if w.Violation != nil {
		t.Fatal(w.Violation)
	}
	if want := int(length.Seconds()) * flatRate * 9 / 10; w.Stats.Logged < want || w.Stats.Handled < want {
		t.Errorf("%d messages were logged and %d handled, want %d", w.Stats.Logged, w.Stats.Handled, want)
	}
	if room := first + first/2 + 4<<20; most > room {
		t.Errorf("memory is not flat: %d KiB at first, then %d KiB", first>>10, most>>10)
	}
	if now := runtime.NumGoroutine(); now > goroutines {
		t.Errorf("%d goroutines at first, now %d", goroutines, now)
	}
}

// held is what the run has in memory beside the places of its journals.
func held(w *World) int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	bytes := int64(m.HeapAlloc)
	for _, n := range w.nodes {
		bytes -= int64(cap(n.disk.order)) * 8
		for _, rs := range n.disk.logs {
			bytes -= int64(cap(rs)) * 8
		}
	}
	return bytes
}

// forget drops what lies at or before a position, but for mail that is unread: to a core it is as if it were there, as long
// as nobody asks for it.
func (d *Disk) forget(upTo uint64) {
	unread := map[*diskRecord]bool{}
	for key, rows := range d.inbox {
		open, keep := rows[:0], 0
		for _, row := range rows {
			if row.state == 0 || row.rec.Pos > upTo {
				open = append(open, row)
				unread[row.rec] = true
				keep++
			}
		}
		clear(rows[keep:])
		d.inbox[key] = open
	}
	for pos := upTo; pos > 0 && d.order[pos-1] != nil; pos-- {
		r := d.order[pos-1]
		if unread[r] {
			continue
		}
		log, seq := r.Record.Log, r.Record.Seq
		if seq == uint64(len(d.logs[log])) {
			continue // the head of a log
		}
		d.order[pos-1], d.logs[log][seq-1] = nil, nil
		delete(d.tiers, placeKey{log, seq})
		if r.env != nil {
			delete(d.firsts, r.env.Identity())
			delete(d.byID, r.env.ID)
		}
	}
}
