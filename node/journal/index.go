package journal

import (
	"fmt"
	"strings"

	"github.com/ncruces/go-sqlite3"

	"github.com/aster-mesh/aster/protocol"
)

// fold is the form under which agents are filed.
func fold(id protocol.AgentID) string { return string(protocol.FoldAgentID(id)) }

// putMessage has a message filed under what queries ask for.
func (t *transaction) putMessage(pos uint64, ref msgRef, r *protocol.Record, env *protocol.Envelope) {
	f := filingOf(pos, ref, r, env)
	t.placed(ref, place{pos: pos, bytes: int64(len(r.Body)), target: f.target})
	t.filings = append(t.filings, f)
}

// settleByTiers settles a message of which receipts came first.
func (t *transaction) settleByTiers(pos uint64, ref msgRef) error {
	for _, tier := range []protocol.Tier{protocol.Processed, protocol.Refused} {
		n, err := t.c.number("SELECT count(*) FROM tiers WHERE log=? AND seq=? AND tier=?", ref.log, ref.seq, string(tier))
		if err == nil && n > 0 {
			err = t.settleRow(pos, tier)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// settle notes at the message itself that it was processed, or refused and not processed by anybody.
func (t *transaction) settle(pos uint64, tier protocol.Tier) error {
	if f := t.waits(pos); f != nil {
		f.settle(tier)
		return nil
	}
	return t.settleRow(pos, tier)
}

func (t *transaction) settleRow(pos uint64, tier protocol.Tier) error {
	if tier == protocol.Processed {
		return t.c.exec("UPDATE msgs SET state=1 WHERE pos=? AND state IN (0,2)", pos)
	}
	return t.c.exec("UPDATE msgs SET state=2 WHERE pos=? AND state=0", pos)
}

// find returns where a record is, 0 if it is not here. What is new is known without asking the database.
func (t *transaction) find(ref msgRef) (place, error) {
	if p, ok := t.fresh[ref]; ok {
		return p, nil
	}
	if p, ok := t.j.places.get(ref); ok {
		return p, nil
	}
	var p place
	_, err := t.c.one("SELECT r.pos, length(r.body), m.target FROM records r LEFT JOIN msgs m ON m.pos=r.pos WHERE r.log=? AND r.seq=?", []any{ref.log, ref.seq},
		func(s *sqlite3.Stmt) { p = place{uint64(s.ColumnInt64(0)), s.ColumnInt64(1), s.ColumnText(2)} })
	return p, err
}

func (t *transaction) putInbox(ref msgRef, agent protocol.AgentID) error {
	at, fresh := t.fresh[ref]
	if !fresh {
		_, err := t.c.one("SELECT pos, length(body) FROM records WHERE log=? AND seq=? AND kind='msg'", []any{ref.log, ref.seq},
			func(s *sqlite3.Stmt) { at = place{pos: uint64(s.ColumnInt64(0)), bytes: s.ColumnInt64(1)} })
		if err != nil {
			return fmt.Errorf("inbox of %s: %w", agent, err)
		}
	}
	if at.pos == 0 {
		return fmt.Errorf("%w: inbox of %s names what is not here", ErrDamaged, agent) // plan has looked
	}
	key, state, reason := fold(agent), stateOpen, ""
	if !fresh || t.early(ref) || t.spoken[ref] { // else nobody has spoken of it yet
		var err error
		if state, reason, err = t.inboxState(ref, key); err != nil {
			return fmt.Errorf("inbox of %s: %w", agent, err)
		}
	}
	if row := (inboxKey{key, at.pos}); t.inbox[row] == nil {
		t.inbox[row] = &inboxRow{agent: agent, bytes: at.bytes, state: state, reason: reason}
	}
	return nil
}

// inboxRow is a row of an inbox that is not written yet.
type inboxRow struct {
	agent   protocol.AgentID
	bytes   int64
	state   int
	reason  string
	settled bool // by a receipt of this transaction
}

// settle notes what a receipt says of it.
func (r *inboxRow) settle(tier protocol.Tier, reason string) {
	switch {
	case tier == protocol.Processed && r.state != stateProcessed:
		r.state, r.reason, r.settled = stateProcessed, "", true
	case tier == protocol.Refused && r.state == stateOpen:
		r.state, r.reason, r.settled = stateDead, reason, true
	case tier == protocol.Handed && r.state == stateOpen:
		r.state, r.settled = stateProcessed, true
	}
}

// inboxState is what the tiers of a message say of an agent's row.
func (t *transaction) inboxState(ref msgRef, key string) (state int, reason string, err error) {
	state = stateOpen
	err = t.c.each("SELECT tier, reason FROM tiers WHERE log=? AND seq=? AND key IN (?, '')", []any{ref.log, ref.seq, key},
		func(s *sqlite3.Stmt) bool {
			switch protocol.Tier(s.ColumnText(0)) {
			case protocol.Processed:
				state, reason = stateProcessed, ""
				return false
			case protocol.Refused:
				state, reason = stateDead, s.ColumnText(1)
			}
			return true
		})
	return state, reason, err
}

func (t *transaction) putTier(ref msgRef, p *TierPut) error {
	at, err := t.find(ref)
	if err != nil {
		return fmt.Errorf("tier of %s seq %d: %w", p.Log, p.Seq, err)
	}
	pos, key := at.pos, fold(p.Agent)
	if key == "" {
		key = at.target
	}
	err = t.c.exec("INSERT INTO tiers VALUES(?,?,?,?,?,?,?,?,?) ON CONFLICT DO NOTHING", ref.log, p.Seq, key, string(p.Tier),
		string(p.Agent), uint64(p.At), p.Wall, string(p.By), p.Reason)
	if err != nil {
		return fmt.Errorf("tier of %s seq %d: %w", p.Log, p.Seq, err)
	}
	if p.Tier == protocol.Handed {
		if row := t.inbox[inboxKey{key, pos}]; row != nil {
			row.settle(p.Tier, "")
			return nil
		}
		return t.c.exec("UPDATE inbox SET state=1 WHERE key=? AND pos=? AND state=0", key, pos)
	}
	if p.Tier != protocol.Processed && p.Tier != protocol.Refused {
		return nil
	}
	if pos == 0 {
		t.earlyAdded[ref] = true
		return t.c.exec("INSERT INTO tiers_early VALUES(?,?) ON CONFLICT DO NOTHING", ref.log, ref.seq)
	}
	t.spoken[ref] = true
	if err := t.settle(pos, p.Tier); err != nil {
		return err
	}
	if row := t.inbox[inboxKey{key, pos}]; row != nil {
		row.settle(p.Tier, p.Reason)
		return nil
	}
	if p.Tier == protocol.Processed {
		return t.c.exec("UPDATE inbox SET state=1, reason='' WHERE key=? AND pos=? AND state<>1", key, pos)
	}
	return t.c.exec("UPDATE inbox SET state=2, reason=? WHERE key=? AND pos=? AND state=0", p.Reason, key, pos)
}

// crockford is the alphabet of short ids, in value order.
const crockford = "0123456789abcdefghjkmnpqrstvwxyz"

// shortRunes is how many characters of a short id are filed: the longest that people are shown.
const shortRunes = 12

// shortKey is the filed form of a message's short id.
func shortKey(id protocol.MsgID) uint64 {
	low, _, _ := shortRange(protocol.ShortIDOf(id, shortRunes))
	return low
}

// shortRange returns the range [low, high) of filed forms whose short id ends with text, as people type it: any case,
// o for 0, i and l for 1. False: text is no short id.
func shortRange(text string) (low, high uint64, ok bool) {
	if len(text) < 5 || len(text) > shortRunes {
		return 0, 0, false
	}
	text = strings.NewReplacer("o", "0", "i", "1", "l", "1").Replace(strings.ToLower(text))
	for i := len(text) - 1; i >= 0; i-- {
		v := strings.IndexByte(crockford, text[i])
		if v < 0 {
			return 0, 0, false
		}
		low = low<<5 | uint64(v)
	}
	shift := 5 * (shortRunes - len(text))
	return low << shift, (low + 1) << shift, true
}

// InboxRename gives all of an agent's inbox to another name.
type InboxRename struct{ From, To protocol.AgentID }

func (t *transaction) renameInbox(r *InboxRename) error {
	from, to := fold(r.From), fold(r.To)
	if from == to {
		return nil
	}
	if err := t.flushInbox(); err != nil {
		return err
	}
	for _, step := range []struct {
		sql  string
		args []any
	}{
		{"UPDATE OR IGNORE inbox SET key=?, agent=? WHERE key=?", []any{to, string(r.To), from}},
		{"DELETE FROM inbox WHERE key=?", []any{from}}, // the new name had them already
		// What this very commit says under the new name came before the rows did.
		{"UPDATE inbox SET state=1, reason='' WHERE key=?1 AND state=0 AND " + tierOfRow, []any{to, string(protocol.Processed)}},
		{"UPDATE inbox SET state=2 WHERE key=?1 AND state=0 AND " + tierOfRow, []any{to, string(protocol.Refused)}},
	} {
		if err := t.c.exec(step.sql, step.args...); err != nil {
			return fmt.Errorf("inbox of %s, now %s: %w", r.From, r.To, err)
		}
	}
	return nil
}

const tierOfRow = `EXISTS (SELECT 1 FROM records r JOIN tiers t ON t.log=r.log AND t.seq=r.seq
	WHERE r.pos=inbox.pos AND t.key=?1 AND t.tier=?2)`
