package asterism

import (
	"encoding/json"

	"github.com/aster-mesh/aster/protocol"
)

// member is one field of a JSON object; key is what stands between the quotes, still escaped.
type member struct{ key, value []byte }

// scanFault says why bytes are not one JSON value that every reader takes: where, and whether depth alone or a number alone was
// the reason.
type scanFault struct {
	at   int
	deep bool
	wild bool
}

// scan walks b once without recursion, checks that it is one JSON value by RFC 8259 (UTF-8 aside) nested at most
// protocol.NestingMax deep, with no number that protocol.HoldsNumber denies but a timestamp, which counts
// as none then and goes no further, and appends the fields of the outermost object to ms. It allocates only for more fields than
// ms has room for. Its twin in the tests is json.Valid.
func scan(b []byte, ms []member) ([]member, *scanFault) {
	var stack [protocol.NestingMax]byte // '{' or '['
	var key []byte
	depth, i, start := 0, space(b, 0), 0
	for {
		// A value begins at i.
		if i >= len(b) {
			return ms, &scanFault{at: i}
		}
		at := i
		open := b[i] == '{' || b[i] == '['
		if open {
			if depth == len(stack) {
				return ms, &scanFault{at: i, deep: true}
			}
			stack[depth] = b[i]
			depth++
			i = space(b, i+1)
		} else if i = scalar(b, i); i < 0 {
			return ms, &scanFault{at: at}
		} else if c := b[at]; c <= '9' && c != '"' && !(depth == 1 && string(key) == "timestamp") && !protocol.HoldsNumber(b[at:i]) {
			return ms, &scanFault{at: at, wild: true}
		}
		// Close what ends here, until another value must follow.
		for first := open; ; first = false {
			if depth == 1 && !first && stack[0] == '{' {
				ms = append(ms, member{key, b[start:i]})
			}
			if depth == 0 {
				if i = space(b, i); i != len(b) {
					return ms, &scanFault{at: i}
				}
				return ms, nil
			}
			i = space(b, i)
			if i >= len(b) {
				return ms, &scanFault{at: i}
			}
			if b[i] == stack[depth-1]+2 { // in ASCII both closing brackets stand two after their opening ones
				depth--
				i++
				continue
			}
			if !first {
				if b[i] != ',' {
					return ms, &scanFault{at: i}
				}
				i = space(b, i+1)
			}
			break
		}
		if stack[depth-1] == '{' {
			var k []byte
			at = i
			if k, i = fieldName(b, i); i < 0 {
				return ms, &scanFault{at: at}
			}
			if depth == 1 {
				key, start = k, i
			}
		} else if depth == 1 {
			start = i
		}
	}
}

// fieldName reads a quoted name and the colon after it; the next index is that of the value, or -1.
func fieldName(b []byte, i int) ([]byte, int) {
	if i >= len(b) || b[i] != '"' {
		return nil, -1
	}
	end := quoted(b, i)
	if end < 0 {
		return nil, -1
	}
	name := b[i+1 : end-1]
	if i = space(b, end); i >= len(b) || b[i] != ':' {
		return nil, -1
	}
	return name, space(b, i+1)
}

func space(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\n' || b[i] == '\t' || b[i] == '\r') {
		i++
	}
	return i
}

// scalar returns the index after the string, number or word at i, or -1.
func scalar(b []byte, i int) int {
	switch c := b[i]; {
	case c == '"':
		return quoted(b, i)
	case c == '-' || c >= '0' && c <= '9':
		return number(b, i)
	case c == 't':
		return word(b, i, "true")
	case c == 'f':
		return word(b, i, "false")
	case c == 'n':
		return word(b, i, "null")
	}
	return -1
}

func word(b []byte, i int, w string) int {
	if len(b)-i < len(w) || string(b[i:i+len(w)]) != w {
		return -1
	}
	return i + len(w)
}

// plain marks the bytes that a JSON string holds as they are and that end nothing.
var plain = func() (t [256]bool) {
	for c := 0x20; c < 256; c++ {
		t[c] = c != '"' && c != '\\'
	}
	return t
}()

func quoted(b []byte, i int) int {
	for i++; i < len(b); i++ {
		if plain[b[i]] {
			continue
		}
		if b[i] == '"' {
			return i + 1
		}
		if b[i] != '\\' || i+1 >= len(b) {
			return -1
		}
		i++
		switch b[i] {
		case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		case 'u':
			if len(b)-i < 5 {
				return -1
			}
			for _, c := range b[i+1 : i+5] {
				if !(c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F') {
					return -1
				}
			}
			i += 4
		default:
			return -1
		}
	}
	return -1
}

func number(b []byte, i int) int {
	if b[i] == '-' {
		i++
	}
	switch {
	case i < len(b) && b[i] == '0':
		i++
	default:
		if i = digits(b, i); i < 0 {
			return -1
		}
	}
	if i < len(b) && b[i] == '.' {
		if i = digits(b, i+1); i < 0 {
			return -1
		}
	}
	if i < len(b) && (b[i] == 'e' || b[i] == 'E') {
		if i++; i < len(b) && (b[i] == '+' || b[i] == '-') {
			i++
		}
		return digits(b, i)
	}
	return i
}

func digits(b []byte, i int) int {
	from := i
	for i < len(b) && b[i] >= '0' && b[i] <= '9' {
		i++
	}
	if i == from {
		return -1
	}
	return i
}

// text returns what a quoted JSON string says. raw must have passed scan.
func text(raw []byte) string { return unescape(raw[1 : len(raw)-1]) }

// unescape returns what stands between the quotes of a JSON string.
func unescape(inner []byte) string {
	for _, c := range inner {
		if c == '\\' {
			var s string
			// The text passed scan, so it cannot fail; a lone surrogate becomes U+FFFD.
			_ = json.Unmarshal(append(append([]byte{'"'}, inner...), '"'), &s)
			return s
		}
	}
	return string(inner)
}
