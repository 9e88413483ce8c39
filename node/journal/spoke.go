package journal

import (
	"fmt"
	"strings"

	"github.com/ncruces/go-sqlite3"

	"github.com/aster-mesh/aster/protocol"
)

// LastOf returns for each agent the position of the newest message that it said, or that a person said to it; 0 where there
// is none. It costs two looks at an index an agent.
func (j *Journal) LastOf(agents []protocol.AgentID) ([]uint64, error) {
	out := make([]uint64, len(agents))
	err := j.read(func(c *conn) error {
		kept := j.kept("msgs.pos")
		for i, a := range agents {
			for _, sql := range []string{
				"SELECT pos FROM msgs WHERE sender=?" + kept + " ORDER BY pos DESC LIMIT 1",
				"SELECT pos FROM msgs WHERE target=? AND sender IS NULL" + kept + " ORDER BY pos DESC LIMIT 1",
			} {
				if _, err := c.one(sql, []any{fold(a)}, func(s *sqlite3.Stmt) { out[i] = max(out[i], uint64(s.ColumnInt64(0))) }); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("newest messages of agents: %w", err)
	}
	return out, nil
}

// CountOf counts what an agent said and persons said to it since a hybrid time, at most to most, without the
// messages of some names.
func (j *Journal) CountOf(agent protocol.AgentID, since protocol.HLC, most int, but []protocol.Intent) (n int, err error) {
	err = j.read(func(c *conn) error {
		names, kept := "", j.kept("msgs.pos")
		var args []any
		for range 2 {
			args = append(args, fold(agent), int64(since))
			for _, name := range but {
				args = append(args, string(name))
			}
		}
		if len(but) > 0 {
			names = " AND intent NOT IN (" + strings.Repeat(",?", len(but))[1:] + ")"
		}
		_, err := c.one("SELECT count(*) FROM (SELECT 1 FROM msgs WHERE sender=? AND at>=?"+names+kept+" UNION ALL "+
			"SELECT 1 FROM msgs WHERE target=? AND sender IS NULL AND at>=?"+names+kept+" LIMIT ?)",
			append(args, most), func(s *sqlite3.Stmt) { n = int(s.ColumnInt64(0)) })
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("count messages of an agent: %w", err)
	}
	return n, nil
}
