package node

import (
	"encoding/json"
	"time"

	"github.com/aster-mesh/aster/node/hub"
	"github.com/aster-mesh/aster/node/mesh"
	"github.com/aster-mesh/aster/node/turn"
	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/asterism"
	"github.com/aster-mesh/aster/protocol/meshwire"
	"github.com/aster-mesh/aster/roles"
)

// sendPresence tells a peer how our agents are: an inside member all of them; an outside member, which takes no part in
// gossip, those it may address (DESIGN 4 Scopes).
func (l *loop) sendPresence(peer protocol.PeerID) {
	if l.n.fenced.Load() != nil {
		return // the newer start speaks of the agents
	}
	l.presenceCount++
	if l.n.standingOf(peer) == mesh.Inside {
		f := meshwire.Presence{Start: l.n.startID, Counter: l.presenceCount}
		for _, p := range l.core.Presences(l.now) {
			f.Agents = append(f.Agents, turn.PresenceFrame(&p))
		}
		l.sendTo(peer, f)
		return
	}
	f := meshwire.Roster{Counter: l.presenceCount}
	for _, k := range l.core.Agents(l.now) {
		if k.Home != peer && l.mayBeShown(&k) {
			f.Agents = append(f.Agents, meshwire.RosterAgent{AgentPresence: turn.PresenceFrame(&k.Presence), Home: k.Home, NodeName: l.n.nameOf(k.Home)})
		}
	}
	for _, m := range l.roster().Members() {
		if m.Inside && !m.Revoked {
			_, linked := l.peers[m.Peer]
			f.Nodes = append(f.Nodes, meshwire.RosterNode{Peer: m.Peer, Name: m.Name, Role: m.Role, Online: linked || m.Peer == l.n.home.peer})
		}
	}
	l.sendTo(peer, f)
}

// mayBeShown: an outsider sees main, whom it may always address, and nobody else of the inside by this way; agents that
// wrote to it are known to it by its own logs.
func (l *loop) mayBeShown(k *hub.Known) bool { return k.Role == protocol.RoleMain }

// presence takes a peer's word on its own agents.
func (l *loop) presence(from protocol.PeerID, p *peerState, f *meshwire.Presence) {
	if in, whole := p.heard.Presence(from, l.mainPeer(), f); whole {
		l.core.Step(l.now, in)
	}
}

func (l *loop) mainPeer() protocol.PeerID { return l.roster().Term().Peer }

// rosterFrom is what an inside member shows to this node, which is outside. Who is main is heard here, since the term's
// record lies in a log of the inside.
func (l *loop) rosterFrom(from protocol.PeerID, p *peerState, f meshwire.Roster) {
	if l.inside() || l.n.standingOf(from) != mesh.Inside {
		return
	}
	in, terms, old := p.heard.Roster(from, &f)
	if old {
		return
	}
	for _, t := range terms {
		l.core.Step(l.now, t)
	}
	for _, node := range f.Nodes {
		l.heardNames[node.Peer] = node.Name
	}
	if !f.More {
		l.core.Step(l.now, in)
		l.publishNames()
	}
}

func (l *loop) inside() bool { return l.n.role().Inside() }

// liveCopy passes a live frame to sockets here.
func (l *loop) liveCopy(o hub.LiveCopy) {
	if o.Board {
		l.toBoards(o.Frame, 0)
		return
	}
	for _, id := range o.Conns {
		if s := l.sockets[id]; s != nil {
			s.conn.Send(o.Frame)
		}
	}
}

// liveBytesMax is what may gather for one peer between two sendings; the oldest goes first (DESIGN 4 Kept or live).
const liveBytesMax = 128 << 10

// liveQueue gathers live frames for a peer, so that a stream of text costs ten frames a second and not a thousand.
type liveQueue struct {
	frames []liveBody
	bytes  int
	sent   time.Time
}

// liveOut gathers a live frame for other nodes: for the home of its target, or for every inside peer.
func (l *loop) liveOut(o hub.LiveOut) {
	for peer := range l.peers {
		if o.Home != "" && peer != o.Home || o.Home == "" && l.n.standingOf(peer) != mesh.Inside {
			continue
		}
		q := l.live[peer]
		if q == nil {
			q = &liveQueue{}
			l.live[peer] = q
		}
		q.frames = append(q.frames, liveBody{From: o.From, To: o.To, Frame: o.Frame})
		q.bytes += len(o.Frame)
		for q.bytes > liveBytesMax && len(q.frames) > 1 {
			q.bytes -= len(q.frames[0].Frame)
			q.frames = q.frames[1:]
		}
	}
}

// liveDue sends what has gathered, at most every LiveEvery to a peer, and nothing to one that is behind. It returns when it
// is to be called again; zero: nothing waits.
func (l *loop) liveDue() (next time.Time) {
	for peer, q := range l.live {
		at := q.sent.Add(protocol.LiveEvery)
		switch {
		case len(q.frames) == 0 || l.peers[peer] == nil:
			delete(l.live, peer)
		case l.now.Before(at):
			if next.IsZero() || at.Before(next) {
				next = at
			}
		default:
			if l.n.mesh.Queued(peer) < protocol.LinkQueueBytesMax/8 {
				l.sendTo(peer, meshwire.Live{Kind: liveFrames, Agent: q.frames[0].From, Frame: protocol.EncodeBody(q.frames)})
			}
			l.live[peer] = &liveQueue{sent: l.now}
		}
	}
	return next
}

type liveBody struct {
	From  protocol.AgentID `json:"from"`
	To    protocol.AgentID `json:"to,omitempty"`
	Frame json.RawMessage  `json:"frame"`
}

// liveFrom takes a live frame of another node: its agents may speak through it, nobody else's.
func (l *loop) liveFrom(from protocol.PeerID, f meshwire.Live) {
	switch f.Kind {
	case liveBegin, liveBegun:
		l.begunFrom(from, f)
	case liveFrames:
		var all []liveBody
		if json.Unmarshal(f.Frame, &all) != nil {
			return
		}
		for i := range all {
			l.liveOne(from, &all[i])
		}
	case liveDelivered, liveKept:
		var ref liveRef
		k, ok := l.core.Agent(f.Agent)
		if !ok || k.Home != from || json.Unmarshal(f.Frame, &ref) != nil {
			return
		}
		log, err := protocol.ParseLogID(ref.Log)
		if err != nil || log.Peer != l.n.home.peer {
			return
		}
		l.core.Step(l.now, hub.DeliveredElsewhere{Ref: hub.Ref{Log: log, Seq: ref.Seq}, Agent: f.Agent, Kept: f.Kind == liveKept})
	}
}

func (l *loop) liveOne(from protocol.PeerID, body *liveBody) {
	k, ok := l.core.Agent(body.From)
	if !ok || k.Home != from || !json.Valid(body.Frame) {
		return
	}
	if l.n.standingOf(from) != mesh.Inside {
		if body.Frame = l.guestFrame(&k, body); body.Frame == nil {
			return
		}
	}
	if body.To == "" {
		l.toBoards(body.Frame, 0)
		return
	}
	l.core.Step(l.now, hub.SayLive{As: body.From, To: body.To, Frame: body.Frame})
}

// guestFrame is a live frame of a member outside as this node lets it out: what may be live at all, under the name of
// whoever speaks. Its own node is not believed about either. nil: it is let out nowhere.
func (l *loop) guestFrame(k *hub.Known, body *liveBody) []byte {
	f, no := asterism.Decode(body.Frame, protocol.FrameBytesMax)
	if no != nil || !f.Live() {
		return nil
	}
	if f.TargetAgentID = body.To; body.To != "" {
		to, ok := l.core.Agent(body.To)
		if !ok || f.Stream() || roles.May(k.Role, f.Intent(), to.Role) != nil {
			return nil
		}
	}
	env, no := f.Envelope(asterism.Sender{ID: k.Agent, Name: k.Name, Role: k.Role, Source: protocol.SourceAgent}, newID())
	if no != nil {
		return nil
	}
	return asterism.AppendDelivery(nil, &env, l.now.UnixMilli())
}
