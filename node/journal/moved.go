package journal

import (
	"fmt"

	"github.com/ncruces/go-sqlite3"

	"github.com/aster-mesh/aster/protocol"
)

// leaveInbox takes what is unread out of an inbox: its agent has another home. The messages stay.
func (t *transaction) leaveInbox(agent protocol.AgentID) error {
	if err := t.flushInbox(); err != nil {
		return err
	}
	if err := t.c.exec("DELETE FROM inbox WHERE key=? AND state=0", fold(agent)); err != nil {
		return fmt.Errorf("inbox of %s: %w", agent, err)
	}
	return nil
}

// Place is where a message lies: in its log, and here.
type Place struct {
	Log protocol.LogID
	Seq uint64
	Pos uint64
}

// Addressed lists all messages here of a hybrid time and later that name an agent as their target or are in its inbox here,
// oldest first.
func (j *Journal) Addressed(agent protocol.AgentID, since protocol.HLC) (out []Place, err error) {
	err = j.read(func(c *conn) error {
		return c.each(`SELECT r.pos, r.log, r.seq FROM records r JOIN (
			SELECT pos FROM msgs WHERE target=?1 AND at>=?2 UNION
			SELECT pos FROM inbox WHERE key=?1 AND NOT EXISTS (SELECT 1 FROM msgs WHERE msgs.pos=inbox.pos AND msgs.at<?2)) m ON m.pos=r.pos WHERE 1=1`+j.kept("r.pos")+" ORDER BY r.pos",
			[]any{fold(agent), int64(since)}, func(s *sqlite3.Stmt) bool {
				if l := j.logOfRow(s.ColumnInt64(1)); l != nil {
					out = append(out, Place{l.id, uint64(s.ColumnInt64(2)), uint64(s.ColumnInt64(0))})
				}
				return true
			})
	})
	if err != nil {
		return nil, fmt.Errorf("mail of %s: %w", agent, err)
	}
	return out, nil
}

// Again says whether a message beside the one at pos has its id. As Identity it waits for nobody's query.
func (j *Journal) Again(id protocol.MsgID, pos uint64) (found bool, err error) {
	err = j.look(func(c *conn) (err error) {
		found, err = c.one("SELECT 1 FROM msgs WHERE short=? AND pos<>?"+j.kept("msgs.pos")+" LIMIT 1", []any{shortKey(id), pos}, func(*sqlite3.Stmt) {})
		return err
	})
	if err != nil {
		return false, fmt.Errorf("messages of one id: %w", err)
	}
	return found, nil
}

// Copies lists the newest messages here under one id and sender: a client may send again through another node.
func (j *Journal) Copies(from protocol.AgentID, id protocol.MsgID) ([]Message, error) {
	all, err := j.byID(id)
	if err != nil {
		return nil, err
	}
	var out []Message
	for i := range all {
		if fold(all[i].Envelope.From) == fold(from) {
			out = append(out, all[i])
		}
	}
	return out, nil
}
