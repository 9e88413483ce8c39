package main

import (
	"strings"
	"testing"

	"github.com/aster-mesh/aster/protocol"
)

// TestMistakesOfUsageSayWhatIsTaken: who gives too little, too much or no time reads what the command takes.
func TestMistakesOfUsageSayWhatIsTaken(t *testing.T) {
	held := map[string]any{"POST /claims": protocol.Refuse(protocol.CodeBusy, "path:src is held by b", "aster claim list")}
	for _, c := range []struct {
		args, err string
		code      int
	}{
		{"claim acquire --wait 1ns --pid 1 src", "timed out: path:src is held by b; aster claim list\n", exitTimedOut},
		{"claim acquire --pid 1 src", "path:src is held by b; aster claim list\n", exitRefused},
		{"send --to b --wait processed --timeout -1s hi", "--timeout -1s: it is longer than nothing, such as 30s\n", exitUsage},
		{"ack", "something is missing: aster ack ID...\nHelp: aster ack -h\n", exitUsage},
		{"main handoff a b", "\"a b\" does not fit: aster main handoff AGENT\nHelp: aster main handoff -h\n", exitUsage},
	} {
		got := newFake(t, held).type_(t, "", strings.Fields(c.args)...)
		if got.code != c.code || got.err != c.err {
			t.Errorf("%s: exit %d, want %d, and\n%swant\n%s", c.args, got.code, c.code, got.err, c.err)
		}
	}
}
