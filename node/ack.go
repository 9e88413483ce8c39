package node

import (
	"context"
	"errors"
	"slices"

	"github.com/aster-mesh/aster/node/hub"
	"github.com/aster-mesh/aster/node/journal"
	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/api"
)

// Ack implements web.Mail: the agent itself vouches for having handled what it names, or all that it has unread, or all of one
// sender's.
func (n *Node) Ack(ctx context.Context, req api.AckRequest) (out api.AckResult, err error) {
	if req.All || req.From != "" {
		return n.ackAll(ctx, req)
	}
	for _, id := range req.IDs {
		m, err := n.resolve(id)
		if err != nil {
			return out, err
		}
		agent := req.Agent
		if agent == "" {
			agent = m.Envelope.To
		}
		if agent == "" { // a room's message names no recipient
			if agent, err = n.speaker(ctx, "", false); err != nil {
				return out, err
			}
		}
		_, err = n.loop.ask(ctx, func(t hub.Token) hub.Input {
			return hub.Acked{Agent: agent, Of: m.Envelope.ID, From: m.Envelope.From, Processed: true, Token: t}
		})
		var no *protocol.Refusal
		if errors.As(err, &no) && no.Code == protocol.CodeUnknownID {
			if n.processedBy(ctx, &m, agent) {
				out.Before, err = append(out.Before, m.Envelope.ID), nil
			} else {
				err = protocol.Refuse(protocol.CodeUnknownID, "%s is not in the inbox of %s", "aster inbox shows what waits", nameOf(&m.Envelope), string(agent))
			}
		}
		if err != nil {
			return out, err
		}
		out.Agent, out.Acked = agent, append(out.Acked, m.Envelope.ID)
	}
	return out, nil
}

// nameOf is a message as commands name it.
func nameOf(env *protocol.Envelope) string {
	prefix := "m-"
	if env.Intent == protocol.Delegate {
		prefix = "t-"
	}
	return prefix + protocol.ShortID(env.ID)
}

// processedBy says whether an agent has said of a message that it is dealt with.
func (n *Node) processedBy(ctx context.Context, m *journal.Message, agent protocol.AgentID) (is bool) {
	_ = n.loop.call(ctx, func() {
		now := n.loop.core.Now(agent)
		is = slices.ContainsFunc(m.Tiers, func(t journal.TierPut) bool {
			return t.Tier == protocol.Processed && protocol.FoldAgentID(n.loop.core.Now(t.Agent)) == protocol.FoldAgentID(now)
		})
	})
	return is
}

// ackAtOnce is how many are acknowledged in one turn of the loop, one commit for all of them.
const ackAtOnce = 200

// ackAll acknowledges what is unread now. What comes meanwhile stays unread.
func (n *Node) ackAll(ctx context.Context, req api.AckRequest) (out api.AckResult, err error) {
	if out.Agent, err = n.speaker(ctx, req.Agent, false); err != nil {
		return out, err
	}
	rows, err := n.store.Inbox(out.Agent, journal.InboxQuery{})
	if err != nil {
		return out, err
	}
	if req.From != "" {
		of := len(rows)
		rows = slices.DeleteFunc(rows, func(r journal.InboxRow) bool {
			return protocol.FoldAgentID(r.Envelope.From) != protocol.FoldAgentID(req.From)
		})
		out.Left = of - len(rows)
	}
	for part := range slices.Chunk(rows, ackAtOnce) {
		last := part[len(part)-1]
		if err := n.loop.call(ctx, func() {
			for i := range part[:len(part)-1] {
				n.loop.core.Step(n.loop.now, ackOf(&part[i], out.Agent))
			}
		}); err != nil {
			return out, err
		}
		_, err = n.loop.ask(ctx, func(t hub.Token) hub.Input {
			in := ackOf(&last, out.Agent)
			in.Token = t
			return in
		})
		var no *protocol.Refusal
		if err != nil && (!errors.As(err, &no) || no.Code != protocol.CodeUnknownID) { // else somebody was faster
			return out, err
		}
		for i := range part {
			out.Acked = append(out.Acked, part[i].Envelope.ID)
			if part[i].Envelope.Intent == protocol.Delegate {
				out.Work = append(out.Work, nameOf(&part[i].Envelope))
			}
		}
	}
	return out, nil
}

func ackOf(r *journal.InboxRow, by protocol.AgentID) hub.Acked {
	return hub.Acked{Agent: by, Of: r.Envelope.ID, From: r.Envelope.From, Processed: true}
}
