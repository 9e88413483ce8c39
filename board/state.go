package board

import (
	"errors"
	"fmt"

	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/roles/keys"
	"github.com/aster-mesh/aster/roles/member"
	"github.com/aster-mesh/aster/roles/room"
)

// KeptTasks is how many of the newest Delegates keep their task's words after it ended; of older ended tasks the board
// keeps only how they ended. Tasks that have not ended keep all. 2,000 tasks are about 4 MB.
const KeptTasks = 2_000

// ErrGap says that a record does not follow the last one applied of its log: the caller broke the order.
var ErrGap = errors.New("record above a gap")

// State is the fold. It is a join: the records of one log come in order, the logs in any order and interleaving, and
// equal sets of records give equal Canonical bytes. That holds because each field keeps its greatest write by (hybrid
// time, log, seq), or its first where the rule is "the first counts", and sets only grow.
//
// The one thing that a join cannot do is take back. When a revocation arrives after records that lie beyond its cut
// were applied (or a higher cut, or a new admission, makes skipped ones count), the State says Stale: the caller then
// takes Restart and applies the whole journal again, each log from its first record.
type State struct {
	roster *member.Roster
	logs   map[protocol.LogID]*logState
	stale  bool

	count   uint64
	sum     [32]byte // of all records' hashes, mod 2^256
	kinds   map[protocol.Kind]uint64
	intents map[protocol.Intent]uint64

	bindings     map[protocol.AgentID]map[protocol.PeerID]*binding // by folded id, then first home
	guests       map[protocol.PeerID]*guest                        // what members outside say of their agents
	moves        map[agentKey]*moved                               // by first home: not taken up yet
	presence     map[agentKey]*presence
	declarations map[declarationKey]*Declaration
	keys         *keys.Ring
	tasks        map[taskKey]*task
	rooms        map[protocol.RoomID]*room.Room
	shared       map[protocol.PeerID]map[protocol.RoomID]*room.Room // as members outside were told of them
	document     *Document                                          // nil: none yet
	channels     Channels                                           // once lent it is replaced, not changed
	lent         bool
	claims       map[claimKey]*claim
	decided      map[decidedKey]decided
	fences       map[protocol.PeerID]*Fence                    // the newest of each node
	forks        map[protocol.PeerID]map[protocol.PeerID]*Fork // by who told of it, then node: the newest
	cut          *Cut                                          // the newest; nil: none yet
	cutAnswers   map[protocol.PeerID]CutAnswer                 // the newest of each node
	bases        bases
	from         *Snapshot    // where Restart begins; nil: before the first record
	recent       delegateHeap // the newest Delegates, kept at most
	kept         int          // KeptTasks; less in tests
}

// logState is what the fold remembers of a log.
type logState struct {
	id        protocol.LogID
	mark      uint64 // the last seq taken
	delegates map[uint64]*delegateItem
	ranges    uint64 // of receipts that its author wrote: see affords
	said      baseSaid
	waiting   []waitingReceipt          // for messages above mark
	soonest   uint64                    // the first of them is over there
	bound     map[protocol.AgentID]bool // folded: whose binding by the log's author stands in it
}

type agentKey struct {
	Agent protocol.AgentID // folded
	Home  protocol.PeerID
}

// New is the board of a mesh before its first record.
func New(mesh member.MeshID) *State { return newState(member.NewRoster(mesh), KeptTasks) }

func newState(roster *member.Roster, kept int) *State {
	return &State{
		roster:       roster,
		logs:         map[protocol.LogID]*logState{},
		kinds:        map[protocol.Kind]uint64{},
		intents:      map[protocol.Intent]uint64{},
		bindings:     map[protocol.AgentID]map[protocol.PeerID]*binding{},
		guests:       map[protocol.PeerID]*guest{},
		moves:        map[agentKey]*moved{},
		presence:     map[agentKey]*presence{},
		declarations: map[declarationKey]*Declaration{},
		keys:         keys.NewRing(),
		tasks:        map[taskKey]*task{},
		rooms:        map[protocol.RoomID]*room.Room{},
		shared:       map[protocol.PeerID]map[protocol.RoomID]*room.Room{},
		claims:       map[claimKey]*claim{},
		decided:      map[decidedKey]decided{},
		fences:       map[protocol.PeerID]*Fence{},
		forks:        map[protocol.PeerID]map[protocol.PeerID]*Fork{},
		cutAnswers:   map[protocol.PeerID]CutAnswer{},
		bases:        newBases(),
		kept:         kept,
	}
}

// Restart is a State that knows all the cuts of s and holds nothing, or what its base does, for applying the journal again. s
// is not to be used after it.
func (s *State) Restart() *State {
	if s.from == nil {
		return newState(s.roster, s.kept)
	}
	return s.from.fold(s.roster, s.kept)
}

// Stale says that records were taken which count no longer, or passed over which now do: see State.
func (s *State) Stale() bool { return s.stale }

// Roster is the membership that the board stands on. The caller reads it and applies nothing to it.
func (s *State) Roster() *member.Roster { return s.roster }

// Keys are the keys of the contract as the records that count say. The caller reads them and applies nothing to them.
func (s *State) Keys() *keys.Ring { return s.keys }

// Mark is the last seq taken of a log; 0: none. A checkpoint is followed from there.
func (s *State) Mark(log protocol.LogID) uint64 {
	if ls := s.logs[log]; ls != nil {
		return ls.mark
	}
	return 0
}

// Apply takes the next record of its log. env is its envelope when it is a message; nil makes Apply decode it. A record
// taken before is passed over; one that does not follow is ErrGap and changes nothing. A body that does not decode
// counts as a record and changes nothing else. It retains neither rec nor env, but shares their strings.
func (s *State) Apply(rec *protocol.Record, env *protocol.Envelope) error {
	ls := s.log(rec.Log)
	switch {
	case rec.Seq <= ls.mark:
		return nil
	case rec.Seq != ls.mark+1:
		return fmt.Errorf("%w: %s seq %d after %d", ErrGap, rec.Log, rec.Seq, ls.mark)
	}
	s.membership(rec)
	ls.mark = rec.Seq
	if rec.Seq > s.roster.Bound(rec.Log) {
		s.passed(ls)
		return nil
	}
	s.count++
	add(&s.sum, rec.Hash())
	s.kinds[knownKind(rec.Kind)]++
	at := pos{rec.At, ls.id, rec.Seq}
	switch rec.Kind {
	case protocol.KindMessage:
		if env == nil {
			body, err := protocol.DecodeBody[protocol.Envelope](rec)
			if err != nil {
				break
			}
			env = &body
		}
		s.message(ls, at, rec.Wall, env)
	case protocol.KindBind:
		if body, err := protocol.DecodeBody[protocol.BindBody](rec); err == nil {
			ls.binds(body)
			s.bind(at, body)
		}
	case protocol.KindMove:
		if body, err := protocol.DecodeBody[protocol.MoveBody](rec); err == nil {
			s.move(at, body)
		}
	case protocol.KindPresence:
		if body, err := protocol.DecodeBody[protocol.PresenceBody](rec); err == nil {
			s.present(at, rec.Wall, body)
		}
	case protocol.KindReceipts:
		if body, err := protocol.DecodeBody[protocol.ReceiptsBody](rec); err == nil {
			if body.Agent != "" && ls.speaks(body.Agent) && ls.affords(body) {
				s.receipts(at, rec.Wall, body)
			}
		}
	case protocol.KindKey:
		s.keys.Apply(rec)
	case protocol.KindRoom:
		if body, err := protocol.DecodeBody[protocol.RoomBody](rec); err == nil {
			s.roomStep(at, rec.Wall, body)
		}
	case protocol.KindState:
		if body, err := protocol.DecodeBody[protocol.StateBody](rec); err == nil {
			s.publish(at, rec.Wall, body)
		}
	case protocol.KindFence, protocol.KindFork, protocol.KindCut:
		s.amiss(at, rec)
	case protocol.KindChannel:
		s.channelStep(at, rec)
	case protocol.KindClaim:
		if body, err := protocol.DecodeBody[protocol.ClaimBody](rec); err == nil && rec.Log.Scope == protocol.ScopeInside {
			s.claimStep(at, rec.Wall, body)
		}
	}
	s.passed(ls)
	return nil
}

// passed follows each record that is taken.
func (s *State) passed(ls *logState) {
	s.bases.taken(ls.id, ls.mark)
	ls.prune()
}

func (s *State) log(id protocol.LogID) *logState {
	ls := s.logs[id]
	if ls == nil {
		ls = &logState{id: id}
		s.logs[id] = ls
	}
	return ls
}

// membership gives the roster its records, and notices when that changes what counts of what was taken.
func (s *State) membership(rec *protocol.Record) {
	switch rec.Kind {
	case protocol.KindMember, protocol.KindRevoke:
		before := make(map[*logState]uint64, len(s.logs))
		for _, ls := range s.logs {
			before[ls] = s.counted(ls)
		}
		s.roster.Apply(rec)
		for ls, n := range before {
			if s.counted(ls) != n {
				s.stale = true
			}
		}
	case protocol.KindInviteUsed, protocol.KindVoters:
		s.roster.Apply(rec)
		return
	case protocol.KindTerm:
		s.roster.Apply(rec)
	default:
		return
	}
	s.stale = s.stale || s.redecided()
}

// counted is the last seq of what was taken of a log that counts.
func (s *State) counted(ls *logState) uint64 { return min(ls.mark, s.roster.Bound(ls.id)) }

// message takes what the board shows of an envelope.
func (s *State) message(ls *logState, at pos, wall int64, env *protocol.Envelope) {
	if env.Copy {
		return // the inside has the message itself, and a member outside folds no talk of rooms
	}
	if !ls.speaks(env.From) {
		return // a log tells words of an agent only behind that agent's binding (DESIGN 5); else anybody could forge them
	}
	info := protocol.Lookup(env.Intent)
	name := env.Intent
	if info.Class == protocol.ClassUnknown {
		name = otherIntent // unknown names are anybody's to make up: one counter for all keeps the board bounded
	}
	s.intents[name]++
	if env.Room != "" {
		s.roomSaid(at, wall, env)
	}
	switch {
	case env.Intent == protocol.Delegate && env.To != "":
		s.delegate(ls, at, wall, env)
	case env.Intent == protocol.WorkerReport && env.From != "" && env.Re != "":
		s.report(at, wall, env)
	case env.Intent == protocol.Cancel && env.To != "" && env.Re != "":
		s.cancel(at, wall, env)
	case env.Intent == "CorporateChart" && at.log.Scope != protocol.ScopeInside: // nobody outside says who fills which post
	case info.Class == protocol.ClassDeclaration && (env.From != "" || env.Intent == "CorporateChart"):
		s.declare(at, wall, env)
	}
}

const (
	otherIntent protocol.Intent = "(other)"
	otherKind   protocol.Kind   = "(other)"
)

func knownKind(k protocol.Kind) protocol.Kind {
	switch k {
	case protocol.KindMessage, protocol.KindReceipts, protocol.KindBind, protocol.KindMove, protocol.KindMember, protocol.KindRevoke,
		protocol.KindInviteUsed, protocol.KindTerm, protocol.KindPresence, protocol.KindKey, protocol.KindRoom, protocol.KindState,
		protocol.KindVoters, protocol.KindClaim, protocol.KindFence, protocol.KindFork, protocol.KindChannel,
		protocol.KindCut:
		return k
	}
	return otherKind
}

// add adds h to the sum, mod 2^256: addition knows no order, and unlike xor two equal records would not vanish.
func add(sum *[32]byte, h protocol.Hash) {
	carry := 0
	for i := len(sum) - 1; i >= 0; i-- {
		carry += int(sum[i]) + int(h[i])
		sum[i] = byte(carry)
		carry >>= 8
	}
}
