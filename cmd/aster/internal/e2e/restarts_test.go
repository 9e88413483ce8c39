package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/api"
)

// TestThousandsOfMessagesWithRestarts is acceptance 4: messages in all directions while every node is killed in turn.
func TestThousandsOfMessagesWithRestarts(t *testing.T) {
	total, turns := 1002, 3
	if long {
		total, turns = 5004, 10
	}
	nodes := meshOf(t, nil, "n0", "n1", "n2")
	agents := make([]*agent, len(nodes))
	for i, n := range nodes {
		agents[i] = attach(n, protocol.AgentID(fmt.Sprintf("agent-%d", i)))
	}
	for _, n := range nodes {
		for _, a := range agents {
			n.knows(a.id)
		}
	}
	sent := speakAllWays(t, nodes, agents, total, turns)
	eventually(t, 2*patience, "all delivered", func() (bool, string) {
		for to, ids := range sent {
			for _, id := range ids {
				if a := agents[to]; a.times(id) == 0 {
					return false, fmt.Sprintf("%s is not with %s", id, a.id)
				}
			}
		}
		return true, ""
	})
	before := sameEverywhere(t, nodes)
	for to, a := range agents {
		checkInbox(t, a, sent[to])
	}
	nodes[1].ok("send", "--from", "agent-1", "--to", "agent-2", "one more")
	eventually(t, patience, "the one more is everywhere", func() (bool, string) {
		for _, n := range nodes {
			if st, err := n.status(); err != nil || st.Journal == before.Journal || st.BoardDigest == before.BoardDigest {
				return false, fmt.Sprintf("%s: journal %.8s board %.8s, %v", n.name, st.Journal, st.BoardDigest, err)
			}
		}
		return true, ""
	})
	after := sameEverywhere(t, nodes)
	if after.Journal == before.Journal || after.BoardDigest == before.BoardDigest {
		t.Errorf("one more message changed nothing: %+v", after)
	}
	t.Logf("%d messages, %d kills, %d records", total, turns*len(nodes), after.Records)
}

// speakAllWays sends total messages, the same number in each direction, and kills every node turns times meanwhile: a
// blow falls whenever another share of the messages is logged. It returns the ids by recipient.
func speakAllWays(t *testing.T, nodes []*node, agents []*agent, total, turns int) [][]protocol.MsgID {
	ctx, cancel := context.WithTimeout(t.Context(), 5*patience)
	defer cancel()
	sent := make([][]protocol.MsgID, len(nodes))
	var logged atomic.Int64
	var wait sync.WaitGroup
	each := total / (len(nodes) * (len(nodes) - 1))
	for from := range nodes {
		for to := range nodes {
			if from == to {
				continue
			}
			var ids []protocol.MsgID
			for i := range each {
				ids = append(ids, protocol.MsgID(fmt.Sprintf("x%d%d-%05d", from, to, i)))
			}
			sent[to] = append(sent[to], ids...)
			wait.Go(func() {
				for _, id := range ids {
					req := api.SendRequest{From: agents[from].id, To: agents[to].id, Intent: protocol.Request, Value: text(string(id)), MsgID: id}
					if _, err := nodes[from].say(ctx, req); err != nil {
						t.Errorf("%s not logged: %v", id, err)
						return
					}
					logged.Add(1)
				}
			})
		}
	}
	blows := turns * len(nodes)
	for i := range blows {
		due := int64(total * (i + 1) / (blows + 2))
		eventually(t, 2*patience, "the next share is logged", func() (bool, string) {
			now := logged.Load()
			return now >= due || t.Failed(), fmt.Sprintf("%d of %d", now, due)
		})
		n := nodes[i%len(nodes)]
		n.kill()
		n.up("")
	}
	wait.Wait()
	return sent
}

// sameEverywhere waits until aster status --json says the same journal and board on all nodes.
func sameEverywhere(t *testing.T, nodes []*node) api.Status {
	t.Helper()
	var first api.Status
	eventually(t, 2*patience, "the same journal and board everywhere", func() (bool, string) {
		stands, same := "", true
		for i, n := range nodes {
			var st api.Status
			if err := json.Unmarshal([]byte(n.ok("status", "--json")), &st); err != nil {
				return false, err.Error()
			}
			if i == 0 {
				first = st
			}
			same = same && st.Journal == first.Journal && st.BoardDigest == first.BoardDigest
			stands += fmt.Sprintf("%s: journal %.8s board %.8s records %d behind %d; ", n.name, st.Journal, st.BoardDigest, st.Records, st.Behind)
		}
		return same, stands
	})
	if len(first.Journal) != 64 || len(first.BoardDigest) != 64 {
		t.Errorf("no digests: %+v", first)
	}
	return first
}

// checkInbox wants every logged message in the recipient's inbox once, and of one sender in the order of their logging.
func checkInbox(t *testing.T, a *agent, want []protocol.MsgID) {
	t.Helper()
	inbox := inboxOf(a.home, a.id)
	for _, id := range want {
		if len(inbox[id]) != 1 {
			t.Errorf("%s is in the inbox of %s %d times", id, a.id, len(inbox[id]))
		}
	}
	if len(inbox) != len(want) {
		t.Errorf("%d messages in the inbox of %s, want %d", len(inbox), a.id, len(want))
	}
	seen := map[protocol.MsgID]int{} // connection of the last delivery
	last := map[protocol.AgentID]protocol.MsgID{}
	for _, d := range a.read() {
		conn, again := seen[d.id]
		if again && conn == d.conn {
			t.Errorf("%s came to %s twice on one connection", d.id, a.id)
		}
		if seen[d.id] = d.conn; again {
			continue
		}
		if d.id < last[d.from] {
			t.Errorf("%s came to %s after %s", d.id, a.id, last[d.from])
		}
		last[d.from] = d.id
	}
}
