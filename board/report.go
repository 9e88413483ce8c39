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
	v, object := api.ReadReport(env.Value)
	if v.Summary == "" && !object {
		v.Summary = env.Text(protocol.ShortTextBytesMax)
	}
	if v.Diff != nil {
		v.Diff.Paths = v.Diff.Paths[:min(len(v.Diff.Paths), pathsMax)]
		for i, p := range v.Diff.Paths {
			v.Diff.Paths[i] = protocol.CutText(strings.ToValidUTF8(p, "\uFFFD"), pathBytesMax)
		}
	}
	ref := func(s string) string { return protocol.CutText(s, refBytesMax) }
	return &report{
		moment: moment{at, wall}, Status: ref(v.Status), Outcome: ref(v.Outcome), Summary: protocol.CutText(v.Summary, protocol.ShortTextBytesMax),
		Attempt: v.Attempt, Exit: v.Exit, Millis: v.Millis, Diff: v.Diff, Commit: ref(v.Commit), Branch: ref(v.Branch), Base: ref(v.Base),
		Stage: ref(v.Stage), Tail: lastBytes(protocol.CutText(v.Tail, protocol.ValueBytesInline), tailBytesKept), Result: blobOf(env, "result"), Output: blobOf(env, "output"),
	}
}

// final is the state that a final report ends its task in; empty for any other.
func (r *report) final() api.TaskState {
	return (&api.ReportValue{Status: r.Status, Outcome: r.Outcome}).Ended()
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
