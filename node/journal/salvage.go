package journal

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"

	"github.com/ncruces/go-sqlite3"

	"github.com/aster-mesh/aster/protocol"
)

// salvage takes over what is readable in the damaged database at path. A record counts as readable when it matches its
// own hash; between two such records of a log the missing ones keep their places, to be filled by Repair, and behind
// the last one the log is short. Inboxes, receipts and values are taken as they are read. The old file is not changed.
func (j *Journal) salvage(path string, was *former) (err error) {
	from, err := headed(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unheaded(path, from)) }()
	// Without verification a damaged page is read as far as it goes: records are checked by their hashes. With a
	// writable schema (nothing is written) the engine passes over parts of the schema that it cannot read.
	old, err := openConn(from, j.opts.VFS, "PRAGMA checksum_verification=0", "PRAGMA writable_schema=1",
		"PRAGMA cache_size=-4096", "PRAGMA temp_store=MEMORY", "PRAGMA trusted_schema=OFF", "PRAGMA query_only=1")
	if err != nil {
		j.log.Error("nothing of the damaged store is readable", "err", err)
		return j.takeBases(nil)
	}
	defer func() {
		old.close()
		os.Remove(from + "-shm") // made by reading
	}()
	if _, err := old.db.Config(sqlite3.DBCONFIG_NO_CKPT_ON_CLOSE, true); err != nil {
		return err
	}
	s := &salvager{j: j, old: old, logs: map[int64]*logState{}, void: map[int64]bool{}}
	s.readLogs()
	var id string
	if _, err := old.one("SELECT value FROM meta WHERE key='store'", nil, func(st *sqlite3.Stmt) { id = st.ColumnText(0) }); err == nil {
		if n, err := filledTo(old); err == nil {
			was.tag, was.filled, was.known = tagOf(id), n, id != ""
			s.filled = n
		}
	}
	if err := j.takeBases(old); err != nil {
		return err
	}
	s.bothWays("pos, intent", "msgs", "pos", func(st *sqlite3.Stmt) {
		if st.ColumnText(1) == "" {
			s.void[st.ColumnInt64(0)] = true
		}
	})
	if err := s.records(); err != nil {
		return err
	}
	if j.HasDamaged() {
		j.log.Error("records of the damaged store are missing; they are not served until another node has given them again", "records", len(j.bad))
		j.keepBad() // once: there may be very many
	}
	if err := s.rest(); err != nil {
		return err
	}
	for _, l := range s.logs {
		if head := j.logOf(l.id); head == nil && l.seq > 0 {
			j.recovery.Lost = append(j.recovery.Lost, Lost{l.id, 1, l.seq, false})
		} else if head != nil && head.seq < l.seq {
			j.recovery.Lost = append(j.recovery.Lost, Lost{l.id, head.seq + 1, l.seq, false})
		}
	}
	return nil
}

// former is what is known of the store that a damaged one was.
type former struct {
	tag    storeTag
	filled uint64
	known  bool
}

type salvager struct {
	j   *Journal
	old *conn

	filled uint64              // number of the last commit that it had
	logs   map[int64]*logState // of the old database, by its rows
	void   map[int64]bool      // positions of messages that do not count
	end    uint64              // no position is above it
}

// bothWays reads a table forwards to the first error and backwards to the last, so that one bad page costs only itself.
// Rows between may be met twice.
func (s *salvager) bothWays(columns, table, key string, row func(*sqlite3.Stmt)) {
	for _, order := range []string{" ASC", " DESC"} {
		err := s.old.each("SELECT "+columns+" FROM "+table+" ORDER BY "+key+order, nil, func(st *sqlite3.Stmt) bool {
			row(st)
			return true
		})
		if err == nil {
			return
		}
		s.j.log.Warn("a table of the damaged store is not wholly readable", "table", table, "err", err)
	}
}

func (s *salvager) readLogs() {
	s.bothWays("id, name, seq, hash", "logs", "id", func(st *sqlite3.Stmt) {
		id, err := protocol.ParseLogID(st.ColumnText(1))
		if err != nil || s.logs[st.ColumnInt64(0)] != nil {
			return
		}
		l := &logState{row: st.ColumnInt64(0), id: id, text: id.String(), seq: uint64(st.ColumnInt64(2))}
		fill(l.hash[:], st.ColumnRawBlob(3))
		s.logs[l.row] = l
		s.end += l.seq
	})
	// The table may be hurt where its index by name is whole; how far those logs went is then not known.
	if err := s.old.each("SELECT id, name FROM logs INDEXED BY sqlite_autoindex_logs_1", nil, func(st *sqlite3.Stmt) bool {
		id, err := protocol.ParseLogID(st.ColumnText(1))
		if row := st.ColumnInt64(0); err == nil && s.logs[row] == nil {
			s.logs[row] = &logState{row: row, id: id, text: id.String()}
		}
		return true
	}); err != nil {
		s.j.log.Warn("the index of logs is not wholly readable", "err", err)
	}
	if n, err := s.old.number("SELECT max(pos) FROM records"); err == nil {
		s.end = max(s.end, uint64(n))
	}
}

// salvageBatch is how many records go into one transaction.
const salvageBatch = 512

func (s *salvager) records() error {
	for pos := uint64(0); ; {
		var batch []Stored
		next := pos
		take := func(st *sqlite3.Stmt) bool {
			next = uint64(st.ColumnInt64(0))
			if r, ok := s.scan(st); ok {
				batch = append(batch, r)
			}
			return true
		}
		err := s.old.each("SELECT "+recordColumns+" FROM records WHERE pos>? ORDER BY pos LIMIT ?", []any{pos, salvageBatch}, take)
		if err != nil { // one by one, round what cannot be read
			for next = pos; next < min(pos+salvageBatch, s.end); {
				at := next + 1
				if _, err := s.old.one("SELECT "+recordColumns+" FROM records WHERE pos=?", []any{at}, func(st *sqlite3.Stmt) { take(st) }); err != nil {
					s.j.log.Debug("a record of the damaged store cannot be read", "pos", at, "err", err)
				}
				next = at
			}
		}
		if next == pos {
			return nil
		}
		pos = next
		if err := s.append(batch); err != nil {
			return err
		}
	}
}

// scan reads a row of the old database; false when it does not match its own hash.
func (s *salvager) scan(st *sqlite3.Stmt) (Stored, bool) {
	l := s.logs[st.ColumnInt64(1)]
	if l == nil {
		return Stored{}, false
	}
	return scanOf(st, l.id)
}

// gapMax bounds how many missing records of a log keep their places.
const gapMax = 4096

func (s *salvager) append(batch []Stored) error {
	j, t := s.j, s.j.transaction()
	var bad []int64
	next := j.next
	c := &accepted{half: -1, logs: map[protocol.LogID]*planned{}, row: j.nextRow}
	err := inTransaction(j.writer, func() error {
		for i := range batch {
			r := &batch[i].Record
			l := c.log(j, r.Log)
			if r.Seq <= l.seq || r.Seq > l.seq+gapMax || (r.Seq == l.seq+1 && r.Prev != l.hash) {
				continue
			}
			if err := t.touch(&l.logState, true, j.rowsFilled); err != nil {
				return err
			}
			first := l.seq + 1
			for seq := first; seq < r.Seq; seq++ {
				var hash protocol.Hash // known of the last missing one alone; Repair learns the others from behind
				if seq == r.Seq-1 {
					hash = r.Prev
				}
				if err := t.c.exec("INSERT INTO records(pos, log, seq, prev, hash, at, wall, kind, sig, body) VALUES(?,?,?,?,?,0,0,'',NULL,X'')",
					next, l.row, seq, make([]byte, len(hash)), hash[:]); err != nil {
					return err
				}
				bad = append(bad, int64(next))
				next++
			}
			if first < r.Seq {
				j.recovery.Lost = append(j.recovery.Lost, Lost{r.Log, first, r.Seq - 1, true})
			}
			l.seq, l.hash = r.Seq, batch[i].Hash
			if err := t.putRecord(next, l.row, &Entry{Record: *r, Hash: batch[i].Hash, Void: s.void[int64(batch[i].Pos)]}); err != nil {
				return err
			}
			next++
			j.recovery.Salvaged++
		}
		return t.flush()
	})
	if err != nil {
		return err
	}
	j.count += next - j.next
	j.next = next
	j.accept(c)
	if err := j.filled(t); err != nil {
		return err
	}
	j.mu.Lock()
	for _, pos := range bad {
		j.bad[pos] = true
	}
	j.mu.Unlock()
	return nil
}

// rest takes over receipts, inboxes and values. What they say of messages that are lost too goes with those.
func (s *salvager) rest() error {
	var b Batch
	s.bothWays("log, seq, tier, agent, at, wall, by, reason", "tiers", "log, seq, key, tier", func(st *sqlite3.Stmt) {
		if l := s.logs[st.ColumnInt64(0)]; l != nil {
			b.Tiers = append(b.Tiers, TierPut{
				Log: l.id, Seq: uint64(st.ColumnInt64(1)), Tier: protocol.Tier(st.ColumnText(2)), Agent: protocol.AgentID(st.ColumnText(3)),
				At: protocol.HLC(st.ColumnInt64(4)), Wall: st.ColumnInt64(5), By: protocol.PeerID(st.ColumnText(6)), Reason: st.ColumnText(7),
			})
		}
	})
	b.Values = map[string][]byte{}
	s.bothWays("key, value", "vals", "key", func(st *sqlite3.Stmt) { b.Values[st.ColumnText(0)] = st.ColumnBlob(1, []byte{}) })
	var puts []oldInboxRow
	s.bothWays("agent, pos, bytes, state, reason", "inbox", "key, pos", func(st *sqlite3.Stmt) {
		puts = append(puts, oldInboxRow{protocol.AgentID(st.ColumnText(0)), st.ColumnInt64(1), st.ColumnInt64(2), st.ColumnInt64(3), st.ColumnText(4)})
	})
	c, err := s.j.plan(&b)
	if err != nil {
		return err
	}
	c.half, c.number = -1, s.filled
	t := s.j.transaction()
	if err := inTransaction(s.j.writer, func() error {
		if err := t.fill([]*accepted{c}); err != nil {
			return err
		}
		for _, p := range puts {
			if err := s.putInbox(t, p); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		return fmt.Errorf("receipts and inboxes: %w", err)
	}
	s.j.accept(c)
	return s.j.filled(t)
}

type oldInboxRow struct {
	agent             protocol.AgentID
	pos, bytes, state int64
	reason            string
}

// putInbox takes an inbox row over to where its message now stands, also when that is damaged and waits for Repair.
func (s *salvager) putInbox(t *transaction, p oldInboxRow) error {
	var ref msgRef
	_, err := s.old.one("SELECT log, seq FROM records WHERE pos=?", []any{p.pos}, func(st *sqlite3.Stmt) {
		if l := s.logs[st.ColumnInt64(0)]; l != nil {
			if now := s.j.logOf(l.id); now != nil {
				ref = msgRef{now.row, uint64(st.ColumnInt64(1))}
			}
		}
	})
	if err != nil {
		s.j.log.Warn("an inbox row of the damaged store points nowhere", "agent", p.agent, "err", err)
		return nil
	}
	at, err := t.find(ref)
	if err != nil || at.pos == 0 {
		return err
	}
	if s.j.hasLeft(ref.log, ref.seq) {
		return nil
	}
	return t.c.exec("INSERT INTO inbox VALUES(?,?,?,?,?,?) ON CONFLICT DO NOTHING", fold(p.agent), at.pos, string(p.agent), p.bytes, p.state, p.reason)
}

// walFrames counts the frames of the write-ahead log at path that belong to its newest generation, whole or not. The
// layout is section 4 of SQLite's file format.
func walFrames(path string) (frames, pageBytes int64) {
	f, err := os.Open(path)
	if err != nil {
		return 0, 0
	}
	defer f.Close()
	var head [32]byte
	if _, err := f.ReadAt(head[:], 0); err != nil {
		return 0, 0
	}
	pageBytes = int64(binary.BigEndian.Uint32(head[8:]))
	if pageBytes < 512 || pageBytes > 1<<16 {
		return 0, 0
	}
	var frame [24]byte
	for ; ; frames++ {
		if _, err := f.ReadAt(frame[:], 32+frames*(24+pageBytes)); err != nil || string(frame[8:16]) != string(head[16:24]) {
			return frames, pageBytes
		}
	}
}
