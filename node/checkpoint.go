package node

import "time"

// checkpointRecords and checkpointEvery bound what a start must fold anew (DESIGN 4 Start).
const (
	checkpointRecords = 10_000
	checkpointEvery   = 30 * time.Second
)

// boardCheckpoint names the stored fold.
const boardCheckpoint = "board"

func (l *loop) checkpointDue() time.Time {
	if l.pos == l.savedAt {
		return time.Time{}
	}
	return l.saved.Add(checkpointEvery)
}

// checkpoint hands the fold, encoded here, to a goroutine that makes it durable: the loop does not wait for that sync. A
// failure costs the next start some folding, so it is told and tried again.
func (l *loop) checkpoint() {
	if l.pos == l.savedAt || !l.saving.CompareAndSwap(false, true) {
		return
	}
	raw, pos := l.board.Encode(), l.pos
	l.saved, l.savedAt = l.now, pos
	l.savers.Go(func() {
		defer l.saving.Store(false)
		if err := l.store.SaveCheckpoint(boardCheckpoint, pos, raw); err != nil {
			l.log.Warn("checkpoint of the board not saved", "err", err)
		}
	})
}

// lastCheckpoint saves the fold at the end of the loop.
func (l *loop) lastCheckpoint() {
	l.savers.Wait()
	l.savedAt = 0
	l.checkpoint()
	l.savers.Wait()
}

// value puts a named value into this turn's commit.
func (l *loop) value(key string, v []byte) {
	if l.values == nil {
		l.values = map[string][]byte{}
	}
	l.values[key] = v
}
