package bridge

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/aster-mesh/aster/protocol"
)

const (
	outboxFile = "outbox.jsonl"
	// linesPerTurn lets other agents have their turn while one has written a great deal.
	linesPerTurn = 64
)

// outbox reads what one agent appends. Owned by the bridge's loop.
type outbox struct {
	agent protocol.AgentID
	dir   string
	cfg   *Config
	log   *slog.Logger

	loaded bool
	at     cursor
	// Of an unfinished line that is already too long: how far it was searched for its end, so that a line of
	// gigabytes is read once.
	searched int64
}

func (o *outbox) key() string { return "bridge/outbox/" + string(o.agent) }

// scan submits complete lines that were not read yet. more: the turn is over and others wait. An error that is no
// refusal leaves the cursor where it is; the same line comes again.
func (o *outbox) scan(ctx context.Context) (more bool, err error) {
	if !o.loaded {
		if o.at, err = decodeCursor(o.cfg.Cursor(o.key()), o.agent); err != nil {
			return false, err
		}
		o.loaded, o.searched = true, 0
	}
	defer func() {
		if err != nil {
			o.loaded = false // the commit may have happened all the same: ask again
		}
	}()
	f, err := openPlain(filepath.Join(o.dir, outboxFile), os.O_RDONLY)
	missing := errors.Is(err, fs.ErrNotExist)
	if err != nil && !missing {
		return false, err
	}
	if !missing {
		defer f.Close()
		same, err := o.stands(f)
		if err != nil {
			return false, err
		}
		if same {
			return o.read(ctx, f, outboxFile, false)
		}
	}
	if o.at.Offset == 0 {
		return false, nil
	}
	if more, err := o.finishRenamed(ctx, !missing); more || err != nil {
		return more, err
	}
	if missing {
		return false, nil
	}
	o.log.Warn("outbox was replaced or cut short; reading the new one from its start", "agent", o.agent, "offset", o.at.Offset)
	o.at, o.searched = o.at.next(), 0
	return o.read(ctx, f, outboxFile, false)
}

func (o *outbox) stands(f *os.File) (bool, error) {
	info, err := f.Stat()
	if err != nil {
		return false, fmt.Errorf("look at outbox: %w", err)
	}
	return o.at.stands(f, info.Size())
}

// finishRenamed reads to its end the file that had the name before, if it is still in the folder under another.
// replaced: a new file has the name, so nothing more is written to the old one.
func (o *outbox) finishRenamed(ctx context.Context, replaced bool) (more bool, err error) {
	entries, err := os.ReadDir(o.dir)
	if err != nil {
		return false, fmt.Errorf("look for the renamed outbox: %w", err)
	}
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), "outbox") || e.Name() == outboxFile || strings.HasPrefix(e.Name(), "outbox.rejected") || !e.Type().IsRegular() {
			continue
		}
		f, err := openPlain(filepath.Join(o.dir, e.Name()), os.O_RDONLY)
		if err != nil {
			continue
		}
		same, err := o.stands(f)
		if err == nil && same {
			more, err = o.read(ctx, f, e.Name(), replaced)
			return more, errors.Join(err, f.Close())
		}
		f.Close()
	}
	return false, nil
}

// read submits the complete lines of f after the cursor. last: nothing will be appended to f, so that a line without
// its end is refused.
func (o *outbox) read(ctx context.Context, f *os.File, name string, last bool) (more bool, err error) {
	from := max(o.at.Offset, o.searched)
	r := bufio.NewReaderSize(io.NewSectionReader(f, from, 1<<62-from), 64<<10)
	for range linesPerTurn {
		line, n, err := takeLine(r, o.searched-o.at.Offset)
		if err == io.EOF {
			if n > LineBytesMax {
				o.searched = o.at.Offset + n
			}
			if last && n > 0 {
				return false, o.rejectTail(ctx, f, name, line, n)
			}
			return false, nil
		}
		if err != nil {
			return false, fmt.Errorf("read outbox: %w", err)
		}
		if err := o.take(ctx, f, name, line, n); err != nil {
			return false, err
		}
		o.searched = 0
	}
	return true, nil
}

// takeLine reads to the next newline and returns the line without it and the bytes from the line's start to behind the
// newline. Of a line that is too long only the start is kept. before is how much of it was searched already.
func takeLine(r *bufio.Reader, before int64) (line []byte, n int64, err error) {
	n = max(before, 0)
	tooLong := n > LineBytesMax
	for {
		part, err := r.ReadSlice('\n')
		n += int64(len(part))
		if room := LineBytesMax + 1 - len(line); !tooLong && room > 0 {
			line = append(line, part[:min(len(part), room)]...)
		}
		if err == bufio.ErrBufferFull {
			continue
		}
		if n-1 > LineBytesMax && len(line) <= LineBytesMax {
			line = append(line, make([]byte, LineBytesMax+1-len(line))...) // its length alone decides
		}
		return bytes.TrimSuffix(line, []byte("\n")), n, err
	}
}

// take commits one complete line with the cursor behind it.
func (o *outbox) take(ctx context.Context, f *os.File, name string, raw []byte, n int64) error {
	behind, err := o.at.advanced(f, n)
	if err != nil {
		return err
	}
	line, why := ParseLine(raw)
	if why == nil && line.Kind == KindNone {
		o.at = behind // an empty line; its cursor goes with the next one
		return nil
	}
	if why == nil {
		if line.MsgID == "" {
			line.MsgID = o.at.msgID(o.agent)
		}
		err := o.attach(ctx, &line)
		if err == nil {
			err = o.cfg.Submit(ctx, o.agent, line, o.key(), behind.encode())
		}
		if !errors.As(err, &why) {
			if err == nil {
				o.at = behind
			}
			return err
		}
		if passes(why) {
			return err
		}
	}
	return o.refuse(ctx, name, raw, why, behind)
}

// passes says that a refusal is about the node's state, not about the line: the line waits.
func passes(why *protocol.Refusal) bool {
	return why.Code == protocol.CodeDiskFull || why.Code == protocol.CodeFenced || why.Code == protocol.CodeRate
}

func (o *outbox) rejectTail(ctx context.Context, f *os.File, name string, raw []byte, n int64) error {
	behind, err := o.at.advanced(f, n)
	if err != nil {
		return err
	}
	why := protocol.Refuse(protocol.CodeBadFrame, "the file was renamed in the middle of this line", "append the line to outbox.jsonl again; rename only after a newline")
	return o.refuse(ctx, name, raw, why, behind)
}

func (o *outbox) refuse(ctx context.Context, name string, raw []byte, why *protocol.Refusal, behind cursor) error {
	if err := reject(o.dir, time.Now(), name, o.at, o.agent, raw, why); err != nil {
		return err
	}
	o.log.Warn("outbox line refused", "agent", o.agent, "line", behind.Line, "code", why.Code)
	if err := o.cfg.Submit(ctx, o.agent, Line{}, o.key(), behind.encode()); err != nil {
		return err
	}
	o.at = behind
	return nil
}
