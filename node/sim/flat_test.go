package sim

import (
	"bytes"
	"flag"
	"fmt"
	"maps"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/aster-mesh/aster/protocol"
)

// The doses: simulated time at flatRate messages a second, among agents of three nodes, who say flatBurst of them at a time.
const (
	flatRate  = 50
	flatBurst = 10
	shortFlat = 3 * time.Minute
	fullFlat  = 12 * time.Minute
	longFlat  = 24 * time.Hour
	flatParts = 24  // of a run, of which the first warms up and the second is what the last quarter is compared with
	flatLooks = 6   // at each part
	flatAnew  = 200 // forgettings of a disk after which its maps are made again
)

var flat = flag.Duration("flat", 0, "how long the mesh of the memory test lives; 0: as long as the mode has")

// What the cores of three nodes hold is bounded: a day at 50 messages a second leaves no more in memory than its second
// hour had. The journals grow; here they are models that forget what all have dealt with.
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
	room := 1.1
	if length < 10*time.Minute {
		room = 1.3 // a part is shorter than what the nodes do from time to time
	}
	defer debug.SetGCPercent(debug.SetGCPercent(400))
	w := New(Plan{Seed: 1, Nodes: 3, Clients: 6, Length: length, Delay: 2 * time.Millisecond, SyncTime: 2 * time.Millisecond, Office: true})
	w.calm, w.lean = true, true
	w.found()
	w.runUntil(prelude)
	w.chatter()
	w.forgetful()
	began, warm := time.Now(), min(length/2, max(time.Minute, length/flatParts))
	w.runUntil(prelude + warm)
	var parts []look
	for i := range flatParts - 1 {
		var looks []look
		for j := range flatLooks {
			w.runUntil(prelude + warm + (length-warm)*time.Duration(i*flatLooks+j+1)/((flatParts-1)*flatLooks))
			looks = append(looks, lookAt(w))
		}
		parts = append(parts, mean(looks))
		t.Logf("%9s: %6d KiB of heap, %6d KiB resident, %d goroutines, %8d messages logged, %8d handled, after %s", w.now.Round(time.Second),
			parts[i].heap>>10, parts[i].resident>>10, parts[i].goroutines, w.Stats.Logged, w.Stats.Handled, time.Since(began).Round(time.Second))
	}
	if w.Violation != nil {
		t.Fatal(w.Violation)
	}
	if want := int(length.Seconds()) * flatRate * 9 / 10; w.Stats.Logged < want || w.Stats.Handled < want {
		t.Errorf("%d messages were logged and %d handled, want %d", w.Stats.Logged, w.Stats.Handled, want)
	}
	first, last := parts[0], mean(parts[len(parts)-flatParts/4:])
	t.Logf("%s at %d messages a second, %d messages: the last quarter has %.3f of the heap and %.3f of the resident memory of the first part after warming up, %d goroutines then and %d now",
		length, flatRate, w.Stats.Logged, float64(last.heap)/float64(first.heap), float64(last.resident)/float64(max(first.resident, 1)), first.goroutines, last.goroutines)
	if float64(last.heap) > room*float64(first.heap) {
		t.Errorf("the heap is not flat: %d KiB at first, %d KiB in the end", first.heap>>10, last.heap>>10)
	}
	if length >= time.Hour && float64(last.resident) > room*float64(first.resident) { // shorter ones have other tests before them
		t.Errorf("resident memory is not flat: %d KiB at first, %d KiB in the end", first.resident>>10, last.resident>>10)
	}
	if last.goroutines > first.goroutines {
		t.Errorf("%d goroutines at first, %d in the end", first.goroutines, last.goroutines)
	}
}

// chatter has all agents speak to one another at flatRate. None of it are Delegates: of each the board keeps how it ended.
func (w *World) chatter() {
	for range flatBurst {
		c, d := w.clients[w.rng.IntN(len(w.clients))], w.clients[w.rng.IntN(len(w.clients))]
		intent := protocol.Intent("Inform")
		if w.ledger.ids%2 == 0 {
			intent = "Request"
		}
		w.say(c.at, c, protocol.Envelope{ID: w.newID(), To: d.id, Intent: intent, Value: fmt.Appendf(nil, `{"text":"%d"}`, w.ledger.ids)})
	}
	w.after(flatBurst*time.Second/flatRate, w.chatter)
}

// forgetful has the disks drop what is over, now and then.
func (w *World) forgetful() {
	marks := make([]forgotten, len(w.nodes))
	var forget func()
	times := 0
	forget = func() {
		clear(w.proven)
		times++
		for i, n := range w.nodes {
			marks[i].forget(n.disk, int(n.disk.Position())-3000)
			if times%flatAnew == 0 {
				n.disk.anew()
			}
		}
		w.after(5*time.Second, forget)
	}
	forget()
}

// look is what the process has at one moment; of several, their mean.
type look struct {
	heap, resident int64
	goroutines     int
}

func lookAt(w *World) look {
	debug.FreeOSMemory()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	l := look{heap: int64(m.HeapAlloc), goroutines: runtime.NumGoroutine()}
	if raw, err := os.ReadFile("/proc/self/statm"); err == nil { // elsewhere there is none to compare
		if fields := bytes.Fields(raw); len(fields) > 1 {
			pages, _ := strconv.ParseInt(string(fields[1]), 10, 64)
			l.resident = pages * int64(os.Getpagesize())
		}
	}
	runtime.KeepAlive(w)
	return l
}

func mean(looks []look) (l look) {
	for _, o := range looks {
		l.heap += o.heap
		l.resident += o.resident
		l.goroutines = max(l.goroutines, o.goroutines)
	}
	l.heap /= int64(len(looks))
	l.resident /= int64(len(looks))
	return l
}

// anew makes the maps of a disk again. One of Go's that always holds 3,000 keys, each for a minute, takes twice as much once some eight
// million have passed through it, which came in the 18th hour of a day and looked as if the cores held more.
func (d *Disk) anew() {
	d.tiers, d.firsts, d.byID = again(d.tiers), again(d.firsts), again(d.byID)
	for _, s := range append(slices.Collect(maps.Values(d.logs)), d.order) {
		s.pages = again(s.pages)
	}
}

func again[K comparable, V any](m map[K]V) map[K]V {
	out := make(map[K]V, len(m))
	maps.Copy(out, m)
	return out
}

// forgotten is how far a disk has forgotten, and what it had to keep below that.
type forgotten struct {
	upTo int
	kept []int
}

// forget drops what lies at or before a position, but for mail that is unread and the heads of logs: to a core it is as if
// it were there, as long as nobody asks for it.
func (m *forgotten) forget(d *Disk, upTo int) {
	unread := map[*diskRecord]bool{}
	for key, rows := range d.inbox {
		rows = slices.DeleteFunc(rows, func(row *inboxRow) bool { return row.state != open && int(row.rec.Pos) <= upTo })
		for _, row := range rows {
			unread[row.rec] = true
		}
		d.inbox[key] = rows
	}
	look := m.kept
	for ; m.upTo < upTo; m.upTo++ {
		look = append(look, m.upTo)
	}
	m.kept = nil
	for _, i := range look {
		r := d.order.at(i)
		log, seq := r.Record.Log, r.Record.Seq
		if unread[r] || seq == uint64(d.logs[log].len()) {
			m.kept = append(m.kept, i)
			continue
		}
		d.order.drop(i)
		d.logs[log].drop(int(seq - 1))
		delete(d.tiers, placeKey{log, seq})
		if r.env != nil {
			delete(d.firsts, r.env.Identity())
			delete(d.byID, r.env.ID)
		}
	}
}
