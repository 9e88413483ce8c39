package node

import (
	"cmp"
	"slices"

	"github.com/aster-mesh/aster/board"
	"github.com/aster-mesh/aster/node/journal"
	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/asterism"
)

const (
	// coldMax bounds how many channels a History names without their words: those that were used last.
	coldMax = 200
	// coldCount bounds what is counted of one: what a request for the whole of it brings.
	coldCount = 1000
	// coldLook is how far back the newest word of a channel is looked for behind what its agent said in rooms.
	coldLook = 20
)

// cold names the channels of which a History shows nothing, for boards: their words come when a board asks for them.
// whole: it shows all messages that there are, so no agent has older ones, and none is looked up.
func (n *Node) cold(shown []asterism.Channel, whole bool) (out []asterism.Stub) {
	have := map[string]bool{}
	for _, c := range shown {
		have[protocol.FoldChannel(c.Key)] = true
	}
	var agents []protocol.AgentID
	role := map[protocol.AgentID]protocol.Role{}
	var rooms []board.RoomWords
	if err := n.loop.call(n.ctx, func() {
		rooms = n.loop.board.RoomWords()
		if whole {
			return
		}
		for _, k := range n.loop.core.Agents(n.loop.now) {
			if key := protocol.FoldChannel(string(k.Agent)); !have[key] && !n.loop.board.Channels().Of(string(k.Agent)).Archived() {
				agents, role[k.Agent] = append(agents, k.Agent), k.Role
			}
		}
	}); err != nil {
		return nil
	}
	last, err := n.store.LastOf(agents)
	if err != nil {
		n.log.Error("history not readable", "err", err)
		return nil
	}
	at := map[protocol.AgentID]uint64{}
	for i, a := range agents {
		at[a] = last[i]
	}
	agents = slices.DeleteFunc(agents, func(a protocol.AgentID) bool { return at[a] == 0 })
	slices.SortFunc(agents, func(a, b protocol.AgentID) int { return cmp.Or(cmp.Compare(at[b], at[a]), cmp.Compare(a, b)) })
	for _, a := range agents {
		if len(out) == coldMax {
			break
		}
		if stub, ok := n.coldOf(a, at[a]); ok {
			stub.Role = role[a]
			out = append(out, stub)
		}
	}
	for _, r := range rooms {
		if len(out) < coldMax && !have[protocol.FoldChannel(r.Channel)] && !(*n.hidden()).Of(r.Channel).Archived() {
			out = append(out, asterism.Stub{Key: r.Channel, Count: r.Count, LastTs: r.Last})
		}
	}
	return out
}

// coldOf is the stub of one agent's channel, whose newest message may be at last; false: nothing is left in it, or all that it said lately was in rooms.
func (n *Node) coldOf(a protocol.AgentID, last uint64) (asterism.Stub, bool) {
	found, err := n.store.Messages(journal.Query{Agent: a, Before: last + 1, But: noTalk, Limit: coldLook, Newest: true})
	if err != nil {
		return asterism.Stub{}, false
	}
	i := slices.IndexFunc(found, func(m journal.Message) bool {
		return protocol.FoldChannel(m.Envelope.ChannelKey()) == protocol.FoldChannel(string(a)) && !n.deleted(&m)
	})
	if i < 0 {
		return asterism.Stub{}, false
	}
	count, err := n.store.CountOf(a, (*n.hidden()).Of(string(a)).Since(), coldCount, noTalk)
	if err != nil {
		return asterism.Stub{}, false
	}
	return asterism.Stub{Key: string(a), Count: max(count, 1), LastTs: found[i].Wall}, true
}
