package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/api"
)

// chaos is five nodes on five machines of one network, everyone speaking with everyone, and what is done to them.
type chaos struct {
	t      *testing.T
	lab    *lab
	nodes  []*node
	agents []*agent // one a node, by socket
	starts string   // ledger of the runners' commands: one line a start
	book   *ledger
	tasks  []protocol.MsgID
	logged atomic.Int64
	began  time.Time
	span   time.Duration // of the traffic and the faults
	moves  int           // so many times a host got another address

	mu     sync.Mutex
	counts map[string]int // faults by kind
}

// TestChaos is the whole against everything at once: 20,000 messages (CI: a tenth) in all directions among five nodes
// in network namespaces while processes are killed and stopped, cables are pulled, paths swallow packets in one direction
// or both, a third of all packets is lost, and every start has another clock. In the end nothing acknowledged is lost,
// nothing was dealt with twice, and all have the same journal and board.
func TestChaos(t *testing.T) {
	total, span := 2000, 20*time.Second
	if long {
		total, span = 20_000, 4*time.Minute
	}
	n := seed(t)
	c := newChaos(t, span)
	var wait sync.WaitGroup
	ctx, cancel := context.WithTimeout(t.Context(), span+4*patience)
	defer cancel()
	watch := watchMains(t, c.nodes)
	c.speak(ctx, &wait, total, rand.New(rand.NewPCG(n, 1)))
	network := make(chan struct{})
	go func() {
		defer close(network)
		c.harmNetwork(rand.New(rand.NewPCG(n, 2)))
	}()
	c.harmProcesses(rand.New(rand.NewPCG(n, 3)))
	<-network
	healed := time.Now()
	for _, n := range c.nodes {
		n.linked(len(c.nodes) - 1)
	}
	t.Logf("all linked %s after the last fault", time.Since(healed).Round(time.Millisecond))
	main, took := oneMain(t, patience, c.nodes)
	t.Logf("one main, of term %d, %s after that", main.Term, took.Round(time.Millisecond))
	wait.Wait()
	c.settle()
	before := sameEverywhere(t, c.nodes)
	t.Logf("the same everywhere %s after the last fault", time.Since(healed).Round(time.Millisecond))
	for _, n := range c.nodes {
		n.kill()
	}
	dice := rand.New(rand.NewPCG(n, 4))
	for _, n := range c.nodes {
		c.up(n, dice)
	}
	for _, n := range c.nodes {
		n.linked(len(c.nodes) - 1)
	}
	c.settle()
	after := sameEverywhere(t, c.nodes)
	if after.Records < before.Records {
		t.Errorf("%d records after the last start, %d before", after.Records, before.Records)
	}
	v := c.judge()
	t.Logf("%d messages among %d nodes in %s, %d records, mains of %s, faults %v", total, len(c.nodes), time.Since(c.began).Round(time.Second), after.Records, watch.check(t), c.counts)
	t.Log(v.line(n))
	if !v.good() {
		t.Errorf("%v", v.wrong)
	}
}

func newChaos(t *testing.T, span time.Duration) *chaos {
	c := &chaos{t: t, lab: newLab(t, 5), book: newLedger(), starts: filepath.Join(t.TempDir(), "starts"), span: span, counts: map[string]int{}}
	for i, h := range c.lab.hosts {
		script := fmt.Sprintf(`echo "$ASTER_TASK_ID" >> %s`, c.starts)
		n := h.node(fmt.Sprintf("n%d", i), fmt.Sprintf("agent = \"w%d\"\n[worker]\ncommand = [\"sh\", \"-c\", %s]\nslots = 4\n", i, quoted(script)))
		if long {
			binary, err := skewedBuild()
			must(t, err)
			n.program = binary
		}
		token := ""
		if i > 0 {
			token = c.nodes[0].invite("--lan")
		}
		n.up(token)
		n.invite("--lan") // it listens on the lab's network from now on
		c.nodes = append(c.nodes, n)
	}
	for i, n := range c.nodes {
		n.linked(len(c.nodes) - 1)
		c.agents = append(c.agents, attach(n, protocol.AgentID(fmt.Sprintf("a%d", i))))
	}
	for _, n := range c.nodes {
		for i := range c.nodes {
			n.knows(protocol.AgentID(fmt.Sprintf("a%d", i)))
			n.knows(protocol.AgentID(fmt.Sprintf("w%d", i)))
		}
	}
	c.began = time.Now()
	return c
}

// speak starts a speaker for each direction. One message in twenty is said once and never again, whatever the answer; one
// in a hundred is a Delegate to the other node's runner.
func (c *chaos) speak(ctx context.Context, wait *sync.WaitGroup, total int, rng *rand.Rand) {
	each := total / (len(c.nodes) * (len(c.nodes) - 1))
	for from := range c.nodes {
		for to := range c.nodes {
			if from == to {
				continue
			}
			dice := rand.New(rand.NewPCG(rng.Uint64(), 1))
			for i := range each {
				if (i+from+to)%100 == 99 {
					c.tasks = append(c.tasks, taskID(from, to, i))
				}
			}
			wait.Go(func() { c.speaker(ctx, from, to, each, dice) })
		}
	}
}

func taskID(from, to, i int) protocol.MsgID {
	return protocol.MsgID(fmt.Sprintf("t%d%d-%05d", from, to, i))
}

func (c *chaos) speaker(ctx context.Context, from, to, each int, dice *rand.Rand) {
	for i := range each {
		instant(time.Until(c.began.Add(time.Duration(i) * c.span / time.Duration(each))))
		id := protocol.MsgID(fmt.Sprintf("c%d%d-%05d", from, to, i))
		req := api.SendRequest{From: c.agents[from].id, To: c.agents[to].id, Intent: protocol.Request, Value: text(string(id)), MsgID: id}
		if (i+from+to)%100 == 99 {
			req.To, req.Intent, req.MsgID = protocol.AgentID(fmt.Sprintf("w%d", to)), protocol.Delegate, taskID(from, to, i)
		}
		c.book.send(req.MsgID, req.To)
		var err error
		if req.Intent == protocol.Request && dice.IntN(20) == 0 {
			once, cancel := context.WithTimeout(ctx, time.Duration(dice.IntN(2000))*time.Millisecond)
			_, err = c.nodes[from].api().Send(once, req)
			cancel()
		} else if _, err = c.nodes[from].say(ctx, req); err != nil {
			c.t.Errorf("%s not logged: %v", req.MsgID, err)
			return
		}
		if err == nil {
			c.book.ack(req.MsgID)
		}
		c.logged.Add(1)
	}
}

// settle waits until everything acknowledged is dealt with, and the homes know.
func (c *chaos) settle() {
	c.t.Helper()
	eventually(c.t, 3*patience, "all delivered and acknowledged", func() (bool, string) {
		for i, n := range c.nodes {
			all, err := n.api().Agents(c.t.Context())
			if err != nil {
				return false, err.Error()
			}
			for _, a := range all {
				if a.ID == c.agents[i].id && a.Unread > 0 {
					return false, fmt.Sprintf("%d unread by %s", a.Unread, a.ID)
				}
			}
		}
		for id, to := range c.book.acknowledged() {
			for _, a := range c.agents {
				if a.id == to && a.times(id) == 0 {
					return false, fmt.Sprintf("%s is not with %s", id, to)
				}
			}
		}
		return true, ""
	})
	for _, id := range c.tasks {
		eventually(c.t, 2*patience, "every task has an end", func() (bool, string) {
			task, err := c.nodes[0].api().Task(c.t.Context(), string(id))
			return err == nil && task.State == api.TaskDone, fmt.Sprintf("%s is %s, %v", id, task.State, err)
		})
	}
	for _, a := range c.agents {
		a.mark()
	}
}

// judge reads what the recipients have: a message counts as often as it is in its inbox, and once more if it was delivered
// twice on one connection, or again when its home knew that it was dealt with; a task as often as it was started.
func (c *chaos) judge() verdict {
	c.t.Helper()
	for i, a := range c.agents {
		for id, items := range inboxOf(c.nodes[i], a.id) {
			if items[0].Intent != protocol.Request { // reports of tasks
				continue
			}
			c.book.see(id, a.id, len(items))
			if a.times(id) == 0 {
				c.t.Errorf("%s is in the inbox of %s and was not delivered", id, a.id)
			}
		}
		seen := map[protocol.MsgID]int{}
		for _, d := range a.read() {
			if conn, again := seen[d.id]; again && conn == d.conn {
				c.book.see(d.id, a.id, 1)
			}
			seen[d.id] = d.conn
		}
		for _, id := range a.tooLate() {
			c.book.see(id, a.id, 1)
		}
	}
	started := linesOf(c.t, c.starts)
	for _, id := range c.tasks {
		c.book.see(id, c.book.sent[id], started[string(id)])
		delete(started, string(id))
	}
	for id := range started {
		c.t.Errorf("a runner was started for %q", id)
	}
	return c.book.judge()
}

func (c *chaos) note(kind, words string, args ...any) {
	c.mu.Lock()
	c.counts[kind]++
	c.mu.Unlock()
	c.t.Logf("%6.1f s: %s (%d messages so far)", time.Since(c.began).Seconds(), fmt.Sprintf(words, args...), c.logged.Load())
}
