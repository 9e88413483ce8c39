package asterism

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"unicode/utf8"
)

const hexDigits = "0123456789abcdef"

// AppendString appends s as a JSON string. What is not UTF-8 becomes U+FFFD.
func AppendString(b []byte, s string) []byte {
	b = append(b, '"')
	return append(appendEscaped(b, s), '"')
}

// appendEscaped appends what stands between the quotes. It leaves <, > and & alone: nothing here is put into a page.
func appendEscaped(b []byte, s string) []byte {
	from := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c < utf8.RuneSelf {
			if plain[c] {
				i++
				continue
			}
			b = append(b, s[from:i]...)
			switch c {
			case '"', '\\':
				b = append(b, '\\', c)
			case '\n':
				b = append(b, '\\', 'n')
			case '\t':
				b = append(b, '\\', 't')
			case '\r':
				b = append(b, '\\', 'r')
			default:
				b = append(b, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
			}
			i++
			from = i
			continue
		}
		r, n := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && n == 1 {
			b = append(append(b, s[from:i]...), "\ufffd"...)
			from = i + 1
		}
		i += n
	}
	return append(b, s[from:]...)
}

// appendText appends `"key":"s",`, or nothing for an empty s. key holds nothing to escape.
func appendText(b []byte, key, s string) []byte {
	if s == "" {
		return b
	}
	return append(AppendString(appendKey(b, key), s), ',')
}

func appendRaw(b []byte, key string, raw json.RawMessage) []byte {
	if len(raw) == 0 {
		return b
	}
	return append(append(appendKey(b, key), raw...), ',')
}

func appendInt(b []byte, key string, n int64) []byte {
	return append(strconv.AppendInt(appendKey(b, key), n, 10), ',')
}

func appendFlag(b []byte, key string, on bool) []byte {
	if !on {
		return b
	}
	return append(appendKey(b, key), "true,"...)
}

func appendKey(b []byte, key string) []byte {
	return append(append(append(b, '"'), key...), '"', ':')
}

func dropComma(b []byte) []byte {
	if b[len(b)-1] == ',' {
		return b[:len(b)-1]
	}
	return b
}

func (f *Frame) appendExtra(b []byte) []byte {
	for _, k := range slices.Sorted(maps.Keys(f.Extra)) {
		b = append(append(append(AppendString(b, k), ':'), f.Extra[k]...), ',')
	}
	return b
}

// Append appends f as JSON: what a client of the contract sends, and what Decode reads back as the same frame. Raw fields
// must hold JSON.
func (f *Frame) Append(b []byte) []byte {
	b = append(b, '{')
	b = appendText(b, "type", f.Type)
	b = appendText(b, "name", f.Name)
	b = appendText(b, "id", f.ID)
	if f.Seq != 0 {
		b = appendInt(b, "seq", f.Seq)
	}
	if f.Timestamp != 0 {
		b = appendInt(b, "timestamp", f.Timestamp)
	}
	b = appendText(b, "source", f.Source)
	b = appendText(b, "agentId", string(f.AgentID))
	b = appendText(b, "agentName", f.AgentName)
	b = appendText(b, "targetAgentId", string(f.TargetAgentID))
	b = appendText(b, "msgId", f.MsgID)
	b = appendText(b, "runId", f.RunID)
	b = appendText(b, "threadId", f.ThreadID)
	b = appendText(b, "contextId", f.ContextID)
	b = appendText(b, "parentId", f.ParentID)
	b = appendText(b, "channelId", f.ChannelID)
	b = appendText(b, "roomId", f.RoomID)
	b = appendText(b, "replyTo", f.ReplyTo)
	if len(f.Addressee) > 0 {
		b = appendTexts(b, "addressee", f.Addressee)
	}
	b = appendRaw(b, "floorIntent", f.FloorIntent)
	b = appendFlag(b, "telemetry", f.Telemetry)
	b = appendFlag(b, "notice", f.Notice)
	b = appendFlag(b, "noWake", f.NoWake)
	b = appendText(b, "traceparent", f.TraceParent)
	b = appendText(b, "clientId", f.ClientID)
	b = appendText(b, "protocolVersion", f.ProtocolVersion)
	if f.PID != 0 {
		b = appendInt(b, "pid", f.PID)
	}
	b = appendText(b, "key", f.Key)
	if len(f.Capabilities) > 0 {
		b = appendTexts(b, "capabilities", f.Capabilities)
	}
	b = appendRaw(b, "value", f.Value)
	return append(dropComma(f.appendRun(b)), '}')
}

func appendTexts(b []byte, key string, texts []string) []byte {
	b = append(appendKey(b, key), '[')
	for _, s := range texts {
		b = append(AppendString(b, s), ',')
	}
	return append(dropComma(b), ']', ',')
}
