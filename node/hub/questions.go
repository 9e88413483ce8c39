package hub

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/aster-mesh/aster/protocol"
)

// Question is one that waits for a person's answer, of an agent anywhere.
type Question struct {
	Asker protocol.AgentID
	ID    string // promptId
	Ref   Ref
	Kind  string    // clarify, approval, or "" without a clock
	Until time.Time // of one with a clock
}

// QuestionClock is the clock that a question began with; no kind: it has none, or is no question.
func QuestionClock(env *protocol.Envelope) (kind string, wait time.Duration) {
	v, no := readSelection(env)
	if no != nil || env.Intent != selectionPrompt {
		return "", 0
	}
	kind, wait, _ = v.clock()
	return kind, wait
}

// Questions lists the open questions, by asker, then id.
func (c *Core) Questions() []Question {
	var out []Question
	for _, p := range c.prompts {
		if p.ended == "" && p.ref.Seq > 0 {
			out = append(out, Question{p.name, p.id, p.ref, p.kind, p.until})
		}
	}
	slices.SortFunc(out, func(a, b Question) int {
		return cmp.Or(strings.Compare(string(a.Asker), string(b.Asker)), strings.Compare(a.ID, b.ID))
	})
	return out
}
