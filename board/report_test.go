package board

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/api"
)

func TestWhichReportsAreFinal(t *testing.T) {
	for value, want := range map[string]api.TaskState{
		`{"status":"in_progress"}`:                     "",
		`{"status":"blocked"}`:                         "",
		`{"status":"done"}`:                            api.TaskDone,
		`{"status":"done","outcome":"done"}`:           api.TaskDone,
		`{"status":"blocked","outcome":"blocked"}`:     api.TaskBlocked,
		`{"status":"blocked","outcome":"failed"}`:      api.TaskFailed,
		`{"status":"blocked","outcome":"interrupted"}`: api.TaskInterrupted,
		`{"status":"blocked","outcome":"cancelled"}`:   api.TaskCancelled,
		`{"status":"in_progress","outcome":"running"}`: "",
		`{"status":"in_progress","outcome":"queued"}`:  "",
		`{"status":["done"]}`:                          "",
		`"done"`:                                       "",
		`null`:                                         "",
		``:                                             "",
	} {
		if got := reportOf(pos{}, 0, &protocol.Envelope{Value: json.RawMessage(value)}).final(); got != want {
			t.Errorf("%s: %q, want %q", value, got, want)
		}
	}
}

func TestAReportIsBoundedAndTrustsNoType(t *testing.T) {
	paths := strings.Repeat(`"`+strings.Repeat("p", 900)+`",`, 50)
	long := strings.Repeat("é", 30_000)
	r := reportOf(pos{}, 0, &protocol.Envelope{Value: json.RawMessage(fmt.Sprintf(
		`{"summary":%q,"tail":%q,"commit":%q,"exit":"x","attempt":-3,"diff":{"files":50,"paths":[%s"last"]}}`, long, long+"END", long, paths))})
	if len(r.Summary) > protocol.ShortTextBytesMax || len(r.Tail) > tailBytesKept || len(r.Commit) > refBytesMax || len(r.Diff.Paths) != pathsMax || len(r.Diff.Paths[0]) > pathBytesMax {
		t.Errorf("summary %d, tail %d, commit %d, paths %d", len(r.Summary), len(r.Tail), len(r.Commit), len(r.Diff.Paths))
	}
	if !strings.HasSuffix(r.Tail, "END") || r.Exit != nil || r.Attempt != 0 || r.Diff.Files != 50 {
		t.Errorf("tail ends %q, exit %v, attempt %d", r.Tail[len(r.Tail)-5:], r.Exit, r.Attempt)
	}
	if got := reportOf(pos{}, 0, &protocol.Envelope{Value: json.RawMessage(`"only words"`)}).Summary; got != "only words" {
		t.Errorf("summary of a bare text: %q", got)
	}
}
