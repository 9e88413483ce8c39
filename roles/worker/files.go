package worker

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/roles/worker/keeper"
)

// filesBytesMax bounds what is copied for one attempt.
const filesBytesMax = 32 * protocol.BlobBytesMax

// codeWrongHash is the one that clients of the hub get for content which is not what it should be.
const codeWrongHash = "wrong-hash"

// filesPatience is how long an attempt in its slot tries to get its files where an error may pass, such as of a full disk.
var filesPatience = time.Minute

// checkFiles reads what is attached to a task before it is accepted. It keeps none of it: a queue may be long, and what waits
// in it would lie on the disk twice.
func (w *Worker) checkFiles(files []File) error {
	left := int64(filesBytesMax)
	for _, f := range files {
		bytes, err := w.copyFile(context.Background(), io.Discard, f, left, true)
		if err != nil {
			return err
		}
		left -= bytes
	}
	return nil
}

// bringFiles is placeFiles for an attempt in its slot; an error that is not a refusal it outlasts for filesPatience. They are
// copies: by a hard link a command could write into the store.
func (w *Worker) bringFiles(a *attempt) error {
	if len(a.order.Attached) == 0 {
		return nil // or a version that put them there before the attempt was accepted
	}
	for until := time.Now().Add(filesPatience); ; {
		err := w.placeFiles(a.ctx, filepath.Join(a.dir, keeper.DirFiles), a.order.Attached)
		var no *protocol.Refusal
		switch {
		case err == nil:
			return nil
		case a.ctx.Err() != nil:
			return context.Cause(a.ctx)
		case errors.As(err, &no) || time.Now().After(until):
			return &filesError{err}
		}
		w.cfg.Log.Warn("files of a task cannot be had now", "task", a.order.Task, "err", err)
		pause(a.ctx)
	}
}

// filesError says that the files of an attempt in its slot were not to be had.
type filesError struct{ error }

func (e *filesError) Unwrap() error { return e.error }

// placeFiles puts the files of a task into a folder of their own, durable on return; on an error there is no such folder.
// What an earlier call left there, which was cut off, is removed.
func (w *Worker) placeFiles(ctx context.Context, dir string, files []File) (err error) {
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(dir))
		}
	}()
	left := int64(filesBytesMax)
	for i, f := range files {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		name := protocol.FileName(f.Name, i)
		out, err := createNumbered(dir, name)
		if err != nil {
			return fmt.Errorf("keep %s: %w", name, err)
		}
		bytes, err := w.copyFile(ctx, out, f, left, false)
		if err == nil {
			err = out.Sync()
		}
		if err = errors.Join(err, out.Close()); err != nil {
			return fmt.Errorf("keep %s: %w", name, err)
		}
		left -= bytes
	}
	return keeper.SyncDir(dir)
}

func (w *Worker) copyFile(ctx context.Context, out io.Writer, f File, left int64, accepting bool) (bytes int64, err error) {
	if w.cfg.Open == nil {
		return 0, errors.New("worker: a task has files, and Config.Open is not set")
	}
	in, err := w.cfg.Open(ctx, f, accepting)
	if err != nil {
		return 0, err
	}
	defer in.Close()
	h := sha256.New()
	bytes, err = io.Copy(io.MultiWriter(out, h), io.LimitReader(in, min(left, protocol.BlobBytesMax)+1))
	if err != nil {
		return 0, fmt.Errorf("read %q: %w", protocol.CutText(f.Name, 100), err)
	}
	if bytes > left {
		return 0, protocol.Refuse(protocol.CodeTooMany, "the files of this task are more than %d bytes", "send fewer with one task", int64(filesBytesMax))
	}
	if hex.EncodeToString(h.Sum(nil)) != f.SHA256 {
		return 0, protocol.Refuse(codeWrongHash, "attachment %q is not what was sent", "send it again", protocol.CutText(f.Name, 100))
	}
	return bytes, nil
}

// createNumbered makes a file of this name, or name-2, … where that is taken, also by a name of other case where the disk
// knows none.
func createNumbered(dir, name string) (*os.File, error) {
	ending := filepath.Ext(name)
	for n := 1; ; n++ {
		path := filepath.Join(dir, name)
		if n > 1 {
			path = filepath.Join(dir, strings.TrimSuffix(name, ending)+"-"+strconv.Itoa(n)+ending)
		}
		f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
		if !errors.Is(err, fs.ErrExist) || n == 1000 {
			return f, err
		}
	}
}
