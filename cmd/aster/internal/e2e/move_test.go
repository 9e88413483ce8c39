package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/api"
)

// removal is the mesh of TestMoveAtEveryInstant: a sender's node, and two between which bob moves. He tries to attach on
// both all the time.
type removal struct {
	t     *testing.T
	rng   *rand.Rand
	from  *node
	homes [2]*node
	bobs  [2]*agent
	at    int // which home

	messages []protocol.MsgID
}

// TestMoveAtEveryInstant: kill -9 of the old home, of the new one, of both, at seeded instants while bob moves and mail
// comes. Each message is in his ledgers once, unless its acknowledgement was cut off; none is lost, none comes late.
func TestMoveAtEveryInstant(t *testing.T) {
	rounds := 6
	if long {
		rounds = 40
	}
	dice := seed(t)
	all := meshOf(t, nil, "ada", "bee", "cee")
	s := &removal{t: t, rng: rand.New(rand.NewPCG(dice, dice)), from: all[0], homes: [2]*node{all[1], all[2]}}
	s.bobs[0] = attach(all[1], "bob")
	all[0].knows("bob")
	all[2].knows("bob")
	s.bobs[1] = attach(all[2], "bob")
	for i := range rounds {
		s.round(i)
	}
	s.check()
}

func (s *removal) round(i int) {
	s.t.Helper()
	var ids []protocol.MsgID
	for k := range 6 {
		ids = append(ids, protocol.MsgID(fmt.Sprintf("v%03d-%d", i, k)))
	}
	s.messages = append(s.messages, ids...)
	old, next := s.homes[s.at], s.homes[1-s.at]
	s.speak(ids[:2])
	var wait sync.WaitGroup
	wait.Go(func() { s.speak(ids[2:]) })
	wait.Go(func() { old.run("agent", "move", "bob", next.name) }) // it may be cut off
	instant(time.Duration(s.rng.IntN(120)) * time.Millisecond)
	struck := [][]*node{{old}, {next}, {old, next}}[i%3]
	for _, n := range struck {
		n.kill()
	}
	for _, n := range struck {
		n.up("")
	}
	wait.Wait()
	eventually(s.t, patience, fmt.Sprintf("round %d: bob lives on %s", i, next.name), func() (bool, string) {
		r := old.run("agent", "move", "bob", next.name, "--json")
		return strings.Contains(r.stderr, "lives on node "+next.name), r.String() // that it does already
	})
	s.at = 1 - s.at
	s.settle(fmt.Sprintf("round %d", i))
}

func (s *removal) speak(ids []protocol.MsgID) {
	ctx, cancel := context.WithTimeout(s.t.Context(), patience)
	defer cancel()
	for _, id := range ids {
		if _, err := s.from.say(ctx, api.SendRequest{To: "bob", Intent: protocol.Request, Value: text("message " + string(id)), MsgID: id}); err != nil {
			s.t.Errorf("%s not logged: %v", id, err)
		}
	}
}

// settle waits until bob has everything and his home knows that he has dealt with it; nothing of it may come again.
func (s *removal) settle(when string) {
	s.t.Helper()
	eventually(s.t, patience, when+": all delivered and acknowledged", func() (bool, string) {
		for _, id := range s.messages {
			if s.bobs[0].times(id)+s.bobs[1].times(id) == 0 {
				return false, string(id) + " is not with bob"
			}
		}
		agents, err := s.homes[s.at].api().Agents(s.t.Context())
		for _, a := range agents {
			if a.ID == "bob" {
				return a.Here && a.Unread == 0, fmt.Sprintf("here %v, %d unread", a.Here, a.Unread)
			}
		}
		return false, fmt.Sprint(agents, err)
	})
	known := map[protocol.MsgID]bool{}
	for _, id := range s.messages {
		known[id] = true
	}
	for _, b := range s.bobs {
		b.mu.Lock()
		b.known = known
		b.mu.Unlock()
	}
}

func (s *removal) check() {
	s.t.Helper()
	again := 0
	for i, b := range s.bobs {
		if late := b.tooLate(); len(late) > 0 {
			s.t.Errorf("came again on %s when bob had dealt with it: %v", s.homes[i].name, late)
		}
		last := map[protocol.MsgID]int{}
		for _, d := range b.read() {
			if conn, before := last[d.id]; before && conn == d.conn {
				s.t.Errorf("%s came twice on connection %d with %s", d.id, conn, s.homes[i].name)
			}
			last[d.id] = d.conn
		}
	}
	for _, id := range s.messages {
		if n := s.bobs[0].times(id) + s.bobs[1].times(id); n > 1 {
			again++
		}
		r := s.from.run("show", string(id), "--json")
		var m api.Message
		if json.Unmarshal([]byte(r.stdout), &m) != nil || len(m.Tiers) == 0 || m.Tiers[len(m.Tiers)-1].Tier != protocol.Processed {
			s.t.Errorf("%s is not processed where it came from: %s", id, r)
		}
	}
	s.t.Logf("%d messages, %d of them twice after a cut acknowledgement", len(s.messages), again)
}

// TestAnAgentAtWorkIsNotMoved: the refusal names the task; when that is over, and what nobody has begun goes along.
func TestAnAgentAtWorkIsNotMoved(t *testing.T) {
	over := filepath.Join(t.TempDir(), "over")
	config := fmt.Sprintf("[worker]\ncommand = [\"sh\", \"-c\", %s]\n", quoted("while [ ! -e "+over+" ]; do sleep 0.05; done"))
	nodes := meshOf(t, map[string]string{"east": config}, "west", "east")
	west, east := nodes[0], nodes[1]
	west.declare("anna")
	west.knows("east")
	var work api.SendResult
	must(t, json.Unmarshal([]byte(west.ok("delegate", "--json", "--from", "anna", "--to", "east", "sleep")), &work))
	eventually(t, patience, "it runs", func() (bool, string) {
		task, err := west.api().Task(t.Context(), string(work.MsgID))
		return err == nil && task.State == api.TaskRunning, fmt.Sprint(task.State, err)
	})
	r := east.run("agent", "move", "east", "west")
	if r.code != 4 || !strings.Contains(r.stderr, "works on "+work.Short) || !strings.Contains(r.stderr, "aster task cancel "+work.Short) {
		t.Errorf("while it works: %s", r)
	}
	must(t, os.WriteFile(over, nil, 0o600))
	eventually(t, patience, "it may go", func() (bool, string) {
		r := east.run("agent", "move", "east", "west")
		return r.code == 0, r.String()
	})
	must(t, json.Unmarshal([]byte(west.ok("delegate", "--json", "--from", "anna", "--to", "east", "more")), &work))
	holds(west, "east", work.MsgID)
}

// TestAMoveSaysWhereTheAgentLives: what the command says, and what the old home answers from then on.
func TestAMoveSaysWhereTheAgentLives(t *testing.T) {
	nodes := meshOf(t, nil, "west", "east")
	west, east := nodes[0], nodes[1]
	west.declare("anna")
	east.declare("bert")
	west.knows("bert")
	holds(east, "bert", west.sendBy("anna", "bert", "said before"))
	if r := west.run("agent", "move", "bert", "west"); r.code != 4 || !strings.Contains(r.stderr, "lives on node east") {
		t.Errorf("from a node that is not its home: %s", r)
	}
	if r := east.run("agent", "move", "bert", "north"); r.code != 4 || !strings.Contains(r.stderr, `no node is called "north"`) {
		t.Errorf("to a node that is none: %s", r)
	}
	if got := east.ok("agent", "move", "bert", "west"); got != "bert lives on west now, with 1 unread" {
		t.Errorf("move says %q", got)
	}
	for _, args := range [][]string{{"inbox", "--agent", "bert"}, {"wait", "--agent", "bert", "--timeout", "1s"}, {"send", "--from", "bert", "--to", "anna", "x"}, {"agent", "move", "bert", "west"}} {
		if r := east.run(args...); r.code != 4 || !strings.Contains(r.stderr, "lives on node west") {
			t.Errorf("%v at the old home: %s", args, r)
		}
	}
	for _, n := range nodes {
		if got := n.ok("agents", "--json"); strings.Count(got, `"id":"bert"`) != 1 || !strings.Contains(got, `"node":"west"`) {
			t.Errorf("agents of %s: %s", n.name, got)
		}
	}
	if got := east.ok("agent", "list", "--json"); strings.Contains(got, `"id":"bert"`) {
		t.Errorf("the old home lists it still: %s", got)
	}
	second := east.sendBy("east", "bert", "said after")
	eventually(t, patience, "bert has both", func() (bool, string) {
		got := inboxOf(west, "bert")
		return len(got) == 2 && len(got[second]) == 1, fmt.Sprintf("%d messages", len(got))
	})
}
