package journal

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

func (j *Journal) checkpointDir() string { return filepath.Join(j.dir, "checkpoints") }

func (j *Journal) checkpointPath(name string) string {
	return filepath.Join(j.checkpointDir(), hex.EncodeToString([]byte(name)))
}

const checkpointTag = "aster.checkpoint.1\n"

// SaveCheckpoint keeps the state of a fold that has read every record up to position pos, in place of the last one of
// that name. It goes to a file of its own, so it does not wait for commits nor they for it. After a crash either the
// old one or the new one is there.
func (j *Journal) SaveCheckpoint(name string, pos uint64, data []byte) (err error) {
	if j.closed.Load() {
		return ErrClosed
	}
	path := j.checkpointPath(name)
	tmp := path + "." + rand.Text()
	defer func() {
		if err != nil {
			os.Remove(tmp)
			if isFull(err) {
				err = fmt.Errorf("%w: %w", ErrFull, err)
			}
			err = fmt.Errorf("save checkpoint %s: %w", name, err)
		}
	}()
	f, err := os.OpenFile(tmp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	sum := checkpointSum(name, j.storeID, pos, data)
	for _, part := range [][]byte{[]byte(checkpointTag), sum, binary.BigEndian.AppendUint64(nil, pos), data} {
		if _, err := f.Write(part); err != nil {
			return errors.Join(err, f.Close())
		}
	}
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Rename(tmp, path); err != nil {
		return err
	}
	return syncDir(j.checkpointDir())
}

// checkpointSum covers the store too: positions of one database mean nothing in another.
func checkpointSum(name, store string, pos uint64, data []byte) []byte {
	h := sha256.New()
	fmt.Fprintf(h, "%s%d %s %s %d\n", checkpointTag, len(name), name, store, pos)
	h.Write(data)
	return h.Sum(nil)
}

// Checkpoint returns the last state saved under that name and the position it has read up to. ok is false when there is
// none, or when what is there is damaged or belongs to another store: the fold then begins at the first record.
func (j *Journal) Checkpoint(name string) (pos uint64, data []byte, ok bool, err error) {
	if j.closed.Load() {
		return 0, nil, false, ErrClosed
	}
	raw, err := os.ReadFile(j.checkpointPath(name))
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil, false, nil
	}
	if err != nil {
		return 0, nil, false, fmt.Errorf("checkpoint %s: %w", name, err)
	}
	rest, tagged := bytes.CutPrefix(raw, []byte(checkpointTag))
	if tagged && len(rest) >= sha256.Size+8 {
		pos = binary.BigEndian.Uint64(rest[sha256.Size:])
		data = rest[sha256.Size+8:]
		if bytes.Equal(rest[:sha256.Size], checkpointSum(name, j.storeID, pos, data)) && pos <= j.Position() {
			return pos, data, true, nil
		}
	}
	j.log.Warn("a checkpoint is damaged or of another store; its fold begins anew", "name", name)
	return 0, nil, false, nil
}
