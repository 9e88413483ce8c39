package node

import (
	"context"
	"encoding/json"
	"time"

	"github.com/aster-mesh/aster/node/hub"
	"github.com/aster-mesh/aster/node/mesh"
	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/meshwire"
)

// A node's own agent is bound when it is first used (DESIGN 8), and who writes to it uses it: a person names a node, or its own
// agent, that nobody has used yet. The node is asked to let it begin, and answers what it is called.
const (
	liveBegin = "begin" // Agent: what somebody wants to write to
	liveBegun = "begun" // Agent: the own agent that is meant; Frame: what was asked
)

// mainByDefault is what a founding node's own agent is called unless its owner names it.
const mainByDefault protocol.AgentID = "main-agent"

// beginWait is how long a node may take to answer: its binding crosses to here, behind a sync.
const (
	beginWait = 3 * time.Second
	beginLook = 10 * time.Millisecond
)

// begin has the own agent of the node begin that somebody writes to as to, by the node's name or the agent's, and returns what it
// is called; empty: no node here is meant, or it does not answer.
func (n *Node) begin(ctx context.Context, to protocol.AgentID) (own protocol.AgentID, err error) {
	here, asked := false, false
	key := protocol.FoldAgentID(to)
	err = n.loop.call(ctx, func() {
		l := n.loop
		if here = l.begins(to); here {
			own = l.own()
			return
		}
		delete(l.ownOf, key)
		for peer := range l.peers {
			founder := key == mainByDefault && l.n.standingOf(peer) == mesh.Inside
			if founder || namedAs(key, n.nameOf(peer)) {
				asked = l.sendTo(peer, meshwire.Live{Kind: liveBegin, Agent: to}) || asked
			}
		}
	})
	if err != nil || !here && !asked {
		return "", err
	}
	if here {
		_, err = n.loop.ask(ctx, func(t hub.Token) hub.Input { return n.loop.ownBegins(own, t) })
		return own, err
	}
	ctx, end := context.WithTimeout(ctx, beginWait)
	defer end()
	for {
		err := n.loop.call(ctx, func() {
			b, ok := n.loop.ownOf[key]
			if ok && (protocol.FoldAgentID(b.agent) == key || namedAs(key, n.nameOf(b.by))) { // else it spoke up for another
				if k, known := n.loop.core.Agent(b.agent); known && k.Home == b.by {
					own = b.agent
				}
			}
		})
		if err != nil || own != "" {
			return own, nil
		}
		if pause(ctx, beginLook) != nil {
			return "", nil
		}
	}
}

// begunBy is a node's word on its own agent.
type begunBy struct {
	agent protocol.AgentID
	by    protocol.PeerID
}

// begunMax bounds how many such words are remembered.
const begunMax = 64

// begins says whether somebody who writes to a name means this node's own agent.
func (l *loop) begins(to protocol.AgentID) bool {
	key := protocol.FoldAgentID(to)
	if key == protocol.FoldAgentID(l.own()) {
		return true
	}
	_, other := l.core.Agent(to)
	return !other && namedAs(key, l.n.home.mesh.Name)
}

// namedAs says whether a folded id is a node's name, or what that makes of an agent's.
func namedAs(key protocol.AgentID, node string) bool {
	return key == protocol.FoldAgentID(protocol.AgentID(node)) || key == protocol.FoldAgentID(protocol.AgentID(agentName(node)))
}

// ownBegins binds the own agent, unless it is bound.
func (l *loop) ownBegins(own protocol.AgentID, t hub.Token) hub.Input {
	if _, ok := l.core.Agent(own); ok {
		return hub.Unwait{Token: t}
	}
	return hub.Declare{Agent: own, Client: "cli", Token: t}
}

// begunFrom takes another node's question or answer. Who may not write to an agent here learns no more than its name.
func (l *loop) begunFrom(from protocol.PeerID, f meshwire.Live) {
	if f.Kind == liveBegun {
		var asked protocol.AgentID
		if json.Unmarshal(f.Frame, &asked) != nil || protocol.CheckAgentID(asked) != nil || protocol.CheckAgentID(f.Agent) != nil {
			return
		}
		if len(l.ownOf) >= begunMax {
			clear(l.ownOf)
		}
		if l.ownOf == nil {
			l.ownOf = map[protocol.AgentID]begunBy{}
		}
		l.ownOf[protocol.FoldAgentID(asked)] = begunBy{f.Agent, from}
		return
	}
	if !l.begins(f.Agent) || l.n.full() != nil {
		return
	}
	own := l.own()
	answer := meshwire.Live{Kind: liveBegun, Agent: own, Frame: protocol.EncodeBody(f.Agent)}
	if _, bound := l.core.Agent(own); bound {
		l.sendTo(from, answer)
		return
	}
	l.core.Step(l.now, l.ownBegins(own, l.expect(func(t hub.Told) {
		if t.Refusal == nil {
			l.sendTo(from, answer)
		}
	})))
}
