package asterism

import (
	"encoding/base64"
	"encoding/json"
	"strings"

	"github.com/aster-mesh/aster/protocol"
)

// Inlined is one attachment that stands in a person's prompt as a data URL.
type Inlined struct {
	Name, Mime string
	Data       []byte
}

// WithoutInlined takes the attachments out of a board's value (wire 6.7: atts of {name, mime, src}) and puts in their place
// what the contract says that the hub forwards: name, mime, bytes and stored, with what a client needs to fetch them here.
// keep is asked to keep each, and says under which address. What is no data URL in base64 stays as it is.
func WithoutInlined(value json.RawMessage, keep func(Inlined) (ref protocol.BlobRef, stored string, err error)) (json.RawMessage, error) {
	raw := valueField(value, "atts")
	if len(raw) == 0 || raw[0] != '[' || !strings.Contains(string(raw), "data:") {
		return value, nil
	}
	var items []json.RawMessage
	var fields map[string]json.RawMessage
	if json.Unmarshal(raw, &items) != nil || json.Unmarshal(value, &fields) != nil || len(items) > AttachmentsMax {
		return value, nil
	}
	found := false
	for i, item := range items {
		in, ok := inlined(item)
		if !ok {
			continue
		}
		ref, stored, err := keep(in)
		if err != nil {
			return nil, err
		}
		found = true
		items[i] = protocol.EncodeBody(struct {
			attachment
			Bytes  int64  `json:"bytes"`
			Stored string `json:"stored"`
		}{attachment{in.Name, in.Mime, ref.Bytes, ref.SHA256, SourceHub}, ref.Bytes, stored})
	}
	if !found {
		return value, nil
	}
	fields["atts"] = protocol.EncodeBody(items)
	return protocol.EncodeBody(fields), nil
}

// inlined reads one {name, mime, src} whose src is a data URL in base64.
func inlined(item json.RawMessage) (in Inlined, ok bool) {
	src, _ := valueText(item, "src")
	rest, ok := strings.CutPrefix(src, "data:")
	head, data, comma := strings.Cut(rest, ",")
	kind, is64 := strings.CutSuffix(head, ";base64")
	if !ok || !comma || !is64 {
		return in, false
	}
	raw, err := base64.StdEncoding.DecodeString(data)
	if err != nil {
		return in, false
	}
	in.Data = raw
	in.Name, _ = valueText(item, "name")
	if in.Mime, ok = valueText(item, "mime"); !ok {
		in.Mime = kind
	}
	in.Name, in.Mime = protocol.CutText(in.Name, 255), protocol.CutText(in.Mime, 127)
	return in, true
}
