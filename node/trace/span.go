package trace

import (
	"crypto/rand"
	"crypto/sha256"
	"time"

	"github.com/aster-mesh/aster/protocol"
)

// Span is one thing that happened to a message.
type Span struct {
	Trace      [16]byte
	ID         [8]byte
	Parent     [8]byte // zero: it begins the trace
	Name       string
	Start, End time.Time
	Tags       []Tag
	Failed     string // why, if it did
}

// Tag is an attribute of a span.
type Tag struct{ Key, Value string }

// Begin is the span of a message that continues what parent says, or begins a trace of its own.
func Begin(parent protocol.TraceParent, continues bool) protocol.TraceParent {
	t := parent
	if !continues {
		_, _ = rand.Read(t.Trace[:]) // crypto/rand never fails
		t.Sampled = true
	}
	_, _ = rand.Read(t.Span[:])
	return t
}

// StepID is the span of one tier that a message reached, at one of its recipients. Every node names it alike, so that none
// must be told by another.
func StepID(of protocol.TraceParent, id protocol.MsgID, tier protocol.Tier, agent protocol.AgentID) (out [8]byte) {
	h := sha256.New()
	h.Write(of.Trace[:])
	h.Write(of.Span[:])
	for _, s := range []string{string(id), string(tier), string(protocol.FoldAgentID(agent))} {
		h.Write([]byte(s))
		h.Write([]byte{0})
	}
	copy(out[:], h.Sum(nil))
	return out
}
