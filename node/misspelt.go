package node

import (
	"context"
	"errors"
	"strings"
	"unicode"

	"github.com/aster-mesh/aster/protocol"
)

// newSpeaker is speaker for whoever is about to act. isNew: a new agent is meant, though it looks like one that is here.
func (n *Node) newSpeaker(ctx context.Context, named protocol.AgentID, isNew bool) (protocol.AgentID, error) {
	id, err := n.speaker(ctx, named, true)
	var no *protocol.Refusal
	if isNew && errors.As(err, &no) && no.Code == protocol.CodeUnknownAgent {
		return named, nil
	}
	return id, err
}

// waiter is newSpeaker for whoever waits. Who speaks makes itself known by it, so a new name is none to wonder at; who waits
// under a name that no agent has waits for what nobody sends.
func (n *Node) waiter(ctx context.Context, named protocol.AgentID, isNew bool) (protocol.AgentID, error) {
	id, err := n.newSpeaker(ctx, named, isNew)
	if err != nil || named == "" || isNew {
		return id, err
	}
	id, err = n.speaker(ctx, named, false)
	var no *protocol.Refusal
	if errors.As(err, &no) && no.Code == protocol.CodeUnknownAgent && no.Hint == "" {
		no.Hint = meantNew
	}
	return id, err
}

// meantNew is how to mean an agent that is not there yet.
const meantNew = "if a new agent of that name is meant, say --new"

// misspelt refuses a name that no agent has and that looks like a slip in one that lives here: it would make another agent,
// whose mail nobody reads. nil: it looks like none.
func (l *loop) misspelt(named protocol.AgentID) *protocol.Refusal {
	if named == l.own() {
		return nil
	}
	var near []string
	if own := l.own(); own != "" && slip(string(protocol.FoldAgentID(named)), string(protocol.FoldAgentID(own))) {
		near = append(near, string(own)) // it may not have done anything yet
	}
	for _, p := range l.core.Presences(l.now) {
		if p.Agent != l.own() && slip(string(protocol.FoldAgentID(named)), string(protocol.FoldAgentID(p.Agent))) {
			near = append(near, string(p.Agent))
		}
	}
	if len(near) == 0 {
		return nil
	}
	return protocol.Refuse(protocol.CodeUnknownAgent, "no agent %q lives here; there is %s", meantNew, string(named), strings.Join(near, ", "))
}

// slip says whether two names differ as by a slip of the hand: by one letter left out, added, changed or swapped with the
// next, of five letters or more, or of four by a letter typed twice. Names that differ in digits are meant to.
func slip(a, b string) bool {
	x, y := []rune(a), []rune(b)
	if len(x) > len(y) {
		x, y = y, x
	}
	if a == b || len(x) < 4 || len(y) > len(x)+1 {
		return false
	}
	short := len(x) == 4
	head := 0
	for head < len(x) && x[head] == y[head] {
		head++
	}
	tail := 0
	for tail < len(x)-head && x[len(x)-1-tail] == y[len(y)-1-tail] {
		tail++
	}
	twice := len(y) > len(x) && head > 0 && y[head] == y[head-1]
	x, y = x[head:len(x)-tail], y[head:len(y)-tail]
	if short && !twice {
		return false
	}
	for _, r := range append(append([]rune{}, x...), y...) {
		if unicode.IsDigit(r) {
			return false
		}
	}
	return len(y) == 1 || len(x) == 2 && len(y) == 2 && x[0] == y[1] && x[1] == y[0]
}
