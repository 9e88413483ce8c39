package meshwire

import (
	"fmt"
	"math"

	"github.com/aster-mesh/aster/protocol"
)

// The shapes on the wire of frames about agents.

type wAgent struct {
	ID       string   `msgpack:"i"`
	Name     string   `msgpack:"n"`
	Role     string   `msgpack:"r"`
	State    string   `msgpack:"s"`
	Since    int64    `msgpack:"t"`
	Unread   int      `msgpack:"u"`
	Wakes    string   `msgpack:"w"`
	Doing    string   `msgpack:"d"`
	Attached []string `msgpack:"a"`
	Home     []byte   `msgpack:"h"` // of a roster only
	NodeName string   `msgpack:"o"` // of a roster only
}

func fromAgent(a AgentPresence) wAgent {
	return wAgent{ID: string(a.ID), Name: a.Name, Role: string(a.Role), State: string(a.State), Since: a.SinceMillis,
		Unread: a.Unread, Wakes: a.Wakes, Doing: a.Doing, Attached: a.Attached}
}

func fromAgents(agents []AgentPresence) []wAgent {
	if len(agents) == 0 {
		return nil
	}
	out := make([]wAgent, len(agents))
	for i, a := range agents {
		out[i] = fromAgent(a)
	}
	return out
}

func (w *wAgent) agent() (AgentPresence, error) {
	a := AgentPresence{protocol.AgentID(w.ID), w.Name, protocol.Role(w.Role), protocol.AgentState(w.State), w.Since,
		w.Unread, w.Wakes, w.Doing, w.Attached}
	if err := protocol.CheckAgentID(a.ID); err != nil {
		return a, fmt.Errorf("%w: %w", ErrBadFrame, err)
	}
	if err := checkTexts(field{"name", w.Name, 4 * protocol.AgentNameRunesMax}, field{"role", w.Role, 32},
		field{"state", w.State, 32}, field{"wakes", w.Wakes, 128}, field{"doing", w.Doing, protocol.ShortTextBytesMax},
		field{"node name", w.NodeName, 256}); err != nil {
		return a, err
	}
	if err := checkRange("unread", int64(w.Unread), 0, math.MaxInt32); err != nil {
		return a, err
	}
	if len(w.Attached) > 32 {
		return a, fmt.Errorf("%w: %d attachments of one agent, at most 32", ErrBadFrame, len(w.Attached))
	}
	for _, how := range w.Attached {
		if err := checkTexts(field{"attached", how, 64}); err != nil {
			return a, err
		}
	}
	return a, nil
}

type wPresence struct {
	Start   []byte   `msgpack:"s"`
	Counter uint64   `msgpack:"c"`
	Agents  []wAgent `msgpack:"a"`
	More    bool     `msgpack:"x"`
}

func (w *wPresence) frame() (Frame, error) {
	p := Presence{Counter: w.Counter, More: w.More}
	var err error
	if p.Start, err = startOf(w.Start); err != nil {
		return nil, err
	}
	for i := range w.Agents {
		a, err := w.Agents[i].agent()
		if err != nil {
			return nil, err
		}
		p.Agents = append(p.Agents, a)
	}
	return p, nil
}

type wNode struct {
	Peer   []byte `msgpack:"p"`
	Name   string `msgpack:"n"`
	Role   string `msgpack:"r"`
	Online bool   `msgpack:"o"`
}

type wRoster struct {
	Counter uint64   `msgpack:"c"`
	Agents  []wAgent `msgpack:"a"`
	Nodes   []wNode  `msgpack:"n"`
	More    bool     `msgpack:"x"`
}

func fromRoster(r Roster) (*wRoster, error) {
	w := &wRoster{Counter: r.Counter, More: r.More}
	for _, a := range r.Agents {
		var c ids
		key, err := c.keyOf(a.Home)
		if err != nil {
			return nil, err
		}
		agent := fromAgent(a.AgentPresence)
		agent.Home, agent.NodeName = key, a.NodeName
		w.Agents = append(w.Agents, agent)
	}
	for _, n := range r.Nodes {
		var c ids
		key, err := c.keyOf(n.Peer)
		if err != nil {
			return nil, err
		}
		w.Nodes = append(w.Nodes, wNode{key, n.Name, string(n.Role), n.Online})
	}
	return w, nil
}

func (w *wRoster) frame() (Frame, error) {
	var c ids
	r := Roster{Counter: w.Counter, More: w.More}
	for i := range w.Agents {
		a, err := w.Agents[i].agent()
		if err != nil {
			return nil, err
		}
		home, err := c.peerOf(w.Agents[i].Home)
		if err != nil {
			return nil, err
		}
		r.Agents = append(r.Agents, RosterAgent{a, home, w.Agents[i].NodeName})
	}
	for _, n := range w.Nodes {
		peer, err := c.peerOf(n.Peer)
		if err != nil {
			return nil, err
		}
		if err := checkTexts(field{"node name", n.Name, 256}, field{"role", n.Role, 32}); err != nil {
			return nil, err
		}
		r.Nodes = append(r.Nodes, RosterNode{peer, n.Name, protocol.Role(n.Role), n.Online})
	}
	return r, nil
}

type wLive struct {
	Agent string `msgpack:"a"`
	Kind  string `msgpack:"k"`
	Frame []byte `msgpack:"f"`
}

func (w *wLive) frame() (Frame, error) {
	if w.Agent != "" {
		if err := protocol.CheckAgentID(protocol.AgentID(w.Agent)); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrBadFrame, err)
		}
	}
	return Live{protocol.AgentID(w.Agent), w.Kind, w.Frame}, checkTexts(field{"kind", w.Kind, protocol.IntentBytesMax})
}
