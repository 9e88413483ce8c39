package check

import (
	"bufio"
	"bytes"
	"testing"
)

// FuzzReadMessage: whatever a hub sends ends in messages and an error; none is larger than what came.
func FuzzReadMessage(f *testing.F) {
	f.Add([]byte("\x81\x02{}"))
	f.Add([]byte("\x01\x01{\x89\x03abc\x80\x01}"))
	f.Add([]byte("\x88\x02\x03\xe8"))
	f.Add([]byte("\x82\x7e\x01\x00short"))
	f.Add([]byte("\x82\x7f\x00\x00\x00\x00\x01\xff\xff\xff"))
	f.Add([]byte("\x82\x7f\xff\xff\xff\xff\xff\xff\xff\xff"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		r, left := bufio.NewReader(bytes.NewReader(raw)), len(raw)
		for parts := (frame{}); ; {
			m, err := readMessage(r, &parts)
			if err != nil {
				return
			}
			if left -= len(m.payload); left < 0 || m.op == opContinue {
				t.Fatalf("%x: a message of %d bytes, op %d", raw, len(m.payload), m.op)
			}
		}
	})
}

// TestAFrameReadBackIsTheFrame: what the client writes is what a reader that takes the mask off would have.
func TestAFrameReadBackIsTheFrame(t *testing.T) {
	for _, n := range []int{0, 1, 125, 126, 1 << 16} {
		text := bytes.Repeat([]byte("x"), n)
		wire := appendFrame(nil, opText, text)
		head := len(wire) - n - len(mask)
		bare := append([]byte{}, wire[:head]...)
		bare[1] &^= 0x80
		for i, c := range wire[head+len(mask):] {
			bare = append(bare, c^mask[i&3])
		}
		var parts frame
		m, err := readMessage(bufio.NewReader(bytes.NewReader(bare)), &parts)
		if err != nil || m.op != opText || !bytes.Equal(m.payload, text) {
			t.Errorf("%d bytes: op %d, %d bytes, %v", n, m.op, len(m.payload), err)
		}
	}
}
