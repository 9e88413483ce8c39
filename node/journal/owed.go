package journal

import (
	"fmt"

	"github.com/ncruces/go-sqlite3"

	"github.com/aster-mesh/aster/protocol"
)

// Owed lists messages to an agent, oldest first, at most limit, that nobody has processed or refused and that are in no inbox
// of it here: those of a store that lost its inbox and was given its records again.
func (j *Journal) Owed(agent protocol.AgentID, after uint64, limit int) (out []Stored, err error) {
	key := fold(agent)
	err = j.read(func(c *conn) error {
		return c.each("SELECT "+recordColumns+" FROM records WHERE pos IN (SELECT pos FROM msgs WHERE target=? AND pos>? AND state=? AND "+
			"NOT EXISTS (SELECT 1 FROM inbox WHERE inbox.key=? AND inbox.pos=msgs.pos)"+j.kept("msgs.pos")+" ORDER BY pos LIMIT ?) ORDER BY pos",
			[]any{key, after, stateOpen, key, limit}, func(s *sqlite3.Stmt) bool {
				if st, whole := j.scanRecord(s); whole {
					out = append(out, st)
				} else {
					j.noteBad(int64(st.Pos))
				}
				return true
			})
	})
	if err != nil {
		return nil, fmt.Errorf("messages owed to %s: %w", agent, err)
	}
	return out, nil
}
