package bridge

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/aster-mesh/aster/protocol"
)

// recoverTail cuts what a crash left behind the last newline and returns the size and the last position found.
func (b *inbox) recoverTail(f *os.File) (size int64, pos uint64, err error) {
	info, err := f.Stat()
	if err != nil {
		return 0, 0, fmt.Errorf("look at inbox: %w", err)
	}
	size, pos, err = b.tailOf(f, info.Size())
	if err == nil && size < info.Size() {
		err = f.Truncate(size)
	}
	if err != nil {
		return 0, 0, fmt.Errorf("recover inbox: %w", err)
	}
	return size, pos, nil
}

func (b *inbox) lastPosOf(path string) (uint64, error) {
	f, err := openPlain(path, os.O_RDONLY)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("open inbox part: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return 0, fmt.Errorf("look at inbox part: %w", err)
	}
	_, pos, err := b.tailOf(f, info.Size())
	return pos, err
}

// tailOf returns the offset behind the last newline of f and the greatest position of the lines near its end. Lines
// that are not ours, or of another store, are passed over; it looks further back only until it has found one that counts.
func (b *inbox) tailOf(f *os.File, size int64) (end int64, pos uint64, err error) {
	for window := int64(64 << 10); ; window *= 8 {
		from := max(size-window, 0)
		buf := make([]byte, size-from)
		if n, err := f.ReadAt(buf, from); err != nil && n < len(buf) {
			return 0, 0, err
		}
		last := bytes.LastIndexByte(buf, '\n')
		if last < 0 && from == 0 {
			return 0, 0, nil
		}
		end = from + int64(last) + 1
		lines := bytes.Split(buf[:last+1], []byte("\n"))
		if from > 0 && len(lines) > 0 {
			lines = lines[1:] // its start is before the window
		}
		for _, line := range lines {
			var l struct {
				Pos   uint64 `json:"pos"`
				Store string `json:"store"`
			}
			if json.Unmarshal(line, &l) == nil && l.Store == b.store {
				pos = max(pos, l.Pos)
			}
		}
		if pos > 0 || from == 0 {
			return end, pos, nil
		}
	}
}

// noted reads what note wrote; same: it is of this store.
func (b *inbox) noted() (pos uint64, same bool, err error) {
	raw, err := os.ReadFile(filepath.Join(b.dir, markFile))
	if errors.Is(err, fs.ErrNotExist) {
		return 0, false, nil
	}
	if err != nil {
		return 0, false, fmt.Errorf("read inbox position: %w", err)
	}
	var store string
	if _, err := fmt.Sscanf(string(raw), "%d %s\n", &pos, &store); err != nil || store != b.store {
		return 0, false, nil // of another store, or torn by a crash of the machine
	}
	return pos, true, nil
}

// readThere notes which messages the files hold, whatever store their positions are of.
func (b *inbox) readThere() error {
	b.there = map[protocol.Digest]bool{}
	for part := range inboxPartsMax + 1 {
		path := b.path()
		if part > 0 {
			path = b.part(part)
		}
		f, err := openPlain(path, os.O_RDONLY)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return fmt.Errorf("open inbox part: %w", err)
		}
		raw, err := io.ReadAll(f)
		if err = errors.Join(err, f.Close()); err != nil {
			return fmt.Errorf("read inbox part: %w", err)
		}
		for line := range bytes.Lines(raw) {
			var l inboxLine
			if json.Unmarshal(line, &l) == nil && l.MsgID != "" {
				b.there[protocol.IdentityOf(l.Agent, l.MsgID)] = true
			}
		}
	}
	return nil
}
