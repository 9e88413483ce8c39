package node

import (
	"context"
	"errors"
	"time"

	"github.com/aster-mesh/aster/node/hub"
	"github.com/aster-mesh/aster/node/mesh"
	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/api"
	"github.com/aster-mesh/aster/protocol/asterism"
	"github.com/aster-mesh/aster/roles/keys"
)

// askWait is how long a question to main's node waits for its answer.
const askWait = 10 * time.Second

// Handoff implements web.Office: it returns when main was asked, wherever that is.
func (n *Node) Handoff(ctx context.Context, req api.HandoffRequest) error {
	ctx, cancel := context.WithTimeout(ctx, askWait)
	defer cancel()
	answer := make(chan *protocol.Refusal, 1)
	err := n.loop.call(ctx, func() {
		if f := n.fenced.Load(); f != nil {
			answer <- f.refusal()
			return
		}
		n.loop.office.AskHandOver(req.Agent, req.Reason, func(no *protocol.Refusal) { answer <- no })
	})
	if err != nil {
		return err
	}
	select {
	case no := <-answer:
		if no != nil {
			return no
		}
		return nil
	case <-ctx.Done():
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			return protocol.Refuse(protocol.CodeNotAllowed, "main's node did not answer within %s", "aster peers says who is linked", askWait)
		}
		return context.Cause(ctx)
	}
}

// TakeMain implements web.Office: this node takes the office without an election.
func (n *Node) TakeMain(ctx context.Context) (out api.TakeResult, err error) {
	var no *protocol.Refusal
	err = n.loop.call(ctx, func() {
		l := n.loop
		if no = l.noOffice(); no != nil {
			return
		}
		var reach []protocol.PeerID
		for p := range l.peers {
			if n.standingOf(p) == mesh.Inside {
				reach = append(reach, p)
			}
		}
		out.Twice = l.claims()
		no = l.office.Force(reach)
	})
	if err != nil {
		return out, err
	}
	if no != nil {
		return out, no
	}
	st, err := n.Main(ctx)
	out.Main = st
	return out, err
}

// Main implements web.Office.
func (n *Node) Main(ctx context.Context) (out api.Main, err error) {
	err = n.loop.call(ctx, func() { out = n.loop.main() })
	return out, err
}

// main is who is main as this node sees it.
func (l *loop) main() api.Main {
	m := l.board.Main()
	m.Here, m.Fenced = m.Peer == l.n.home.peer, l.n.fenced.Load() != nil
	if !l.office.Open() {
		return m
	}
	st := l.office.Status()
	m.Ended = st.Ended
	if st.Main {
		m.Sure, m.Handing = st.Sure, st.Handing
	}
	if m.Peer != "" && !m.Here && l.peers[m.Peer] == nil {
		m.Lost = l.n.began.UnixMilli()
		if at, ok := l.lastSeen[m.Peer]; ok {
			m.Lost = at.UnixMilli()
		}
	}
	for _, p := range st.Voters {
		m.Voters = append(m.Voters, l.n.nameOf(p))
		if p == l.n.home.peer || l.peers[p] != nil {
			m.Reach++
		}
	}
	for _, p := range st.Missing {
		m.Missing = append(m.Missing, l.n.nameOf(p))
	}
	return m
}

// claims are the claims that are held, as the board knows.
func (l *loop) claims() []api.Claim {
	out := []api.Claim{}
	for _, c := range l.board.Claims() {
		out = append(out, api.Claim{Left: l.office.Left(c.ID).Milliseconds(), ID: c.ID, Agent: c.Agent, Home: c.Home, NodeName: l.n.nameOf(c.Home), Scopes: c.Scopes, Why: c.Why,
			Since: c.Wall, Term: c.Term.Number, Here: c.Home == l.n.home.peer})
	}
	return out
}

// mainVerb takes SetMain and HandoffReady of wire 3.7. Who may manage keys may ask for a hand-over; that it is ready only
// main's agent says (faults B14, KB19).
func (s *socket) mainVerb(f *asterism.Frame, name protocol.Intent) {
	a := keyAsk{s.n, s, f}
	if name == "HandoffReady" {
		var no *protocol.Refusal
		if err := s.n.loop.call(s.n.ctx, func() {
			if s.as == nil {
				no = protocol.Refuse(protocol.CodeNotAllowed, "only the main agent says that it has handed over", "")
			} else if no = a.may(); no == nil {
				no = s.n.loop.handoffReady()
			}
		}); err == nil && no != nil {
			s.refuse(f, no)
		}
		return
	}
	err := a.first()
	if err == nil {
		var req api.HandoffRequest
		if req.Agent, req.Reason, err = setMainValue(f.Value); err == nil {
			err = s.n.Handoff(s.n.ctx, req)
		}
	}
	var no *protocol.Refusal
	if errors.As(err, &no) {
		l := s.n.loop
		_ = l.post(s.n.ctx, func() {
			s.conn.Send(l.enc.Custom(l.now, asterism.Custom{Name: "KeyError", To: s.holder(),
				Value: protocol.EncodeBody(asterism.KeyError{Code: no.Code, Message: no.Error(), Re: f.MsgID})}))
		})
	}
}

func (l *loop) handoffReady() *protocol.Refusal {
	if no := l.noOffice(); no != nil {
		return no
	}
	return l.office.HandOverReady()
}

// mainChanged tells boards who is main, and the agents whose right to manage keys came or went.
func (l *loop) mainChanged(o hub.MainChanged) {
	if o.Agent != "" {
		l.toBoards(l.enc.MainChanged(l.now, o.Agent), 0)
	}
	for _, id := range []protocol.AgentID{o.Was, o.Agent} {
		k, ok := l.core.Agent(id)
		if id == "" || !ok || !k.Here {
			continue
		}
		for _, conn := range l.core.Conns(id) {
			if s := l.sockets[conn]; s != nil && s.info.AgentID != "" && s.info.Role != k.Role {
				s.info.Role, s.info.MayManageKeys = k.Role, k.Role == protocol.RoleMain
				s.conn.Send(l.enc.ConnectionInfo(l.now, s.info))
			}
		}
	}
	l.peersChanged()
}

// setMainValue reads the value of SetMain.
func setMainValue(value []byte) (protocol.AgentID, string, error) {
	f, no := keys.ParseFields(value)
	if no != nil {
		return "", "", no
	}
	id, ok := f.Text("agentId")
	reason, ok2 := f.Text("reason")
	if !ok || !ok2 || protocol.CheckAgentID(protocol.AgentID(id)) != nil {
		return "", "", protocol.Refuse(keys.CodeFields, "agentId names an agent, and reason is a text", "")
	}
	return protocol.AgentID(id), reason, nil
}

// Claims implements web.Office.
func (n *Node) Claims(ctx context.Context) (out []api.Claim, err error) {
	err = n.loop.call(ctx, func() { out = n.loop.claims() })
	return out, err
}

// noOffice is why this node has no say in who is main, nil if it has one.
func (l *loop) noOffice() *protocol.Refusal {
	if f := l.n.fenced.Load(); f != nil {
		return f.refusal()
	}
	if !l.office.Open() {
		return protocol.Refuse(protocol.CodeNotAllowed, "this node is outside and has no main", "")
	}
	return nil
}
