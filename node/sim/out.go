package sim

import (
	"encoding/json"

	"github.com/aster-mesh/aster/node/hub"
	"github.com/aster-mesh/aster/node/turn"
	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/meshwire"
)

// out lets one consequence out, as loop.out does.
func (p *proc) out(o hub.Out) {
	switch o := o.(type) {
	case hub.Deliver:
		p.deliver(o)
	case hub.TierReached:
		p.n.w.ledger.tier(p.n, o)
	case hub.Told:
		if f := p.tokens[o.Token]; f != nil {
			delete(p.tokens, o.Token)
			f(o)
		}
	case hub.HintDelivered:
		kind := hintDelivered
		if o.Kept {
			kind = hintKept
		}
		p.sendTo(o.Home, meshwire.Live{Agent: o.Agent, Kind: kind, Frame: protocol.EncodeBody(hintBody{o.Ref.Log.String(), o.Ref.Seq})})
	case hub.Replaced:
		if c := p.conns[o.Conn]; c != nil && !o.Flap {
			delete(p.conns, o.Conn)
			c.lost()
		}
	case hub.Recalled:
		if c := p.conns[o.Conn]; c != nil {
			p.n.w.logf("node %d calls %s %s", p.n.i, o.Was, o.Is)
			c.id = o.Is
		}
	case hub.PresenceChanged:
		for _, peer := range p.linked() {
			p.sendPresence(peer)
		}
	}
}

const (
	hintDelivered = "delivered"
	hintKept      = "kept"
)

type hintBody struct {
	Log string `json:"log"`
	Seq uint64 `json:"seq"`
}

func (p *proc) hinted(from protocol.PeerID, f meshwire.Live) {
	var body hintBody
	k, ok := p.core.Agent(f.Agent)
	if !ok || k.Home != from || json.Unmarshal(f.Frame, &body) != nil {
		return
	}
	log, err := protocol.ParseLogID(body.Log)
	if err != nil || log.Peer != p.n.peer {
		return
	}
	p.core.Step(p.now, hub.DeliveredElsewhere{Ref: hub.Ref{Log: log, Seq: body.Seq}, Agent: f.Agent, Kept: f.Kind == hintKept})
}

func (p *proc) deliver(o hub.Deliver) {
	c := p.conns[o.Conn]
	if c == nil {
		return
	}
	env := o.Env
	if env == nil {
		m, ok, _ := p.n.disk.Message(o.Ref.Log, o.Ref.Seq)
		if !ok {
			return // not readable now
		}
		env = &m.Envelope
	}
	shown := p.core.Aliases().Shown(o.Ref.Log.Peer, env)
	if !p.n.w.lean {
		p.n.w.ledger.delivered(p.n, c, o.Ref, env)
		p.n.w.ledger.underOwnName(p, o.Ref, shown)
	}
	c.carried(p, o.Conn, o.Ref, *shown, env.Identity())
}

func (p *proc) sendPresence(peer protocol.PeerID) {
	p.presences++
	if p.standing(peer) == insider {
		f := meshwire.Presence{Start: p.start, Counter: p.presences}
		for _, a := range p.core.Presences(p.now) {
			f.Agents = append(f.Agents, turn.PresenceFrame(&a))
		}
		p.sendTo(peer, f)
		return
	}
	f := meshwire.Roster{Counter: p.presences}
	for _, k := range p.core.Agents(p.now) {
		if k.Home != peer && k.Role == protocol.RoleMain {
			f.Agents = append(f.Agents, meshwire.RosterAgent{AgentPresence: turn.PresenceFrame(&k.Presence), Home: k.Home, NodeName: p.n.w.byPeer[k.Home].name})
		}
	}
	p.sendTo(peer, f)
}

func (p *proc) presence(from protocol.PeerID, s *peerState, f *meshwire.Presence) {
	if in, whole := s.heard.Presence(from, p.roster().Term().Peer, f); whole {
		p.core.Step(p.now, in)
	}
}

func (p *proc) rosterFrom(from protocol.PeerID, s *peerState, f *meshwire.Roster) {
	if p.inside || p.standing(from) != insider {
		return
	}
	in, terms, old := s.heard.Roster(from, f)
	if old {
		return
	}
	for _, t := range terms {
		p.core.Step(p.now, t)
	}
	if !f.More {
		p.core.Step(p.now, in)
	}
}
