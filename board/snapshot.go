package board

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/roles/member"
)

// Base is the last record of a log below a base.
type Base struct {
	Log  protocol.LogID
	Seq  uint64
	Hash protocol.Hash
	// Counts is the last of them that counts, at most Seq: see member.Settled.
	Counts uint64
}

// Snapshot is what all records below a base make, and where each log goes on. Its bytes are the same on all nodes that hold the
// same records, in whatever order they came. It is never changed.
type Snapshot struct {
	mesh  member.MeshID
	at    protocol.HLC
	until int64
	bases []Base
	image json.RawMessage
	raw   []byte
	taken map[decidedKey]uint64 // up to where decisions of terms count below
}

const snapshotTag = "aster.base.1 "

type snapshotText struct {
	Mesh  member.MeshID   `json:"mesh"`
	At    protocol.HLC    `json:"at"`
	Until int64           `json:"until,omitempty"` // ms; earlier programs wrote none
	Bases []baseText      `json:"bases"`
	Board json.RawMessage `json:"board"`
}

type baseText struct {
	Log    string `json:"log"`
	Seq    uint64 `json:"seq"`
	Hash   string `json:"hash"`
	Counts uint64 `json:"counts"`
}

// Snapshot is what s, which holds all records up to a base and none above, is there. ends are the seqs and hashes of the last
// records; at is the greatest hybrid time of all below, and until the latest that their authors' clocks showed, in ms.
func (s *State) Snapshot(ends []Base, at protocol.HLC, until int64) *Snapshot {
	text := snapshotText{Mesh: s.roster.Mesh(), At: at, Until: until}
	snap := &Snapshot{mesh: text.Mesh, at: at, until: until, bases: slices.Clone(ends)}
	slices.SortFunc(snap.bases, func(a, b Base) int { return strings.Compare(a.Log.String(), b.Log.String()) })
	for i := range snap.bases {
		b := &snap.bases[i]
		b.Counts = min(b.Seq, s.roster.Bound(b.Log))
		text.Bases = append(text.Bases, baseText{b.Log.String(), b.Seq, b.Hash.String(), b.Counts})
	}
	text.Board = s.checkpoint(true)
	snap.image, snap.taken = text.Board, s.taken()
	body := protocol.EncodeBody(text)
	sum := sha256.Sum256(body)
	snap.raw = slices.Concat([]byte(snapshotTag+hex.EncodeToString(sum[:])+"\n"), body)
	return snap
}

// DecodeSnapshot reads what Encode gave. Anything else, one changed byte included, is ErrBadCheckpoint.
func DecodeSnapshot(raw []byte) (*Snapshot, error) {
	head, body, ok := bytes.Cut(raw, []byte("\n"))
	sum := sha256.Sum256(body)
	if !ok || string(head) != snapshotTag+hex.EncodeToString(sum[:]) {
		return nil, fmt.Errorf("%w: no whole snapshot", ErrBadCheckpoint)
	}
	var text snapshotText
	if err := json.Unmarshal(body, &text); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrBadCheckpoint, err)
	}
	snap := &Snapshot{mesh: text.Mesh, at: text.At, until: text.Until, image: text.Board, raw: raw}
	for _, b := range text.Bases {
		log, err := protocol.ParseLogID(b.Log)
		hash, err2 := hex.DecodeString(b.Hash)
		if err != nil || err2 != nil || len(hash) != len(protocol.Hash{}) || b.Seq == 0 || b.Counts > b.Seq {
			return nil, fmt.Errorf("%w: a base of %q", ErrBadCheckpoint, protocol.CutText(b.Log, 80))
		}
		snap.bases = append(snap.bases, Base{log, b.Seq, protocol.Hash(hash), b.Counts})
	}
	// What a fold refuses is found now, not at the next start.
	st, err := decodeImage(snap.image, KeptTasks)
	if err != nil {
		return nil, err
	}
	for _, b := range snap.bases {
		if st.Mark(b.Log) != b.Seq {
			return nil, fmt.Errorf("%w: the fold of %s ends at %d and its base at %d", ErrBadCheckpoint, b.Log, st.Mark(b.Log), b.Seq)
		}
	}
	snap.taken = st.taken()
	return snap, nil
}

// Encode is the snapshot as bytes; nobody changes them.
func (s *Snapshot) Encode() []byte { return s.raw }

// Digest is the hex SHA-256 of Encode: who answers the same holds the same.
func (s *Snapshot) Digest() string {
	sum := sha256.Sum256(s.raw)
	return hex.EncodeToString(sum[:])
}

// Mesh is the mesh that it is of.
func (s *Snapshot) Mesh() member.MeshID { return s.mesh }

// At is the greatest hybrid time of what lies below.
func (s *Snapshot) At() protocol.HLC {
	if s == nil {
		return 0
	}
	return s.at
}

// Until is the latest that a clock of who wrote what lies below showed. One clock that is ahead draws all hybrid times on, so At
// says less.
func (s *Snapshot) Until() time.Time {
	if s == nil || s.until == 0 {
		return s.At().Time()
	}
	return time.UnixMilli(s.until)
}

// Bases are where logs go on, by their names; nobody changes them. A nil Snapshot has none.
func (s *Snapshot) Bases() []Base {
	if s == nil {
		return nil
	}
	return s.bases
}

// Base is that of one log; the zero one: it begins with its first record.
func (s *Snapshot) Base(log protocol.LogID) Base {
	at, ok := slices.BinarySearchFunc(s.Bases(), log.String(), func(b Base, text string) int { return cmp.Compare(b.Log.String(), text) })
	if !ok {
		return Base{}
	}
	return s.bases[at]
}

// ID names the base, as the next one names it. A nil Snapshot has none.
func (s *Snapshot) ID() string {
	if s == nil {
		return ""
	}
	h := sha256.New()
	for _, b := range s.bases {
		fmt.Fprintf(h, "%s %d\n", b.Log, b.Seq)
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// State is the board at the base, to be folded on from there.
func (s *Snapshot) State() *State { return s.fold(nil, KeptTasks) }

// fold is State with another roster, which knows all that the one at the base knew; nil: that one.
func (s *Snapshot) fold(roster *member.Roster, kept int) *State {
	st, err := decodeImage(s.image, kept)
	if err != nil {
		panic("a snapshot that was decoded once: " + err.Error())
	}
	if roster != nil {
		st.roster = roster
	}
	st.Settle(s)
	st.stale = false
	return st
}

// Settle takes the base: what lies below it is settled, whatever is revoked later, and Restart begins there. The State holds
// all records below it, counted as the snapshot counts them or not: in that case it is Stale.
func (s *State) Settle(snap *Snapshot) {
	before := make(map[*logState]uint64, len(s.logs))
	for _, ls := range s.logs {
		before[ls] = s.counted(ls)
	}
	s.from = snap
	settled := make(map[protocol.LogID]member.Settled, len(snap.bases))
	for _, b := range snap.bases {
		settled[b.Log] = member.Settled{Seq: b.Seq, Counts: b.Counts}
		s.stale = s.stale || s.Mark(b.Log) < b.Seq
	}
	s.roster.Settle(settled)
	for ls, n := range before {
		s.stale = s.stale || s.counted(ls) != n
	}
	for key, d := range s.decided {
		base := settled[key.log].Seq
		s.stale = s.stale || d.passed > 0 && d.passed <= base || d.taken <= base && d.taken > snap.taken[key]
	}
	for key, seq := range snap.taken {
		s.stale = s.stale || s.decided[key].taken < seq
	}
}

// From is the base that the State stands on; nil: it began with the first records.
func (s *State) From() *Snapshot { return s.from }
