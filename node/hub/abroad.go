package hub

import (
	"slices"
	"strconv"
	"time"

	"github.com/aster-mesh/aster/protocol"
)

// ClientBoard binds agents of a board that is not ours and that this node has joined. They are reached and speak through
// that board alone, in an outside role: what is said there widens no right here.
const ClientBoard = "board"

// ClientRoom binds a room of such a board that agents of this node are in, as one more agent: NAME@BOARD. What is said there
// waits in its inbox.
const ClientRoom = "board-room"

func farClient(client string) bool { return client == ClientBoard || client == ClientRoom }

// Abroad says how far a message for an agent of another board got there: that board's word, passed on as such.
type Abroad struct {
	Agent  protocol.AgentID
	Ref    Ref
	Tier   protocol.Tier // empty: an adapter there has read it
	Reason string        // of Refused

	// Of a room's word on a message that it took: how many it reached, and who was not there, as called here.
	Reached int
	Offline []string
}

func (Abroad) isInput() {}

// ofBoards takes what boards that are not ours say.
func (c *Core) ofBoards(now time.Time, input Input) {
	switch in := input.(type) {
	case Abroad:
		c.abroad(now, in)
	case Heard:
		c.heardAbroad(now, in)
	}
}

// IsAbroad says whether an agent is of another board that this node has joined.
func (c *Core) IsAbroad(id protocol.AgentID) bool { return ofBoard(c.find(id), c.self) }

func ofBoard(a *agent, self protocol.PeerID) bool {
	return a != nil && farClient(a.client) && a.bind.Home == self
}

// mixed keeps agents of other boards and our own apart, whatever they are called: neither takes the other's name.
func (c *Core) mixed(a *agent, client string) *protocol.Refusal {
	if a == nil || a.bind.Home != c.self || farClient(a.client) == farClient(client) {
		return nil
	}
	if farClient(a.client) {
		return protocol.Refuse(protocol.CodeIdentityMismatch, "%q is an agent of another board", "choose another id", string(a.bind.Agent))
	}
	return protocol.Refuse(protocol.CodeIdentityMismatch, "%q is an agent of this node", "", string(a.bind.Agent))
}

// fromAbroad lets an agent of another board speak through that board alone, and never as an agent of ours.
func (c *Core) fromAbroad(from *agent, in *Say) *protocol.Refusal {
	if in.As == "" {
		return nil
	}
	if from == nil && farClient(in.BindAs) {
		return protocol.Refuse(protocol.CodeUnknownAgent, "no agent %q", "", string(in.As))
	}
	return c.mixed(from, in.BindAs)
}

// abroad notes what another board says of a message. That it was taken there, by the recipient's adapter or its hub's disk,
// ends this node's part: the message is not kept for a word of the agent itself, which may come or not.
func (c *Core) abroad(now time.Time, in Abroad) {
	a := c.home(in.Agent)
	if !ofBoard(a, c.self) {
		return
	}
	l := a.box.byRef[in.Ref]
	scope := c.receiptScope(in.Ref)
	switch {
	case in.Tier == "" && l != nil && !l.Given:
		l.Given = true
		c.delivered(in.Ref, a.bind.Agent)
	case in.Tier == protocol.Persisted && l != nil:
		a.box.take(l)
		c.receipts.add(protocol.Persisted, a.bind.Agent, "", scope, in.Ref)
		c.ready.Tiers = append(c.ready.Tiers, TierPut{Ref: in.Ref, Tier: protocol.Handed, Agent: a.bind.Agent, At: c.author.clock.Last(), Wall: now.UnixMilli(), By: c.self})
		if a.client == ClientRoom {
			c.out(RoomAcked{Sender: l.From, Room: protocol.RoomID(a.bind.Agent), ID: l.ID, Reached: in.Reached, Offline: in.Offline})
			break
		}
		c.adapterHas(in.Ref, a.bind.Agent)
	case in.Tier == protocol.Processed:
		if l != nil {
			a.box.take(l)
		}
		c.receipts.add(protocol.Processed, a.bind.Agent, "", scope, in.Ref)
	case in.Tier == protocol.Refused && l != nil:
		a.box.take(l)
		c.receipts.add(protocol.Refused, a.bind.Agent, in.Reason, scope, in.Ref)
	default:
		return
	}
	c.presenceDirty = true
}

// CodeBoardLeft refuses what waited for an agent of a board, or was to be said in a room there, that this node has left.
const CodeBoardLeft = "board-left"

// refuseUnread ends what an agent that is forgotten has unread. left is the board that was left with it, or empty. Of that a message
// that each sender keeps says what became of its words, for receipts alone are read by nobody who has no socket.
func (c *Core) refuseUnread(now time.Time, a *agent, left string) {
	code := protocol.CodeUnknownAgent
	if left != "" {
		code = CodeBoardLeft
	}
	var senders []protocol.AgentID
	of := map[protocol.AgentID][]protocol.MsgID{}
	for _, l := range slices.Clone(a.box.items) {
		if l.done {
			continue
		}
		a.box.take(l)
		c.receipts.add(protocol.Refused, a.bind.Agent, code, c.receiptScope(l.Ref), l.Ref)
		if of[l.From] == nil {
			senders = append(senders, l.From)
		}
		of[l.From] = append(of[l.From], l.ID)
	}
	if left == "" {
		return
	}
	for _, to := range senders {
		if to == "" || c.find(to) == nil {
			continue
		}
		ids := of[to]
		text := "what you sent to " + string(a.bind.Agent) + " was not brought there: this node has left the board " + left
		if n := len(ids); n > 1 {
			text = strconv.Itoa(n) + " messages that you sent to " + string(a.bind.Agent) + " were not brought there: this node has left the board " + left
		}
		c.announce(now, c.scopeTo(to), protocol.Envelope{
			ID: CodeBoardLeft + "-" + ids[0], To: to, Intent: protocol.ServerNotice, Re: ids[0],
			Value: protocol.EncodeBody(map[string]any{"kind": CodeBoardLeft, "code": CodeBoardLeft, "target": a.bind.Agent, "msgId": ids[0], "msgIds": ids[:min(len(ids), leftIDsMax)], "text": text}),
		})
	}
}

// leftIDsMax bounds how many messages one notice names.
const leftIDsMax = 64
