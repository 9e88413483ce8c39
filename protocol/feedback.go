package protocol

import (
	"cmp"
	"encoding/json"
	"strings"
)

// feedbackText says what a person pressed at a board, by the kinds of feedback that boards post (wire 7.7); "" for another kind,
// and for one that says nothing.
func feedbackText(fields map[string]json.RawMessage) string {
	text := func(key string) (s string) {
		_ = json.Unmarshal(fields[key], &s) // absent or odd: it says nothing
		return s
	}
	var said []string
	add := func(s string) {
		if s != "" {
			said = append(said, s)
		}
	}
	switch text("kind") {
	case "decision":
		add(cmp.Or(text("question"), text("id")))
		add(text("choice"))
		add(text("text"))
	case "proceed":
		add("go ahead")
		add(cmp.Or(text("title"), text("plannedId")))
	case "reorder":
		var moved struct{ ID, Title string }
		_ = json.Unmarshal(fields["moved"], &moved)
		add("reorder " + text("tab"))
		add(cmp.Or(moved.Title, moved.ID))
	case "context-feedback":
		add(cmp.Or(text("title"), text("refId")))
		add(text("text"))
	case "fallback-rerender":
		add("show again")
		add(cmp.Or(text("label"), text("question"), text("id")))
	case "mode":
		var standby *bool
		if json.Unmarshal(fields["standby"], &standby) == nil && standby != nil {
			add("standby " + map[bool]string{true: "on", false: "off"}[*standby])
		}
	}
	return strings.TrimSpace(strings.Join(said, ": "))
}
