package turn

import (
	"fmt"
	"math"
	"time"

	"github.com/aster-mesh/aster/board"
	"github.com/aster-mesh/aster/node/hub"
	"github.com/aster-mesh/aster/node/replica"
	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/meshwire"
	"github.com/aster-mesh/aster/roles/election"
)

// KeyElection holds what roles/election must find again after a crash: the votes of this node.
const KeyElection = "election"

// Shell is what the office asks of the loop that drives it, in the turn under way.
type Shell interface {
	Now() time.Time
	Moment() protocol.Moment
	Dice() uint64
	NewID() protocol.MsgID
	Cores() (*hub.Core, *board.State, *replica.Replica)
	Members() Members
	Inside(protocol.PeerID) bool // one of them now
	Linked(protocol.PeerID) bool
	Own() protocol.AgentID // this node's own agent, who may not be here
	Runs(session string) bool
	Name(protocol.PeerID) string
	Value(key string, v []byte) // into this turn's commit
	Stored(key string) ([]byte, error)
	Send(protocol.PeerID, meshwire.Frame)
	Durable(func(err error)) // once this turn is, or is taken back for err
	Voted()                  // the home remembers, outside the store, that votes are kept
}

// Members are the nodes that a mesh has, or had, inside.
type Members struct {
	Inside []protocol.PeerID // whose certificates hold
	Lapsed []protocol.PeerID // whose certificates have ended
	Gone   []protocol.PeerID // whom a record ended, inside or not
}

// Office is who is main, and who holds what, as one node drives it: the votes and decisions of this turn go into its commit,
// and words of them leave behind it. Make one with NewOffice, then Restore it.
type Office struct {
	self protocol.PeerID
	do   Shell

	core   *election.Core // nil on a node outside, and on a fenced one: it has no vote
	fresh  bool           // it was stepped since its last Ready
	bet    bool           // this turn's commit holds a vote or a term: if it finds no room they are taken back
	at     time.Time      // when it is to be told that time passed
	may    time.Time      // a full store: no vote before
	forgot bool           // what was kept is not, or may be older than it was

	asks
	claims
}

// NewOffice is the office of a node. lost: its votes were kept once, and the store has lost them, or may have.
func NewOffice(self protocol.PeerID, lost bool, do Shell) *Office {
	return &Office{self: self, forgot: lost, do: do}
}

// Restore makes the cores from what is durable: at the start, and when a turn was taken back. votes: this node has a say.
func (o *Office) Restore(votes bool) error {
	if err := o.restoreHolder(); err != nil {
		return err
	}
	o.granter, o.fresh = nil, true // what it decided in a turn that was taken back is undone: it is made anew from the records
	if !votes || o.core != nil && !o.bet {
		return nil
	}
	raw, err := o.do.Stored(KeyElection)
	if err != nil {
		return fmt.Errorf("read votes: %w", err)
	}
	core, err := election.New(election.Boot{Self: o.self, Kept: raw, Lost: o.forgot, Now: o.do.Moment(), Dice: o.do.Dice()})
	if err != nil {
		return err
	}
	o.core, o.bet = core, false
	o.at = o.do.Now()
	o.Feed()
	return nil
}

// Open says whether this node has a say in who is main.
func (o *Office) Open() bool { return o.core != nil }

// Close ends this node's say: a newer start of it has the vote, and what goes with the office.
func (o *Office) Close() { o.core, o.granter = nil, nil }

// Status is what this node knows of the office; the zero value without a say.
func (o *Office) Status() election.Status {
	if o.core == nil {
		return election.Status{}
	}
	return o.core.Status(o.do.Moment())
}

// Feed tells the core what the records say of members, voters and terms.
func (o *Office) Feed() {
	if o.core == nil {
		return
	}
	m := o.do.Members()
	o.step(election.Members{Inside: m.Inside, Gone: m.Gone})
	roster := o.roster()
	if v := roster.Voters(); len(v.Voters) > 0 {
		o.step(election.VotersSeen{VotersBody: v})
	}
	if t := roster.Term(); t.Number > 0 {
		o.step(election.TermSeen{TermBody: t})
	}
}

func (o *Office) step(in election.Input) {
	o.core.Step(o.do.Moment(), o.do.Dice(), in)
	o.fresh = true
}

// Tick lets the core see that time passed, and does what time brings about for claims. Due says when.
func (o *Office) Tick() {
	if o.core != nil && !o.do.Now().Before(o.at) {
		o.step(election.Tick{})
	}
	o.lookAtClaims()
}

// Due is when Tick has something to do; zero: never.
func (o *Office) Due() time.Time {
	at := o.claimsDue()
	if o.core != nil && (at.IsZero() || o.at.Before(at)) {
		at = o.at
	}
	return at
}

// From takes what another node says about who is main.
func (o *Office) From(from protocol.PeerID, f *meshwire.Office) {
	if o.core == nil || !o.do.Inside(from) {
		return
	}
	o.step(election.Received{From: from, Message: election.Message{
		Kind: election.Kind(f.Kind), Term: f.Term, Seen: f.Seen, Seq: f.Seq, Strong: f.Strong, Resigned: f.Resigned, OK: f.OK, Pre: f.Pre,
		Number: f.Number, Stamp: f.Stamp, Voters: f.Voters,
	}})
}

// Settled says what a turn brought about the office.
type Settled struct {
	Stepped bool               // anything at all
	Took    *protocol.TermBody // this node is main from now on
	Changed bool               // Status differs from before
}

// Settle puts what the core owes into this turn: its votes and records into the commit, its words behind it.
func (o *Office) Settle() (s Settled) {
	if o.core == nil || !o.fresh || o.do.Now().Before(o.may) {
		return s
	}
	now := o.do.Moment()
	rd := o.core.Ready(now)
	o.fresh = false
	o.at = o.do.Now().Add(o.core.Wait(now))
	if rd.Keep != nil {
		o.do.Value(KeyElection, rd.Keep)
	}
	o.bet = o.bet || rd.Keep != nil || rd.Elected != nil || rd.Resigned != nil || rd.Voters != nil
	if rd.Elected != nil {
		s.Took = o.takes(rd.Elected)
	}
	if rd.Resigned != nil {
		o.resigns(rd.Resigned)
	}
	if rd.Voters != nil {
		o.author(protocol.KindVoters, rd.Voters)
	}
	if rd.Asked != nil {
		o.asksForHandOver(rd.Asked)
	}
	last := o.roster().Term()
	o.settleGranter(rd.Elected != nil && last.Ended && last.Term() == rd.Elected.Prev && !rd.Elected.Forced)
	s.Stepped, s.Changed = true, rd.Changed
	o.do.Durable(func(err error) {
		if err != nil {
			o.may = o.do.Now().Add(protocol.MainSilence)
			return
		}
		o.bet = false
		if rd.Keep != nil {
			o.forgot = false
			o.do.Voted()
		}
		for _, m := range rd.Send {
			o.do.Send(m.To, meshwire.Office{
				Kind: uint8(m.Kind), Term: m.Term, Seen: m.Seen, Seq: m.Seq, Strong: m.Strong, Resigned: m.Resigned, OK: m.OK, Pre: m.Pre,
				Number: m.Number, Stamp: m.Stamp, Voters: m.Voters,
			})
		}
	})
	return s
}

func (o *Office) author(kind protocol.Kind, body any) {
	core, _, _ := o.do.Cores()
	core.Step(o.do.Now(), hub.Author{Scope: protocol.ScopeInside, Kind: kind, Body: protocol.EncodeBody(body)})
}

// takes writes the first record of a term: whom it follows, how far that one's decisions count, who is main.
func (o *Office) takes(e *election.Elected) *protocol.TermBody {
	body := protocol.TermBody{Number: e.Term.Number, Peer: e.Term.Peer, Prev: e.Prev, Forced: e.Forced, Cuts: map[string]uint64{}}
	_, st, rep := o.do.Cores()
	for _, log := range st.DecidedIn(e.Prev) {
		if body.Cuts[log.String()] = rep.Taken(log); log.Peer == o.self {
			body.Cuts[log.String()] = math.MaxInt64 // our own: all of them
		}
	}
	asked := protocol.AgentID("")
	if last := st.Roster().Term(); last.Term() == e.Prev && last.Ended && last.To == o.self {
		asked = last.ToAgent
	}
	body.Agent = o.mainAgent(asked)
	o.author(protocol.KindTerm, body)
	return &body
}

// mainAgent is who of this node is main: whom the former main named, else the node's own agent, else one that is here.
// Empty: the first that attaches (node/hub).
func (o *Office) mainAgent(asked protocol.AgentID) protocol.AgentID {
	core, _, _ := o.do.Cores()
	for _, id := range []protocol.AgentID{asked, o.do.Own()} {
		if k, ok := core.Agent(id); id != "" && ok && k.Here {
			return k.Agent
		}
	}
	for _, k := range core.Listed(o.do.Now()) {
		if k.Here && k.Role.Inside() {
			return k.Agent
		}
	}
	return ""
}

// resigns writes the last record of this node's term, or names another main agent of this node in it.
func (o *Office) resigns(r *election.Resigned) {
	body := o.roster().Term()
	if body.Term() != r.Term {
		return // overruled meanwhile
	}
	if r.To == o.self {
		body.Agent = r.ToAgent
	} else {
		body.Ended, body.To, body.ToAgent = true, r.To, r.ToAgent
	}
	o.author(protocol.KindTerm, body)
}

// asksForHandOver tells the main agent that it is to hand over, as a message that waits for it like any other.
func (o *Office) asksForHandOver(a *election.Asked) {
	core, _, _ := o.do.Cores()
	main := core.Main() // as it is called here: after a clash of names the term's may be another agent's
	if main == "" {
		return
	}
	o.announce(protocol.Envelope{To: main, Intent: "HandoffRequested", Value: protocol.EncodeBody(struct {
		To     protocol.AgentID `json:"to"`
		Reason string           `json:"reason"`
	}{a.To, a.Reason})})
}

func (o *Office) announce(env protocol.Envelope) {
	core, _, _ := o.do.Cores()
	env.ID = o.do.NewID()
	core.Step(o.do.Now(), hub.Announce{Env: env})
}

// HandOver asks main here to hand over to an agent of any node.
func (o *Office) HandOver(to protocol.AgentID, reason string) *protocol.Refusal {
	if o.core == nil {
		return noOffice()
	}
	core, _, _ := o.do.Cores()
	k, ok := core.Agent(to)
	switch {
	case !ok:
		return protocol.Refuse(protocol.CodeUnknownAgent, "no agent %q", "aster agents lists them", string(to))
	case !k.Role.Inside():
		return protocol.Refuse(protocol.CodeNotAllowed, "%s is of outside: only an agent inside can be main", "", string(k.Agent))
	case k.Role == protocol.RoleMain:
		return protocol.Refuse(protocol.CodeNotAllowed, "%s is main already", "", string(k.Agent))
	}
	no := o.core.Handoff(o.do.Moment(), k.Home, k.Agent, protocol.CutText(reason, protocol.ShortTextBytesMax))
	if no == nil && o.roster().Term().Agent == "" { // nobody whom one could ask
		no = o.core.HandoffReady(o.do.Moment())
	}
	o.fresh = true
	return no
}

// HandOverReady takes the main agent's word that it has handed over.
func (o *Office) HandOverReady() *protocol.Refusal {
	if o.core == nil {
		return noOffice()
	}
	o.fresh = true
	return o.core.HandoffReady(o.do.Moment())
}

// Force takes the office without an election: a person says so. reach are the linked members inside.
func (o *Office) Force(reach []protocol.PeerID) *protocol.Refusal {
	if o.core == nil {
		return noOffice()
	}
	no := o.core.Force(o.do.Moment(), reach)
	o.fresh = o.fresh || no == nil
	return no
}

func noOffice() *protocol.Refusal {
	return protocol.Refuse(protocol.CodeNotAllowed, "this node is outside and has no main", "")
}

func (o *Office) main() protocol.PeerID { return o.roster().Term().Peer }
