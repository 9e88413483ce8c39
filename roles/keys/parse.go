package keys

import (
	"encoding/json"
	"math"
	"strconv"

	"github.com/aster-mesh/aster/protocol"
)

// Fields are the members of a verb's value. Absent and null are the same; another type than the contract's is refused by
// the code of its field and by nothing else (fault KA3).
type Fields map[string]json.RawMessage

// ParseFields reads a verb's value: an object, or nothing at all.
func ParseFields(value json.RawMessage) (Fields, *protocol.Refusal) {
	f := Fields{}
	if len(value) == 0 || string(value) == "null" {
		return f, nil
	}
	if json.Unmarshal(value, &f) != nil || f == nil {
		return nil, protocol.Refuse(CodeFields, "value is an object", "")
	}
	return f, nil
}

func (f Fields) has(name string) bool { return len(f[name]) > 0 && string(f[name]) != "null" }

// Text reads a string; ok is false when the field is of another type.
func (f Fields) Text(name string) (s string, ok bool) {
	if !f.has(name) {
		return "", true
	}
	return s, json.Unmarshal(f[name], &s) == nil
}

// Flag reads a boolean; ok is false when the field is of another type.
func (f Fields) Flag(name string) (b, ok bool) {
	if !f.has(name) {
		return false, true
	}
	return b, json.Unmarshal(f[name], &b) == nil
}

// Millis reads a whole number of milliseconds; nil when it is absent, ok false when it is none (KA12: 1e20).
func (f Fields) Millis(name string) (ms *int64, ok bool) {
	if !f.has(name) {
		return nil, true
	}
	var n json.Number
	if f[name][0] == '"' || json.Unmarshal(f[name], &n) != nil {
		return nil, false
	}
	if whole, err := strconv.ParseInt(n.String(), 10, 64); err == nil {
		return &whole, true
	}
	x, err := n.Float64()
	if err != nil || x != math.Trunc(x) || math.Abs(x) > 1<<53 {
		return nil, false
	}
	whole := int64(x)
	return &whole, true
}

// ParseIssue reads the value of KeyIssue.
func ParseIssue(value json.RawMessage) (in Issue, no *protocol.Refusal) {
	f, no := ParseFields(value)
	if no != nil {
		return in, no
	}
	kind, ok := f.Text("kind")
	if !ok || f.has("kind") && kind == "" {
		return in, protocol.Refuse(CodeUnknownKind, "kind must be local, collab, upstream or peer", "")
	}
	in.Kind = Kind(kind)
	if in.Label, no = f.label("label", in.Kind); no != nil {
		return in, no
	}
	if in.Note, ok = f.Text("roleDescription"); !ok {
		return in, protocol.Refuse(CodeNote, "roleDescription is a text", "")
	}
	if in.TTL, ok = f.Millis("ttl"); !ok {
		return in, badTTL()
	}
	bound, ok := f.Text("boundAgent")
	if !ok || f.has("boundAgent") && bound == "" {
		return in, protocol.Refuse(CodeBoundAgent, "boundAgent is an agent id", "")
	}
	in.Bound = protocol.AgentID(bound)
	return in, nil
}

// label reads a label that, if it is given, is not empty.
func (f Fields) label(name string, k Kind) (string, *protocol.Refusal) {
	s, ok := f.Text(name)
	if !ok || f.has(name) && s == "" {
		return "", badLabel(k)
	}
	return s, nil
}

// Label reads the label of a legacy verb.
func (f Fields) Label(k Kind) (string, *protocol.Refusal) { return f.label("label", k) }

// Named reads which key a verb means.
func (f Fields) Named() (secret, ref string, no *protocol.Refusal) {
	secret, ok := f.Text("key")
	ref, ok2 := f.Text("keyRef")
	if !ok || !ok2 || secret == "" && ref == "" {
		return "", "", notFound()
	}
	return secret, ref, nil
}

// TTL reads the life that a renewal asks for.
func (f Fields) TTL() (*int64, *protocol.Refusal) {
	ms, ok := f.Millis("ttl")
	if !ok {
		return nil, badTTL()
	}
	return ms, nil
}
