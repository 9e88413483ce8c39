package webpush

import "time"

const (
	// Settle is how long something waits before somebody is told: what is answered by then disturbs nobody.
	Settle = 5 * time.Second
	merge  = time.Minute // what comes after a note of its kind waits so long for the next one
	anHour = 6           // notes an hour, but for clocks
)

// Due is something that is worth to interrupt its person for.
type Due struct {
	ID    string
	Kind  string
	Clock bool // it decides itself if nobody does
}

// Damper decides when one person is told, so that a burst is one note. It is pure: time is an argument.
type Damper struct {
	Settle time.Duration // 0: the usual one

	waiting map[string]time.Time // due and not told → since when
	told    map[string]bool
	kinds   map[string]time.Time // kind → last told
	notes   []time.Time          // of the last hour
}

// Look says whether the person is told now. due is all that is due; looking, whether one of the person's pages is in sight
// now, and seen, when last one was: what was in sight for as long as things settle is told by the page, and dropped.
func (d *Damper) Look(now time.Time, due []Due, looking bool, seen time.Time) bool {
	settle := d.Settle
	if settle == 0 {
		settle = Settle
	}
	if d.waiting == nil {
		d.waiting, d.told, d.kinds = map[string]time.Time{}, map[string]bool{}, map[string]time.Time{}
	}
	d.forget(due)
	tells := false
	for _, x := range due {
		if d.told[x.ID] {
			continue
		}
		since, known := d.waiting[x.ID]
		switch {
		case !known:
			d.waiting[x.ID] = now
		case !seen.Before(since.Add(settle)):
			d.dropped(x.ID)
		case looking || now.Sub(since) < settle:
		default:
			tells = tells || d.may(x, now)
		}
	}
	if tells {
		d.tell(due, now)
	}
	return tells
}

// forget drops what is over.
func (d *Damper) forget(due []Due) {
	here := map[string]bool{}
	for _, x := range due {
		here[x.ID] = true
	}
	for id := range d.waiting {
		if !here[id] {
			delete(d.waiting, id)
		}
	}
	for id := range d.told {
		if !here[id] {
			delete(d.told, id)
		}
	}
}

func (d *Damper) dropped(id string) {
	delete(d.waiting, id)
	d.told[id] = true
}

// may says whether x, which has settled, may be told now; else it waits until it may, or is over.
func (d *Damper) may(x Due, now time.Time) bool {
	if last, ok := d.kinds[x.Kind]; ok && now.Sub(last) < merge {
		return false
	}
	for len(d.notes) > 0 && now.Sub(d.notes[0]) >= time.Hour {
		d.notes = d.notes[1:]
	}
	return x.Clock || len(d.notes) < anHour
}

// tell takes all that is due as told: the note's count holds what has not settled, too.
func (d *Damper) tell(due []Due, now time.Time) {
	for _, x := range due {
		if !d.told[x.ID] {
			d.dropped(x.ID)
			d.kinds[x.Kind] = now
		}
	}
	d.notes = append(d.notes, now)
}
