package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aster-mesh/aster/node/link"
	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/api"
)

// received is a frame that came over a socket, as far as an agent reads it.
type received struct {
	Type          string           `json:"type"`
	Name          string           `json:"name"`
	AgentID       protocol.AgentID `json:"agentId"`
	TargetAgentID protocol.AgentID `json:"targetAgentId"`
	MsgID         protocol.MsgID   `json:"msgId"`
	Value         json.RawMessage  `json:"value"`
}

// delivery is one line of an agent's ledger.
type delivery struct {
	conn int // which of its connections, from 1
	id   protocol.MsgID
	from protocol.AgentID
}

// agent is a client of /ws that acknowledges and keeps a ledger of its own on disk. It connects again whenever its
// node is back.
type agent struct {
	t      *testing.T
	id     protocol.AgentID
	home   *node
	ledger string

	stop context.CancelFunc
	done chan struct{}

	// Guarded by mu.
	mu    sync.Mutex
	conn  *link.Conn
	conns int
	got   []delivery
	count map[protocol.MsgID]int
	known map[protocol.MsgID]bool // acknowledged, and the node knows
	late  []protocol.MsgID        // delivered although known
}

// attach starts an agent on a node and waits until the node has taken it.
func attach(n *node, id protocol.AgentID) *agent {
	n.t.Helper()
	ctx, stop := context.WithCancel(context.WithoutCancel(n.t.Context()))
	a := &agent{t: n.t, id: id, home: n, ledger: filepath.Join(n.t.TempDir(), "ledger"), stop: stop, done: make(chan struct{}), count: map[protocol.MsgID]int{}}
	go a.live(ctx)
	n.t.Cleanup(a.end)
	n.knows(id)
	return a
}

func (a *agent) end() {
	a.stop()
	<-a.done
}

// live holds a connection as long as ctx.
func (a *agent) live(ctx context.Context) {
	defer close(a.done)
	f, err := os.OpenFile(a.ledger, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		a.t.Errorf("ledger of %s: %v", a.id, err)
		return
	}
	defer f.Close()
	retry := time.NewTicker(20 * time.Millisecond)
	defer retry.Stop()
	for ctx.Err() == nil {
		if c, err := link.Dial(ctx, socketOf(a.home), nil, link.Options{}); err == nil {
			a.serve(ctx, c, f)
		}
		select {
		case <-ctx.Done():
		case <-retry.C:
		}
	}
}

func socketOf(n *node) string {
	return "ws" + strings.TrimPrefix(n.api().Node().Board, "http") + "/ws"
}

func (a *agent) serve(ctx context.Context, c *link.Conn, ledger *os.File) {
	a.mu.Lock()
	a.conns++
	a.conn = c
	conn := a.conns
	a.mu.Unlock()
	c.Send(fmt.Appendf(nil, `{"type":"HELLO","agentId":%q,"agentName":%q,"capabilities":["ack-layer"]}`, a.id, a.id))
	// A socket whose HELLO is late is a board until it comes (half a second, which a loaded machine may take): what it is
	// shown before its ConnectionInfo is not delivered to the agent.
	welcome := false
	_ = c.Serve(ctx, func(data []byte, _ bool) { // the node may be killed at any time
		if !welcome {
			welcome = bytes.Contains(data, []byte(`"ConnectionInfo"`))
			return
		}
		a.take(c, conn, data, ledger)
	})
}

// take writes a message into the ledger, and acknowledges it after that.
func (a *agent) take(c *link.Conn, conn int, data []byte, ledger *os.File) {
	var f received
	if err := json.Unmarshal(data, &f); err != nil {
		a.t.Errorf("%s got a frame that is no JSON: %.200s", a.id, data)
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if f.MsgID == "" || f.TargetAgentID != a.id || protocol.Lookup(protocol.Intent(f.Name)).Keeping != protocol.Kept {
		return // nothing to this agent
	}
	if _, err := fmt.Fprintf(ledger, "%d %s %s\n", conn, f.MsgID, f.AgentID); err != nil {
		a.t.Errorf("ledger of %s: %v", a.id, err)
		return
	}
	a.got = append(a.got, delivery{conn, f.MsgID, f.AgentID})
	a.count[f.MsgID]++
	if a.known[f.MsgID] {
		a.late = append(a.late, f.MsgID)
	}
	c.Send(fmt.Appendf(nil, `{"type":"CUSTOM","name":"AckProcessed","targetAgentId":%q,"value":{"ackFor":%q}}`, f.AgentID, f.MsgID))
}

// times says how often a message was delivered.
func (a *agent) times(id protocol.MsgID) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.count[id]
}

// mark says that the node knows of every acknowledgement so far.
func (a *agent) mark() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.known = map[protocol.MsgID]bool{}
	for _, d := range a.got {
		a.known[d.id] = true
	}
}

// tooLate are the messages that came again after mark.
func (a *agent) tooLate() []protocol.MsgID {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.late
}

// read is the ledger as it stands on disk.
func (a *agent) read() []delivery {
	a.t.Helper()
	raw, err := os.ReadFile(a.ledger)
	must(a.t, err)
	var out []delivery
	for line := range strings.Lines(string(raw)) {
		var d delivery
		if _, err := fmt.Sscan(line, &d.conn, &d.id, &d.from); err != nil {
			a.t.Fatalf("ledger of %s: %q: %v", a.id, line, err)
		}
		out = append(out, d)
	}
	return out
}

// inboxOf is everything that an agent's home holds for it, acknowledged or not.
func inboxOf(n *node, id protocol.AgentID) map[protocol.MsgID][]api.InboxItem {
	n.t.Helper()
	out := map[protocol.MsgID][]api.InboxItem{}
	r := n.run("inbox", "--agent", string(id), "--all", "--json")
	if r.code != 0 {
		n.t.Fatalf("inbox of %s: %s", id, r)
	}
	for line := range strings.Lines(r.stdout) {
		var it api.InboxItem
		if err := json.Unmarshal([]byte(line), &it); err != nil {
			n.t.Fatalf("inbox of %s: %q: %v", id, line, err)
		}
		out[it.MsgID] = append(out[it.MsgID], it)
	}
	return out
}
