package journal

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/ncruces/go-sqlite3"

	"github.com/aster-mesh/aster/protocol"
)

// The bases and their snapshot stand in a file beside the database too: without a base, all of its log would be behind a gap,
// so one damaged page would cost it. The file is written before any record goes, and made again from the database when it is
// missing, old or damaged. It begins with a tag and the SHA-256 of what follows: texts with their length before them, numbers as
// varints.

const baseTag = "aster.base.1\n"

func baseFile(dir string) string { return filepath.Join(dir, "journal.base") }

// keptBases is what the file holds.
type keptBases struct {
	cut      cut
	bases    []Base
	snapshot []byte
}

// writeBaseFile writes what is in force. Called with leaveMu held.
func (j *Journal) writeBaseFile(snapshot []byte) error {
	j.mu.RLock()
	kept := keptBases{j.cut, basesOf(j.logs), snapshot}
	j.mu.RUnlock()
	raw := appendBases(nil, &kept)
	path := baseFile(j.dir)
	err := j.step("write the bases", func() error {
		f, err := os.OpenFile(path+".new", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
		if err != nil {
			return err
		}
		_, err = f.Write(raw)
		return errors.Join(err, f.Sync(), f.Close())
	})
	if err == nil {
		err = j.step("name the bases", func() error { return os.Rename(path+".new", path) })
	}
	if err == nil {
		err = j.step("sync their folder", func() error { return syncDir(j.dir) })
	}
	if err != nil {
		return roomOr("write", path, err)
	}
	return nil
}

func appendBases(out []byte, k *keptBases) []byte {
	now := k.cut
	now.stage = sweepNone // the database alone says how far that is
	body := appendText(nil, now.append(nil))
	body = binary.AppendUvarint(body, uint64(len(k.bases)))
	for i := range k.bases {
		b := &k.bases[i]
		body = append(binary.AppendUvarint(appendText(body, b.Log.String()), b.Seq), b.Hash[:]...)
	}
	body = appendText(body, k.snapshot)
	sum := sha256.Sum256(body)
	return append(append(append(out, baseTag...), sum[:]...), body...)
}

// readBases reads what appendBases wrote. What it returns may share memory with raw.
func readBases(raw []byte) (k keptBases, ok bool) {
	rest, tagged := bytes.CutPrefix(raw, []byte(baseTag))
	if !tagged || len(rest) < sha256.Size {
		return k, false
	}
	if sum := sha256.Sum256(rest[sha256.Size:]); !bytes.Equal(sum[:], rest[:sha256.Size]) {
		return k, false
	}
	d := batchReader{rest: rest[sha256.Size:]}
	if k.cut, ok = parseCut(d.bytes()); !ok {
		return k, false
	}
	for range d.count(uint64(len(protocol.Hash{}))) {
		b := Base{}
		var err error
		if b.Log, err = protocol.ParseLogID(d.text()); err != nil {
			return k, false
		}
		b.Seq = d.number()
		copy(b.Hash[:], d.take(uint64(len(b.Hash))))
		k.bases = append(k.bases, b)
	}
	k.snapshot = orEmpty(d.take(d.number()))
	return k, !d.bad && len(d.rest) == 0 && basesSum(k.bases) == k.cut.bases && sha256.Sum256(k.snapshot) == k.cut.snapshot
}

func readBaseFile(dir string) (keptBases, bool) {
	raw, err := os.ReadFile(baseFile(dir))
	if err != nil {
		return keptBases{}, false
	}
	return readBases(raw)
}

// besideNow makes database and file alike when a store is opened. A database that knows of an older Leave has lost its last
// changes: a write-ahead log that was cut is like one that was not written to its end.
func (j *Journal) besideNow() error {
	j.leaveMu.Lock()
	defer j.leaveMu.Unlock()
	kept, ok := readBaseFile(j.dir)
	if ok && kept.cut.number > j.cut.number {
		err := j.stage(kept.cut.number, kept.snapshot)
		if err == nil {
			err = j.inForce(kept.bases, kept.cut, true)
		}
		if err != nil && !errors.Is(err, ErrBase) && !errors.Is(err, ErrUndelivered) {
			return err
		}
		j.log.Warn("the database did not know of the last records that left", "err", err)
	}
	if j.cut.number == 0 {
		return nil
	}
	return j.beside()
}

// beside makes the file what the database says. Called with leaveMu held.
func (j *Journal) beside() error {
	j.mu.RLock()
	now := j.cut
	j.mu.RUnlock()
	if kept, ok := readBaseFile(j.dir); ok && kept.cut.number == now.number && kept.cut.bases == now.bases && kept.cut.snapshot == now.snapshot {
		return nil
	}
	snapshot, _, err := j.Snapshot()
	if err != nil {
		return err
	}
	return j.writeBaseFile(snapshot)
}

// databaseBases reads what a database says, if that is whole.
func databaseBases(c *conn) (k keptBases, err error) {
	if k.cut, err = readCut(c); err != nil || k.cut.number == 0 {
		return keptBases{}, err
	}
	bad := false
	if err := c.each("SELECT l.name, b.seq, b.hash FROM bases b JOIN logs l ON l.id=b.log ORDER BY l.name", nil, func(s *sqlite3.Stmt) bool {
		log, err := protocol.ParseLogID(s.ColumnText(0))
		b := Base{Log: log, Seq: uint64(s.ColumnInt64(1))}
		bad = bad || err != nil || !fill(b.Hash[:], s.ColumnRawBlob(2))
		k.bases = append(k.bases, b)
		return true
	}); err != nil {
		return keptBases{}, err
	}
	if bad || basesSum(k.bases) != k.cut.bases {
		return keptBases{}, fmt.Errorf("%w: its bases", ErrDamaged)
	}
	if k.snapshot, err = readSnapshot(c, &k.cut); err != nil {
		return keptBases{}, err
	}
	return k, nil
}

// takeBases gives a store that is made anew the bases of the one before, before its records. old is nil when nothing is left of
// that. Those in the file count if the database has none that are whole, or older ones.
func (j *Journal) takeBases(old *conn) error {
	var best keptBases
	if old != nil {
		var err error
		if best, err = databaseBases(old); err != nil {
			j.log.Warn("the bases in the damaged store are not readable", "err", err)
		}
	}
	if kept, ok := readBaseFile(j.dir); ok && kept.cut.number > best.cut.number {
		best = kept
	}
	if best.cut.number == 0 {
		return nil
	}
	j.leaveMu.Lock()
	defer j.leaveMu.Unlock()
	if err := j.stage(best.cut.number, best.snapshot); err != nil {
		return fmt.Errorf("take over the snapshot: %w", err)
	}
	if err := j.inForce(best.bases, best.cut, true); err != nil {
		return fmt.Errorf("take over the bases: %w", err)
	}
	return nil
}

// baseFault says what is wrong with the file, if the database relies on it.
func baseFault(dir string, now *cut) string {
	if now.stage == sweepNone {
		return ""
	}
	if _, err := os.Lstat(baseFile(dir)); errors.Is(err, fs.ErrNotExist) {
		return "journal.base is missing: it is made again from the database"
	}
	if kept, ok := readBaseFile(dir); !ok || kept.cut.number != now.number {
		return "journal.base is damaged: it is made again from the database"
	}
	return ""
}
