package node

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aster-mesh/aster/node/journal"
	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/asterism"
	"github.com/aster-mesh/aster/roles/deadlock"
)

// deadlockMessages is how far back a wait is looked for: who asked before that has gone on, or has given up.
const deadlockMessages = 2000

// deadlockAfter is how long a wait may last unless the owner says otherwise (wire 7.6).
const deadlockAfter = 2 * time.Minute

// warnDeadlock is the kind of the warning that speaks of agents that wait for each other.
const warnDeadlock = "deadlock"

// waits are cycles of waiting that stand now, by Key. Owned by the part that looks for them.
type waits map[string]*wait

type wait struct {
	since time.Time // when this node first saw it, by its own clock
	told  bool
}

// watchDeadlocks tells the boards here of agents that have waited for each other for a while, each wait once.
func (n *Node) watchDeadlocks(ctx context.Context) error {
	stand := waits{}
	looks := time.NewTicker(n.cfg.Deadlock.After / 8)
	defer looks.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-looks.C:
		}
		found, err := n.messages(journal.Query{Limit: deadlockMessages, Newest: true})
		if err != nil {
			n.log.Error("messages not readable", "part", "deadlock", "err", err)
			continue
		}
		said := betweenAgents(found)
		if err := n.loop.call(ctx, func() { n.loop.deadlocks(said, stand) }); err != nil {
			return nil
		}
	}
}

// betweenAgents is what agents said to each other, oldest first. It reads values, so it is not for the loop.
func betweenAgents(newest []journal.Message) (said []deadlock.Said) {
	for i := len(newest) - 1; i >= 0; i-- {
		e := &newest[i].Envelope
		if e.Room != "" || e.From == "" || e.To == "" {
			continue
		}
		said = append(said, deadlock.Said{ID: e.ID, From: e.From, To: e.To, FromRole: e.FromRole, Intent: e.Intent, Re: answered(e)})
	}
	return said
}

// deadlocks compares what stands with what stood, and tells what has stood long enough.
func (l *loop) deadlocks(said []deadlock.Said, stand waits) {
	for i := range said {
		said[i].From, said[i].To = l.core.Now(said[i].From), l.core.Now(said[i].To)
	}
	var lines []string
	now := map[string]bool{}
	for _, c := range deadlock.Find(said) {
		w := stand[c.Key()]
		if w == nil {
			w = &wait{since: l.now}
			stand[c.Key()] = w
		}
		now[c.Key()] = true
		if l.now.Sub(w.since) < l.n.cfg.Deadlock.After {
			continue
		}
		probe := probeOf(&c)
		lines = append(lines, probe.Summary)
		if !w.told {
			w.told = true
			l.toBoards(l.enc.Custom(l.now, asterism.Custom{Name: "DeadlockProbe", Value: protocol.EncodeBody(probe)}), 0)
		}
	}
	for key := range stand {
		if !now[key] {
			delete(stand, key)
		}
	}
	if len(lines) == 0 {
		l.n.warnings.clear(warnDeadlock)
		return
	}
	l.warn(warnDeadlock, strings.Join(lines, "; "))
}

// deadlockProbe is the contract's value (wire 7.6).
type deadlockProbe struct {
	Members  []protocol.AgentID `json:"cycleMembers"`
	Edges    []deadlock.Edge    `json:"waitEdges"`
	Class    deadlock.Class     `json:"class"`
	Summary  string             `json:"summary"`
	Proposed string             `json:"proposedResolution"`
}

func probeOf(c *deadlock.Cycle) deadlockProbe {
	var names []string
	for _, m := range c.Members {
		names = append(names, string(m))
	}
	slices.Sort(names)
	return deadlockProbe{
		Members: c.Members, Edges: c.Edges, Class: c.Class,
		Summary:  protocol.CutText(strings.Join(names, ", "), 400) + " wait for each other's answers",
		Proposed: fmt.Sprintf("%s answers %s to %s before it waits on", c.First.To, c.First.Ask, c.First.From),
	}
}

// answered is what a message says that it answers.
func answered(e *protocol.Envelope) protocol.MsgID {
	if e.Re != "" {
		return e.Re
	}
	var v struct {
		For protocol.MsgID `json:"for"`
	}
	_ = json.Unmarshal(e.Value, &v) // of another shape: it names nothing
	return v.For
}
