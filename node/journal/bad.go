package journal

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"

	"github.com/ncruces/go-sqlite3"
)

// badPath names the file that remembers which records are damaged, so that a node asks others for them after a restart too.
func (j *Journal) badPath() string { return filepath.Join(j.dir, "damaged.list") }

// keepBad writes down what is damaged now. That it cannot is no more than a warning: the scrubber finds it again.
func (j *Journal) keepBad() {
	j.badMu.Lock()
	defer j.badMu.Unlock()
	j.mu.RLock()
	all := make([]int64, 0, len(j.bad))
	for pos := range j.bad {
		all = append(all, pos)
	}
	j.mu.RUnlock()
	var err error
	if len(all) == 0 {
		if err = os.Remove(j.badPath()); os.IsNotExist(err) {
			err = nil
		}
	} else {
		slices.Sort(all)
		var raw []byte
		if raw, err = json.Marshal(all); err == nil {
			err = os.WriteFile(j.badPath()+".new", raw, 0o600)
		}
		if err == nil {
			err = os.Rename(j.badPath()+".new", j.badPath())
		}
	}
	if err != nil {
		j.log.Warn("what is damaged was not written down", "err", err)
	}
}

// readBad takes up what was damaged when the store was last open, as far as it still is.
func (j *Journal) readBad() {
	raw, err := os.ReadFile(j.badPath())
	if err != nil {
		return
	}
	var all []int64
	if err := json.Unmarshal(raw, &all); err != nil {
		return // it is made again as damage is met
	}
	for _, pos := range all {
		_, err := j.writer.one("SELECT "+recordColumns+" FROM records WHERE pos=?", []any{pos}, func(s *sqlite3.Stmt) {
			if _, whole := j.scanRecord(s); !whole {
				j.noteBad(pos)
			}
		})
		if err != nil {
			j.log.Warn("a record that was damaged is not readable", "pos", pos, "err", j.suspect(err))
		}
	}
	j.keepBad()
}
