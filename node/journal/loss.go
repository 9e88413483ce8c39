package journal

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Loss is that a store which held something was damaged, and not one record of it could be taken over.
type Loss struct {
	At    int64    `json:"at"` // when it was rebuilt, Unix ms
	Bad   int      `json:"bad"`
	Pages int      `json:"pages"` // of the database file, Bad of them damaged
	Kept  []string `json:"kept"`  // the files that were set aside
}

// String says it in one line.
func (l Loss) String() string {
	if len(l.Kept) == 0 {
		return "the store was gone, and no record could be taken over: what was only here is lost"
	}
	why := ""
	if l.Bad > 0 {
		why = fmt.Sprintf(" (%d of %d pages are damaged, and without them the others cannot be read)", l.Bad, l.Pages)
	}
	return fmt.Sprintf("no record of the damaged store could be taken over%s: what was only here is lost unless %s is recovered", why, strings.Join(l.Kept, ", "))
}

// lossPath keeps what is known of it over restarts.
func lossPath(dir string) string { return filepath.Join(dir, "lost.note") }

// LossIn returns what the store in dir lost wholly, until AcceptLoss. Whether a node has the store open does not matter.
func LossIn(dir string) (l Loss, is bool) {
	raw, err := os.ReadFile(lossPath(dir))
	if err != nil {
		return l, false
	}
	_ = json.Unmarshal(raw, &l) // a note that cannot be read says it too
	return l, true
}

// AcceptLoss ends the saying of it.
func AcceptLoss(dir string) error {
	if err := os.Remove(lossPath(dir)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// noteLoss writes down that nothing was taken over from the files aside.
func (j *Journal) noteLoss(aside []string) error {
	l, _ := LossIn(j.dir)
	if l.At == 0 {
		l.At = time.Now().UnixMilli()
	}
	if len(aside) > 0 {
		bad, all := damagedPages(aside[0])
		l.Bad, l.Pages, l.Kept = l.Bad+bad, l.Pages+all, append(l.Kept, aside[0])
	}
	raw, err := json.Marshal(l)
	if err != nil {
		return err
	}
	return os.WriteFile(lossPath(j.dir), raw, 0o600)
}
