package check

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// Opcodes of RFC 6455.
const (
	opContinue = 0x0
	opText     = 0x1
	opBinary   = 0x2
	opClose    = 0x8
	opPing     = 0x9
	opPong     = 0xA
)

// hubFrameMax bounds what is taken from a hub; its own limit is lower, and a rule says so.
const hubFrameMax = 32 << 20

// mask is fixed: masking guards proxies against pages, and this is no page.
var mask = [4]byte{0x37, 0xfa, 0x21, 0x3d}

// appendFrame appends one masked frame, whole.
func appendFrame(b []byte, op byte, payload []byte) []byte {
	b = append(b, 0x80|op)
	switch n := len(payload); {
	case n < 126:
		b = append(b, 0x80|byte(n))
	case n < 1<<16:
		b = binary.BigEndian.AppendUint16(append(b, 0x80|126), uint16(n))
	default:
		b = binary.BigEndian.AppendUint64(append(b, 0x80|127), uint64(n))
	}
	b = append(b, mask[:]...)
	for i, c := range payload {
		b = append(b, c^mask[i&3])
	}
	return b
}

type frame struct {
	fin     bool
	op      byte
	payload []byte
}

var errFraming = errors.New("the hub broke the framing")

// readFrame reads one frame of a hub, which does not mask.
func readFrame(r *bufio.Reader) (frame, error) {
	var head [8]byte
	if _, err := io.ReadFull(r, head[:2]); err != nil {
		return frame{}, err
	}
	f := frame{fin: head[0]&0x80 != 0, op: head[0] & 0xf}
	if head[0]&0x70 != 0 || head[1]&0x80 != 0 {
		return f, fmt.Errorf("%w: reserved bits or a mask", errFraming)
	}
	n := uint64(head[1])
	switch n {
	case 126:
		if _, err := io.ReadFull(r, head[:2]); err != nil {
			return f, err
		}
		n = uint64(binary.BigEndian.Uint16(head[:2]))
	case 127:
		if _, err := io.ReadFull(r, head[:8]); err != nil {
			return f, err
		}
		n = binary.BigEndian.Uint64(head[:8])
	}
	if n > hubFrameMax || f.op >= opClose && (n > 125 || !f.fin) {
		return f, fmt.Errorf("%w: a frame of %d bytes", errFraming, n)
	}
	var err error // a length is no reason to make room for what may never come
	if f.payload, err = io.ReadAll(io.LimitReader(r, int64(n))); err == nil && uint64(len(f.payload)) < n {
		err = io.ErrUnexpectedEOF
	}
	return f, err
}

// readMessage reads frames up to the end of one message, or one control frame. parts holds an unfinished message.
func readMessage(r *bufio.Reader, parts *frame) (frame, error) {
	for {
		f, err := readFrame(r)
		if err != nil || f.op >= opClose {
			return f, err
		}
		if (f.op == opContinue) != (parts.op != 0) {
			return f, fmt.Errorf("%w: a piece out of turn", errFraming)
		}
		if f.op != opContinue {
			parts.op = f.op
		}
		if parts.payload = append(parts.payload, f.payload...); len(parts.payload) > hubFrameMax {
			return f, fmt.Errorf("%w: a message above %d bytes", errFraming, hubFrameMax)
		}
		if f.fin {
			whole := *parts
			*parts = frame{}
			return whole, nil
		}
	}
}
