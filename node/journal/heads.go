package journal

import (
	"errors"
	"fmt"

	"github.com/ncruces/go-sqlite3"

	"github.com/aster-mesh/aster/protocol"
)

// headsChecked is how many of the newest records Open reads again: a crash can only have hurt the end.
const headsChecked = 64

func (j *Journal) readHeads() error {
	c := j.writer
	clear(j.logs)
	clear(j.rows)
	j.places, j.left, j.nextRow = places{}, nil, 1
	var bad error
	err := c.each("SELECT id, name, seq, hash FROM logs", nil, func(s *sqlite3.Stmt) bool {
		id, err := protocol.ParseLogID(s.ColumnText(1))
		if err != nil || len(s.ColumnRawBlob(3)) != len(protocol.Hash{}) {
			bad = fmt.Errorf("%w: head of log %q", ErrDamaged, s.ColumnText(1))
			return false
		}
		l := &logState{row: s.ColumnInt64(0), id: id, text: s.ColumnText(1), seq: uint64(s.ColumnInt64(2))}
		copy(l.hash[:], s.ColumnRawBlob(3))
		j.logs[id], j.rows[l.row] = l, l
		j.nextRow = max(j.nextRow, l.row+1)
		return true
	})
	if err = errors.Join(err, bad); err != nil {
		return err
	}
	if _, err = c.one("SELECT value FROM meta WHERE key='store'", nil, func(s *sqlite3.Stmt) { j.storeID = s.ColumnText(0) }); err != nil {
		return err
	}
	j.rowsFilled = j.nextRow - 1
	if !j.former {
		if err := j.readBases(); err != nil {
			return err
		}
	}
	last, err := c.number("SELECT max(pos) FROM records")
	if err != nil {
		return err
	}
	last = max(last, int64(j.cut.position))
	j.next, j.count = uint64(last)+1, 0
	j.last.Store(uint64(last))
	for _, l := range j.logs {
		j.count += l.seq - l.base
	}
	if err := c.each("SELECT log, seq FROM tiers_early", nil, func(s *sqlite3.Stmt) bool {
		j.early[msgRef{s.ColumnInt64(0), uint64(s.ColumnInt64(1))}] = true
		return true
	}); err != nil {
		return err
	}
	return j.checkEnd(last)
}

// checkEnd compares the newest records with the heads.
func (j *Journal) checkEnd(last int64) error {
	seen := map[int64]bool{}
	var bad error
	err := j.writer.each("SELECT "+recordColumns+" FROM records WHERE pos > ? ORDER BY pos DESC", []any{last - headsChecked},
		func(s *sqlite3.Stmt) bool {
			st, ok := j.scanRecord(s)
			l := j.rows[s.ColumnInt64(1)]
			if l != nil && st.Record.Seq <= l.base {
				return true // it left, and the log may have gone on elsewhere
			}
			if l == nil || (!seen[l.row] && (st.Record.Seq != l.seq || st.Hash != l.hash)) {
				bad = fmt.Errorf("%w: the newest records do not match the heads at position %d", ErrDamaged, st.Pos)
				return false
			}
			seen[l.row] = true
			if !ok {
				j.noteBad(int64(st.Pos))
			}
			return true
		})
	return errors.Join(err, bad)
}
