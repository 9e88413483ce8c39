package node

import (
	"fmt"
	"strings"
	"time"

	"github.com/aster-mesh/aster/board"
	"github.com/aster-mesh/aster/node/hub"
	"github.com/aster-mesh/aster/node/mesh"
	"github.com/aster-mesh/aster/node/replica"
	"github.com/aster-mesh/aster/node/turn"
	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/meshwire"
)

// officeState is the loop's part of who is main, and who holds what.
type officeState struct {
	office    *turn.Office
	mainSince time.Time // that this node is main, or was sure of it
}

// moment is now by both clocks.
func (l *loop) moment() protocol.Moment {
	return protocol.Moment{Wall: l.now.UnixMilli(), Up: uptime(), Boot: bootID()}
}

// restoreOffice makes it from what is durable: at the start, and when a turn was taken back.
func (l *loop) restoreOffice() error {
	if l.office == nil {
		lost, err := l.n.lostVotes()
		if err != nil {
			return err
		}
		l.office, l.mainSince = turn.NewOffice(l.n.home.peer, lost, officeShell{l}), l.now
	}
	return l.office.Restore(l.inside() && l.n.fenced.Load() == nil)
}

// lostVotes says whether this home has kept votes, and its store is not the one that they were written to, or not all of it.
func (n *Node) lostVotes() (bool, error) {
	if !n.home.mesh.Voted {
		return false, nil
	}
	_, ok, err := n.store.Value(turn.KeyElection)
	if err != nil {
		return false, fmt.Errorf("read votes: %w", err)
	}
	return !ok || len(n.store.Recovery().SetAside) > 0 || n.putBack() != nil, nil
}

// settleOffice lets what follows from votes and time into this turn, and tells persons and pages.
func (l *loop) settleOffice() {
	if !l.office.Open() {
		return
	}
	s := l.office.Settle()
	if s.Took != nil {
		l.log.Info("this node is main", "term", s.Took.Number, "after", s.Took.Prev.String(), "forced", s.Took.Forced, "agent", s.Took.Agent)
		l.mainSince = l.now
	}
	if s.Stepped {
		l.sayWhetherSure()
	}
	if s.Changed {
		l.peersChanged()
	}
}

// officeShell is the loop as the office knows it.
type officeShell struct{ l *loop }

func (s officeShell) Now() time.Time          { return s.l.now }
func (s officeShell) Moment() protocol.Moment { return s.l.moment() }
func (s officeShell) Dice() uint64            { return randomNumber() }
func (s officeShell) NewID() protocol.MsgID   { return newID() }

func (s officeShell) Cores() (*hub.Core, *board.State, *replica.Replica) {
	return s.l.core, s.l.board, s.l.rep
}

func (s officeShell) Members() turn.Members { return turn.MembersOf(s.l.known()) }

func (s officeShell) Inside(p protocol.PeerID) bool { return s.l.n.standingOf(p) == mesh.Inside }
func (s officeShell) Linked(p protocol.PeerID) bool { return s.l.peers[p] != nil }
func (s officeShell) Own() protocol.AgentID         { return s.l.own() }
func (s officeShell) Runs(session string) bool      { return sessionRuns(session) }
func (s officeShell) Name(p protocol.PeerID) string { return s.l.n.nameOf(p) }
func (s officeShell) Value(key string, v []byte)    { s.l.value(key, v) }

func (s officeShell) Stored(key string) ([]byte, error) {
	raw, _, err := s.l.store.Value(key)
	return raw, err
}

func (s officeShell) Send(p protocol.PeerID, f meshwire.Frame) { s.l.sendTo(p, f) }
func (s officeShell) Durable(f func(error))                    { s.l.after = append(s.l.after, f) }

func (s officeShell) Voted() {
	m := &s.l.n.home.mesh
	if m.Voted {
		return
	}
	m.Voted = true
	if err := s.l.n.home.saveMesh(); err != nil {
		s.l.log.Error("not kept that this home has voted", "err", err)
	}
}

// sayWhetherSure tells the person at a main that cannot know whether it still is one.
func (l *loop) sayWhetherSure() {
	st := l.office.Status()
	if !st.Main || st.Sure || st.Ended {
		l.mainSince = l.now
		l.n.warnings.clear("main")
		return
	}
	if l.now.Sub(l.mainSince) < protocol.MainSilence {
		return
	}
	if st.Mute > 0 {
		l.warn("main", "this node has lost its votes with its store, or has old ones out of an export: for "+protocol.VoterAbsence.String()+
			" it does not act as main, so that there are never two. Mail and Delegates go on; a person who knows better: aster main take --force")
		return
	}
	var names []string
	for _, p := range st.Missing {
		names = append(names, l.n.nameOf(p))
	}
	l.warn("main", "this node is main and does not reach "+strings.Join(names, ", ")+
		": another may be elected there, so no claims are granted here. Mail and Delegates go on")
}
