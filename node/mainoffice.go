package node

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/aster-mesh/aster/node/hub"
	"github.com/aster-mesh/aster/node/mesh"
	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/meshwire"
	"github.com/aster-mesh/aster/roles/election"
)

// keyElection holds what roles/election must find again after a crash: the votes of this node.
const keyElection = "election"

// officeState is the loop's part of who is main.
type officeState struct {
	office    *election.Core // nil on a node outside: it has no vote
	officeNew bool           // it was stepped since its last Ready
	officeBet bool           // this turn's commit holds a vote or a term: if it finds no room they are taken back
	officeAt  time.Time      // when it is to be told that time passed
	officeMay time.Time      // a full store: no vote before
	mainSince time.Time      // that this node is main, or was sure of it
}

// moment is now by both clocks.
func (l *loop) moment() protocol.Moment {
	return protocol.Moment{Wall: l.now.UnixMilli(), Up: uptime(), Boot: bootID()}
}

// restoreOffice makes the core from what is durable: at the start, and when a turn with a vote was taken back.
func (l *loop) restoreOffice() error {
	if !l.inside() || l.office != nil && !l.officeBet || l.n.fenced.Load() != nil {
		return nil
	}
	raw, _, err := l.store.Value(keyElection)
	if err != nil {
		return fmt.Errorf("read votes: %w", err)
	}
	core, err := election.New(election.Boot{Self: l.n.home.peer, Kept: raw, Now: l.moment(), Dice: randomNumber()})
	if err != nil {
		return err
	}
	l.office, l.officeBet, l.officeNew, l.mainSince = core, false, true, l.now
	l.officeAt = l.now
	l.feedOffice()
	return nil
}

// feedOffice tells the core what the records say of members, voters and terms.
func (l *loop) feedOffice() {
	if l.office == nil {
		return
	}
	var m election.Members
	for p, k := range l.known() {
		switch {
		case k.Revoked:
			m.Gone = append(m.Gone, p)
		case k.Inside && k.valid:
			m.Inside = append(m.Inside, p)
		}
	}
	l.stepOffice(m)
	if v := l.roster().Voters(); len(v.Voters) > 0 {
		l.stepOffice(election.VotersSeen{VotersBody: v})
	}
	if t := l.roster().Term(); t.Number > 0 {
		l.stepOffice(election.TermSeen{TermBody: t})
	}
}

func (l *loop) stepOffice(in election.Input) {
	l.office.Step(l.moment(), randomNumber(), in)
	l.officeNew = true
}

// tickOffice lets the core see that time passed.
func (l *loop) tickOffice() {
	if l.office != nil && !l.now.Before(l.officeAt) {
		l.stepOffice(election.Tick{})
	}
}

// officeDue is when tickOffice has something to do; zero: never.
func (l *loop) officeDue() time.Time {
	if l.office == nil {
		return time.Time{}
	}
	return l.officeAt
}

// officeFrom takes what another node says about who is main.
func (l *loop) officeFrom(from protocol.PeerID, f meshwire.Office) {
	if l.office == nil || l.n.standingOf(from) != mesh.Inside {
		return
	}
	l.stepOffice(election.Received{From: from, Message: election.Message{
		Kind: election.Kind(f.Kind), Term: f.Term, Seen: f.Seen, Seq: f.Seq, Strong: f.Strong, Resigned: f.Resigned, OK: f.OK, Pre: f.Pre,
		Number: f.Number, Stamp: f.Stamp, Voters: f.Voters,
	}})
}

// settleOffice puts what the core owes into this turn: its votes and records into the commit, its words behind it.
func (l *loop) settleOffice() {
	if l.office == nil || !l.officeNew || l.now.Before(l.officeMay) {
		return
	}
	now := l.moment()
	rd := l.office.Ready(now)
	l.officeNew = false
	l.officeAt = l.now.Add(l.office.Wait(now))
	if rd.Keep != nil {
		l.value(keyElection, rd.Keep)
	}
	l.officeBet = l.officeBet || rd.Keep != nil || rd.Elected != nil || rd.Resigned != nil || rd.Voters != nil
	if rd.Elected != nil {
		l.takeOffice(rd.Elected)
	}
	if rd.Resigned != nil {
		l.resignOffice(rd.Resigned)
	}
	if rd.Voters != nil {
		l.author(protocol.KindVoters, rd.Voters)
	}
	if rd.Asked != nil {
		l.askHandoff(rd.Asked)
	}
	last := l.roster().Term()
	l.settleGranter(rd.Elected != nil && last.Ended && last.Term() == rd.Elected.Prev && !rd.Elected.Forced)
	l.sayWhetherSure()
	if rd.Changed {
		l.officeChanged()
	}
	l.after = append(l.after, func(err error) {
		if err != nil {
			l.officeMay = l.now.Add(protocol.MainSilence)
			return
		}
		l.officeBet = false
		for _, s := range rd.Send {
			l.sendTo(s.To, meshwire.Office{
				Kind: uint8(s.Kind), Term: s.Term, Seen: s.Seen, Seq: s.Seq, Strong: s.Strong, Resigned: s.Resigned, OK: s.OK, Pre: s.Pre,
				Number: s.Number, Stamp: s.Stamp, Voters: s.Voters,
			})
		}
	})
}

func (l *loop) author(kind protocol.Kind, body any) {
	l.core.Step(l.now, hub.Author{Scope: protocol.ScopeInside, Kind: kind, Body: protocol.EncodeBody(body)})
}

// takeOffice writes the first record of a term: whom it follows, how far that one's decisions count, who is main.
func (l *loop) takeOffice(e *election.Elected) {
	body := protocol.TermBody{Number: e.Term.Number, Peer: e.Term.Peer, Prev: e.Prev, Forced: e.Forced, Cuts: map[string]uint64{}}
	for _, log := range l.board.DecidedIn(e.Prev) {
		if body.Cuts[log.String()] = l.rep.Taken(log); log.Peer == l.n.home.peer {
			body.Cuts[log.String()] = math.MaxInt64 // our own: all of them
		}
	}
	asked := protocol.AgentID("")
	if last := l.roster().Term(); last.Term() == e.Prev && last.Ended && last.To == l.n.home.peer {
		asked = last.ToAgent
	}
	body.Agent = l.mainAgent(asked)
	l.log.Info("this node is main", "term", e.Term.Number, "after", e.Prev.String(), "forced", e.Forced, "agent", body.Agent)
	l.mainSince = l.now
	l.author(protocol.KindTerm, body)
}

// mainAgent is who of this node is main: whom the former main named, else the node's own agent, else one that is here.
// Empty: the first that attaches (node/hub).
func (l *loop) mainAgent(asked protocol.AgentID) protocol.AgentID {
	for _, id := range []protocol.AgentID{asked, l.own()} {
		if k, ok := l.core.Agent(id); id != "" && ok && k.Here {
			return k.Agent
		}
	}
	for _, k := range l.core.Listed(l.now) {
		if k.Here && k.Role.Inside() {
			return k.Agent
		}
	}
	return ""
}

// resignOffice writes the last record of this node's term, or names another main agent of this node in it.
func (l *loop) resignOffice(r *election.Resigned) {
	body := l.roster().Term()
	if body.Term() != r.Term {
		return // overruled meanwhile
	}
	if r.To == l.n.home.peer {
		body.Agent = r.ToAgent
	} else {
		body.Ended, body.To, body.ToAgent = true, r.To, r.ToAgent
	}
	l.author(protocol.KindTerm, body)
}

// askHandoff tells the main agent that it is to hand over, as a message that waits for it like any other.
func (l *loop) askHandoff(a *election.Asked) {
	main := l.roster().Term().Agent
	if main == "" {
		return
	}
	l.core.Step(l.now, hub.Announce{Env: protocol.Envelope{
		ID: newID(), To: main, Intent: "HandoffRequested", Value: protocol.EncodeBody(struct {
			To     protocol.AgentID `json:"to"`
			Reason string           `json:"reason"`
		}{a.To, a.Reason}),
	}})
}

// sayWhetherSure tells the person at a main that cannot know whether it still is one.
func (l *loop) sayWhetherSure() {
	st := l.office.Status(l.moment())
	if !st.Main || st.Sure || st.Ended {
		l.mainSince = l.now
		l.n.warnings.clear("main")
		return
	}
	if l.now.Sub(l.mainSince) < protocol.MainSilence {
		return
	}
	var names []string
	for _, p := range st.Missing {
		names = append(names, l.n.nameOf(p))
	}
	l.warn("main", "this node is main and does not reach "+strings.Join(names, ", ")+
		": another may be elected there, so no claims are granted here. Mail and Delegates go on")
}

// officeChanged lets pages see it.
func (l *loop) officeChanged() { l.peersChanged() }
