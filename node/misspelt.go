package node

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/aster-mesh/aster/protocol"
)

// misspelt refuses a name that no agent has and that looks like a slip in one that lives here: it would make another agent,
// whose mail nobody reads. nil: it looks like none.
func (l *loop) misspelt(named protocol.AgentID) *protocol.Refusal {
	if named == l.own() {
		return nil
	}
	var near []string
	for _, p := range l.core.Presences(l.now) {
		if slip(string(protocol.FoldAgentID(named)), string(protocol.FoldAgentID(p.Agent))) {
			near = append(near, string(p.Agent))
		}
	}
	if len(near) == 0 {
		return nil
	}
	return protocol.Refuse(protocol.CodeUnknownAgent, "no agent %q lives here; there is %s",
		fmt.Sprintf("to make a new agent of that name: aster send --from %s --new --to AGENT TEXT", named), string(named), strings.Join(near, ", "))
}

// slip says whether two names differ as by a slip of the hand: by one letter left out, added, changed or swapped with the
// next, of five letters or more. Names that differ in digits are meant to.
func slip(a, b string) bool {
	x, y := []rune(a), []rune(b)
	if len(x) > len(y) {
		x, y = y, x
	}
	if a == b || len(x) < 5 || len(y) > len(x)+1 {
		return false
	}
	head := 0
	for head < len(x) && x[head] == y[head] {
		head++
	}
	tail := 0
	for tail < len(x)-head && x[len(x)-1-tail] == y[len(y)-1-tail] {
		tail++
	}
	x, y = x[head:len(x)-tail], y[head:len(y)-tail]
	for _, r := range append(append([]rune{}, x...), y...) {
		if unicode.IsDigit(r) {
			return false
		}
	}
	return len(y) == 1 || len(x) == 2 && len(y) == 2 && x[0] == y[1] && x[1] == y[0]
}
