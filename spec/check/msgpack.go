package check

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"unicode/utf8"
)

// subprotocol is the one whose binary messages are msgpack. This is a codec of our own, as a client of the contract would
// have one: a hub that is checked must not be checked against its own.
const subprotocol = "aster.msgpack.1"

// packed is text in msgpack, each length in its longest form; what is no JSON stays as it is, and is then no msgpack.
func packed(text []byte) []byte {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var out []byte
	if err := packValue(d, &out); err != nil || d.InputOffset() != int64(len(bytes.TrimRight(text, " \n"))) {
		return text
	}
	return out
}

func packValue(d *json.Decoder, out *[]byte) error {
	t, err := d.Token()
	if err != nil {
		return err
	}
	switch t := t.(type) {
	case json.Delim:
		return packAll(d, out, t)
	case string:
		*out = append(binary.BigEndian.AppendUint32(append(*out, 0xdb), uint32(len(t))), t...)
	case json.Number:
		if n, err := t.Int64(); err == nil {
			*out = binary.BigEndian.AppendUint64(append(*out, 0xd3), uint64(n))
			return nil
		}
		f, _ := t.Float64()
		*out = binary.BigEndian.AppendUint64(append(*out, 0xcb), math.Float64bits(f))
	case bool:
		*out = append(*out, 0xc2)
		if t {
			(*out)[len(*out)-1] = 0xc3
		}
	default:
		*out = append(*out, 0xc0)
	}
	return nil
}

// packAll writes an array or an object, and its length once that is known. A field may stand there twice.
func packAll(d *json.Decoder, out *[]byte, open json.Delim) error {
	head, each := byte(0xdd), 1
	if open == '{' {
		head, each = 0xdf, 2
	}
	*out = append(*out, head, 0, 0, 0, 0)
	at, n := len(*out)-4, 0
	for ; d.More(); n++ {
		for range each {
			if err := packValue(d, out); err != nil {
				return err
			}
		}
	}
	binary.BigEndian.PutUint32((*out)[at:], uint32(n))
	_, err := d.Token()
	return err
}

var errPacked = errors.New("not msgpack that JSON could say")

// unpackedDepth is more than any hub of the contract nests.
const unpackedDepth = 200

// unpacked reads one msgpack value as json.Unmarshal would have it.
func unpacked(b []byte) (any, error) {
	v, rest, err := unpackValue(b, 0)
	if err == nil && len(rest) > 0 {
		err = fmt.Errorf("%w: %d bytes behind it", errPacked, len(rest))
	}
	return v, err
}

func unpackValue(b []byte, depth int) (any, []byte, error) {
	if len(b) == 0 || depth > unpackedDepth {
		return nil, nil, errPacked
	}
	c, b := b[0], b[1:]
	switch {
	case c <= 0x7f:
		return float64(c), b, nil
	case c >= 0xe0:
		return float64(int8(c)), b, nil
	case c < 0x90:
		return unpackObject(b, int(c&0xf), depth)
	case c < 0xa0:
		return unpackArray(b, int(c&0xf), depth)
	case c < 0xc0:
		return unpackText(b, int(c&0x1f))
	case c == 0xc0:
		return nil, b, nil
	case c == 0xc2, c == 0xc3:
		return c == 0xc3, b, nil
	}
	width := map[byte]int{0xca: 4, 0xcb: 8, 0xcc: 1, 0xcd: 2, 0xce: 4, 0xcf: 8, 0xd0: 1, 0xd1: 2, 0xd2: 4, 0xd3: 8, 0xd9: 1, 0xda: 2, 0xdb: 4, 0xdc: 2, 0xdd: 4, 0xde: 2, 0xdf: 4}[c]
	if width == 0 || len(b) < width {
		return nil, nil, fmt.Errorf("%w: type %#x", errPacked, c)
	}
	var n uint64
	for _, x := range b[:width] {
		n = n<<8 | uint64(x)
	}
	b = b[width:]
	switch {
	case c == 0xca:
		return float64(math.Float32frombits(uint32(n))), b, nil
	case c == 0xcb:
		return math.Float64frombits(n), b, nil
	case c <= 0xcf:
		return float64(n), b, nil
	case c <= 0xd3:
		return float64(int64(n<<(64-8*width)) >> (64 - 8*width)), b, nil
	case n > uint64(len(b)):
		return nil, nil, fmt.Errorf("%w: a length beyond its end", errPacked)
	case c <= 0xdb:
		return unpackText(b, int(n))
	case c <= 0xdd:
		return unpackArray(b, int(n), depth)
	}
	return unpackObject(b, int(n), depth)
}

func unpackText(b []byte, n int) (any, []byte, error) {
	if n > len(b) {
		return nil, nil, errPacked
	}
	if !utf8.Valid(b[:n]) {
		return nil, nil, fmt.Errorf("%w: text that is not UTF-8", errPacked)
	}
	return string(b[:n]), b[n:], nil
}

func unpackArray(b []byte, n, depth int) (any, []byte, error) {
	out := []any{}
	for range n {
		v, rest, err := unpackValue(b, depth+1)
		if err != nil {
			return nil, nil, err
		}
		out, b = append(out, v), rest
	}
	return out, b, nil
}

func unpackObject(b []byte, n, depth int) (any, []byte, error) {
	out := map[string]any{}
	for range n {
		key, rest, err := unpackValue(b, depth+1)
		if err != nil {
			return nil, nil, err
		}
		name, ok := key.(string)
		if _, twice := out[name]; twice || !ok {
			return nil, nil, fmt.Errorf("%w: key %v", errPacked, key)
		}
		if out[name], b, err = unpackValue(rest, depth+1); err != nil {
			return nil, nil, err
		}
	}
	return out, b, nil
}
