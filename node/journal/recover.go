package journal

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/ncruces/go-sqlite3"

	"github.com/aster-mesh/aster/protocol"
)

// catchUp brings the database up to what the files ahead of it hold, when a store is opened.
func (j *Journal) catchUp() error {
	if err := j.leftovers(); err != nil {
		return err
	}
	filled, err := filledTo(j.writer)
	if err != nil {
		return err
	}
	if lost := j.missingAhead(); lost != "" && filled > 0 {
		j.recovery.Reason = strings.TrimPrefix(j.recovery.Reason+"; "+lost, "; ")
	}
	raw, err := j.openAhead()
	if err != nil {
		return err
	}
	tag := tagOf(j.storeID)
	f := look(raw, tag, filled, true)
	j.ahead.tag, j.ahead.next = tag, filled+1
	j.recovery.TornBytes += f.torn
	if err := j.replay(f, raw, filled); err != nil {
		return err
	}
	if err := j.fill(true); err != nil || j.held == nil {
		return err
	}
	// The files stay what holds these commits, and what a process wrote that was killed may not be on the disk yet.
	for i := range j.ahead.files {
		h := &j.ahead.files[i]
		if h.end = f.ends[i]; len(f.half) > 0 {
			j.ahead.active = f.half[len(f.half)-1]
		}
		if err := h.Sync(); err != nil {
			return err
		}
	}
	return nil
}

// filledTo is the number of the last commit that a database has.
func filledTo(c *conn) (n uint64, err error) {
	_, err = c.one("SELECT value FROM meta WHERE key='filled'", nil, func(s *sqlite3.Stmt) {
		if raw := s.ColumnRawBlob(0); len(raw) == 8 {
			n = binary.BigEndian.Uint64(raw)
		}
	})
	return n, err
}

// replay takes over the commits of frames. When one is missing or damaged, what can stand without it is taken: records
// that continue their logs, inbox rows of messages that are here, and all receipts and values. The rest is named.
func (j *Journal) replay(f found, raw [2][]byte, filled uint64) error {
	a := replaying{j: j, lost: map[protocol.LogID]Lost{}}
	for i := range f.frames {
		one := &f.frames[i]
		b, err := readBatch(one.batch)
		if err != nil || one.number != filled+1 {
			a.damaged = fmt.Sprintf("commit %d of those that the database did not have yet cannot be read", filled+1)
		}
		if filled = one.number; err != nil {
			continue
		}
		if err := a.take(one.number, f.half[i], b); err != nil {
			return err
		}
	}
	if a.damaged == "" {
		return nil
	}
	j.recovery.Reason = strings.TrimPrefix(j.recovery.Reason+"; "+a.damaged, "; ")
	j.log.Error("a commit is damaged; what does not hang on it is taken over", "err", a.damaged)
	for i, half := range raw {
		path, err := j.copyAside(fmt.Sprintf(aheadName, i), half)
		if err != nil {
			return err
		}
		j.recovery.SetAside = append(j.recovery.SetAside, path)
	}
	for _, l := range a.lost {
		j.recovery.Lost = append(j.recovery.Lost, l)
	}
	j.recovery.Salvaged += a.records
	return nil
}

// copyAside keeps what a damaged file holds, which is used again.
func (j *Journal) copyAside(name string, raw []byte) (string, error) {
	for n := 1; ; n++ {
		path := asideName(filepath.Join(j.dir, name), n)
		f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if os.IsExist(err) {
			continue
		}
		if err == nil {
			_, err = f.Write(raw)
			if cerr := f.Close(); err == nil {
				err = cerr
			}
		}
		return path, err
	}
}

type replaying struct {
	j       *Journal
	damaged string
	lost    map[protocol.LogID]Lost
	records uint64
}

func (a *replaying) take(number uint64, half int, b Batch) error {
	j := a.j
	inbox := b.Inbox
	b.Inbox = nil
	a.continuing(&b)
	j.signAgain(&b)
	c, err := j.plan(&b)
	if err != nil {
		return err
	}
	for i := range inbox {
		ok, err := j.holds(c, &inbox[i])
		if err != nil {
			return err
		}
		if ok {
			c.b.Inbox = append(c.b.Inbox, inbox[i])
		}
	}
	c.number, c.half = number, half
	j.accept(c)
	j.ahead.next = number + 1
	a.records += uint64(len(c.b.Entries))
	return nil
}

// continuing leaves in b the records that continue their logs.
func (a *replaying) continuing(b *Batch) {
	heads := map[protocol.LogID]logState{}
	var kept []Entry
	for _, e := range b.Entries {
		r := &e.Record
		head, seen := heads[r.Log]
		if l := a.j.logOf(r.Log); l != nil && !seen {
			head = *l
		}
		switch {
		case r.Seq <= head.seq: // of a commit that the database has
		case r.Seq == head.seq+1 && r.Prev == head.hash && r.Hash() == e.Hash:
			head.seq, head.hash = r.Seq, e.Hash
			kept = append(kept, e)
		default:
			a.damaged = cmp.Or(a.damaged, fmt.Sprintf("record %d of %s does not follow on what is left of its log", r.Seq, r.Log))
			l, ok := a.lost[r.Log]
			if !ok {
				l = Lost{Log: r.Log, From: head.seq + 1}
			}
			l.To = max(l.To, r.Seq)
			a.lost[r.Log] = l
		}
		heads[r.Log] = head
	}
	b.Entries = kept
}

// forgetAll begins anew in memory, before a damaged store is rebuilt.
func (j *Journal) forgetAll() {
	_ = j.ahead.close()
	j.mu.Lock()
	defer j.mu.Unlock()
	j.failed, j.held, j.left, j.recovery.TornBytes = nil, nil, nil, 0
	j.unfiled, j.unfiledBytes, j.inHalf = nil, 0, [2]int{}
	j.unfiledRecords.Store(0)
	j.waits.Store(false)
	clear(j.unfiledSaid)
	clear(j.early)
}
