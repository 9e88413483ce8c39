package journal

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/ncruces/go-sqlite3"

	"github.com/aster-mesh/aster/protocol"
)

// Message is a msg record with what receipts say of it.
type Message struct {
	Pos      uint64
	Log      protocol.LogID
	Seq      uint64
	At       protocol.HLC
	Wall     int64
	Envelope protocol.Envelope
	Tiers    []TierPut // oldest first; their Log and Seq are the message's
}

// Query selects messages; what is zero does not restrict.
type Query struct {
	Agent  protocol.AgentID // from or to
	From   protocol.AgentID
	To     protocol.AgentID
	Intent protocol.Intent
	But    []protocol.Intent // none of these
	Re     protocol.MsgID
	Thread string
	Before uint64       // positions below it
	After  uint64       // positions above it
	Since  protocol.HLC // logged at that hybrid time or later
	Until  protocol.HLC // or earlier
	Limit  int          // at most so many; 0 means 100
	Newest bool         // newest first, else oldest first
}

const limitDefault = 100

// Messages returns what q selects, in order of position. Ids of agents are compared folded. A message whose record is
// damaged is left out; Damaged lists it.
func (j *Journal) Messages(q Query) ([]Message, error) {
	if q.Limit <= 0 {
		q.Limit = limitDefault
	}
	var where []string
	var args []any
	add := func(cond string, arg any) { where, args = append(where, cond), append(args, arg) }
	if q.From != "" {
		add("sender=?", fold(q.From))
	}
	if q.To != "" {
		add("target=?", fold(q.To))
	}
	if q.Re != "" {
		add("re=?", string(q.Re))
	}
	if q.Thread != "" {
		add("thread=?", q.Thread)
	}
	if q.Intent != "" {
		// The plus keeps this index out where a narrower one serves.
		if len(where) > 0 || q.Agent != "" {
			add("+intent=?", string(q.Intent))
		} else {
			add("intent=?", string(q.Intent))
		}
	}
	for _, name := range q.But {
		add("+intent<>?", string(name))
	}
	if q.After > 0 {
		add("pos>?", q.After)
	}
	if q.Before > 0 {
		add("pos<?", q.Before)
	}
	if q.Since > 0 {
		add("at>=?", int64(q.Since))
	}
	if q.Until > 0 {
		add("at<=?", int64(q.Until))
	}
	if q.From == "" && q.To == "" && q.Agent == "" && q.Intent == "" && q.Re == "" && q.Thread == "" {
		add("intent<>?", "") // the void ones have none
	}
	order := " ORDER BY pos"
	if q.Newest {
		order += " DESC"
	}
	pick := func(more ...string) string {
		sql := "SELECT pos FROM msgs WHERE " + strings.Join(append(append(more, where...), "1=1"), " AND ")
		return sql + j.kept("msgs.pos") + order + " LIMIT ?"
	}
	args = append(args, q.Limit)
	sql := pick()
	if q.Agent != "" {
		sql = "SELECT pos FROM (" + pick("sender=?") + ") UNION SELECT pos FROM (" + pick("target=?") + ")" + order + " LIMIT ?"
		side := append([]any{fold(q.Agent)}, args...)
		args = append(append(slices.Clone(side), side...), q.Limit)
	}
	return j.messagesBy(sql, args...)
}

// messagesBy returns the messages at the positions that sql selects, in its order.
func (j *Journal) messagesBy(sql string, args ...any) (out []Message, err error) {
	err = j.read(func(c *conn) error {
		all, err := positions(c, sql, args...)
		if err != nil {
			return err
		}
		out, err = j.load(c, all)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("messages: %w", err)
	}
	return out, nil
}

func positions(c *conn, sql string, args ...any) (out []uint64, err error) {
	err = c.each(sql, args, func(s *sqlite3.Stmt) bool {
		out = append(out, uint64(s.ColumnInt64(0)))
		return true
	})
	return out, err
}

// load reads the messages at these positions; damaged ones and what is no message are left out.
func (j *Journal) load(c *conn, at []uint64) ([]Message, error) {
	out := make([]Message, 0, len(at))
	for _, pos := range at {
		var st Stored
		ok, err := c.one("SELECT "+recordColumns+" FROM records WHERE pos=?", []any{pos}, func(s *sqlite3.Stmt) { st = j.scanStored(s) })
		if err != nil {
			return nil, err
		}
		if !ok || st.Damaged || j.leftOf(&st) || st.Record.Kind != protocol.KindMessage {
			continue
		}
		if void, err := c.one("SELECT 1 FROM msgs WHERE pos=? AND intent=''", []any{pos}, func(*sqlite3.Stmt) {}); err != nil || void {
			if err != nil {
				return nil, err
			}
			continue
		}
		m := Message{Pos: pos, Log: st.Record.Log, Seq: st.Record.Seq, At: st.Record.At, Wall: st.Record.Wall}
		if json.Unmarshal(st.Record.Body, &m.Envelope) != nil {
			continue
		}
		if m.Tiers, err = j.tiers(c, m.Log, m.Seq); err != nil {
			return nil, err
		}
		out = append(out, m)
	}
	return out, nil
}

func (j *Journal) tiers(c *conn, log protocol.LogID, seq uint64) (out []TierPut, err error) {
	l := j.logOf(log)
	if l == nil || seq <= l.base {
		return nil, nil
	}
	err = c.each("SELECT tier, agent, at, wall, by, reason FROM tiers WHERE log=? AND seq=? ORDER BY at", []any{l.row, seq},
		func(s *sqlite3.Stmt) bool {
			out = append(out, TierPut{
				Log: log, Seq: seq, Tier: protocol.Tier(s.ColumnText(0)), Agent: protocol.AgentID(s.ColumnText(1)),
				At: protocol.HLC(s.ColumnInt64(2)), Wall: s.ColumnInt64(3), By: protocol.PeerID(s.ColumnText(4)), Reason: s.ColumnText(5),
			})
			return true
		})
	return out, err
}

// Tiers returns what receipts say of a message, oldest first, also of one that is not here yet.
func (j *Journal) Tiers(log protocol.LogID, seq uint64) (out []TierPut, err error) {
	err = j.read(func(c *conn) error {
		out, err = j.tiers(c, log, seq)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("tiers of %s seq %d: %w", log, seq, err)
	}
	return out, nil
}

// Message returns the message at (log, seq); false when there is none.
func (j *Journal) Message(log protocol.LogID, seq uint64) (Message, bool, error) {
	l := j.logOf(log)
	if l == nil {
		return Message{}, false, nil
	}
	return single(j.messagesBy("SELECT pos FROM records WHERE log=? AND seq=?", l.row, seq))
}

// MessageByID returns the message of a sender under an id; with an empty sender the newest of anybody.
func (j *Journal) MessageByID(from protocol.AgentID, id protocol.MsgID) (Message, bool, error) {
	if from != "" {
		d := protocol.IdentityOf(from, id)
		row, found, err := j.Identity(d)
		if err != nil || !found {
			return Message{}, false, err
		}
		return single(j.messagesBy("SELECT pos FROM records WHERE pos=?", row.Pos))
	}
	all, err := j.byID(id)
	if err != nil || len(all) == 0 {
		return Message{}, false, err
	}
	return all[0], true, nil
}

func single(all []Message, err error) (Message, bool, error) {
	if err != nil || len(all) == 0 {
		return Message{}, false, err
	}
	return all[0], true, nil
}

// byID returns the messages of any sender under a whole id, newest first.
func (j *Journal) byID(id protocol.MsgID) ([]Message, error) {
	all, err := j.messagesBy("SELECT pos FROM msgs WHERE short=?"+j.kept("msgs.pos")+" ORDER BY pos DESC LIMIT ?", shortKey(id), resolveMax)
	return slices.DeleteFunc(all, func(m Message) bool { return m.Envelope.ID != id }), err
}

// resolveMax bounds the candidates for one typed id.
const resolveMax = 20

// Resolve returns the messages that a typed text may mean, newest first: a whole id, or a short id of 5 to 12
// characters without its prefix.
func (j *Journal) Resolve(text string) ([]Message, error) {
	all, err := j.byID(protocol.MsgID(text))
	if err != nil || len(all) > 0 {
		return all, err
	}
	low, high, ok := shortRange(text)
	if !ok {
		return nil, nil
	}
	return j.messagesBy("SELECT pos FROM msgs WHERE short>=? AND short<?"+j.kept("msgs.pos")+" ORDER BY pos DESC LIMIT ?", low, high, resolveMax)
}
