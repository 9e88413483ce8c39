package replica

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/aster-mesh/aster/protocol"
)

const (
	// storeBytesMax is the part of a peer's window that catching up may fill: the other half is always there for what
	// is said now.
	storeBytesMax = protocol.PushBacklogBytes / 2
	// passBytesMax is the part of it that what is said now in one log of another node's may fill.
	passBytesMax = protocol.PushBacklogBytes / 8
	// needAfter is how long a linked peer that holds what we lack may be silent before it is asked. It is longer than
	// PassOnAfter with its stagger, so that who serves unasked comes first.
	needAfter = 4 * protocol.PassOnAfter
	// quietFor is how long a confirmation that nobody waits for may wait for others, so that most receipts cost no frame of
	// their own. It is far below PassOnAfter: a third node that hears late passes nothing on.
	quietFor = 20 * time.Millisecond
	// quietBytes of one commit are confirmed at once: the sender's window waits for it.
	quietBytes = 16 << 10
	// needEvery is the distance between two requests for one log, each to another peer.
	needEvery = 5 * time.Second
	// feedCompares is after how many comparisons a node that feeds a peer others' records gives others a turn, so that two
	// who feed the same do not go on for ever.
	feedCompares = 8
	// strangeLogsMax bounds the logs of which we hold nothing and have only heard: as many as a vector may name.
	strangeLogsMax = 1 << 16
	// strangeLogsOutside is the same for what one outside member names.
	strangeLogsOutside = 1 << 10
	// proofsMax bounds the proofs owed to one peer; it asks again at the next comparison.
	proofsMax = 16
)

// Head is how far a log is held: its last record without a gap, and that record's hash.
type Head struct {
	Log  protocol.LogID
	Seq  uint64
	Hash protocol.Hash
}

// Mark is a peer's or our own statement about one log. Hash is the first eight bytes of the record's hash; zero: not
// stated.
type Mark struct {
	Log  protocol.LogID
	Seq  uint64
	Hash [8]byte
}

// Replica knows what this node and its linked peers hold. See New.
type Replica struct {
	self protocol.PeerID
	see  func(protocol.PeerID, protocol.Scope) bool

	logs    map[protocol.LogID]*logState
	authors []*author // by peer
	links   []*link   // by peer
	strange int       // logs of which nothing is held

	lacks []*logState // with lacking set
	askAt time.Time   // when lacks are looked through again
	needs []NeedTo
	forks []Fork
}

// author is all logs of one peer.
type author struct {
	peer  protocol.PeerID
	logs  []*logState // by start, scope
	sum   [16]byte    // of all logs before the last start, see pastSum
	sumOK bool
}

// logState is what is known of one log.
type logState struct {
	id     protocol.LogID
	author *author

	seq  uint64 // durable here
	hash protocol.Hash
	// What was taken from a peer and is not durable yet; never below seq.
	takenSeq  uint64
	takenHash protocol.Hash
	own       bool // this process writes it

	base uint64 // records up to it have left; never beyond seq

	// Records beyond end count nowhere: the lower of cut, the highest that was named, and fork, the last before one.
	// noEnd: none.
	end, cut, fork uint64

	replicated uint64 // confirmed by an inside peer, possibly beyond seq

	known   uint64 // the highest seq that any peer has stated
	inside  bool   // an inside peer has stated one
	lacking bool   // known is beyond what is taken
	lackAt  time.Time
	askAt   time.Time
	turn    int
}

const noEnd = ^uint64(0)

// limit is the last seq that may be stated and sent.
func (l *logState) limit() uint64 { return min(l.seq, l.end) }

// New starts from what is durable here. see says whether a peer may hold logs of a scope; it is asked for outside
// members and for self, since inside members hold all and everybody its own.
func New(self protocol.PeerID, heads []Head, see func(viewer protocol.PeerID, s protocol.Scope) bool) *Replica {
	r := &Replica{self: self, see: see, logs: make(map[protocol.LogID]*logState, len(heads))}
	for _, h := range heads {
		if h.Seq == 0 {
			continue
		}
		l := r.open(h.Log)
		l.seq, l.hash, l.takenSeq, l.takenHash = h.Seq, h.Hash, h.Seq, h.Hash
		r.strange--
	}
	return r
}

// Head is how far a log is durable here; Seq 0: not held.
func (r *Replica) Head(log protocol.LogID) Head {
	l := r.logs[log]
	if l == nil {
		return Head{Log: log}
	}
	return Head{log, l.seq, l.hash}
}

// Taken is how far a log is held here or on its way to the disk.
func (r *Replica) Taken(log protocol.LogID) uint64 {
	if l := r.logs[log]; l != nil {
		return l.takenSeq
	}
	return 0
}

// Heads lists all logs that are held, by author, start and scope.
func (r *Replica) Heads() []Head {
	var out []Head
	for _, a := range r.authors {
		for _, l := range a.logs {
			if l.seq > 0 {
				out = append(out, Head{l.id, l.seq, l.hash})
			}
		}
	}
	return out
}

// Ends lists how far each log that is held counts, as far as cuts and forks are known here.
func (r *Replica) Ends() []Head {
	var out []Head
	for _, a := range r.authors {
		for _, l := range a.logs {
			if l.limit() > 0 {
				out = append(out, Head{Log: l.id, Seq: l.limit()})
			}
		}
	}
	return out
}

// ReplicatedTo is the highest seq of a log that is durable here and, as it said itself, on at least one other inside
// node.
func (r *Replica) ReplicatedTo(log protocol.LogID) uint64 {
	l := r.logs[log]
	if l == nil {
		return 0
	}
	return min(l.replicated, l.seq)
}

// Cut says that records of a log beyond seq count nowhere: from now on none is sent or taken. Of two cuts the higher
// holds; a fork that lies lower holds against both.
func (r *Replica) Cut(log protocol.LogID, seq uint64) {
	l := r.logs[log]
	if l == nil {
		l = r.open(log)
	}
	if l.cut == noEnd || seq > l.cut {
		l.cut = seq
	}
	l.end = min(l.cut, l.fork)
	l.author.sumOK = false
	r.look()
}

// open finds or makes the state of a log.
func (r *Replica) open(id protocol.LogID) *logState {
	if l := r.logs[id]; l != nil {
		return l
	}
	at, found := slices.BinarySearchFunc(r.authors, id.Peer, func(a *author, p protocol.PeerID) int {
		return strings.Compare(string(a.peer), string(p))
	})
	if !found {
		r.authors = slices.Insert(r.authors, at, &author{peer: id.Peer})
	}
	a := r.authors[at]
	l := newLog(id)
	l.author = a
	at, _ = slices.BinarySearchFunc(a.logs, l, byStart)
	a.logs = slices.Insert(a.logs, at, l)
	r.logs[id] = l
	r.strange++
	return l
}

func newLog(id protocol.LogID) *logState {
	return &logState{id: id, end: noEnd, cut: noEnd, fork: noEnd}
}

// openStrange is open for a log that a peer has named; nil when it may not be named or too many are.
func (r *Replica) openStrange(k *link, id protocol.LogID) *logState {
	if l := r.logs[id]; l != nil {
		return l
	}
	if !r.mayHold(id) || r.strange >= strangeLogsMax {
		return nil
	}
	if !k.inside {
		if k.strange >= strangeLogsOutside {
			return nil
		}
		k.strange++
	}
	return r.open(id)
}

func (r *Replica) close(l *logState) {
	delete(r.logs, l.id)
	r.strange--
	l.author.logs = slices.DeleteFunc(l.author.logs, func(x *logState) bool { return x == l })
	r.lacks = slices.DeleteFunc(r.lacks, func(x *logState) bool { return x == l })
}

func compareStarts(a, b protocol.Start) int {
	return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.Rand, b.Rand))
}

// byStart orders logs by age: it is the order in which a peer that lacks several is served.
func byStart(a, b *logState) int {
	return cmp.Or(compareStarts(a.id.Start, b.id.Start), strings.Compare(string(a.id.Peer), string(b.id.Peer)),
		strings.Compare(string(a.id.Scope), string(b.id.Scope)))
}

// outside says whether this node itself is an outside member: it then passes nothing on unless asked.
func (r *Replica) outside() bool { return !r.see(r.self, protocol.ScopeInside) }

// mayHold says whether this node may hold a log.
func (r *Replica) mayHold(id protocol.LogID) bool {
	return id.Peer == r.self || !r.outside() || r.see(r.self, id.Scope)
}

// serves says whether this node offers a log without being asked.
func (r *Replica) serves(l *logState) bool { return l.id.Peer == r.self || !r.outside() }
