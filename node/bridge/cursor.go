package bridge

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"

	"github.com/aster-mesh/aster/protocol"
)

// markBytes is how much of a file's start, and of what stands before the cursor, is remembered to know the file again.
const markBytes = 1 << 10

// cursor is how far an outbox has been read. It is stored by Submit in the transaction of the line it follows.
//
// A file is known again by its content, not by its inode: the bytes at its start and those before the offset. So an
// editor that saves by renaming goes on where it was, an inode that the system reuses does not pass for the old file,
// and a home that was copied elsewhere sends nothing twice.
type cursor struct {
	Generation string `json:"gen"`  // 32 hex digits; another for each file that took the name
	Offset     int64  `json:"off"`  // bytes read, always after a newline
	Line       int64  `json:"line"` // lines read
	Mark       string `json:"mark"` // of the file's content at Offset
}

func firstCursor(agent protocol.AgentID) cursor {
	return cursor{Generation: hash("outbox", string(agent))}
}

func decodeCursor(raw []byte, agent protocol.AgentID) (cursor, error) {
	if len(raw) == 0 {
		return firstCursor(agent), nil
	}
	var c cursor
	if err := json.Unmarshal(raw, &c); err != nil {
		return c, fmt.Errorf("read the outbox cursor of %s: %w", agent, err)
	}
	return c, nil
}

func (c cursor) encode() []byte { return protocol.EncodeBody(c) }

// next begins another file under the same name. It follows from the cursor alone, so that a crash before its first
// commit comes to the same generation again, and to the same message ids.
func (c cursor) next() cursor {
	return cursor{Generation: hash("next", c.Generation, fmt.Sprint(c.Offset), c.Mark)}
}

// msgID names the line at the cursor: a UUID of version 8 over generation and offset.
func (c cursor) msgID(agent protocol.AgentID) protocol.MsgID {
	var off [8]byte
	binary.BigEndian.PutUint64(off[:], uint64(c.Offset))
	sum := sha256.Sum256([]byte("aster.outbox.1\x00" + string(agent) + "\x00" + c.Generation + string(off[:])))
	sum[6], sum[8] = sum[6]&0x0f|0x80, sum[8]&0x3f|0x80
	id := hex.EncodeToString(sum[:16])
	return protocol.MsgID(id[:8] + "-" + id[8:12] + "-" + id[12:16] + "-" + id[16:20] + "-" + id[20:])
}

// advanced is the cursor n bytes and one line further in f.
func (c cursor) advanced(f io.ReaderAt, n int64) (cursor, error) {
	c.Offset += n
	c.Line++
	mark, err := markAt(f, c.Offset)
	c.Mark = mark
	return c, err
}

// stands says whether f, of the given size, is the file that c was read from.
func (c cursor) stands(f io.ReaderAt, size int64) (bool, error) {
	if c.Offset == 0 {
		return true, nil
	}
	if size < c.Offset {
		return false, nil
	}
	mark, err := markAt(f, c.Offset)
	return mark == c.Mark, err
}

func markAt(f io.ReaderAt, off int64) (string, error) {
	n := min(off, markBytes)
	buf := make([]byte, 2*n)
	for i, from := range []int64{0, off - n} {
		if _, err := f.ReadAt(buf[int64(i)*n:int64(i+1)*n], from); err != nil {
			return "", fmt.Errorf("read outbox: %w", err)
		}
	}
	return hash(string(buf)), nil
}

func hash(parts ...string) string {
	h := sha256.New()
	for _, p := range parts {
		fmt.Fprintf(h, "%d:%s", len(p), p)
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}
