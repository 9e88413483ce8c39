package foreign

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"unicode"

	"github.com/aster-mesh/aster/protocol"
)

// labelBytesMax leaves room for an agent's name before the board's.
const labelBytesMax = 48

// Label makes a text fit to name a board; what it leaves of an odd text may be empty.
func Label(text string) string {
	if text = strings.Map(labelRune, text); len(text) > labelBytesMax {
		text = text[len(text)-labelBytesMax:]
	}
	return text
}

func labelRune(r rune) rune {
	if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '.' || r == '-' || r == '_' || r == ':' {
		return r
	}
	return -1
}

// CheckLabel says why a board cannot be called so, or nil.
func CheckLabel(label string) *protocol.Refusal {
	if label == "" || len(label) > labelBytesMax || strings.Map(labelRune, label) != label {
		return protocol.Refuse(protocol.CodeBadFrame, "a board's name is 1 to %d letters, digits, dots, dashes, colons or underscores", "", labelBytesMax)
	}
	return nil
}

// Person is who speaks at a board without being an agent: its people. No agent is called so, since it is no agent's id.
const Person protocol.AgentID = ""

// personName stands before the board's name for its people.
const personName = "board"

// nameBytesMax is what is left for an agent's own name beside the board's.
const nameBytesMax = protocol.AgentIDBytesMax - labelBytesMax - 16

// Guest says whether an agent of a board is a guest there itself: its name says of which board. Such a name is never taken
// over from a board, so names do not grow when two boards join one another.
func Guest(id protocol.AgentID) bool { return strings.ContainsRune(string(id), '@') }

// Names knows what the agents of one board are called here, and the other way round. Two that fold to one name, and names
// that cannot be ours, get a mark that depends on the name alone.
type Names struct {
	label string
	here  map[protocol.AgentID]protocol.AgentID // as called there → here
	there map[protocol.AgentID]protocol.AgentID // as called here, folded → there
}

// NewNames begins with what was given before: as called there → here.
func NewNames(label string, known map[protocol.AgentID]protocol.AgentID) *Names {
	n := &Names{label: label, here: map[protocol.AgentID]protocol.AgentID{}, there: map[protocol.AgentID]protocol.AgentID{}}
	for there, here := range known {
		n.put(there, here)
	}
	return n
}

func (n *Names) put(there, here protocol.AgentID) {
	n.here[there] = here
	n.there[protocol.FoldAgentID(here)] = there
}

// Here is what an agent of the board is called here. fresh says that it was not called before, so the name is to be kept.
func (n *Names) Here(there protocol.AgentID) (here protocol.AgentID, fresh bool) {
	if here, ok := n.here[there]; ok {
		return here, false
	}
	name := string(there)
	if there == Person {
		name = personName
	} else if id, ok := RoomOf(there); ok {
		name = id
	}
	clean := strings.TrimSpace(strings.Map(func(r rune) rune {
		if r == '/' || r == '\\' || r == '@' || r == unicode.ReplacementChar || unicode.IsControl(r) || unicode.Is(unicode.Cf, r) {
			return '_'
		}
		return r
	}, name))
	clean = protocol.CutText(clean, nameBytesMax)
	here = protocol.AgentID(clean + "@" + n.label)
	_, taken := n.there[protocol.FoldAgentID(here)]
	if taken || clean != name || protocol.CheckAgentID(here) != nil || there != Person && strings.EqualFold(name, personName) {
		sum := sha256.Sum256([]byte(there))
		here = protocol.AgentID(clean + "~" + hex.EncodeToString(sum[:4]) + "@" + n.label)
	}
	n.put(there, here)
	return here, true
}

// Forget lets a name go: whoever is called so there may be called otherwise here the next time.
func (n *Names) Forget(there protocol.AgentID) {
	if here, ok := n.here[there]; ok {
		delete(n.here, there)
		delete(n.there, protocol.FoldAgentID(here))
	}
}

// Known is what an agent of the board is called here, if it was called before.
func (n *Names) Known(there protocol.AgentID) (protocol.AgentID, bool) {
	here, ok := n.here[there]
	return here, ok
}

// There is what an agent called so here is called at the board.
func (n *Names) There(here protocol.AgentID) (there protocol.AgentID, ok bool) {
	there, ok = n.there[protocol.FoldAgentID(here)]
	return there, ok
}

// All are the names given so far: as called there → here.
func (n *Names) All() map[protocol.AgentID]protocol.AgentID {
	out := make(map[protocol.AgentID]protocol.AgentID, len(n.here))
	for there, here := range n.here {
		out[there] = here
	}
	return out
}

// Count is how many names were given.
func (n *Names) Count() int { return len(n.here) }
