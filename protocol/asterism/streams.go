package asterism

import (
	"unicode/utf8"

	"github.com/aster-mesh/aster/protocol"
)

const (
	// StreamsMax is how many unfinished streams one sender may have; one more gives out the oldest, marked partial.
	StreamsMax = 64
	// pieceBytes is when a piece is given out: its value, in JSON, stays below protocol.ValueBytesInline.
	pieceBytes = 50 << 10
	// chunkBytes is what is escaped at once; six times as much, the worst case, still fits behind pieceBytes.
	chunkBytes = 1 << 10
	// toolArgsBytes and toolResultBytes bound what a joined tool call keeps, in JSON.
	toolArgsBytes    = 16 << 10
	toolResultBytes  = 28 << 10
	toolDisplayBytes = 8 << 10
)

// Streams joins the pieces of one connection's text and tool streams: TEXT_MESSAGE_* into AgentText, TOOL_CALL_* into
// ToolCall. It holds at most StreamsMax streams of some 60 KiB.
type Streams struct {
	open []*stream // oldest first
}

type stream struct {
	key     string // "t" or "c" and the stream's id
	base    Frame  // where it goes: from its first frame
	role    string
	words   []byte // escaped
	pieces  int    // given out before
	partial bool   // its beginning was not seen
	tool    toolCall
}

// kept is a bounded, escaped text; what did not fit is gone, and so is all after it.
type kept struct {
	words []byte
	cut   bool
}

type toolCall struct {
	name         string
	args, result kept
	display      []byte
}

// Add takes one frame for which Frame.Stream is true and returns what is ready: CUSTOM frames named AgentText or ToolCall
// with the routing fields of the stream's first frame, in order. value.partial is true for a piece of an utterance that
// goes on, or whose beginning or end was never seen; value.piece then counts from 1.
func (s *Streams) Add(f *Frame) []Frame {
	switch f.Type {
	case "TEXT_MESSAGE_START":
		out := s.end("t"+streamID(f.MessageID), true)
		st, more := s.begin("t"+streamID(f.MessageID), f)
		st.role = f.Role
		return append(out, more...)
	case "TEXT_MESSAGE_CONTENT":
		return s.text(f)
	case "TEXT_MESSAGE_END":
		return s.end("t"+streamID(f.MessageID), false)
	case "TOOL_CALL_START", "TOOL_CALL_ARGS", "TOOL_CALL_END", "TOOL_CALL_RESULT":
		return s.toolCall(f)
	}
	return nil
}

// Flush gives out everything unfinished, marked partial: the connection is gone.
func (s *Streams) Flush() []Frame {
	var out []Frame
	for _, st := range s.open {
		out = append(out, st.finish(true)...)
	}
	s.open = nil
	return out
}

// streamID is "_" for a stream without an id, as some clients send.
func streamID(id string) string {
	if id == "" {
		return "_"
	}
	return id
}

func (s *Streams) find(key string) int {
	for i, st := range s.open {
		if st.key == key {
			return i
		}
	}
	return -1
}

// begin opens a stream; when there are too many the oldest is given out.
func (s *Streams) begin(key string, f *Frame) (*stream, []Frame) {
	var out []Frame
	if len(s.open) == StreamsMax {
		out = s.open[0].finish(true)
		s.open = append(s.open[:0], s.open[1:]...)
	}
	st := &stream{key: key, base: Frame{
		Type: TypeCustom, Timestamp: f.Timestamp, TargetAgentID: f.TargetAgentID, RunID: f.RunID, ThreadID: f.ThreadID,
		ContextID: f.ContextID, ParentID: f.ParentID, ChannelID: f.ChannelID, RoomID: f.RoomID, Telemetry: f.Telemetry,
		NoWake: f.NoWake, TraceParent: f.TraceParent, Addressee: f.Addressee, ReplyTo: f.ReplyTo, Notice: f.Notice, FloorIntent: f.FloorIntent,
	}}
	s.open = append(s.open, st)
	return st, out
}

func (s *Streams) end(key string, partial bool) []Frame {
	i := s.find(key)
	if i < 0 {
		return nil
	}
	st := s.open[i]
	s.open = append(s.open[:i], s.open[i+1:]...)
	return st.finish(partial || st.partial)
}

func (s *Streams) text(f *Frame) []Frame {
	key := "t" + streamID(f.MessageID)
	var st *stream
	var out []Frame
	if i := s.find(key); i >= 0 {
		st = s.open[i]
	} else {
		st, out = s.begin(key, f)
		st.partial = true
	}
	for words := f.Delta; words != ""; {
		if len(st.words) >= pieceBytes { // more is to come, so this is never the end
			out = append(out, st.utterance(true))
		}
		n := cutRune(words, chunkBytes)
		st.words = appendEscaped(st.words, words[:n])
		words = words[n:]
	}
	return out
}

// cutRune is the length of the longest beginning of s of at most n bytes that ends between characters.
func cutRune(s string, n int) int {
	if len(s) <= n {
		return len(s)
	}
	for n > 1 && !utf8.RuneStart(s[n]) {
		n--
	}
	return n
}

func (st *stream) finish(partial bool) []Frame {
	if st.key[0] == 'c' {
		return []Frame{st.call(partial)}
	}
	if len(st.words) == 0 {
		return nil // nothing was said
	}
	return []Frame{st.utterance(partial)}
}

func (st *stream) utterance(partial bool) Frame {
	f := st.base
	f.Name = string(protocol.AgentText)
	b := append(make([]byte, 0, len(st.words)+len(st.key)+96), '{')
	if id := st.key[1:]; id != "_" {
		b = appendText(b, "messageId", id)
	}
	b = appendText(b, "role", st.role)
	b = append(append(append(appendKey(b, "text"), '"'), st.words...), '"', ',')
	if partial || st.pieces > 0 {
		b = appendInt(b, "piece", int64(st.pieces+1))
	}
	b = appendFlag(b, "partial", partial)
	f.Value = append(dropComma(b), '}')
	st.pieces++
	st.words = st.words[:0]
	return f
}

func (s *Streams) toolCall(f *Frame) []Frame {
	key := "c" + streamID(f.ToolCallID)
	var st *stream
	var out []Frame
	i := s.find(key)
	if i >= 0 && f.Type == "TOOL_CALL_START" {
		out, i = s.end(key, true), -1
	}
	if i >= 0 {
		st = s.open[i]
	} else {
		if f.Type == "TOOL_CALL_END" {
			return nil // of a call that was already given out
		}
		var more []Frame
		st, more = s.begin(key, f)
		out = append(out, more...)
		st.partial = f.Type != "TOOL_CALL_START"
	}
	t := &st.tool
	if f.ToolCallName != "" {
		t.name = f.ToolCallName
	}
	if len(f.Args) > 0 {
		t.args = kept{words: t.args.words[:0]}
		t.args.add(rawWords(f.Args), toolArgsBytes)
	}
	if len(f.Display) > 0 && len(f.Display) <= toolDisplayBytes {
		t.display = append(t.display[:0], f.Display...)
	}
	switch {
	case f.Type == "TOOL_CALL_RESULT":
		words := f.Delta
		if len(f.Result) > 0 {
			words = rawWords(f.Result)
		}
		t.result.add(words, toolResultBytes)
		return append(out, s.end(key, false)...)
	case f.Delta != "":
		t.args.add(f.Delta, toolArgsBytes)
	}
	return out
}

// rawWords is what a raw field says: a string's text, or else its JSON.
func rawWords(raw []byte) string {
	if raw[0] == '"' {
		return text(raw)
	}
	return string(raw)
}

// add appends words as far as they stay below limit.
func (k *kept) add(words string, limit int) {
	for words != "" && !k.cut {
		n := cutRune(words, chunkBytes)
		if k.cut = len(k.words)+6*n > limit; !k.cut {
			k.words = appendEscaped(k.words, words[:n])
			words = words[n:]
		}
	}
}

func (st *stream) call(partial bool) Frame {
	f, t := st.base, &st.tool
	f.Name = string(protocol.ToolCall)
	b := append(make([]byte, 0, len(t.args.words)+len(t.result.words)+len(t.display)+192), '{')
	b = appendText(b, "toolCallId", st.key[1:])
	b = appendText(b, "toolCallName", t.name)
	b = append(append(append(appendKey(b, "args"), '"'), t.args.words...), '"', ',')
	b = append(append(append(appendKey(b, "result"), '"'), t.result.words...), '"', ',')
	b = appendRaw(b, "display", t.display)
	b = appendFlag(b, "truncated", t.args.cut || t.result.cut)
	b = appendFlag(b, "partial", partial)
	f.Value = append(dropComma(b), '}')
	return f
}

// Streamed says whether a message is a stream that Streams joined, so that boards have seen its pieces. A stream without an
// id of its own cannot be told from words that came whole.
func Streamed(e *protocol.Envelope) bool {
	switch e.Intent {
	case protocol.AgentText:
		_, ok := valueText(e.Value, "messageId")
		return ok
	case protocol.ToolCall:
		_, ok := valueText(e.Value, "toolCallId")
		return ok
	}
	return false
}
