package journal

import (
	"errors"
	"strings"

	"github.com/ncruces/go-sqlite3"
)

// unindex takes the words of messages out of the search index, durably. An index that is damaged is begun anew, without them.
func (j *Journal) unindex(gone []leaver) error {
	x := &j.search
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.c == nil {
		return nil // it is begun anew when the store is next opened, or search is over
	}
	if err := x.c.db.Exec("PRAGMA synchronous=FULL"); err != nil {
		return err
	}
	err := inTransaction(x.c, func() error {
		for i := range gone {
			l := &gone[i]
			if l.env == nil || uint64(l.pos) > x.upTo {
				continue
			}
			text := indexText(l.env)
			word, _, _ := strings.Cut(text, " ")
			if word == "" {
				continue
			}
			// Words are not taken out twice: a process that ended behind this transaction comes here again.
			is, err := x.c.one("SELECT 1 FROM words WHERE words MATCH ? AND rowid=?", []any{`"` + word + `"`, l.pos}, func(*sqlite3.Stmt) {})
			if err == nil && is {
				err = x.c.exec("INSERT INTO words(words, rowid, text) VALUES('delete', ?, ?)", l.pos, text)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return j.mendSearch(err)
	}
	return errors.Join(err, x.c.db.Exec("PRAGMA synchronous=NORMAL"))
}
