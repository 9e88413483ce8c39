package node

import (
	"context"
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aster-mesh/aster/node/hub"
	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/api"
	"github.com/aster-mesh/aster/spec"
	"github.com/aster-mesh/aster/spec/check"
)

// vectorHost has a mesh of its own for the vectors that need more than a client can do: everything that they need, it can.
type vectorHost struct {
	t     *testing.T
	ahead atomic.Int64
	from  *elsewhere
	nodes map[string]*owned // first, and second, outside or abroad
}

type owned struct {
	*running
	n    *Node
	make func(*Config)
}

// own starts the nodes that a vector needs: one with the settings, and another one if it names one.
func own(t *testing.T, needs []string) *vectorHost {
	t.Helper()
	o := &vectorHost{t: t, nodes: map[string]*owned{}}
	o.add("first", func(c *Config) {
		for _, need := range needs {
			switch need {
			case "pace":
				c.Limits = LimitsConfig{SenderPerSecond: 1, SenderBurst: 5}
			case "deadlocks":
				c.Deadlock = DeadlockConfig{Detect: true, After: 400 * time.Millisecond}
			}
		}
	})
	for _, need := range needs {
		if role, ok := map[string]protocol.Role{"second": protocol.RoleLocal, "outside": protocol.RoleCollab}[need]; ok {
			inv, err := o.nodes["first"].n.Invite(t.Context(), api.InviteRequest{Role: role})
			if err != nil {
				t.Fatal(err)
			}
			o.add(need, func(c *Config) { c.Join = inv.Token })
		} else if need == "abroad" {
			o.add(need, func(*Config) {})
		}
	}
	return o
}

// add begins a node. It has the same addresses and the same home whenever it starts again.
func (o *vectorHost) add(name string, change func(*Config)) {
	home := filepath.Join(o.t.TempDir(), "home")
	x := &owned{}
	board, joined := "127.0.0.1:0", false
	x.make = func(c *Config) {
		c.Name, c.Home, c.Board = name, home, board
		c.ahead = func() time.Duration { return time.Duration(o.ahead.Load()) }
		c.probe = func(n *Node) { x.n = n }
		if change(c); joined {
			c.Join = ""
		}
		if name != "first" {
			return
		}
		ln, err := net.Listen("tcp", board)
		if err != nil {
			o.t.Fatal(err)
		}
		if o.from == nil {
			o.from = &elsewhere{}
		}
		o.from.Listener, c.BoardListener = ln, o.from
	}
	o.nodes[name] = x
	x.running = start(o.t, x.make)
	board = strings.TrimPrefix(x.Board, "http://")
	joined = true
}

func (o *vectorHost) Can(need string) bool { return spec.Needs[need] != "" || need == "clock" }

func (o *vectorHost) Token() string { return o.nodes["first"].n.token }

func (o *vectorHost) Address(node string) string {
	return "ws" + o.nodes[node].Board[len("http"):] + "/ws"
}

func (o *vectorHost) Do(ctx context.Context, act string) error {
	words := strings.Fields(act)
	verb, words := words[0], append(words[1:], "first")
	switch verb {
	case "from":
		o.from.at(strings.TrimPrefix(words[0], "here"))
		return nil
	case "later":
		d, err := time.ParseDuration(words[0])
		if err == nil {
			o.ahead.Add(int64(d))
			o.pass(ctx)
		}
		return err
	case "restart":
		o.nodes[words[0]].stop()
		return o.again(words[0])
	case "stop":
		o.nodes[words[0]].stop()
		return nil
	case "start":
		return o.again(words[0])
	case "move":
		first := o.nodes["first"].n
		if err := untilNow(ctx, func() bool { return hasAgent(o.nodes[words[1]].n, words[0]) }); err != nil {
			return err
		}
		_, err := first.MoveAgent(ctx, protocol.AgentID(words[0]), words[1])
		return err
	case "visit":
		first := o.nodes["first"].n
		if _, err := first.JoinBoard(ctx, api.BoardRequest{URL: o.Address("abroad"), Name: "abroad", Agents: []protocol.AgentID{protocol.AgentID(words[0])}}); err != nil {
			return err
		}
		return untilNow(ctx, func() bool { return hasAgent(first, words[1]+"@abroad") })
	case "leave":
		return o.nodes["first"].n.LeaveBoard(ctx, "abroad")
	case "bind":
		n := o.nodes[words[1]].n
		n.loop.set(o.t, func() {
			n.loop.core.Step(n.loop.now, hub.Author{Scope: protocol.ScopeInside, Kind: protocol.KindBind,
				Body: protocol.EncodeBody(protocol.BindBody{Agent: protocol.AgentID(words[0]), Home: n.home.peer, Since: 1, Role: protocol.RoleLocal})})
		})
		return nil
	}
	return fmt.Errorf("no act %q", act)
}

// again starts a node that has ended.
func (o *vectorHost) again(name string) error {
	x := o.nodes[name]
	x.running = start(o.t, x.make)
	return nil
}

// pass lets each node look at the time.
func (o *vectorHost) pass(ctx context.Context) {
	for _, x := range o.nodes {
		x.n.loop.set(o.t, func() {})
		x.n.sweep(ctx, x.n.time())
	}
}

func hasAgent(n *Node, agent string) bool {
	all, err := n.Agents(context.Background())
	if err != nil {
		return false
	}
	for _, a := range all {
		if string(a.ID) == agent {
			return true
		}
	}
	return false
}

func untilNow(ctx context.Context, is func() bool) error {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	for tick := time.NewTicker(5 * time.Millisecond); !is(); {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// TestEveryVectorThatNeedsAnOwnerIsPlayed: those that aster check leaves out at a hub of somebody else's, each at nodes of its
// own, and those that wait, by a clock that is stepped.
func TestEveryVectorThatNeedsAnOwnerIsPlayed(t *testing.T) {
	vectors, err := spec.Vectors()
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range vectors {
		if len(v.Needs) == 0 && v.Later == 0 {
			continue
		}
		t.Run(v.Name, func(t *testing.T) {
			o := own(t, v.Needs)
			report, err := check.Run(t.Context(), []string{o.Address("first")}, check.Options{Filter: v.Name, Host: o, Patience: 20 * time.Second})
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range report.Results {
				for _, f := range r.Failures {
					t.Errorf("%s: %s.txtar:%d %s: %s\n%s", r.Rule, f.Vector, f.Line, f.Step, f.Why, strings.Join(f.Got, "\n"))
				}
			}
			if !report.OK() || report.Ran == 0 || len(report.Needy)+len(report.Slow) > 0 {
				t.Errorf("%d ran, %v and %v did not", report.Ran, report.Needy, report.Slow)
			}
		})
	}
}
