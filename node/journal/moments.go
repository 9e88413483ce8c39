package journal

import (
	"fmt"

	"github.com/ncruces/go-sqlite3"

	"github.com/aster-mesh/aster/protocol"
)

// Beside says when something was said last before a hybrid time and first after it (0: never), and late: messages at
// positions above it came here after one that was said later than that time; 0: none did.
func (j *Journal) Beside(at protocol.HLC) (prev, next protocol.HLC, late uint64, err error) {
	err = j.read(func(c *conn) error {
		kept := j.kept("msgs.pos")
		if _, err := c.one("SELECT max(at) FROM msgs WHERE at<? AND intent<>''"+kept, []any{int64(at)}, func(s *sqlite3.Stmt) { prev = protocol.HLC(s.ColumnInt64(0)) }); err != nil {
			return err
		}
		_, err := c.one("SELECT min(at), min(pos) FROM msgs WHERE at>? AND intent<>''"+kept, []any{int64(at)}, func(s *sqlite3.Stmt) {
			next, late = protocol.HLC(s.ColumnInt64(0)), uint64(s.ColumnInt64(1))
		})
		return err
	})
	if err != nil {
		return 0, 0, 0, fmt.Errorf("messages beside a time: %w", err)
	}
	return prev, next, late, nil
}

// Timeline gives the times of messages at even counts, the first and the last included, at most n of them, in order.
func (j *Journal) Timeline(n int) ([]protocol.HLC, error) {
	var out []protocol.HLC
	err := j.read(func(c *conn) error {
		out = nil
		kept := j.kept("msgs.pos")
		all, err := c.number("SELECT count(*) FROM msgs WHERE intent<>''" + kept)
		if err != nil {
			return err
		}
		take := func(s *sqlite3.Stmt) bool {
			out = append(out, protocol.HLC(s.ColumnInt64(0)))
			return true
		}
		if all <= int64(n) {
			return c.each("SELECT at FROM msgs WHERE intent<>''"+kept+" ORDER BY at", nil, take)
		}
		return c.each(fmt.Sprintf(sampled, kept), []any{all - 1, n - 1}, take)
	})
	if err != nil {
		return nil, fmt.Errorf("times of messages: %w", err)
	}
	return out, nil
}

// sampled gives, of ?1+1 messages in order, those at k*?1/?2 for all k up to ?2: only they leave the database. The first k that
// may lead to the place i is i*?2/?1, rounded up.
const sampled = `SELECT at FROM (SELECT at, row_number() OVER (ORDER BY at)-1 AS i FROM msgs WHERE intent<>''%s)
	WHERE i = (i*?2+?1-1)/?1*?1/?2 ORDER BY i`
