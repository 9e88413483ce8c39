package asterism

import (
	"encoding/binary"
	"encoding/json"
	"math"
	"strconv"
)

// AppendMsgpack appends a frame of JSON as msgpack: objects become maps in the order of their fields, and each number the
// one that a JavaScript reader of the JSON would have, whole ones up to 2^53 as integers. It returns dst as it was, and
// false, when frame is not JSON.
func AppendMsgpack(dst, frame []byte) ([]byte, bool) {
	if !json.Valid(frame) {
		return dst, false
	}
	sizes := containers(frame)
	for i := 0; i < len(frame); {
		switch c := frame[i]; {
		case c == '{':
			dst = appendHead(dst, sizes[0], 0x80, 16, 0xde, 0xde)
			sizes = sizes[1:]
			i++
		case c == '[':
			dst = appendHead(dst, sizes[0], 0x90, 16, 0xdc, 0xdc)
			sizes = sizes[1:]
			i++
		case c == '"':
			end := quoted(frame, i)
			s := text(frame[i:end])
			dst = append(appendHead(dst, len(s), 0xa0, 32, 0xd9, 0xda), s...)
			i = end
		case c == 't':
			dst = append(dst, 0xc3)
			i += len("true")
		case c == 'f':
			dst = append(dst, 0xc2)
			i += len("false")
		case c == 'n':
			dst = append(dst, 0xc0)
			i += len("null")
		case c == '-' || c >= '0' && c <= '9':
			end := number(frame, i)
			dst = appendNumber(dst, frame[i:end])
			i = end
		default: // what stands between values
			i++
		}
	}
	return dst, true
}

// containers are how many elements each array and object has, in the order in which they begin.
func containers(b []byte) []int {
	var sizes []int
	var open []int // places in sizes
	element := func() {
		if len(open) > 0 && sizes[open[len(open)-1]] == 0 {
			sizes[open[len(open)-1]] = 1
		}
	}
	for i := 0; i < len(b); {
		switch b[i] {
		case '{', '[':
			element()
			open = append(open, len(sizes))
			sizes = append(sizes, 0)
		case '}', ']':
			open = open[:len(open)-1]
		case ',':
			sizes[open[len(open)-1]]++
		case '"':
			element()
			i = quoted(b, i)
			continue
		case ' ', '\t', '\n', '\r', ':':
		default:
			element()
		}
		i++
	}
	return sizes
}

// appendHead appends a type with its length: in one byte below small, else with a length of 1 (text alone), 2 or 4 bytes.
func appendHead(dst []byte, n int, fix byte, small int, first, two byte) []byte {
	switch {
	case n < small:
		return append(dst, fix|byte(n))
	case first != two && n <= math.MaxUint8:
		return append(dst, first, byte(n))
	case n <= math.MaxUint16:
		return binary.BigEndian.AppendUint16(append(dst, two), uint16(n))
	}
	return binary.BigEndian.AppendUint32(append(dst, two+1), uint32(n))
}

func appendNumber(dst, raw []byte) []byte {
	f, _ := strconv.ParseFloat(string(raw), 64) // beyond its range it is infinite
	if f != math.Trunc(f) || math.Abs(f) > wholeMax {
		f = max(min(f, math.MaxFloat64), -math.MaxFloat64) // no JSON says infinite
		return binary.BigEndian.AppendUint64(append(dst, 0xcb), math.Float64bits(f))
	}
	switch n := int64(f); {
	case n >= 0 && n < 0x80, n < 0 && n >= -32:
		return append(dst, byte(n))
	case n >= 0 && n <= math.MaxUint8:
		return append(dst, 0xcc, byte(n))
	case n >= 0 && n <= math.MaxUint16:
		return binary.BigEndian.AppendUint16(append(dst, 0xcd), uint16(n))
	case n >= 0 && n <= math.MaxUint32:
		return binary.BigEndian.AppendUint32(append(dst, 0xce), uint32(n))
	case n >= 0:
		return binary.BigEndian.AppendUint64(append(dst, 0xcf), uint64(n))
	case n >= math.MinInt8:
		return append(dst, 0xd0, byte(n))
	case n >= math.MinInt16:
		return binary.BigEndian.AppendUint16(append(dst, 0xd1), uint16(n))
	case n >= math.MinInt32:
		return binary.BigEndian.AppendUint32(append(dst, 0xd2), uint32(n))
	default:
		return binary.BigEndian.AppendUint64(append(dst, 0xd3), uint64(n))
	}
}
