package node

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/aster-mesh/aster/node/hub"
	"github.com/aster-mesh/aster/node/journal"
	"github.com/aster-mesh/aster/node/mesh"
	"github.com/aster-mesh/aster/node/replica"
	"github.com/aster-mesh/aster/node/turn"
	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/api"
	"github.com/aster-mesh/aster/protocol/asterism"
	"github.com/aster-mesh/aster/protocol/meshwire"
)

// fence is why this start writes nothing more: a newer start of its node ran while it did, so the home was copied. It is
// kept in the home, so that the copies do not take turns at each restart: whoever was fenced stays so until a person says
// aster up --reclaim.
type fence struct {
	By protocol.Start `json:"by"`
	At int64          `json:"at"` // ms since 1970
}

const fenceFile = "fence.json"

const reclaim = "Go on where it runs now. Or end that one and run here: aster up --replace --reclaim"

func (f *fence) refusal() *protocol.Refusal {
	return protocol.Refuse(protocol.CodeFenced, "this node's home was copied and a newer start of it runs elsewhere: this one writes nothing more. What it took before counts", reclaim)
}

// newStart names this start. A home that was fenced begins as older than what fenced it, and writes nothing.
func (n *Node) newStart(clock protocol.HLC) (protocol.Start, error) {
	path := n.home.path(fenceFile)
	raw, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return protocol.Start{}, fmt.Errorf("read %s: %w", fenceFile, err)
	}
	if err == nil {
		var f fence
		if err := json.Unmarshal(raw, &f); err != nil {
			return protocol.Start{}, fmt.Errorf("%s is damaged: %w. %s", fenceFile, err, reclaim)
		}
		if !n.cfg.Reclaim {
			n.fenced.Store(&f)
			n.warnings.set("fence", f.refusal().Error())
			n.log.Warn("this home was fenced: it writes nothing", "by", f.By.String())
			return protocol.Start{At: f.By.At - 1, Rand: randomNumber()}, nil
		}
		clock = max(clock, f.By.At)
		if err := os.Remove(path); err != nil {
			return protocol.Start{}, fmt.Errorf("take back %s: %w", fenceFile, err)
		}
	}
	return n.keepStart(protocol.Start{At: max(clock, n.lastStart()) + 1, Rand: randomNumber()})
}

// keyStart is the hybrid time of the newest start of this home. A start is named to others before it has written anything: were it
// known by its records alone, one that was killed at once under a clock that is ahead would fence its successor.
const keyStart = "start"

func (n *Node) lastStart() protocol.HLC {
	raw, ok, err := n.store.Value(keyStart)
	if err != nil || !ok || len(raw) != 8 {
		return 0
	}
	return protocol.HLC(binary.BigEndian.Uint64(raw))
}

// keepStart makes the name of a start durable, so that it may be told. A store without room has to do without.
func (n *Node) keepStart(s protocol.Start) (protocol.Start, error) {
	_, err := n.store.Commit(journal.Batch{Values: map[string][]byte{keyStart: binary.BigEndian.AppendUint64(nil, uint64(s.At))}})
	if err != nil && !errors.Is(err, journal.ErrFull) {
		return s, fmt.Errorf("keep the name of this start: %w", err)
	}
	return s, nil
}

// fence ends this start's writing for a newer one: what was said before is followed by a last record that says so.
func (l *loop) fence(by protocol.Start) {
	if l.n.fenced.Load() != nil {
		return
	}
	f := &fence{By: by, At: l.now.UnixMilli()}
	scope := protocol.ScopeInside
	if !l.inside() {
		scope = protocol.ScopeOutside(l.n.home.peer)
	}
	l.core.Step(l.now, hub.Author{Scope: scope, Kind: protocol.KindFence, Body: protocol.EncodeBody(
		protocol.FenceBody{Start: l.n.startID.String(), By: by.String(), Host: hostName(), Home: l.n.home.dir})})
	l.core.Step(l.now, hub.Fence{Refusal: f.refusal()})
	l.n.fenced.Store(f)
	l.office.Close() // the newer start has the vote, and what goes with the office
	if err := writeFile(l.n.home.path(fenceFile), f); err != nil {
		l.log.Error("fence not kept", "err", err)
	}
	l.warn("fence", f.refusal().Error())
	notice := l.enc.ServerNotice(l.now, "", asterism.Notice{Kind: "fenced", Text: f.refusal().Error(), Code: protocol.CodeFenced})
	for id, s := range l.sockets {
		if s.as == nil {
			continue
		}
		s.gone = true
		delete(l.sockets, id)
		l.core.Step(l.now, hub.Detach{Conn: id})
		s.conn.Send(notice)
		s.conn.Close(closeFenced, "this node's home was copied; its newer start serves")
	}
	l.toBoards(notice, 0)
	l.peersChanged()
}

// closeFenced is WebSocket's "try again later": where the newer start serves, the agent is welcome.
const closeFenced = 1013

// settle does what keys and moves owe once records are durable; true: there is more to make durable.
func (l *loop) settle() bool {
	if l.n.fenced.Load() != nil {
		return false
	}
	again := l.settleKeys()
	again, l.owed = again || l.owed, false
	again = l.settleMissed() || again
	return l.settleMoves() || again
}

// settleMissed takes what came for agents here before this node, whose store was lost, knew them again; true: some.
func (l *loop) settleMissed() (some bool) {
	if l.ownBack {
		l.office.Regained()
		l.ownBack, some = false, true
	}
	for _, agent := range l.regained {
		in, err := turn.Missed(l.now, l.store, l.core, agent)
		if err != nil {
			l.log.Error("mail of an agent that is known again not readable", "agent", agent, "err", err)
		}
		if len(in.Mail) > 0 {
			l.core.Step(l.now, in)
			some = true
		}
	}
	l.regained = nil
	return some
}

// sendStarts tells a peer which starts run, as far as it may know of them: ours, and the newest that was heard of others.
func (l *loop) sendStarts(to protocol.PeerID) {
	if l.n.fenced.Load() == nil {
		l.sendTo(to, meshwire.SignStarted(l.n.home.key, l.n.startID))
	}
	for _, s := range l.starts {
		if l.mayHear(to, s.Peer) {
			l.sendTo(to, s)
		}
	}
}

// mayHear says whether a peer may be told that a member runs.
func (l *loop) mayHear(to, of protocol.PeerID) bool {
	return to == of || l.n.standingOf(to) == mesh.Inside || l.n.standingOf(of) == mesh.Inside
}

// learnStarted takes a node's signed word that a start of it runs. A newer one of this node's ends our writing; of others the
// newest goes on to whoever may lack it, the node itself included: an older start of it may be linked here.
func (l *loop) learnStarted(from protocol.PeerID, f meshwire.Started) {
	if f.Peer == l.n.home.peer {
		if l.n.startID.Compare(f.Start) < 0 {
			l.fence(f.Start)
		}
		return
	}
	if old, ok := l.starts[f.Peer]; ok && old.Start.Compare(f.Start) >= 0 || !l.n.standingOf(f.Peer).Member() {
		return
	}
	l.starts[f.Peer] = f
	for peer, p := range l.peers {
		if peer != from && p.hello.Start != f.Start && l.mayHear(peer, f.Peer) {
			l.sendTo(peer, f)
		}
	}
}

// fenceFolded tells this node's person that an older start of it has stopped, or the persons of others that it did.
func (l *loop) fenceFolded(r *protocol.Record) {
	body, err := protocol.DecodeBody[protocol.FenceBody](r)
	if err != nil || r.Log.Peer == l.n.home.peer && body.Start == l.n.startID.String() {
		return
	}
	for _, c := range l.copies() {
		if c.Stopped == body.Start {
			l.tellCopy(&c)
		}
	}
}

// tellCopy says to everybody who watches here that a home was copied.
func (l *loop) tellCopy(c *api.Copy) {
	line := copyLine(c, c.Peer == l.n.home.peer)
	l.log.Warn(line, "peer", c.Peer, "start", c.Stopped)
	l.toBoards(l.enc.ServerNotice(l.now, "", asterism.Notice{Kind: "fenced", Text: line, Code: protocol.CodeFenced}), 0)
	l.peersChanged()
}

// copyLine is what is said of a copy to a person.
func copyLine(c *api.Copy, own bool) string {
	where := ""
	if c.Host != "" || c.Home != "" {
		where = " (" + strings.Join(slices.DeleteFunc([]string{protocol.CutText(c.Host, 64), protocol.CutText(c.Home, 200)}, func(s string) bool { return s == "" }), ", ") + ")"
	}
	switch {
	case c.This:
		return "this node runs a second time, started later: this one writes nothing more. " + reclaim
	case own:
		return "a copy of this node's home was running" + where + ": it writes nothing more. End it there: aster down"
	}
	return protocol.CutText(c.Node, 64) + " runs from two homes: the one started first" + where + " writes nothing more. End it there: aster down"
}

// copies are the nodes that ran twice, as records say, and this one by what it met.
func (l *loop) copies() []api.Copy {
	var out []api.Copy
	self := l.n.fenced.Load()
	for _, f := range l.board.Fences() {
		if s, ok := l.starts[f.Peer]; ok && f.By.Compare(s.Start) < 0 || f.Peer == l.n.home.peer && (self != nil || f.By.Compare(l.n.startID) < 0) {
			continue // a later start than both is known
		}
		out = append(out, api.Copy{Peer: f.Peer, Node: l.n.nameOf(f.Peer), Stopped: f.Start.String(), By: f.By.String(), Host: f.Host, Home: f.Home, At: f.Wall})
	}
	if start, ok := l.n.metTwin(); ok && self == nil && !slices.ContainsFunc(out, func(c api.Copy) bool { return c.Peer == l.n.home.peer }) {
		out = append(out, api.Copy{Peer: l.n.home.peer, Node: l.n.home.mesh.Name, Stopped: start.String(), By: l.n.startID.String(), At: l.now.UnixMilli()})
	}
	if self != nil {
		out = append(out, api.Copy{Peer: l.n.home.peer, Node: l.n.home.mesh.Name, Stopped: l.n.startID.String(), By: self.By.String(),
			Host: hostName(), Home: l.n.home.dir, This: true, At: self.At})
	}
	return out
}

// copyWarnings are the lines of copies that concern this node's person.
func (l *loop) copyWarnings() (out []string) {
	for _, c := range l.copies() {
		if !c.This { // that one is among the warnings
			out = append(out, copyLine(&c, c.Peer == l.n.home.peer))
		}
	}
	return out
}

// forked writes down that a log forks, so that every board says so. The log is cut here; what is held of it is kept.
func (l *loop) forked(f *replica.Fork) {
	l.warn("fork", forkLine(l.n.nameOf(f.Log.Peer)))
	for _, told := range l.board.Forks() {
		if told.Log.LogID == f.Log && told.By == l.n.home.peer {
			return
		}
	}
	if l.inside() && l.n.fenced.Load() == nil {
		l.core.Step(l.now, hub.Author{Scope: protocol.ScopeInside, Kind: protocol.KindFork, Body: protocol.EncodeBody(
			protocol.ForkBody{Log: f.Log.String(), Seq: f.Seq, Ours: f.Ours.String(), Theirs: f.Theirs.String()})})
		l.owed = true
	}
}

func forkLine(name string) string {
	return protocol.CutText(name, 64) + " wrote two records under one number: its key is stolen or its store damaged. If it is not known why: aster member revoke " + protocol.CutText(name, 64)
}

// forkWarnings are the lines of forks that others saw.
func (l *loop) forkWarnings() (out []string) {
	for _, f := range l.board.Forks() {
		if m, ok := l.roster().Member(f.Log.Peer); ok && !m.Revoked && f.By != l.n.home.peer {
			out = append(out, forkLine(l.n.nameOf(f.Log.Peer)))
		}
	}
	return out
}
