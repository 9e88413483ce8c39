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

// survival is the mesh of TestKillAtEveryInstant: a sender's node, and a recipient's with an agent and a runner.
type survival struct {
	t        *testing.T
	rng      *rand.Rand
	from, to *node
	bob      *agent
	starts   string // ledger of the runner's commands: one line a start
	ends     string // and one when a command has come to its end

	messages []protocol.MsgID // all that were logged, in order
	tasks    []protocol.MsgID
	struck   int // blows that also ended the runs
}

// TestKillAtEveryInstant is acceptance 3: kill -9 of either node at seeded instants before, during and after delivery.
func TestKillAtEveryInstant(t *testing.T) {
	instants := 24
	if long {
		instants = 100
	}
	s := newSurvival(t, seed(t))
	for i := range instants {
		s.round(i, i%len(blows))
	}
	s.settle("at the end")
	s.checkMessages()
	s.checkTasks()
	t.Logf("%d kills, %d messages, %d tasks, %d connections of the agent", instants, len(s.messages), len(s.tasks), s.bob.conns)
}

func newSurvival(t *testing.T, seed uint64) *survival {
	s := &survival{t: t, rng: rand.New(rand.NewPCG(seed, seed))}
	dir := t.TempDir()
	s.starts, s.ends = filepath.Join(dir, "starts"), filepath.Join(dir, "ends")
	script := fmt.Sprintf(`echo "$ASTER_TASK_ID $ASTER_TASK_ATTEMPT" >> %s; for i in 1 2 3; do echo step $i; sleep 0.1; done; echo "$ASTER_TASK_ID $ASTER_TASK_ATTEMPT" >> %s`, s.starts, s.ends)
	config := fmt.Sprintf("[worker]\ncommand = [\"sh\", \"-c\", %s]\nslots = %d\n", quoted(script), slots)
	all := meshOf(t, map[string]string{"bee": config}, "ada", "bee")
	s.from, s.to = all[0], all[1]
	s.bob = attach(s.to, "bob")
	s.from.knows("bob")
	s.from.knows("bee")
	return s
}

const slots = 4 // runs at once

func quoted(s string) string {
	raw, _ := json.Marshal(s) // texts always encode; TOML reads the same escapes
	return string(raw)
}

// blows are the kinds of instants. Each logs a few messages and a Delegate, kills a node on the way and starts it again.
var blows = []struct {
	name string
	hit  func(*survival, []protocol.MsgID, protocol.MsgID)
}{
	{"recipient killed before", func(s *survival, ids []protocol.MsgID, task protocol.MsgID) {
		s.to.kill()
		s.speak(ids, task)
		s.to.up("")
	}},
	{"recipient killed during", func(s *survival, ids []protocol.MsgID, task protocol.MsgID) {
		s.meanwhile(s.to, time.Duration(s.rng.IntN(60))*time.Millisecond, func() { s.speak(ids, task) })
	}},
	{"recipient killed after", func(s *survival, ids []protocol.MsgID, task protocol.MsgID) {
		s.speak(ids, task)
		instant(time.Duration(s.rng.IntN(900)) * time.Millisecond)
		s.to.kill()
		s.to.up("")
	}},
	{"sender killed after logged", func(s *survival, ids []protocol.MsgID, task protocol.MsgID) {
		s.speak(ids, task)
		instant(time.Duration(s.rng.IntN(10)) * time.Millisecond)
		s.from.kill()
		s.from.up("")
	}},
	{"recipient killed with its runs", func(s *survival, ids []protocol.MsgID, task protocol.MsgID) {
		s.speak(ids, task)
		instant(time.Duration(s.rng.IntN(500)) * time.Millisecond)
		s.to.kill()
		s.to.tidyRuns()
		s.struck++
		s.to.up("")
	}},
	{"sender killed while it logs", func(s *survival, ids []protocol.MsgID, task protocol.MsgID) {
		s.meanwhile(s.from, time.Duration(s.rng.IntN(20))*time.Millisecond, func() { s.speak(ids, task) })
	}},
}

// meanwhile kills a node after d while f runs, and starts it again.
func (s *survival) meanwhile(n *node, d time.Duration, f func()) {
	s.t.Helper()
	var wait sync.WaitGroup
	wait.Go(f)
	instant(d)
	n.kill()
	n.up("")
	wait.Wait()
}

// speak logs messages to bob and one Delegate to bee. Ids are the sender's own, so that it may say again what a killed
// node did not answer.
func (s *survival) speak(ids []protocol.MsgID, task protocol.MsgID) {
	ctx, cancel := context.WithTimeout(s.t.Context(), patience)
	defer cancel()
	for _, id := range ids {
		if _, err := s.from.say(ctx, api.SendRequest{To: "bob", Intent: protocol.Request, Value: text("message " + string(id)), MsgID: id}); err != nil {
			s.t.Errorf("%s not logged: %v", id, err)
		}
	}
	if _, err := s.from.say(ctx, api.SendRequest{To: "bee", Intent: protocol.Delegate, Value: text("task " + string(task)), MsgID: task}); err != nil {
		s.t.Errorf("%s not logged: %v", task, err)
	}
}

func (s *survival) round(i, blow int) {
	s.t.Helper()
	var ids []protocol.MsgID
	for k := range 3 {
		ids = append(ids, protocol.MsgID(fmt.Sprintf("m%03d-%d", i, k)))
	}
	task := protocol.MsgID(fmt.Sprintf("d%03d", i))
	s.messages, s.tasks = append(s.messages, ids...), append(s.tasks, task)
	blows[blow].hit(s, ids, task)
	s.settle(fmt.Sprintf("round %d, %s", i, blows[blow].name))
}

// settle waits until bob has everything and its home knows that bob has dealt with it. From then on nothing of it may
// come again: the next rounds would show it.
func (s *survival) settle(when string) {
	s.t.Helper()
	eventually(s.t, patience, when+": all delivered and acknowledged", func() (bool, string) {
		for _, id := range s.messages {
			if s.bob.times(id) == 0 {
				return false, string(id) + " is not with bob"
			}
		}
		agents, err := s.to.api().Agents(s.t.Context())
		for _, a := range agents {
			if a.ID == "bob" {
				return a.Unread == 0, fmt.Sprintf("%d unread", a.Unread)
			}
		}
		return false, fmt.Sprint(agents, err)
	})
	s.bob.mark()
}

// checkMessages wants each message in the inbox once, in the ledger once, and in the order in which it was logged. A
// second delivery is right only on another connection than the first, and before its acknowledgement was known.
func (s *survival) checkMessages() {
	s.t.Helper()
	inbox := inboxOf(s.to, "bob")
	if len(inbox) != len(s.messages) {
		s.t.Errorf("%d messages in the inbox, want %d", len(inbox), len(s.messages))
	}
	for _, id := range s.messages {
		if items := inbox[id]; len(items) != 1 || !items[0].Processed {
			s.t.Errorf("%s is in the inbox %d times: %+v", id, len(items), items)
		}
	}
	last := map[protocol.MsgID]int{}
	var firsts []protocol.MsgID
	again := 0
	for _, d := range s.bob.read() {
		conn, before := last[d.id]
		if !before {
			firsts = append(firsts, d.id)
		} else if again++; conn == d.conn {
			s.t.Errorf("%s came twice on connection %d", d.id, conn)
		}
		last[d.id] = d.conn
	}
	s.t.Logf("%d second deliveries after cut acknowledgements", again)
	for i, id := range firsts {
		if i >= len(s.messages) || id != s.messages[i] {
			s.t.Errorf("delivered in another order than logged: %v instead of %v", firsts[i:min(i+6, len(firsts))], s.messages[i:min(i+6, len(s.messages))])
			break
		}
	}
	if s.t.Failed() {
		s.t.Logf("ledger: %v", s.bob.read())
	}
	if late := s.bob.tooLate(); len(late) > 0 {
		s.t.Errorf("delivered again after the acknowledgement was known: %v", late)
	}
}

func (s *survival) checkTasks() {
	s.t.Helper()
	eventually(s.t, patience, "every task has an end", func() (bool, string) {
		for _, id := range s.tasks {
			task, err := s.from.api().Task(s.t.Context(), string(id))
			if err != nil || !task.State.Final() {
				return false, fmt.Sprintf("%s is %s, %v", id, task.State, err)
			}
		}
		return true, ""
	})
	starts, ends := linesOf(s.t, s.starts), linesOf(s.t, s.ends)
	inbox := inboxOf(s.from, "main-agent")
	outcomes := map[string]int{}
	for _, id := range s.tasks {
		task, err := s.from.api().Task(s.t.Context(), string(id))
		must(s.t, err)
		finals := map[string]int{} // by attempt
		for _, m := range task.Reports {
			var v struct {
				Outcome string
				Attempt int
			}
			must(s.t, json.Unmarshal(m.Envelope.Value, &v))
			if v.Outcome != "" {
				finals[fmt.Sprintf("%s %d", id, v.Attempt)]++
				if len(inbox[m.Envelope.ID]) != 1 {
					s.t.Errorf("final report of %s is in its delegator's inbox %d times", id, len(inbox[m.Envelope.ID]))
				}
			}
		}
		key := fmt.Sprintf("%s 1", id)
		if len(finals) != 1 || finals[key] != 1 {
			s.t.Errorf("%s: final reports by attempt %v, want one of attempt 1", id, finals)
		}
		outcomes[string(task.State)]++
		switch {
		case task.State == api.TaskInterrupted && s.struck > 0 && starts[key] <= 1: // also between its end and its result
		case starts[key] > 1:
			s.t.Errorf("%s was started %d times", key, starts[key])
		case starts[key] == 1 && (ends[key] != 1 || task.State != api.TaskDone):
			s.t.Errorf("%s was started, came to its end %d times, and is %s", key, ends[key], task.State)
		case starts[key] == 0 && task.State == api.TaskDone:
			s.t.Errorf("%s is done and was never started", key)
		}
	}
	if interrupted := outcomes[string(api.TaskInterrupted)]; interrupted > s.struck*slots {
		s.t.Errorf("%d tasks are interrupted, %d blows ended at most %d runs each", interrupted, s.struck, slots)
	}
	s.t.Logf("outcomes: %v, %d blows ended runs", outcomes, s.struck)
}

// linesOf counts the lines of a file.
func linesOf(t *testing.T, path string) map[string]int {
	t.Helper()
	raw, err := os.ReadFile(path)
	must(t, err)
	out := map[string]int{}
	for line := range strings.Lines(string(raw)) {
		out[strings.TrimSpace(line)]++
	}
	return out
}
