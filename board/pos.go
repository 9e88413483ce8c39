package board

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"github.com/aster-mesh/aster/protocol"
)

// pos is where a write stands in the one order that all nodes agree on: (hybrid time, log, seq).
type pos struct {
	at  protocol.HLC
	log protocol.LogID
	seq uint64
}

func (p pos) compare(o pos) int {
	return cmp.Or(cmp.Compare(p.at, o.at), compareLogs(p.log, o.log), cmp.Compare(p.seq, o.seq))
}

func (p pos) before(o pos) bool { return p.compare(o) < 0 }

func compareLogs(a, b protocol.LogID) int {
	return cmp.Or(strings.Compare(string(a.Peer), string(b.Peer)), cmp.Compare(a.Start.At, b.Start.At),
		cmp.Compare(a.Start.Rand, b.Start.Rand), strings.Compare(string(a.Scope), string(b.Scope)))
}

// MarshalText writes "AT SEQ LOG".
func (p pos) MarshalText() ([]byte, error) {
	return fmt.Appendf(nil, "%d %d %s", uint64(p.at), p.seq, p.log), nil
}

// UnmarshalText reads what MarshalText wrote.
func (p *pos) UnmarshalText(text []byte) error {
	parts := strings.SplitN(string(text), " ", 3)
	if len(parts) != 3 {
		return fmt.Errorf("not a position: %q", protocol.CutText(string(text), 80))
	}
	at, err := strconv.ParseUint(parts[0], 10, 64)
	if err != nil {
		return fmt.Errorf("position: %w", err)
	}
	seq, err := strconv.ParseUint(parts[1], 10, 64)
	if err != nil {
		return fmt.Errorf("position: %w", err)
	}
	log, err := protocol.ParseLogID(parts[2])
	if err != nil {
		return fmt.Errorf("position: %w", err)
	}
	*p = pos{protocol.HLC(at), log, seq}
	return nil
}
