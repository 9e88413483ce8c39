package bridge

import (
	"bytes"
	"encoding/json"
	"fmt"
	"unicode/utf8"

	"github.com/aster-mesh/aster/protocol"
)

// LineBytesMax is the longest line of an outbox: sixteen times a value that fits a record, so that a value that
// becomes a blob still fits, and little enough to be held in memory for each agent.
const LineBytesMax = 1 << 20

// Kind says what a line of an outbox asks for.
type Kind string

const (
	// KindNone says nothing: Submit commits the cursor alone (after a rejected line).
	KindNone      Kind = ""
	KindSay       Kind = "say"        // Text, to nobody in particular
	KindRunStart  Kind = "run-start"  // Run, if the agent named it
	KindRunFinish Kind = "run-finish" // Outcome, if any
	KindStep      Kind = "step"       // Text is the step's name
	KindStepDone  Kind = "step-done"  // Text is the step's name
	KindTool      Kind = "tool"       // Text is the tool's name
	KindFrame     Kind = "frame"      // Frame is a whole frame of the contract, as the agent wrote it
	KindMessage   Kind = "message"    // To, Intent, Value, Re, NoWake
)

// Line is one line of an outbox, understood.
type Line struct {
	Kind    Kind
	Text    string
	Run     string
	Outcome json.RawMessage
	Frame   json.RawMessage
	To      protocol.AgentID // empty: nobody in particular
	Intent  protocol.Intent
	Value   json.RawMessage
	Re      protocol.MsgID
	NoWake  bool
	Trace   string             // a traceparent, if the agent has one
	Attach  []Attachment       // of KindMessage, as the agent wrote them
	Blobs   []protocol.BlobRef // their content, kept by the time Submit sees the line
	// MsgID is the agent's own, or one derived from file and offset by the time Submit sees it.
	MsgID protocol.MsgID
}

const formsHint = `write one of {"say":"…"}, {"to":"AGENT","intent":"NAME","value":…,"attachments":["FILE",…]}, {"run":"start"}, {"run":"finish"}, ` +
	`{"step":"…"}, {"stepDone":"…"}, {"tool":"…"} or a whole frame with "type"`

// ParseLine reads one line without its newline. It retains nothing of raw. A line of spaces gives KindNone and no
// refusal; anything that is not understood in full is refused, and never sent as text.
func ParseLine(raw []byte) (Line, *protocol.Refusal) {
	if len(raw) > LineBytesMax {
		return Line{}, protocol.Refuse(protocol.CodeFrameTooLarge, "the line has more than %d bytes, which is all that is read of one", "put large content into a file and send its path, or attach it", LineBytesMax)
	}
	if !utf8.Valid(raw) {
		return Line{}, protocol.Refuse(protocol.CodeNotUTF8, "the line is not UTF-8", "write UTF-8 without escapes (PowerShell: Add-Content -Encoding utf8)")
	}
	raw = bytes.TrimSpace(bytes.TrimPrefix(raw, []byte("\ufeff")))
	if len(raw) == 0 {
		return Line{}, nil
	}
	fields, refusal := topLevel(raw)
	if refusal != nil {
		return Line{}, refusal
	}
	return understand(bytes.Clone(raw), fields)
}

// topLevel splits an object into its members and refuses what encoding/json would forgive.
func topLevel(raw []byte) (map[string]json.RawMessage, *protocol.Refusal) {
	if protocol.Depth(raw) > protocol.NestingMax {
		return nil, protocol.Refuse(protocol.CodeTooDeep, "the line nests deeper than %d", "send flatter JSON", protocol.NestingMax)
	}
	if !json.Valid(raw) {
		return nil, protocol.Refuse(protocol.CodeBadFrame, "the line is not one JSON value", `to say plain text write {"say":"…"}; each line must be complete`)
	}
	if no := protocol.RefuseNumbers("the line", raw); no != nil {
		return nil, no
	}
	if raw[0] != '{' {
		return nil, protocol.Refuse(protocol.CodeWrongType, "the line is not a JSON object", formsHint)
	}
	fields := map[string]json.RawMessage{}
	d := json.NewDecoder(bytes.NewReader(raw))
	if _, err := d.Token(); err != nil {
		return nil, protocol.Refuse(protocol.CodeBadFrame, "the line is not a JSON object", formsHint)
	}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return nil, protocol.Refuse(protocol.CodeBadFrame, "the line is not a JSON object", formsHint)
		}
		name, _ := key.(string)
		if _, twice := fields[name]; twice {
			return nil, protocol.Refuse(protocol.CodeDuplicateKey, "the key %q stands twice", "keep one of them", protocol.CutText(name, 64))
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return nil, protocol.Refuse(protocol.CodeBadFrame, "the line is not a JSON object", formsHint)
		}
		fields[name] = value
	}
	return fields, nil
}

func understand(raw []byte, fields map[string]json.RawMessage) (Line, *protocol.Refusal) {
	has := func(key string) bool { _, ok := fields[key]; return ok }
	read := reader{fields: fields}
	var line Line
	switch {
	case has("type"):
		read.text("type", true)
		line = Line{Kind: KindFrame, Frame: raw, MsgID: protocol.MsgID(read.text("msgId", false))}
	case has("say") && has("to"):
		return Line{}, protocol.Refuse(protocol.CodeBadFrame, `"say" is read by everybody and takes no "to"`, `for one agent write {"to":"AGENT","intent":"Request","value":{"text":"…"}}`)
	case has("say"):
		line = Line{Kind: KindSay, Text: read.text("say", true)}
	case has("run"):
		switch run := read.text("run", true); run {
		case "start":
			line = Line{Kind: KindRunStart, Run: read.text("runId", false)}
		case "finish":
			line = Line{Kind: KindRunFinish, Outcome: fields["outcome"]}
		default:
			read.refuse(protocol.CodeWrongType, fmt.Sprintf(`"run" is %q`, protocol.CutText(run, 40)), `"run" is "start" or "finish"`)
		}
	case has("step"):
		line = Line{Kind: KindStep, Text: read.text("step", true)}
	case has("stepDone"):
		line = Line{Kind: KindStepDone, Text: read.text("stepDone", true)}
	case has("tool"):
		line = Line{Kind: KindTool, Text: read.text("tool", true)}
	case has("intent") || has("name"):
		line = read.message()
	case has("to"):
		return Line{}, protocol.Refuse(protocol.CodeUnknownIntent, "the message has no intent", `add "intent", for example {"to":"AGENT","intent":"Request","value":{"text":"…"}}`)
	default:
		return Line{}, protocol.Refuse(protocol.CodeBadFrame, "the object has no key that says what it is", formsHint)
	}
	line.Trace = protocol.CleanTraceParent(read.text("traceparent", false))
	read.attachments(&line)
	if read.refusal == nil && line.MsgID != "" {
		if err := protocol.CheckMsgID(line.MsgID); err != nil {
			read.refuse(protocol.CodeBadFrame, err.Error(), `leave "msgId" out: one is made`)
		}
	}
	if read.refusal != nil {
		return Line{}, read.refusal
	}
	return line, nil
}

// reader takes members of an object and keeps the first refusal.
type reader struct {
	fields  map[string]json.RawMessage
	refusal *protocol.Refusal
}

func (r *reader) refuse(code, reason, hint string) {
	if r.refusal == nil {
		r.refusal = protocol.Refuse(code, reason, hint)
	}
}

// text reads a string; a needed one may not be empty.
func (r *reader) text(key string, needed bool) string {
	value, ok := r.fields[key]
	var s string
	if ok && (json.Unmarshal(value, &s) != nil || string(value) == "null") {
		r.refuse(protocol.CodeWrongType, fmt.Sprintf("%q is not a string", key), fmt.Sprintf(`write {%q:"…"}`, key))
	} else if needed && s == "" {
		r.refuse(protocol.CodeWrongType, fmt.Sprintf("%q is empty", key), "")
	}
	return s
}

func (r *reader) message() Line {
	intent, name := r.text("intent", false), r.text("name", false)
	if intent != "" && name != "" && intent != name {
		r.refuse(protocol.CodeBadFrame, `"intent" and "name" differ`, "keep one of them")
	}
	if intent == "" {
		intent = name
	}
	if intent == "" || len(intent) > protocol.IntentBytesMax {
		r.refuse(protocol.CodeUnknownIntent, fmt.Sprintf("an intent is a name of 1 to %d bytes", protocol.IntentBytesMax), "")
	}
	if protocol.Intent(intent) == protocol.Delegate {
		for _, name := range []string{"accept", "attempt", "repo"} { // else the task would run without them, and nobody would know
			if _, has := r.fields[name]; has {
				r.refuse(protocol.CodeBadFrame, fmt.Sprintf("%q of a Delegate stands in its value", name), `write {"to":"AGENT","intent":"Delegate","value":{"task":"…","accept":["make test"]}}`)
			}
		}
	}
	line := Line{
		Kind: KindMessage, Intent: protocol.Intent(intent), Value: r.fields["value"],
		To: protocol.AgentID(r.text("to", false)), Re: protocol.MsgID(r.text("re", false)), MsgID: protocol.MsgID(r.text("msgId", false)),
	}
	if line.To != "" {
		if err := protocol.CheckAgentID(line.To); err != nil {
			r.refuse(protocol.CodeBadAgentID, err.Error(), "aster agents lists the names")
		}
	}
	if flag, ok := r.fields["noWake"]; ok && json.Unmarshal(flag, &line.NoWake) != nil {
		r.refuse(protocol.CodeWrongType, `"noWake" is neither true nor false`, "")
	}
	return line
}
