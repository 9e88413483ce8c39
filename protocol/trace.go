package protocol

import (
	"encoding/hex"
	"strings"
)

// TraceParent is W3C's traceparent: which trace a message belongs to, and which span of it whatever follows is a child of.
// In an Envelope that is the message's own span.
type TraceParent struct {
	Trace   [16]byte // never zero
	Span    [8]byte  // never zero
	Sampled bool     // whoever began the trace wants it kept
}

// traceParentBytes is the length of its text.
const traceParentBytes = 55

// ParseTraceParent reads the form of version 00. Whatever else it is given is no traceparent.
func ParseTraceParent(s string) (t TraceParent, ok bool) {
	if len(s) != traceParentBytes || !strings.HasPrefix(s, "00-") || s[35] != '-' || s[52] != '-' || strings.ToLower(s) != s {
		return t, false
	}
	var flags [1]byte
	for _, part := range []struct {
		to   []byte
		text string
	}{{t.Trace[:], s[3:35]}, {t.Span[:], s[36:52]}, {flags[:], s[53:]}} {
		if _, err := hex.Decode(part.to, []byte(part.text)); err != nil {
			return TraceParent{}, false
		}
	}
	if t.Trace == [16]byte{} || t.Span == [8]byte{} {
		return TraceParent{}, false
	}
	t.Sampled = flags[0]&1 == 1
	return t, true
}

// CleanTraceParent is s, or nothing if it is no traceparent.
func CleanTraceParent(s string) string {
	if _, ok := ParseTraceParent(s); ok {
		return s
	}
	return ""
}

// String is what ParseTraceParent reads.
func (t TraceParent) String() string {
	flags := "-00"
	if t.Sampled {
		flags = "-01"
	}
	return "00-" + hex.EncodeToString(t.Trace[:]) + "-" + hex.EncodeToString(t.Span[:]) + flags
}
