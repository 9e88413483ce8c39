package bridge

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/aster-mesh/aster/protocol"
)

const (
	rejectedFile = "outbox.rejected.jsonl"
	// rejectedBytesMax bounds the file; one older part is kept beside it.
	rejectedBytesMax = 1 << 20
	// rejectedTextBytesMax is how much of a bad line is shown: enough to find it again.
	rejectedTextBytesMax = 200
)

// rejection is a line of outbox.rejected.jsonl.
type rejection struct {
	At     string `json:"at"`
	File   string `json:"file"`
	Line   int64  `json:"line"` // from 1
	Offset int64  `json:"offset"`
	Code   string `json:"code"`
	Reason string `json:"reason"`
	Do     string `json:"do,omitempty"`
	Text   string `json:"text"` // how the line begins
	ID     string `json:"id"`   // of the line's place: written once, also over a crash before the cursor
}

// reject writes one rejection, unless the last one written is the same.
func reject(dir string, now time.Time, file string, at cursor, agent protocol.AgentID, raw []byte, why *protocol.Refusal) error {
	path := filepath.Join(dir, rejectedFile)
	id := string(at.msgID(agent))
	last, size, err := lastLine(path)
	if err != nil {
		return fmt.Errorf("read rejected lines: %w", err)
	}
	var before rejection
	if json.Unmarshal(last, &before) == nil && before.ID == id {
		return nil
	}
	if size > rejectedBytesMax {
		if err := os.Rename(path, filepath.Join(dir, "outbox.rejected.1.jsonl")); err != nil {
			return fmt.Errorf("rotate rejected lines: %w", err)
		}
	}
	f, err := openPlain(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY)
	if err != nil {
		return fmt.Errorf("open rejected lines: %w", err)
	}
	line := protocol.EncodeBody(rejection{
		At: isoTime(now), File: file, Line: at.Line + 1, Offset: at.Offset, Code: why.Code, Reason: why.Reason, Do: why.Hint,
		Text: protocol.CutText(string(bytes.ToValidUTF8(raw, []byte("\ufffd"))), rejectedTextBytesMax), ID: id,
	})
	_, err = f.Write(append(line, '\n'))
	return errors.Join(err, f.Close())
}

// lastLine returns the last complete line of a small file and the file's size; nothing when there is no file.
func lastLine(path string) ([]byte, int64, error) {
	f, err := openPlain(path, os.O_RDONLY)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, 0, nil
	}
	if err != nil {
		return nil, 0, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, 0, err
	}
	const window = 16 << 10
	from := max(info.Size()-window, 0)
	buf := make([]byte, info.Size()-from)
	if _, err := f.ReadAt(buf, from); err != nil {
		return nil, 0, err
	}
	buf = bytes.TrimRight(buf, "\n")
	return buf[bytes.LastIndexByte(buf, '\n')+1:], info.Size(), nil
}

func isoTime(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }
