package room

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/aster-mesh/aster/protocol"
)

// Pos is where a record stands in the one order that all nodes agree on. Positions compare as texts.
type Pos string

// At is the position of a record.
func At(at protocol.HLC, log protocol.LogID, seq uint64) Pos {
	return Pos(fmt.Sprintf("%016x %016x %s", uint64(at), seq, log))
}

// Record returns the log and number of a position.
func (p Pos) Record() (protocol.LogID, uint64, bool) {
	var at, seq uint64
	parts := strings.SplitN(string(p), " ", 3)
	if len(parts) != 3 {
		return protocol.LogID{}, 0, false
	}
	if n, err := fmt.Sscanf(parts[0]+" "+parts[1], "%x %x", &at, &seq); n != 2 || err != nil {
		return protocol.LogID{}, 0, false
	}
	log, err := protocol.ParseLogID(parts[2])
	return log, seq, err == nil
}

// Bounds of what a room remembers.
const (
	linesMax     = 128 // newest messages, for budgets
	decisionsMax = 64  // newest
)

// Room is one room as its records tell it. It is a join: whatever order records come in, equal sets give equal rooms.
// Fields are exported for checkpoints alone.
type Room struct {
	ID        protocol.RoomID                  `json:"id"`
	Created   *Step                            `json:"created,omitempty"`
	Members   map[protocol.AgentID]*Membership `json:"members,omitempty"` // by folded id: who joined or left after the creation
	Header    *Step                            `json:"header,omitempty"`
	Summary   *Step                            `json:"summary,omitempty"`
	Decisions []*Step                          `json:"decisions,omitempty"` // by position, the newest decisionsMax
	Version   int                              `json:"version,omitempty"`   // how often what was agreed was changed
	Floor     map[protocol.AgentID]*Step       `json:"floor,omitempty"`     // by folded id: the newest word on the floor
	Stall     Pos                              `json:"stall,omitempty"`     // the newest
	Lines     []Line                           `json:"lines,omitempty"`     // by position, the newest linesMax
	Closed    bool                             `json:"closed,omitempty"`    // then all else is forgotten
}

// Step is a record of the room.
type Step struct {
	Pos  Pos               `json:"pos"`
	Wall int64             `json:"wall"` // author's clock, ms
	Body protocol.RoomBody `json:"body"`
}

// Membership is the newest word on who is in.
type Membership struct {
	Pos Pos              `json:"pos"`
	ID  protocol.AgentID `json:"id"`
	In  bool             `json:"in"`
	// Outside is the member outside where it lived when it was let in.
	Outside protocol.PeerID `json:"outside,omitempty"`
}

// Line is one message as budgets see it.
type Line struct {
	Pos    Pos              `json:"pos"`
	Wall   int64            `json:"wall"`
	ID     protocol.MsgID   `json:"msg"`
	From   protocol.AgentID `json:"from,omitempty"` // empty: a person
	Named  bool             `json:"named,omitempty"`
	Notice bool             `json:"notice,omitempty"`
}

// Apply takes a record of the room.
func (r *Room) Apply(at Pos, wall int64, body protocol.RoomBody) {
	if r.Closed {
		return
	}
	step := &Step{at, wall, body}
	switch body.Op {
	case protocol.RoomCreated:
		if r.Created == nil || r.Created.Body.Op == protocol.RoomCreated && at < r.Created.Pos {
			r.Created = step
		}
	case protocol.RoomShared:
		r.shared(step)
	case protocol.RoomJoined, protocol.RoomLeft:
		if r.Created != nil && r.Created.Body.Op == protocol.RoomShared && at < r.Created.Pos {
			return
		}
		key := protocol.FoldAgentID(body.Agent)
		if old := r.Members[key]; old == nil || old.Pos < at {
			if r.Members == nil {
				r.Members = map[protocol.AgentID]*Membership{}
			}
			r.Members[key] = &Membership{at, body.Agent, body.Op == protocol.RoomJoined, body.Outside[key]}
		}
	case protocol.RoomClosed:
		*r = Room{ID: r.ID, Closed: true}
	case protocol.RoomArtifacts:
		r.agreed(step)
	case protocol.RoomFloor:
		key := protocol.FoldAgentID(body.Agent)
		if old := r.Floor[key]; old == nil || old.Pos < at {
			if r.Floor == nil {
				r.Floor = map[protocol.AgentID]*Step{}
			}
			r.Floor[key] = step
		}
	case protocol.RoomStall:
		r.Stall = max(r.Stall, at)
	}
}

// shared takes who is in from the newest word on that: whoever was told of a room again was not told what happened between.
func (r *Room) shared(step *Step) {
	if r.Created != nil && r.Created.Body.Op == protocol.RoomShared && step.Pos < r.Created.Pos {
		return
	}
	r.Created = step
	for key, m := range r.Members {
		if m.Pos < step.Pos {
			delete(r.Members, key)
		}
	}
}

// Seat is the member outside whose agent was let in under a name, and the node that let it in; empty: none was. Somebody
// else who takes the name later has no seat by that.
func (r *Room) Seat(id protocol.AgentID) (of, by protocol.PeerID) {
	if !r.In(id) {
		return "", ""
	}
	key, at := protocol.FoldAgentID(id), r.Created.Pos
	if of = r.Created.Body.Outside[key]; r.Members[key] != nil {
		of, at = r.Members[key].Outside, r.Members[key].Pos
	}
	log, _, ok := at.Record()
	if !ok || of == "" {
		return "", ""
	}
	return of, log.Peer
}

func (r *Room) agreed(step *Step) {
	r.Version++
	if step.Body.Header != nil && (r.Header == nil || r.Header.Pos < step.Pos) {
		r.Header = step
	}
	if step.Body.Summary != nil && (r.Summary == nil || r.Summary.Pos < step.Pos) {
		r.Summary = step
	}
	if step.Body.Decision != nil {
		i, _ := slices.BinarySearchFunc(r.Decisions, step.Pos, func(s *Step, p Pos) int { return cmp.Compare(s.Pos, p) })
		r.Decisions = slices.Insert(r.Decisions, i, step)
		if len(r.Decisions) > decisionsMax {
			r.Decisions = slices.Delete(r.Decisions, 0, 1)
		}
	}
}

// Said takes a message of the room.
func (r *Room) Said(at Pos, wall int64, env *protocol.Envelope) {
	if r.Closed {
		return
	}
	line := Line{Pos: at, Wall: wall, ID: env.ID, From: env.From, Named: len(env.Addressee) > 0, Notice: env.Notice}
	i, twice := slices.BinarySearchFunc(r.Lines, at, func(l Line, p Pos) int { return cmp.Compare(l.Pos, p) })
	if twice {
		return
	}
	r.Lines = slices.Insert(r.Lines, i, line)
	if len(r.Lines) > linesMax {
		r.Lines = slices.Delete(r.Lines, 0, 1)
	}
}

// Open says whether the room exists and is not closed.
func (r *Room) Open() bool { return r != nil && r.Created != nil && !r.Closed }

// Participants lists who is in: as created, then as they joined.
func (r *Room) Participants() []protocol.AgentID {
	if !r.Open() {
		return nil
	}
	var out []protocol.AgentID
	first := map[protocol.AgentID]bool{}
	for _, id := range r.Created.Body.Participants {
		key := protocol.FoldAgentID(id)
		if m := r.Members[key]; first[key] || m != nil && !m.In {
			continue
		}
		first[key] = true
		out = append(out, id)
	}
	var later []*Membership
	for key, m := range r.Members {
		if m.In && !first[key] {
			later = append(later, m)
		}
	}
	slices.SortFunc(later, func(a, b *Membership) int { return cmp.Compare(a.Pos, b.Pos) })
	for _, m := range later {
		out = append(out, m.ID)
	}
	return out
}

// In says whether an agent is in the room.
func (r *Room) In(id protocol.AgentID) bool {
	if !r.Open() {
		return false
	}
	key := protocol.FoldAgentID(id)
	if m := r.Members[key]; m != nil {
		return m.In
	}
	return slices.ContainsFunc(r.Created.Body.Participants, func(p protocol.AgentID) bool { return protocol.FoldAgentID(p) == key })
}

// Leads says whether an agent made the room or moderates it.
func (r *Room) Leads(id protocol.AgentID) bool {
	if !r.Open() || id == "" {
		return false
	}
	b := &r.Created.Body
	key := protocol.FoldAgentID(id)
	return protocol.FoldAgentID(b.By) == key || protocol.FoldAgentID(b.Moderator) == key
}

// Queue is who wants the floor: the highest bid first, of equal ones the earliest.
func (r *Room) Queue() []*Step {
	var out []*Step
	for _, s := range r.Floor {
		if s.Body.Intent == "request" && r.In(s.Body.Agent) {
			out = append(out, s)
		}
	}
	slices.SortFunc(out, func(a, b *Step) int { return cmp.Or(cmp.Compare(b.Body.Bid, a.Body.Bid), cmp.Compare(a.Pos, b.Pos)) })
	return out
}

// Valid says whether a decoded room could have come from records; only then are the other methods safe.
func (r *Room) Valid() bool {
	if r == nil || r.ID == "" {
		return false
	}
	for _, m := range r.Members {
		if m == nil {
			return false
		}
	}
	for _, s := range r.Floor {
		if s == nil {
			return false
		}
	}
	for _, s := range r.Decisions {
		if s == nil || s.Body.Decision == nil {
			return false
		}
	}
	return (r.Header == nil || r.Header.Body.Header != nil) && (r.Summary == nil || r.Summary.Body.Summary != nil)
}
