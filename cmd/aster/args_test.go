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
		{"ack", "say which: aster ack ID, --from AGENT or --all. What waits: aster inbox\n", exitUsage},
		{"ack --all --from b", "give --all or --from, not both\n", exitUsage},
		{"ack --all m-7kq2m", "name messages, or say --all or --from, not both\n", exitUsage},
		{"outbox --all --agent b", "give --agent or --all, not both\n", exitUsage},
		{"task cancel", "which task? aster task cancel ID. All of them: aster task list\nHelp: aster task cancel -h\n", exitUsage},
		{"send b hello there", "say to whom: aster send --to b hello there. Names: aster agents\n", exitUsage},
		{"main handoff a b", "\"a b\" does not fit: aster main handoff AGENT\nHelp: aster main handoff -h\n", exitUsage},
	} {
		got := newFake(t, held).type_(t, "", strings.Fields(c.args)...)
		if got.code != c.code || got.err != c.err {
			t.Errorf("%s: exit %d, want %d, and\n%swant\n%s", c.args, got.code, c.code, got.err, c.err)
		}
	}
}
