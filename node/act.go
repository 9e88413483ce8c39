package node

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sort"
	"strings"

	"github.com/google/uuid"

	"github.com/aster-mesh/aster/node/hub"
	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/api"
	"github.com/aster-mesh/aster/protocol/asterism"
)

var errStopping = errors.New("the node is stopping")

// newID makes a message id: UUIDv7, so that ids of one process sort by time.
func newID() protocol.MsgID {
	id, err := uuid.NewV7()
	if err != nil {
		panic("node: no random numbers: " + err.Error()) // the system's generator does not fail
	}
	return protocol.MsgID(id.String())
}

// speaker finds the agent that a command speaks as: the one named, else the node's own, which up --agent may have named
// (decision 035). use says that it is about to act, so that a new name becomes an agent here.
func (n *Node) speaker(ctx context.Context, named protocol.AgentID, use bool) (id protocol.AgentID, err error) {
	var refusal *protocol.Refusal
	err = n.loop.call(ctx, func() { id, refusal = n.loop.speaker(named, use) })
	if err == nil && refusal != nil {
		err = refusal
	}
	return id, err
}

func (l *loop) speaker(named protocol.AgentID, use bool) (protocol.AgentID, *protocol.Refusal) {
	if named != "" {
		k, ok := l.core.Agent(named)
		switch {
		case ok && k.Here:
			return k.Agent, l.core.Elsewhere(named) // its mail may be on the way here
		case ok:
			return "", protocol.Refuse(protocol.CodeIdentityMismatch, "agent %q lives on node %s", "use it there", string(named), l.n.nameOf(k.Home))
		case use || named == l.own():
			if err := protocol.CheckAgentID(named); err != nil {
				return "", protocol.Refuse(protocol.CodeBadAgentID, err.Error(), "choose a name without slashes and control characters")
			}
			return named, l.misspelt(named)
		}
		if r := l.core.Renamed(named); r != nil {
			return "", r
		}
		return "", protocol.Refuse(protocol.CodeUnknownAgent, "no agent %q lives here. Here: %s", "", string(named), l.choices())
	}
	if l.n.cfg.Agent != "" {
		return l.core.Now(protocol.AgentID(l.n.cfg.Agent)), nil
	}
	return l.own(), nil // never one that attached: whoever attaches last would speak with a person's voice, and read its mail
}

func (l *loop) choices() string {
	var ids []string
	for _, p := range l.core.Presences(l.now) {
		ids = append(ids, string(p.Agent))
	}
	if len(ids) == 0 {
		return "no agent yet"
	}
	sort.Strings(ids)
	return strings.Join(ids, ", ")
}

// own is this node's own agent: --agent, else main-agent on the founding node, else the node's name. When another node
// has bound that name it gets -2.
func (l *loop) own() protocol.AgentID {
	id := protocol.AgentID(l.n.cfg.Agent)
	if id == "" {
		id = protocol.AgentID(l.n.home.mesh.Agent)
	}
	if id == "" {
		id = mainByDefault
		if l.n.home.mesh.Inviter != "" {
			id = protocol.AgentID(agentName(l.n.home.mesh.Name))
		}
	}
	id = l.core.Now(id)
	for base, i := id, 2; ; i++ {
		k, ok := l.core.Agent(id)
		if !ok || k.Here {
			return id
		}
		id = protocol.AgentID(fmt.Sprintf("%s-%d", base, i))
	}
}

// agentName makes a node's name fit to be an agent's.
func agentName(name string) string {
	out := strings.Map(func(r rune) rune {
		if r == '/' || r == '\\' || r == ' ' || r < ' ' {
			return '-'
		}
		return r
	}, strings.TrimSpace(name))
	if protocol.CheckAgentID(protocol.AgentID(out)) != nil {
		return "agent"
	}
	return out
}

// Send implements web.Mail: it returns when the message is logged.
func (n *Node) Send(ctx context.Context, req api.SendRequest) (api.SendResult, error) {
	env, err := n.compose(ctx, req)
	if err != nil {
		return api.SendResult{}, err
	}
	var from protocol.AgentID
	if !req.FromBoard {
		if from, err = n.newSpeaker(ctx, req.From, req.New); err != nil {
			return api.SendResult{}, err
		}
	}
	say := func(t hub.Token) hub.Input { return n.loop.said(hub.Say{As: from, Env: env, Token: t, BindAs: "cli"}) }
	told, err := n.loop.ask(ctx, say)
	var no *protocol.Refusal
	if errors.As(err, &no) && no.Code == protocol.CodeUnknownAgent && env.To != "" && env.Room == "" {
		own, stopped := n.begin(ctx, env.To)
		if stopped != nil {
			return api.SendResult{}, stopped
		}
		if own != "" {
			env.To = own
			told, err = n.loop.ask(ctx, say)
		}
	}
	if err != nil {
		return api.SendResult{}, err
	}
	n.sent(ownerPerson, &env)
	out := api.SendResult{MsgID: told.ID, Short: shortOf(&env), Tier: protocol.Logged, To: cmp.Or(told.To, env.To), Repeat: told.Repeat}
	err = n.loop.call(ctx, func() {
		out.Alone = n.loop.core.Alone()
		if k, ok := n.loop.core.Agent(out.To); ok {
			out.To, out.ToState, out.ToWakes = k.Agent, k.State, k.Wakes
		}
	})
	return out, err
}

// compose turns a request into an envelope; a large value becomes a blob, which is on disk before its record.
func (n *Node) compose(ctx context.Context, req api.SendRequest) (protocol.Envelope, error) {
	if refusal := n.mute(); refusal != nil {
		return protocol.Envelope{}, refusal
	}
	env := protocol.Envelope{
		ID: req.MsgID, To: req.To, Room: req.Room, Intent: req.Intent, Value: req.Value, Re: req.Re, NoWake: req.NoWake, Blobs: req.Blobs,
		Trace: protocol.CleanTraceParent(req.Trace),
	}
	if env.ID == "" {
		env.ID = newID()
	}
	if env.Re == "" {
		env.Re = protocol.MsgID(valueOf[string](env.Value, "re_msgId"))
	}
	if env.Re != "" {
		if m, err := n.resolve(string(env.Re)); err == nil {
			env.Re = m.Envelope.ID
		}
	}
	for i := range env.Blobs {
		b := &env.Blobs[i]
		if !n.store.KeepBlob(b.SHA256) {
			return env, protocol.Refuse(protocol.CodeUnknownID, "attachment %s is not here", "put it first: PUT /api/v1/blobs", protocol.CutText(b.SHA256, 64))
		}
		r, total, err := n.store.OpenBlob(b.SHA256)
		if err != nil {
			return env, err
		}
		_ = r.Close()
		b.Bytes = total // others fetch no more than it says
	}
	if !json.Valid(env.Value) {
		return env, n.spill(ctx, &env)
	}
	env.Value = asterism.WithAttachments(env.Value, env.Blobs)
	if req.FromBoard {
		if err := n.unline(ctx, &env); err != nil {
			return env, err
		}
	}
	return env, n.spill(ctx, &env)
}

// spill moves a value above ValueBytesInline into a blob.
func (n *Node) spill(ctx context.Context, env *protocol.Envelope) error {
	if len(env.Value) <= protocol.ValueBytesInline {
		return nil
	}
	if !json.Valid(env.Value) {
		return protocol.Refuse(protocol.CodeBadFrame, "the value is not JSON", "")
	}
	if no := protocol.CheckDeclaration(env.Intent, env.From, env.Value); no != nil {
		return no // the hub sees no content of blobs
	}
	if no := protocol.CheckAcceptance(env.Intent, env.Value); no != nil {
		return no
	}
	ref, err := n.PutBlob(ctx, bytes.NewReader(env.Value), "")
	if err != nil {
		return err
	}
	env.Value, env.ValueBlob = nil, &ref
	return nil
}

// said completes a Say with what only the store knows. Call it in the loop.
func (l *loop) said(in hub.Say) hub.Say {
	in.Env.From = in.As
	if row, ok, err := l.store.Identity(in.Env.Identity()); err == nil && ok {
		in.Seen = &hub.Seen{Content: row.Content, Ref: hub.Ref{Log: row.Log, Seq: row.Seq}}
	}
	if in.Env.Re != "" && (in.Env.Intent == protocol.Delegate || in.Env.Intent == protocol.WorkerReport) {
		if m, ok, err := l.store.MessageByID("", in.Env.Re); err == nil && ok {
			in.Parent = &m.Envelope
		}
	}
	in.Declared = l.declared(&in.Env)
	in.Far = l.farOf(&in)
	l.traced(&in)
	return in
}

// Wait implements web.Mail.
func (n *Node) Wait(ctx context.Context, agent protocol.AgentID, isNew bool) (api.WaitResult, error) {
	id, err := n.waiter(ctx, agent, isNew)
	if err != nil {
		return api.WaitResult{}, err
	}
	if _, err := n.loop.ask(ctx, func(t hub.Token) hub.Input { return hub.Declare{Agent: id, Client: "cli", Token: t} }); err != nil {
		return api.WaitResult{}, err
	}
	told, err := n.loop.ask(ctx, func(t hub.Token) hub.Input { return hub.Wait{Agent: id, Token: t} })
	if err != nil {
		return api.WaitResult{Agent: id}, err
	}
	out := api.WaitResult{Agent: told.Wait.Agent, Unread: told.Wait.Unread, Again: told.Wait.Again}
	for _, m := range told.Wait.IDs {
		out.IDs = append(out.IDs, protocol.ShortID(m))
	}
	return out, nil
}

// ForgetAgent implements web.Members.
func (n *Node) ForgetAgent(ctx context.Context, agent protocol.AgentID) error {
	_, err := n.loop.ask(ctx, func(t hub.Token) hub.Input { return hub.Forget{Agent: agent, Token: t} })
	return err
}

// full says that nothing new may be written, by name, or nil. Reads and receipts go on.
func (n *Node) full() *protocol.Refusal {
	if f := n.fenced.Load(); f != nil {
		return f.refusal()
	}
	return n.noRoom()
}

// mute says why nothing may be said here at all, or nil: what a revoked node logs, nobody would ever take.
func (n *Node) mute() *protocol.Refusal {
	if by := n.revokedBy.Load(); by != nil {
		return protocol.Refuse(protocol.CodeRevoked, "this node was revoked, says %s: nobody takes what it says, so it was not logged",
			"ask a member for an invite, then: aster up --replace --join -", *by)
	}
	return n.full()
}

// fullReserve is kept back for receipts of what was already accepted; the journal keeps as much (Commit, Room).
const fullReserve = 64 << 20

// tierWaiter waits for a tier of one message. Owned by the loop.
type tierWaiter struct {
	tier protocol.Tier
	done chan struct{} // closed when reached or refused
}

// WaitTier implements web.Viewer.
func (n *Node) WaitTier(ctx context.Context, id string, tier protocol.Tier) (api.Message, error) {
	m, err := n.resolve(id)
	if err != nil {
		return api.Message{}, err
	}
	ref := hub.Ref{Log: m.Log, Seq: m.Seq}
	w := tierWaiter{tier, make(chan struct{})}
	reached := w.done
	// Registered first, looked at second: whatever arrives between is seen by one of the two.
	if err := n.loop.call(ctx, func() { n.loop.tierWait[ref] = append(n.loop.tierWait[ref], w) }); err != nil {
		return api.Message{}, err
	}
	defer func() {
		_ = n.loop.post(context.WithoutCancel(ctx), func() { n.loop.unwaitTier(ref, w) })
	}()
	for {
		msg, err := n.Message(ctx, string(m.Envelope.ID))
		if err != nil {
			return api.Message{}, err
		}
		for _, t := range msg.Tiers {
			if t.Tier == tier || t.Tier == protocol.Refused {
				return msg, nil
			}
		}
		select {
		case <-reached:
			reached = nil // the next look sees it
		case <-ctx.Done():
			return msg, context.Cause(ctx)
		case <-n.done:
			return msg, errStopping
		}
	}
}

func (l *loop) unwaitTier(ref hub.Ref, w tierWaiter) {
	rest := l.tierWait[ref][:0]
	for _, o := range l.tierWait[ref] {
		if o.done != w.done {
			rest = append(rest, o)
		}
	}
	if len(rest) == 0 {
		delete(l.tierWait, ref)
	} else {
		l.tierWait[ref] = rest
	}
}

// wakeTier wakes whoever waits for it.
func (l *loop) wakeTier(ref hub.Ref, tier protocol.Tier) {
	waiting := l.tierWait[ref]
	rest := waiting[:0]
	for _, w := range waiting {
		if w.tier == tier || tier == protocol.Refused {
			close(w.done)
		} else {
			rest = append(rest, w)
		}
	}
	if len(rest) == 0 {
		delete(l.tierWait, ref)
	} else {
		l.tierWait[ref] = rest
	}
}
