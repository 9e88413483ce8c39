package deadlock

import (
	"fmt"
	"strings"
	"testing"

	"github.com/aster-mesh/aster/protocol"
)

// told makes messages of lines "from to Intent id [re]".
func told(lines string) (out []Said) {
	for line := range strings.Lines(lines) {
		f := strings.Fields(line)
		if len(f) < 4 {
			continue
		}
		m := Said{From: protocol.AgentID(f[0]), To: protocol.AgentID(f[1]), Intent: protocol.Intent(f[2]), ID: protocol.MsgID(f[3]), FromRole: protocol.RoleLocal}
		if strings.HasPrefix(f[0], "main") {
			m.FromRole = protocol.RoleMain
		}
		if len(f) > 4 {
			m.Re = protocol.MsgID(f[4])
		}
		out = append(out, m)
	}
	return out
}

func words(all []Cycle) string {
	var b strings.Builder
	for _, c := range all {
		fmt.Fprintf(&b, "%s %v first %s answers %s;", c.Class, c.Members, c.First.To, c.First.Ask)
	}
	return b.String()
}

func TestAgentsThatWaitForEachOther(t *testing.T) {
	for name, c := range map[string]struct{ said, want string }{
		"two":                     {"a b Request 1\nb a Request 2", "strict [a b] first b answers 1;"},
		"two spellings":           {"a B Request 1\nb A Request 2", "strict [a b] first B answers 1;"},
		"main is waited for":      {"main b Request 1\nb main Request 2", "strict [b main] first b answers 1;"},
		"three":                   {"a b Request 1\nb c DECISION_REQUEST 2\nc a PRRequest 3", "strict [a b c] first b answers 1;"},
		"also for somebody else":  {"a b Request 1\nb a Request 2\nb d Request 3", "quasi [a b] first b answers 1;"},
		"two pairs":               {"a b Request 1\nb a Request 2\nc d Request 3\nd c Request 4", "strict [a b] first b answers 1;strict [c d] first d answers 3;"},
		"the first of two asks":   {"a b Request 1\na b Request 9\nb a Request 2", "strict [a b] first b answers 1;"},
		"a chain is none":         {"a b Request 1\nb c Request 2", ""},
		"one waits for itself":    {"a a Request 1", ""},
		"answered":                {"a b Request 1\nb a Request 2\nb a Response 3 1", ""},
		"answered in other words": {"a b Request 1\nb a Request 2\nb a Report 3", ""},
		"asked back":              {"a b Request 1\nb a Request 2 1", ""},
		"asked again later":       {"a b Request 1\nb a Response 2\na b Request 3\nb a Request 4", "strict [a b] first b answers 3;"},
		"a Delegate is no wait":   {"a b Delegate 1\nb a Request 2", ""},
		"a receipt is no answer":  {"a b Request 1\nb a Request 2\nb a AckProcessed 3 1", "strict [a b] first b answers 1;"},
		"nobody in particular":    {"a b Request 1\nb a Request 2\n", "strict [a b] first b answers 1;"},
	} {
		if got := words(Find(told(c.said))); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func TestTheSameWaitHasTheSameKey(t *testing.T) {
	one, other := Find(told("a b Request 1\nb a Request 2")), Find(told("b a Request 2\na b Request 1\nx y Report 7"))
	if len(one) != 1 || len(other) != 1 || one[0].Key() != other[0].Key() {
		t.Errorf("%v and %v", one, other)
	}
	if next := Find(told("a b Request 3\nb a Request 2")); next[0].Key() == one[0].Key() {
		t.Error("another ask has the same key")
	}
}
