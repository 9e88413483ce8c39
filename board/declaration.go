package board

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/aster-mesh/aster/protocol"
)

// declaredBytesMax is how much of a declaration the board holds itself; a larger one is read where it lies.
const declaredBytesMax = 4 << 10

// Declaration is the newest of one name, and of one role or seat, that an agent or, of charts, a person made.
type Declaration struct {
	From   protocol.AgentID `json:"from"`
	Intent protocol.Intent  `json:"intent"`
	Item   string           `json:"item,omitempty"` // the role of a RoleState, the seat of a SeatTelemetry
	ID     protocol.MsgID   `json:"id"`
	Wall   int64            `json:"wall"`
	Value  json.RawMessage  `json:"value,omitempty"` // absent above 4 KiB: then it is in the record (Log, Seq)
	Log    protocol.LogID   `json:"-"`
	Seq    uint64           `json:"-"`

	at pos
}

type declarationKey struct {
	agentKey
	Intent protocol.Intent
	Item   string
	Guest  bool // said as a member outside: of a node that was in and out both are kept
}

func (s *State) declare(at pos, wall int64, env *protocol.Envelope) {
	item := protocol.DeclaredItem(env.Intent, env.Value)
	key := declarationKey{agentKey{protocol.FoldAgentID(env.From), at.log.Peer}, env.Intent, item, guests(at.log)}
	if old := s.declarations[key]; old != nil && !old.at.before(at) {
		return
	}
	d := &Declaration{From: env.From, Intent: env.Intent, Item: item, ID: env.ID, Wall: wall, Log: at.log, Seq: at.seq, at: at}
	// Measured as records write it: an author still holds the sender's spelling, other nodes never saw it.
	if value, err := json.Marshal(env.Value); err == nil && len(env.Value) > 0 && len(value) <= declaredBytesMax {
		d.Value = value
	}
	s.declarations[key] = d
	if guests(at.log) {
		s.yieldDeclaration(at.log.Peer)
	}
}

// declaredOutside is how many declarations of one member outside are kept: of more the oldest gives way. As each of one kind
// is the newest of its kind already, which ones stay depends on the set alone.
const declaredOutside = 32

func (s *State) yieldDeclaration(of protocol.PeerID) {
	var oldest *Declaration
	var at declarationKey
	held := 0
	for key, d := range s.declarations {
		if key.Home != of || !key.Guest {
			continue
		}
		if held++; oldest == nil || d.Before(oldest) {
			oldest, at = d, key
		}
	}
	if held > declaredOutside {
		delete(s.declarations, at)
	}
}

// Before says whether d was declared before o, in the order that all nodes agree on.
func (d *Declaration) Before(o *Declaration) bool { return d.at.before(o.at) }

// Declarations lists the newest of each agent and name, by agent, then name.
func (s *State) Declarations() []Declaration {
	out := make([]Declaration, 0, len(s.declarations))
	for _, d := range s.declarations {
		out = append(out, *d)
	}
	slices.SortFunc(out, func(a, b Declaration) int {
		return cmp.Or(strings.Compare(string(a.From), string(b.From)), strings.Compare(string(a.Intent), string(b.Intent)), a.at.compare(b.at))
	})
	return out
}
