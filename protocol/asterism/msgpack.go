package asterism

import (
	"encoding/binary"
	"math"
	"strconv"
	"unicode/utf8"

	"github.com/aster-mesh/aster/protocol"
)

// SubprotocolMsgpack is what a client asks for in Sec-WebSocket-Protocol to have the same frames as binary msgpack.
const SubprotocolMsgpack = "aster.msgpack.1"

// wholeMax is the largest whole number that every reader of JSON keeps.
const wholeMax = 1 << 53

// FromMsgpack returns a msgpack frame of at most limit bytes (protocol.FrameBytesMax when limit is 0) as JSON, for Decode:
// so a frame means the same in both forms, and every bound of Decode holds. A frame whose JSON would be above limit is
// refused as the JSON would be. What msgpack can say and JSON cannot is refused by its name and place: binary data,
// extensions, keys that are no text, numbers that are none, and whole numbers beyond 2^53. It neither recurses beyond
// protocol.NestingMax nor allocates by what a header declares. Any bytes are safe to give it.
func FromMsgpack(b []byte, limit int) ([]byte, *protocol.Refusal) {
	if limit <= 0 {
		limit = protocol.FrameBytesMax
	}
	if len(b) > limit {
		return nil, protocol.Refuse(protocol.CodeFrameTooLarge, "a frame of %d bytes, at most %d", "", len(b), limit)
	}
	u := unpacker{in: b, limit: limit, out: make([]byte, 0, len(b)+len(b)/4+64)}
	if no := u.value(0); no != nil {
		return nil, no
	}
	if u.at != len(b) {
		return nil, protocol.Refuse(protocol.CodeBadFrame, "%d bytes behind the msgpack frame", "", len(b)-u.at)
	}
	return u.out, nil
}

// unpacker walks msgpack once and writes JSON beside it.
type unpacker struct {
	in, out []byte
	at      int
	limit   int
}

func (u *unpacker) bad(what string) *protocol.Refusal {
	return protocol.Refuse(protocol.CodeBadFrame, "not msgpack: %s at byte %d", "", what, u.at)
}

func (u *unpacker) foreign(what string) *protocol.Refusal {
	return protocol.Refuse(protocol.CodeWrongType, "%s at byte %d has no form in JSON", "", what, u.at)
}

// room sees that what was written so far is no larger than the frame may be.
func (u *unpacker) room() *protocol.Refusal {
	if len(u.out) > u.limit {
		return protocol.Refuse(protocol.CodeFrameTooLarge, "as JSON the frame has more than %d bytes", "", u.limit)
	}
	return nil
}

func (u *unpacker) value(depth int) *protocol.Refusal {
	if u.at >= len(u.in) {
		return u.bad("it ends within a value")
	}
	if no := u.room(); no != nil {
		return no
	}
	switch c := u.in[u.at]; {
	case c&0xf0 == 0x80, c == 0xde, c == 0xdf:
		return u.object(depth)
	case c&0xf0 == 0x90, c == 0xdc, c == 0xdd:
		return u.array(depth)
	case isText(c):
		return u.text()
	case c == 0xc0:
		u.word("null")
	case c == 0xc2:
		u.word("false")
	case c == 0xc3:
		u.word("true")
	case c == 0xca, c == 0xcb:
		return u.float(c)
	case c <= 0x7f, c >= 0xe0, c >= 0xcc && c <= 0xd3:
		return u.whole(c)
	case c >= 0xc4 && c <= 0xc6:
		return u.foreign("binary data")
	case c == 0xc1:
		return u.bad("a type that is none")
	default:
		return u.foreign("an extension")
	}
	return u.room()
}

func isText(c byte) bool { return c&0xe0 == 0xa0 || c >= 0xd9 && c <= 0xdb }

func (u *unpacker) word(w string) {
	u.out = append(u.out, w...)
	u.at++
}

// number reads the n bytes behind the type byte, and moves on.
func (u *unpacker) number(n int) (uint64, *protocol.Refusal) {
	if len(u.in)-u.at < 1+n {
		return 0, u.bad("it ends within a value")
	}
	b := u.in[u.at+1 : u.at+1+n]
	u.at += 1 + n
	switch n {
	case 1:
		return uint64(b[0]), nil
	case 2:
		return uint64(binary.BigEndian.Uint16(b)), nil
	case 4:
		return uint64(binary.BigEndian.Uint32(b)), nil
	}
	return binary.BigEndian.Uint64(b), nil
}

// length reads how many elements or bytes follow, each of at least size bytes, and sees that so many are left.
func (u *unpacker) length(n, size int) (int, *protocol.Refusal) {
	at := u.at
	count, no := u.number(n)
	if no != nil {
		return 0, no
	}
	if count > uint64((len(u.in)-u.at)/size) {
		u.at = at
		return 0, u.bad("a length beyond its end")
	}
	return int(count), nil
}

func (u *unpacker) whole(c byte) *protocol.Refusal {
	at := u.at
	var n int64
	switch {
	case c <= 0x7f || c >= 0xe0:
		n = int64(int8(c))
		u.at++
	default:
		size := 1 << (c & 3) // cc…cf are unsigned, d0…d3 signed, of 1, 2, 4 and 8 bytes
		raw, no := u.number(size)
		switch {
		case no != nil:
			return no
		case c >= 0xd0:
			n = int64(raw<<(64-8*size)) >> (64 - 8*size)
		case raw > wholeMax:
			n = math.MaxInt64
		default:
			n = int64(raw)
		}
	}
	if n > wholeMax || n < -wholeMax {
		u.at = at
		return u.foreign("a whole number beyond 2^53")
	}
	u.out = strconv.AppendInt(u.out, n, 10)
	return u.room()
}

func (u *unpacker) float(c byte) *protocol.Refusal {
	at, size := u.at, 4<<(c-0xca)
	raw, no := u.number(size)
	if no != nil {
		return no
	}
	f := math.Float64frombits(raw)
	if size == 4 {
		f = float64(math.Float32frombits(uint32(raw)))
	}
	if math.IsNaN(f) || math.IsInf(f, 0) {
		u.at = at
		return u.foreign("a number that is none")
	}
	form := byte('f')
	if a := math.Abs(f); a != 0 && (a < 1e-6 || a >= 1e21) {
		form = 'e'
	}
	u.out = strconv.AppendFloat(u.out, f, form, -1, 64)
	return u.room()
}

// text writes the text that begins here as a JSON string.
func (u *unpacker) text() *protocol.Refusal {
	c, n := u.in[u.at], 0
	if c&0xe0 == 0xa0 {
		if n = int(c & 0x1f); len(u.in)-u.at-1 < n {
			return u.bad("a length beyond its end")
		}
		u.at++
	} else {
		var no *protocol.Refusal
		if n, no = u.length(1<<(c-0xd9), 1); no != nil {
			return no
		}
	}
	s := u.in[u.at : u.at+n]
	if !utf8.Valid(s) {
		return protocol.Refuse(protocol.CodeNotUTF8, "the text at byte %d is not UTF-8", "", u.at)
	}
	u.at += n
	u.out = AppendString(u.out, string(s))
	return u.room()
}

// open reads the head of an array or map: how many elements it has, of at least size bytes each.
func (u *unpacker) open(depth, size int) (int, *protocol.Refusal) {
	if depth == protocol.NestingMax {
		return 0, protocol.Refuse(protocol.CodeTooDeep, "arrays and objects nest deeper than %d", "", protocol.NestingMax)
	}
	c := u.in[u.at]
	if c >= 0xdc {
		return u.length(2<<(c&1), size)
	}
	n := int(c & 0x0f)
	if (len(u.in)-u.at-1)/size < n {
		return 0, u.bad("a length beyond its end")
	}
	u.at++
	return n, nil
}

func (u *unpacker) array(depth int) *protocol.Refusal {
	n, no := u.open(depth, 1)
	if no != nil {
		return no
	}
	u.out = append(u.out, '[')
	for i := range n {
		if i > 0 {
			u.out = append(u.out, ',')
		}
		if no := u.value(depth + 1); no != nil {
			return no
		}
	}
	u.out = append(u.out, ']')
	return u.room()
}

func (u *unpacker) object(depth int) *protocol.Refusal {
	n, no := u.open(depth, 2)
	if no != nil {
		return no
	}
	u.out = append(u.out, '{')
	for i := range n {
		if i > 0 {
			u.out = append(u.out, ',')
		}
		if u.at >= len(u.in) {
			return u.bad("it ends within a value")
		}
		if !isText(u.in[u.at]) {
			return u.foreign("a key that is no text")
		}
		if no := u.text(); no != nil {
			return no
		}
		u.out = append(u.out, ':')
		if no := u.value(depth + 1); no != nil {
			return no
		}
	}
	u.out = append(u.out, '}')
	return u.room()
}
