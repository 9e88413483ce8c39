package node

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/aster-mesh/aster/node/foreign"
	"github.com/aster-mesh/aster/node/hub"
	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/api"
	"github.com/aster-mesh/aster/protocol/asterism"
)

// joinWait is how long JoinBoard waits to see whether the board lets its agents in.
const joinWait = 10 * time.Second

// JoinBoard implements web.Boards. A board that was joined before is joined anew, with what is asked for now.
func (n *Node) JoinBoard(ctx context.Context, req api.BoardRequest) (api.Board, error) {
	conf, err := n.boardOf(ctx, req)
	if err != nil {
		return api.Board{}, err
	}
	made, err := n.declare(ctx, conf.Agents)
	if err != nil {
		return api.Board{}, err
	}
	b, err := n.abroad.put(conf)
	if err == nil {
		err = n.abroad.save()
	}
	if err != nil {
		n.undeclare(ctx, made)
		return api.Board{}, err
	}
	notify(n.abroad.wake)
	row, err := n.joinAnswer(ctx, b)
	if err != nil || len(made) == 0 || !b.first() || slices.ContainsFunc(row.Seats, func(s api.Seat) bool { return s.State != api.SeatStopped }) {
		return row, err
	}
	if err := n.LeaveBoard(ctx, conf.Name); err != nil { // it lets nobody in: what was made for it goes again
		return row, err
	}
	n.undeclare(ctx, made)
	row.Undone = true
	return row, nil
}

// first says whether a board was joined once, and not anew.
func (b *farBoard) first() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.round == 0
}

// joinAnswer waits until a board has said of each agent whether it is let in, or for joinWait.
func (n *Node) joinAnswer(ctx context.Context, b *farBoard) (api.Board, error) {
	until := time.NewTimer(joinWait)
	defer until.Stop()
	look := time.NewTicker(50 * time.Millisecond)
	defer look.Stop()
	for {
		done := b.answered() // before the row is read: it is of what was seen here, or newer
		row, err := b.row(ctx)
		if err != nil || done {
			return row, err
		}
		select {
		case <-look.C:
		case <-until.C:
			return row, nil
		case <-ctx.Done():
			return row, context.Cause(ctx)
		case <-n.done:
			return row, errStopping
		}
	}
}

// answered says whether each seat of the present round has had an answer of some kind.
func (b *farBoard) answered() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, s := range b.seats {
		if s.round != b.round || s.row().State == api.SeatConnecting {
			return false
		}
	}
	return len(b.seats) > 0 || b.conf.All
}

// boardOf checks what a person asks for.
func (n *Node) boardOf(ctx context.Context, req api.BoardRequest) (conf joinedBoard, err error) {
	address, no := boardAddress(req.URL)
	if no != nil {
		return conf, no
	}
	if n.ownAddress(address) {
		return conf, protocol.Refuse(foreign.CodeSameMesh, "%s is this node's own board", "its agents are here anyway", address)
	}
	conf = joinedBoard{URL: address, Name: req.Name, Key: strings.TrimSpace(req.Key), All: req.All, As: req.As}
	if conf.Name == "" {
		conf.Name = boardLabel(address)
	}
	if no := foreign.CheckLabel(conf.Name); no != nil {
		return conf, no
	}
	if len(conf.Key) > 512 || strings.ContainsFunc(conf.Key, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }) {
		return conf, protocol.Refuse(protocol.CodeBadKey, "this is no key: a key is one word", "give the key alone, in a file or on stdin")
	}
	if !req.All {
		if conf.Agents, err = n.boardAgents(ctx, req.Agents); err != nil {
			return conf, err
		}
	}
	several := req.All || len(conf.Agents) > 1
	if several && conf.Key != "" {
		return conf, protocol.Refuse(protocol.CodeBadKey, "a key is for one agent", "join with one --agent, or one after the other with a key and a --name each")
	}
	if several && conf.As != "" {
		return conf, protocol.Refuse(protocol.CodeBadAgentID, "several agents cannot have one name there", "use --as with one --agent")
	}
	if conf.As != "" {
		if err := protocol.CheckAgentID(conf.As); err != nil || foreign.Guest(conf.As) {
			return conf, protocol.Refuse(protocol.CodeBadAgentID, "%q is no name for an agent", "choose one without @, slashes and control characters", protocol.CutText(string(conf.As), 100))
		}
	}
	return conf, nil
}

// boardAgents are the agents of this node that are to join.
func (n *Node) boardAgents(ctx context.Context, named []protocol.AgentID) (out []protocol.AgentID, err error) {
	if len(named) == 0 {
		named = []protocol.AgentID{""}
	}
	for _, name := range named {
		id, err := n.speaker(ctx, name, true)
		if err != nil {
			return nil, err
		}
		if err := n.mayGoOut(id); err != nil {
			return nil, err
		}
		if !slices.Contains(out, id) {
			out = append(out, id)
		}
	}
	return out, nil
}

// declare binds agents that are new, and says which those are. After an error none is left behind.
func (n *Node) declare(ctx context.Context, agents []protocol.AgentID) (made []protocol.AgentID, err error) {
	for _, id := range agents {
		known := false
		if err = n.loop.call(ctx, func() { _, known = n.loop.core.Agent(id) }); err == nil {
			_, err = n.loop.ask(ctx, func(t hub.Token) hub.Input { return hub.Declare{Agent: id, Client: "cli", Token: t} })
		}
		if err != nil {
			n.undeclare(ctx, made)
			return nil, err
		}
		if !known {
			made = append(made, id)
		}
	}
	return made, nil
}

// undeclare lets agents go that were made for a board. One that somebody uses meanwhile stays.
func (n *Node) undeclare(ctx context.Context, made []protocol.AgentID) {
	for _, id := range made {
		if _, err := n.loop.ask(context.WithoutCancel(ctx), func(t hub.Token) hub.Input { return hub.Forget{Agent: id, Token: t} }); err != nil {
			n.log.Info("an agent made for a board stays", "part", "board", "agent", id, "err", err)
		}
	}
}

// ownAddress says whether an address is this node's own board, as far as that can be seen; its hello says the rest.
func (n *Node) ownAddress(address string) bool {
	theirs, err := url.Parse(address)
	ours, err2 := url.Parse(n.boardURL)
	if err != nil || err2 != nil || theirs.Port() != ours.Port() {
		return false
	}
	ip := net.ParseIP(theirs.Hostname())
	return theirs.Hostname() == "localhost" || ip != nil && ip.IsLoopback() || theirs.Hostname() == ours.Hostname()
}

// put takes a board up, or its new terms.
func (a *abroad) put(conf joinedBoard) (*farBoard, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, b := range a.boards {
		b.mu.Lock()
		same, name, left := b.conf.URL == conf.URL, b.conf.Name, b.left != nil
		if same && name == conf.Name && !left {
			b.conf, b.round, b.dirty = conf, b.round+1, true
			a.n.warnings.clear(boardWarning(name))
			b.mu.Unlock()
			return b, nil
		}
		b.mu.Unlock()
		switch {
		case left && (same || strings.EqualFold(name, conf.Name)):
			return nil, protocol.Refuse(protocol.CodeNotAllowed, "this board is just being left", "try again in a moment")
		case strings.EqualFold(name, conf.Name):
			return nil, protocol.Refuse(protocol.CodeNotAllowed, "another board is called %s here", "choose another --name", name)
		case same && conf.Key == "":
			return nil, protocol.Refuse(protocol.CodeNotAllowed, "this board is called %s here", "leave it first, or join it as that: --name "+name, name)
		}
	}
	b := a.n.newFarBoard(conf)
	a.boards = append(a.boards, b)
	return b, nil
}

// Boards implements web.Boards.
func (n *Node) Boards(ctx context.Context) ([]api.Board, error) {
	out := []api.Board{}
	var failed error
	n.abroad.each(func(b *farBoard) {
		row, err := b.row(ctx)
		if err != nil {
			failed = err
		}
		out = append(out, row)
	})
	return out, failed
}

// LeaveBoard implements web.Boards: our agents go, and its agents are forgotten here. What waits for them is refused to
// its senders.
func (n *Node) LeaveBoard(ctx context.Context, which string) error {
	address, no := boardAddress(which)
	var found *farBoard
	n.abroad.each(func(b *farBoard) {
		b.mu.Lock()
		defer b.mu.Unlock()
		if strings.EqualFold(b.conf.Name, which) || no == nil && b.conf.URL == address && found == nil {
			found = b
		}
	})
	if found == nil {
		return protocol.Refuse(protocol.CodeUnknownID, "this node is at no board %s", "aster join-board --list shows which", protocol.CutText(which, 100))
	}
	found.mu.Lock()
	if found.left == nil {
		found.left = make(chan struct{})
	}
	left := found.left
	found.mu.Unlock()
	notify(n.abroad.wake)
	select {
	case <-left:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-n.done:
		return errStopping
	}
}

// leave ends what is to be left.
func (a *abroad) leave(ctx context.Context) {
	a.each(func(b *farBoard) {
		b.mu.Lock()
		left := b.left
		b.mu.Unlock()
		if left == nil {
			return
		}
		b.unseat(nil, func(*seat) bool { return true })
		if a.n.loop.call(ctx, func() { a.n.loop.forgetBoard(b) }) != nil {
			return // the node stops: the file still has it
		}
		a.mu.Lock()
		a.boards = slices.DeleteFunc(a.boards, func(o *farBoard) bool { return o == b })
		a.mu.Unlock()
		if err := a.save(); err != nil {
			a.n.log.Error("boards not written down", "part", "board", "err", err)
		}
		close(left)
	})
}

// boardWarning is the kind of what is warned of a board itself; its seats' own are below it.
func boardWarning(name string) string { return "board/" + name }

func (b *farBoard) warning() string { return boardWarning(b.name()) }

// forgetBoard takes all agents of a board off this node.
func (l *loop) forgetBoard(b *farBoard) {
	l.leftBoard(b)
	l.n.warnings.clear(b.warning())
	l.n.outsideUsed.Delete(protocol.PeerID(boardQuota(b.name())))
	l.value(keyOutside+boardQuota(b.name()), nil)
	for _, p := range l.core.Presences(l.now) {
		if l.core.IsAbroad(p.Agent) && l.n.abroad.of(p.Agent) == b {
			l.core.Step(l.now, hub.Forget{Agent: p.Agent, Left: b.name()})
		}
	}
}

// joinMark is what a client of this mesh calls itself at other boards, so that a board of the same mesh knows its own.
func (n *Node) joinMark() string {
	sum := sha256.Sum256([]byte("join-board " + n.home.mesh.Mesh))
	return joinMarkPrefix + hex.EncodeToString(sum[:12])
}

const joinMarkPrefix = "aster-join-"

// ownClient refuses a node of this mesh that comes as another board's client: its agents would meet themselves.
func (l *loop) ownClient(f *asterism.Frame) *protocol.Refusal {
	if f.ClientID != l.n.joinMark() {
		return nil
	}
	return protocol.Refuse(foreign.CodeSameMesh, "this board is of the client's own mesh", "its agents are here anyway")
}
