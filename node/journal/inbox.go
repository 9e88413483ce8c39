package journal

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/ncruces/go-sqlite3"

	"github.com/aster-mesh/aster/protocol"
)

// InboxQuery selects rows of one inbox: the unread ones unless All or Dead says otherwise.
type InboxQuery struct {
	All   bool   // processed and dead ones too
	Dead  bool   // only those refused or expired
	After uint64 // positions above it
	Limit int    // at most so many; 0: all
}

// InboxRow is one message in an inbox.
type InboxRow struct {
	Message
	Processed bool
	Dead      string // why it will not be delivered; empty: it will, or it was
}

// Inbox returns rows of an agent's inbox here, oldest first.
func (j *Journal) Inbox(agent protocol.AgentID, q InboxQuery) (out []InboxRow, err error) {
	where := []string{"key=?", "pos>?"}
	switch {
	case q.Dead:
		where = append(where, "state=2")
	case !q.All:
		where = append(where, "state=0")
	}
	if q.Limit <= 0 {
		q.Limit = -1
	}
	type row struct {
		state  int64
		reason string
	}
	rows := map[uint64]row{}
	err = j.read(func(c *conn) error {
		var at []uint64
		err := c.each("SELECT pos, state, reason FROM inbox WHERE "+strings.Join(where, " AND ")+j.kept("inbox.pos")+" ORDER BY pos LIMIT ?",
			[]any{fold(agent), q.After, q.Limit}, func(s *sqlite3.Stmt) bool {
				pos := uint64(s.ColumnInt64(0))
				at = append(at, pos)
				rows[pos] = row{s.ColumnInt64(1), s.ColumnText(2)}
				return true
			})
		if err != nil {
			return err
		}
		all, err := j.load(c, at)
		if err != nil {
			return err
		}
		for _, m := range all {
			r := InboxRow{Message: m, Processed: rows[m.Pos].state == stateProcessed}
			if rows[m.Pos].state == stateDead {
				r.Dead = cmp.Or(rows[m.Pos].reason, "refused")
			}
			out = append(out, r)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("inbox of %s: %w", agent, err)
	}
	return out, nil
}

// UnreadCount is what waits in one inbox.
type UnreadCount struct {
	Items int
	Bytes int64 // of the records' bodies
}

// Unread counts what waits in every inbox here.
func (j *Journal) Unread() (map[protocol.AgentID]UnreadCount, error) {
	out := map[protocol.AgentID]UnreadCount{}
	err := j.read(func(c *conn) error {
		return c.each("SELECT max(agent), count(*), sum(bytes) FROM inbox WHERE state=0 GROUP BY key", nil, func(s *sqlite3.Stmt) bool {
			out[protocol.AgentID(s.ColumnText(0))] = UnreadCount{s.ColumnInt(1), s.ColumnInt64(2)}
			return true
		})
	})
	if err != nil {
		return nil, fmt.Errorf("unread: %w", err)
	}
	return out, nil
}

// Ref names one unread message.
type Ref struct {
	Log   protocol.LogID
	Seq   uint64
	Pos   uint64
	ID    protocol.MsgID
	From  protocol.AgentID
	Bytes int64
}

// UnreadRefs lists what waits in an agent's inbox, oldest first.
func (j *Journal) UnreadRefs(agent protocol.AgentID) ([]Ref, error) {
	rows, err := j.Inbox(agent, InboxQuery{})
	if err != nil {
		return nil, err
	}
	sizes := map[uint64]int64{}
	if err := j.read(func(c *conn) error {
		return c.each("SELECT pos, bytes FROM inbox WHERE key=? AND state=0", []any{fold(agent)}, func(s *sqlite3.Stmt) bool {
			sizes[uint64(s.ColumnInt64(0))] = s.ColumnInt64(1)
			return true
		})
	}); err != nil {
		return nil, fmt.Errorf("inbox of %s: %w", agent, err)
	}
	out := make([]Ref, 0, len(rows))
	for _, r := range rows {
		out = append(out, Ref{r.Log, r.Seq, r.Pos, r.Envelope.ID, r.Envelope.From, sizes[r.Pos]})
	}
	return out, nil
}

// Outbox returns a sender's messages that somebody should still process, oldest first; with dead, those that were
// refused or expired and processed by nobody. limit 0 means all.
func (j *Journal) Outbox(from protocol.AgentID, dead bool, limit int) ([]Message, error) {
	if limit <= 0 {
		limit = -1
	}
	sql := "SELECT pos FROM msgs WHERE sender=? AND state=0"
	if dead {
		sql = "SELECT pos FROM msgs WHERE sender=? AND state=2"
	}
	return j.messagesBy(sql+j.kept("msgs.pos")+" ORDER BY pos LIMIT ?", fold(from), limit)
}

// Value returns a named value; false when there is none.
func (j *Journal) Value(key string) (value []byte, found bool, err error) {
	err = j.read(func(c *conn) error {
		found, err = c.one("SELECT value FROM vals WHERE key=?", []any{key}, func(s *sqlite3.Stmt) { value = s.ColumnBlob(0, []byte{}) })
		return err
	})
	if err != nil {
		return nil, false, fmt.Errorf("value %q: %w", key, err)
	}
	return value, found, nil
}

// ValuesWithPrefix returns the values whose keys begin with prefix.
func (j *Journal) ValuesWithPrefix(prefix string) (map[string][]byte, error) {
	out := map[string][]byte{}
	err := j.read(func(c *conn) error {
		return c.each("SELECT key, value FROM vals WHERE key>=? ORDER BY key", []any{prefix}, func(s *sqlite3.Stmt) bool {
			key := s.ColumnText(0)
			if !strings.HasPrefix(key, prefix) {
				return false // keys come in order
			}
			out[key] = s.ColumnBlob(1, []byte{})
			return true
		})
	})
	if err != nil {
		return nil, fmt.Errorf("values %q: %w", prefix, err)
	}
	return out, nil
}
