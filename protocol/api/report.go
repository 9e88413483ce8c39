package api

import (
	"encoding/json"

	"github.com/aster-mesh/aster/protocol"
)

// ReportValue is the value of a WorkerReport: the contract's fields, and ours beside them.
type ReportValue struct {
	ReMsgID protocol.MsgID `json:"re_msgId"`
	Unit    string         `json:"unit"`
	Status  string         `json:"status"`            // in_progress, done, blocked
	Outcome string         `json:"outcome,omitempty"` // of a final report: done, blocked, failed, interrupted, cancelled
	Summary string         `json:"summary"`
	Attempt int            `json:"attempt"`
	Stage   string         `json:"stage,omitempty"`
	Tail    string         `json:"tail,omitempty"` // the last lines of its output
	Exit    *int           `json:"exit,omitempty"`
	Millis  int64          `json:"durationMs,omitempty"`
	Diff    *Diff          `json:"diff,omitempty"`
	Commit  string         `json:"commit,omitempty"`
	Branch  string         `json:"branch,omitempty"`
	Base    string         `json:"base,omitempty"`
	Refs    []string       `json:"refs,omitempty"`
	Bytes   int64          `json:"outputBytes,omitempty"`
	Tokens  int64          `json:"tokens,omitempty"`
	Refusal string         `json:"code,omitempty"`
}

// summaryNames are what clients call the words of a report, the contract's first.
var summaryNames = []string{"summary", "re", "subject", "done", "note", "notice", "text"}

// ReadReport reads what anybody may have written: a member of another type than it should have is as one that is missing,
// and numbers are never negative. Texts are as long as they came. object is false for a value that is no object.
func ReadReport(value json.RawMessage) (v ReportValue, object bool) {
	var m map[string]json.RawMessage
	if json.Unmarshal(value, &m) != nil || m == nil {
		return v, false
	}
	member(m, "re_msgId", &v.ReMsgID)
	member(m, "unit", &v.Unit)
	member(m, "status", &v.Status)
	member(m, "outcome", &v.Outcome)
	member(m, "attempt", &v.Attempt)
	member(m, "stage", &v.Stage)
	member(m, "tail", &v.Tail)
	member(m, "exit", &v.Exit)
	member(m, "durationMs", &v.Millis)
	member(m, "diff", &v.Diff)
	member(m, "commit", &v.Commit)
	member(m, "branch", &v.Branch)
	member(m, "base", &v.Base)
	member(m, "refs", &v.Refs)
	member(m, "outputBytes", &v.Bytes)
	member(m, "tokens", &v.Tokens)
	member(m, "code", &v.Refusal)
	for _, name := range summaryNames {
		if v.Summary == "" {
			member(m, name, &v.Summary)
		}
	}
	v.Attempt, v.Millis, v.Bytes, v.Tokens = max(v.Attempt, 0), max(v.Millis, 0), max(v.Bytes, 0), max(v.Tokens, 0)
	return v, true
}

// member sets to only what wholly has its type.
func member[T any](m map[string]json.RawMessage, name string, to *T) {
	var v T
	if raw, ok := m[name]; ok && json.Unmarshal(raw, &v) == nil {
		*to = v
	}
}

// Ended is the state that a final report ends its task in; empty for any other. An outcome makes a report final. Old
// clients write none: their "done" is final, their "blocked" is not, since whoever is asked may unblock them.
func (v *ReportValue) Ended() TaskState {
	switch state := TaskState(v.Outcome); state {
	case TaskDone, TaskBlocked, TaskFailed, TaskInterrupted, TaskCancelled:
		return state
	}
	if v.Status == "done" {
		return TaskDone
	}
	return ""
}
