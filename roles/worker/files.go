package worker

import (
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

	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/roles/worker/keeper"
)

// filesBytesMax bounds what is copied for one attempt.
const filesBytesMax = 32 * protocol.BlobBytesMax

// codeWrongHash is the one that clients of the hub get for content which is not what it should be.
const codeWrongHash = "wrong-hash"

// placeFiles puts the files of a task into a folder of their own, durable on return; on an error there is no such folder.
// What an earlier call left there, which was cut off before the attempt was accepted, is removed.
func placeFiles(dir string, files []File) (err error) {
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	if len(files) == 0 {
		return nil
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
		bytes, err := placeFile(dir, protocol.FileName(f.Name, i), f, left)
		if err != nil {
			return err
		}
		left -= bytes
	}
	return keeper.SyncDir(dir)
}

func placeFile(dir, name string, f File, left int64) (bytes int64, err error) {
	in, err := f.Open()
	if err != nil {
		return 0, err
	}
	defer in.Close()
	out, err := createNumbered(dir, name)
	if err != nil {
		return 0, fmt.Errorf("keep %s: %w", name, err)
	}
	h := sha256.New()
	bytes, err = io.Copy(io.MultiWriter(out, h), io.LimitReader(in, min(left, protocol.BlobBytesMax)+1))
	if err = errors.Join(err, out.Sync(), out.Close()); err != nil {
		return 0, fmt.Errorf("keep %s: %w", name, err)
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
