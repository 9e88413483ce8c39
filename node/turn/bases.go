package turn

import (
	"fmt"

	"github.com/aster-mesh/aster/board"
	"github.com/aster-mesh/aster/node/hub"
	"github.com/aster-mesh/aster/node/journal"
	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/roles/cut"
	"github.com/aster-mesh/aster/roles/member"
)

// Owed says for which records somebody is still to do something, as one moment's board and hub know. They stay above a base.
type Owed struct {
	board *board.State
	rooms map[protocol.RoomID]bool // open
	refs  map[hub.Ref]string       // questions, declarations, claims
}

// OwedNow asks board and hub. It is to be used up before either of them goes on: who uses it longer has a copy of the board.
func OwedNow(st *board.State, questions []hub.Question) (*Owed, error) {
	o := &Owed{board: st, rooms: map[protocol.RoomID]bool{}, refs: map[hub.Ref]string{}}
	rooms, err := st.Rooms()
	if err != nil {
		return nil, err
	}
	for id, r := range rooms {
		o.rooms[id] = !r.Closed
	}
	for _, q := range questions {
		o.refs[q.Ref] = "an unanswered question"
	}
	for _, d := range st.Declarations() {
		if d.Value == nil { // it is in its record alone
			o.refs[hub.Ref{Log: d.Log, Seq: d.Seq}] = "a declaration"
		}
	}
	for _, c := range st.Claims() {
		o.refs[hub.Ref{Log: c.Log, Seq: c.Seq}] = "a live claim"
	}
	return o, nil
}

// For says for what it is so of one record, in words; empty: for nothing. One that counts nowhere stays too: who knows of a cut takes
// nothing beyond it, and could never stand on such a base.
func (o *Owed) For(rec *protocol.Record) string {
	if why := o.refs[hub.Ref{Log: rec.Log, Seq: rec.Seq}]; why != "" {
		return why
	}
	if rec.Seq > o.board.Roster().Bound(rec.Log) {
		return "a record that does not count"
	}
	switch rec.Kind {
	case protocol.KindRoom:
		if body, err := protocol.DecodeBody[protocol.RoomBody](rec); err == nil && o.rooms[body.Room] {
			return "an open room"
		}
	case protocol.KindMessage:
		env, err := protocol.DecodeBody[protocol.Envelope](rec)
		switch {
		case err != nil:
		case env.Room != "" && o.rooms[env.Room]:
			return "an open room"
		case o.board.TaskOpen(rec.Log, &env):
			return "an open task"
		}
	}
	return ""
}

// FindBase reads a store from its first record on and finds how far bases may rise. owed is asked for each record that is old
// enough. rest is called after each page, as FoldAt does. It ends with the first page that is young as a whole; one that holds nothing
// readable of the inside says nothing of its age.
func FindBase(store Pages, rise *cut.Rise, owed func([]protocol.Record) ([]string, error), rest func() error) error {
	for pos := uint64(0); ; {
		page, err := store.Since(pos, cutPage)
		if err != nil {
			return fmt.Errorf("read journal: %w", err)
		}
		if len(page) == 0 {
			return nil
		}
		old, young := false, false
		var ask []protocol.Record
		for i := range page {
			rec := &page[i].Record
			pos = page[i].Pos
			if rec.Log.Scope != protocol.ScopeInside {
				continue
			}
			if page[i].Damaged {
				rise.Take(rec.Log, rec.Seq, cut.Owed{Why: "a damaged record"}, false)
				continue
			}
			if rise.Old(pos, rec.Wall) {
				old = true
			} else {
				young = true
			}
			if rise.Wants(rec.Log, rec.Seq, pos, rec.Wall) {
				ask = append(ask, *rec)
			}
		}
		answers, err := owed(ask)
		if err != nil {
			return err
		}
		for i := range ask {
			rise.Take(ask[i].Log, ask[i].Seq, cut.Owed{Why: answers[i], Wall: ask[i].Wall}, len(ask[i].Sig) > 0)
		}
		if young && !old && len(page) == cutPage {
			return nil
		}
		if err := rest(); err != nil {
			return err
		}
	}
}

// SnapshotAt folds what a store holds from a base on up to the bases that marks name besides; a nil one is before the first
// record. Errors are those of FoldAt.
func SnapshotAt(store Pages, mesh member.MeshID, from *board.Snapshot, marks map[protocol.LogID]uint64, rest func() error) (*board.Snapshot, error) {
	all, found := make(map[protocol.LogID]uint64, len(marks)), map[protocol.LogID]protocol.Hash{}
	var ends []board.Base
	st := board.New(mesh)
	if from != nil {
		st = from.State()
	}
	for _, b := range from.Bases() {
		if marks[b.Log] <= b.Seq {
			ends = append(ends, b)
		}
	}
	for log, seq := range marks {
		if seq > from.Base(log).Seq {
			all[log] = seq
		}
	}
	at, until := from.At(), from.Until().UnixMilli()
	st, err := foldAt(store, st, all, rest, func(page *journal.Stored) {
		at, until = max(at, page.Record.At), max(until, page.Record.Wall)
		if page.Record.Seq == all[page.Record.Log] {
			found[page.Record.Log] = page.Hash
		}
	})
	if err != nil {
		return nil, err
	}
	for log, hash := range found {
		ends = append(ends, board.Base{Log: log, Seq: all[log], Hash: hash})
	}
	return st.Snapshot(ends, at, until), nil
}

// Above says whether marks lie nowhere below a base, so that the fold there is on the way to them.
func Above(marks map[protocol.LogID]uint64, from *board.Snapshot) bool {
	for _, b := range from.Bases() {
		if marks[b.Log] < b.Seq {
			return false
		}
	}
	return true
}

// BasesOf are a snapshot's bases as a store takes them.
func BasesOf(snap *board.Snapshot) []journal.Base {
	out := make([]journal.Base, 0, len(snap.Bases()))
	for _, b := range snap.Bases() {
		out = append(out, journal.Base{Log: b.Log, Seq: b.Seq, Hash: b.Hash})
	}
	return out
}

// InsideOf are the members of the inside in office as a roster knows them, by id.
func InsideOf(r *member.Roster) (out []protocol.PeerID) {
	for _, m := range r.Members() {
		if m.Inside && !m.Revoked {
			out = append(out, m.Peer)
		}
	}
	return out
}
