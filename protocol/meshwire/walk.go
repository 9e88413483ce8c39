package meshwire

import (
	"encoding/binary"
	"fmt"
	"unicode/utf8"
)

// What a body may look like, whatever its type. The decoder below allocates by what a header declares, follows arrays
// without end and takes an array for a map; so the bytes are walked once before it sees them.
const (
	depthMax = 32
	// elementsMax bounds all array elements of a frame together: a nil is one byte and may become a struct of 200.
	elementsMax = 1 << 14
	// keysMax bounds a map, so that keys can be compared without a table. Our own frames have at most twelve.
	keysMax = 32
)

// walk says what is wrong with b as one msgpack map, without allocating unless something is.
func walk(b []byte) error {
	w := walker{b: b}
	if len(b) == 0 || !isMap(b[0]) {
		return fmt.Errorf("%w: the body is not a map", ErrBadFrame)
	}
	if err := w.value(1); err != nil {
		return err
	}
	if w.at != len(b) {
		return fmt.Errorf("%w: %d bytes after the body", ErrBadFrame, len(b)-w.at)
	}
	return nil
}

type walker struct {
	b        []byte
	at       int
	elements int
}

func isMap(c byte) bool   { return c&0xf0 == 0x80 || c == 0xde || c == 0xdf }
func isArray(c byte) bool { return c&0xf0 == 0x90 || c == 0xdc || c == 0xdd }
func isText(c byte) bool  { return c&0xe0 == 0xa0 || (c >= 0xd9 && c <= 0xdb) }

func (w *walker) value(depth int) error {
	if depth > depthMax {
		return fmt.Errorf("%w: nested deeper than %d at byte %d", ErrBadFrame, depthMax, w.at)
	}
	if w.at >= len(w.b) {
		return w.truncated()
	}
	c := w.b[w.at]
	switch {
	case isMap(c):
		return w.entries(depth)
	case isArray(c):
		return w.array(depth)
	case isText(c):
		_, err := w.text()
		return err
	case c <= 0x7f, c >= 0xe0, c == 0xc0, c == 0xc2, c == 0xc3:
		return w.skip(1)
	case c >= 0xc4 && c <= 0xc6:
		n, err := w.length(1 << (c - 0xc4))
		if err != nil {
			return err
		}
		return w.skip(n)
	case c == 0xca, c == 0xcb:
		return w.skip(1 + 4<<(c-0xca))
	case c >= 0xcc && c <= 0xcf:
		return w.skip(1 + 1<<(c-0xcc))
	case c >= 0xd0 && c <= 0xd3:
		return w.skip(1 + 1<<(c-0xd0))
	}
	return fmt.Errorf("%w: extension or reserved type 0x%02x at byte %d", ErrBadFrame, c, w.at)
}

// length reads the type byte and a length of size bytes, and sees that so many bytes are left: each element of
// anything is at least one.
func (w *walker) length(size int) (int, error) {
	if len(w.b)-w.at < 1+size {
		return 0, w.truncated()
	}
	var n uint32
	switch head := w.b[w.at+1:]; size {
	case 1:
		n = uint32(head[0])
	case 2:
		n = uint32(binary.BigEndian.Uint16(head))
	default:
		n = binary.BigEndian.Uint32(head)
	}
	if w.at += 1 + size; int64(n) > int64(len(w.b)-w.at) {
		return 0, fmt.Errorf("%w: %d declared at byte %d, %d bytes left", ErrBadFrame, n, w.at, len(w.b)-w.at)
	}
	return int(n), nil
}

func (w *walker) skip(n int) error {
	if len(w.b)-w.at < n {
		return w.truncated()
	}
	w.at += n
	return nil
}

func (w *walker) truncated() error {
	return fmt.Errorf("%w: it ends in the middle of a value, after %d bytes", ErrBadFrame, len(w.b))
}

func (w *walker) text() ([]byte, error) {
	c, n, err := w.b[w.at], 0, error(nil)
	if c&0xe0 == 0xa0 {
		n = int(c & 0x1f)
		w.at++
	} else if n, err = w.length(1 << (c - 0xd9)); err != nil {
		return nil, err
	}
	from := w.at
	if err := w.skip(n); err != nil {
		return nil, err
	}
	if !utf8.Valid(w.b[from:w.at]) {
		return nil, fmt.Errorf("%w: text at byte %d is not UTF-8", ErrBadFrame, from)
	}
	return w.b[from:w.at], nil
}

func (w *walker) array(depth int) error {
	c, n, err := w.b[w.at], 0, error(nil)
	if c&0xf0 == 0x90 {
		n = int(c & 0x0f)
		w.at++
	} else if n, err = w.length(2 << (c - 0xdc)); err != nil {
		return err
	}
	if w.elements += n; w.elements > elementsMax {
		return fmt.Errorf("%w: more than %d array elements", ErrBadFrame, elementsMax)
	}
	for range n {
		// The decoder would take an array for a struct by position; ours are maps, always.
		if w.at < len(w.b) && isArray(w.b[w.at]) {
			return fmt.Errorf("%w: an array directly in an array at byte %d", ErrBadFrame, w.at)
		}
		if err := w.value(depth + 1); err != nil {
			return err
		}
	}
	return nil
}

func (w *walker) entries(depth int) error {
	c, n, err := w.b[w.at], 0, error(nil)
	if c&0xf0 == 0x80 {
		n = int(c & 0x0f)
		w.at++
	} else if n, err = w.length(2 << (c - 0xde)); err != nil {
		return err
	}
	if n > keysMax {
		return fmt.Errorf("%w: a map of %d keys, at most %d", ErrBadFrame, n, keysMax)
	}
	var keys [keysMax][]byte
	for i := range n {
		if w.at >= len(w.b) {
			return w.truncated()
		}
		if !isText(w.b[w.at]) {
			return fmt.Errorf("%w: a key that is not text at byte %d", ErrBadFrame, w.at)
		}
		if keys[i], err = w.text(); err != nil {
			return err
		}
		for _, k := range keys[:i] {
			if string(k) == string(keys[i]) {
				return fmt.Errorf("%w: key %q twice in a map", ErrBadFrame, keys[i][:min(len(keys[i]), 32)])
			}
		}
		if err := w.value(depth + 1); err != nil {
			return err
		}
	}
	return nil
}
