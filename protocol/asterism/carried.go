package asterism

import (
	"encoding/base64"
	"encoding/json"
	"regexp"
)

// EmbeddedBytesMax is how much of what is attached to one message may stand in it, together and before its encoding: a frame
// stays far below what every known hub takes, and what its receivers queue.
const EmbeddedBytesMax = 2 << 20

// Unavailable marks the attachments at the hub that a value names and that cannot be had: with a source of that name, and why by
// their hash. Others stay as they are.
func Unavailable(value json.RawMessage, why map[string]string) json.RawMessage {
	if len(why) == 0 {
		return value
	}
	return eachNamed(value, func(item map[string]json.RawMessage, sha string) {
		if code, lost := why[sha]; lost {
			item["source"], item["reason"] = json.RawMessage(`"unavailable"`), AppendString(nil, code)
		}
	})
}

// plainMime is a media type without parameters: no other is put into a data URL.
var plainMime = regexp.MustCompile(`^[A-Za-z0-9!#$&^_.+-]{1,64}/[A-Za-z0-9!#$&^_.+-]{1,64}$`)

// Embedded puts contents, by their hash, into a value in the place of attachments at the hub (wire 6.7, embedded).
func Embedded(value json.RawMessage, contents map[string][]byte) json.RawMessage {
	return eachNamed(value, func(item map[string]json.RawMessage, sha string) {
		data, ok := contents[sha]
		if !ok {
			return
		}
		var mime string
		if json.Unmarshal(item["mime"], &mime) != nil || !plainMime.MatchString(mime) {
			mime = "application/octet-stream"
		}
		item["source"] = json.RawMessage(`"embedded"`)
		item["dataUrl"] = AppendString(nil, "data:"+mime+";base64,"+base64.StdEncoding.EncodeToString(data))
		delete(item, "of")
		delete(item, "from")
	})
}

// eachNamed changes the attachments with source "hub" that a value names; a value in which nothing is named stays as it is.
func eachNamed(value json.RawMessage, change func(item map[string]json.RawMessage, sha string)) json.RawMessage {
	var fields map[string]json.RawMessage
	if json.Unmarshal(value, &fields) != nil {
		return value
	}
	one := func(raw json.RawMessage) json.RawMessage {
		var item map[string]json.RawMessage
		source, _ := valueText(raw, "source")
		sha, _ := valueText(raw, "sha256")
		if source != SourceHub || json.Unmarshal(raw, &item) != nil {
			return raw
		}
		change(item, sha)
		out, err := json.Marshal(item)
		if err != nil {
			return raw
		}
		return out
	}
	changed := false
	for _, name := range attachmentFields {
		raw := fields[name]
		if len(raw) == 0 || raw[0] != '[' && raw[0] != '{' {
			continue
		}
		if raw[0] == '{' {
			fields[name], changed = one(raw), true
			continue
		}
		var items []json.RawMessage
		if json.Unmarshal(raw, &items) != nil {
			continue
		}
		for i := range items {
			items[i] = one(items[i])
		}
		if out, err := json.Marshal(items); err == nil {
			fields[name], changed = out, true
		}
	}
	if !changed {
		return value
	}
	out, err := json.Marshal(fields)
	if err != nil {
		return value
	}
	return out
}
