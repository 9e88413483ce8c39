package board

import (
	"encoding/json"
	"strings"
	"unicode/utf8"

	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/api"
)

const (
	refBytesMax   = 200     // of a commit, branch, stage or status
	pathsMax      = 20      // as api.Diff says
	pathBytesMax  = 300     // longer ones are cut
	tailBytesKept = 4 << 10 // the last lines of a run, for a look; the whole tail is an attachment
)

// report is what the board keeps of a WorkerReport.
type report struct {
	moment
	Status  string            `json:"status,omitempty"`
	Outcome string            `json:"outcome,omitempty"`
	Summary string            `json:"summary,omitempty"`
	Attempt int               `json:"attempt,omitempty"`
	Exit    *int              `json:"exit,omitempty"`
	Millis  int64             `json:"durationMs,omitempty"`
	Diff    *api.Diff         `json:"diff,omitempty"`
	Commit  string            `json:"commit,omitempty"`
	Branch  string            `json:"branch,omitempty"`
	Base    string            `json:"base,omitempty"`
	Stage   string            `json:"stage,omitempty"`
	Tail    string            `json:"tail,omitempty"`
	Result  *protocol.BlobRef `json:"result,omitempty"`
	Output  *protocol.BlobRef `json:"output,omitempty"`
}

func reportOf(at pos, wall int64, env *protocol.Envelope) *report {
	v := fieldsOf(env.Value)
	r := &report{
		moment: moment{at, wall},
		Status: v.text("status", refBytesMax), Outcome: v.text("outcome", refBytesMax),
		Attempt: int(v.number("attempt")), Millis: v.number("durationMs"),
		Commit: v.text("commit", refBytesMax), Branch: v.text("branch", refBytesMax), Base: v.text("base", refBytesMax),
		Stage: v.text("stage", refBytesMax), Tail: lastBytes(v.text("tail", protocol.ValueBytesInline), tailBytesKept),
		Result: blobOf(env, "result"), Output: blobOf(env, "output"),
	}
	for _, name := range []string{"summary", "re", "subject", "done", "note", "notice", "text"} {
		if r.Summary == "" {
			r.Summary = v.text(name, protocol.ShortTextBytesMax)
		}
	}
	if r.Summary == "" && v == nil {
		r.Summary = env.Text(protocol.ShortTextBytesMax)
	}
	if exit, ok := decode[int](v["exit"]); ok {
		r.Exit = &exit
	}
	if diff, ok := decode[api.Diff](v["diff"]); ok {
		if len(diff.Paths) > pathsMax {
			diff.Paths = diff.Paths[:pathsMax]
		}
		for i, p := range diff.Paths {
			diff.Paths[i] = protocol.CutText(strings.ToValidUTF8(p, "\uFFFD"), pathBytesMax)
		}
		r.Diff = &diff
	}
	return r
}

// final is the state that a final report ends its task in; empty for any other. An outcome makes a report final. Old
// clients write none: their "done" is final, their "blocked" is not, since whoever is asked may unblock them.
func (r *report) final() api.TaskState {
	switch state := api.TaskState(r.Outcome); state {
	case api.TaskDone, api.TaskBlocked, api.TaskFailed, api.TaskInterrupted, api.TaskCancelled:
		return state
	}
	if r.Status == "done" {
		return api.TaskDone
	}
	return ""
}

// fields is a JSON object of which some members are wanted and none is trusted to have its type.
type fields map[string]json.RawMessage

func fieldsOf(value json.RawMessage) fields {
	f, _ := decode[fields](value)
	return f
}

func decode[T any](raw json.RawMessage) (T, bool) {
	var v, zero T
	if len(raw) == 0 || string(raw) == "null" || json.Unmarshal(raw, &v) != nil {
		return zero, false
	}
	return v, true
}

func (f fields) text(name string, n int) string {
	s, _ := decode[string](f[name])
	return protocol.CutText(s, n)
}

func (f fields) number(name string) int64 {
	n, _ := decode[int64](f[name])
	return max(n, 0)
}

func lastBytes(s string, n int) string {
	if len(s) <= n {
		return s
	}
	cut := len(s) - n
	for cut < len(s) && !utf8.RuneStart(s[cut]) {
		cut++
	}
	return s[cut:]
}

func blobOf(env *protocol.Envelope, use string) *protocol.BlobRef {
	for _, b := range env.Blobs {
		if b.Use == use {
			b.Name, b.Mime = protocol.CutText(b.Name, pathBytesMax), protocol.CutText(b.Mime, refBytesMax)
			b.SHA256 = protocol.CutText(b.SHA256, 64)
			return &b
		}
	}
	return nil
}
