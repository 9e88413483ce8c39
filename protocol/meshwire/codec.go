package meshwire

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/vmihailenco/msgpack/v5"

	"github.com/aster-mesh/aster/protocol"
)

var (
	// ErrBadFrame says that a frame cannot be read, or that a value of ours cannot be written as one.
	ErrBadFrame = errors.New("bad mesh frame")
	// ErrFrameTooLarge says that a frame is longer than its link allows; nothing of it was read.
	ErrFrameTooLarge = errors.New("mesh frame too large")
)

// headBytes is what stands before the body; the length counts the type byte and the body.
const headBytes = 5

// Encode returns f as it goes on a stream, or ErrBadFrame or ErrFrameTooLarge.
func Encode(f Frame) ([]byte, error) { return AppendFrame(nil, f) }

// AppendFrame appends f as it goes on a stream. On an error it returns dst as it was.
func AppendFrame(dst []byte, f Frame) ([]byte, error) {
	body, err := toWire(f)
	if err != nil {
		return dst, err
	}
	buf := bytes.NewBuffer(dst)
	buf.Write([]byte{0, 0, 0, 0, f.Type()})
	enc := msgpack.GetEncoder()
	defer msgpack.PutEncoder(enc)
	enc.Reset(buf)
	enc.UseCompactInts(true)
	enc.SetOmitEmpty(true)
	if err := enc.Encode(body); err != nil {
		return dst, fmt.Errorf("%w: %w", ErrBadFrame, err)
	}
	out := buf.Bytes()
	n := len(out) - len(dst) - headBytes + 1
	if n > protocol.MeshFrameBytesMax {
		return dst, fmt.Errorf("%w: type %d of %d bytes, at most %d", ErrFrameTooLarge, f.Type(), n, protocol.MeshFrameBytesMax)
	}
	binary.BigEndian.PutUint32(out[len(dst):], uint32(n))
	return out, nil
}

// Decode reads a body of the given type; it keeps no reference to body. A type that it does not know gives Unknown,
// anything else that it cannot read ErrBadFrame or ErrFrameTooLarge.
func Decode(typ byte, body []byte) (Frame, error) {
	if len(body) >= protocol.MeshFrameBytesMax {
		return nil, fmt.Errorf("%w: type %d of %d bytes, at most %d", ErrFrameTooLarge, typ, len(body)+1, protocol.MeshFrameBytesMax)
	}
	shape := wireOf(typ)
	if shape == nil {
		return Unknown{typ}, nil
	}
	if err := walk(body); err != nil {
		return nil, fmt.Errorf("frame type %d: %w", typ, err)
	}
	if err := msgpack.Unmarshal(body, shape); err != nil {
		return nil, fmt.Errorf("frame type %d: %w: %w", typ, ErrBadFrame, err)
	}
	f, err := shape.frame()
	if err != nil {
		return nil, fmt.Errorf("frame type %d: %w", typ, err)
	}
	return f, nil
}

// ReadFrame reads the next frame of at most limit bytes (never more than protocol.MeshFrameBytesMax) and tells how many
// bytes it took from r. A stream that ends between frames gives io.EOF, one that ends within a frame
// io.ErrUnexpectedEOF. After ErrBadFrame the stream stands at the next frame; after any other error it is of no use.
func ReadFrame(r *bufio.Reader, limit int) (Frame, int, error) {
	var head [4]byte
	if n, err := io.ReadFull(r, head[:]); err != nil {
		return nil, n, err
	}
	size := binary.BigEndian.Uint32(head[:])
	if most := min(limit, protocol.MeshFrameBytesMax); int64(size) > int64(most) {
		return nil, len(head), fmt.Errorf("%w: %d bytes, at most %d", ErrFrameTooLarge, size, most)
	}
	if size == 0 {
		return nil, len(head), fmt.Errorf("%w: it is empty", ErrBadFrame)
	}
	whole := make([]byte, size)
	n, err := io.ReadFull(r, whole)
	if err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return nil, len(head) + n, err
	}
	f, err := Decode(whole[0], whole[1:])
	return f, len(head) + n, err
}
