package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/aster-mesh/aster/protocol/api"
)

// comparedText says how the boards of the members compared last.
func comparedText(s api.Status) string {
	c := s.Compared
	all := len(c.Alike) + len(c.Differ) + len(c.Other) + len(c.Open)
	out := fmt.Sprintf("%d of %d nodes agree on %s records", len(c.Alike), all, count(c.Records))
	if c.Digest == "" {
		out = fmt.Sprintf("%d of %d nodes have compared %s records", all-len(c.Open), all, count(c.Records))
	}
	out += fmt.Sprintf(", %s ago", span(time.Duration(max(s.Now-c.At, 0))*time.Millisecond))
	for _, of := range []struct {
		names []string
		what  string
	}{{c.Differ, "differs"}, {c.Other, "runs another version"}, {c.Open, "has not answered"}} {
		if len(of.names) > 0 {
			out += "; " + of.what + ": " + clean(strings.Join(of.names, ", "))
		}
	}
	if len(c.In) > 0 {
		out += " (in " + clean(strings.Join(c.In, ", ")) + ")"
	}
	return out
}

// compareBoards has the members compare; what comes of it is in the status.
func (a *app) compareBoards(ctx context.Context) error {
	c, err := a.node()
	if err != nil {
		return err
	}
	defer c.Close()
	_, err = c.CompareBoards(ctx)
	return err
}

// examineCompared names the nodes whose boards differ; nil: none do, or nobody has compared them.
func examineCompared(s api.Status) []finding {
	switch c := s.Compared; {
	case c == nil:
		return nil
	case len(c.Differ) > 0:
		return []finding{bad("boards", "boards-differ", "aster doctor, on each of "+clean(strings.Join(c.Differ, ", ")), "%s", comparedText(s))}
	}
	return []finding{fine("boards", "%s", comparedText(s))}
}
