package roles

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/aster-mesh/aster/protocol"
)

// Bound is a binding in force, as far as it decides about names.
type Bound struct {
	Agent protocol.AgentID // as its first home bound it
	First protocol.PeerID  // that home
	Since protocol.HLC     // by its own word
	// Guest: the first home is a member outside, which may say any time. Admitted is when the inside let that in, ms.
	Guest    bool
	Admitted int64
}

// Called gives every binding in force the id that its agent is called by; no two get ids that fold alike. Of those of one
// id the first keeps it: the smallest (since, first home), those of members outside behind all others and among
// themselves by who was admitted first, which is the inside's word (decision 012). The others get the first free ID-2,
// ID-3, … An id that somebody bound is never given to another. The result stands as all does and depends on the set alone.
func Called(all []Bound) []protocol.AgentID {
	out := make([]protocol.AgentID, len(all))
	order := make([]int, len(all))
	taken := make(map[protocol.AgentID]bool, len(all))
	for i := range all {
		order[i] = i
		taken[protocol.FoldAgentID(all[i].Agent)] = true
	}
	slices.SortFunc(order, func(i, j int) int {
		a, b := &all[i], &all[j]
		if c := strings.Compare(string(protocol.FoldAgentID(a.Agent)), string(protocol.FoldAgentID(b.Agent))); c != 0 {
			return c
		}
		return a.compare(b)
	})
	for n, i := range order {
		id := all[i].Agent
		if n > 0 && protocol.FoldAgentID(all[order[n-1]].Agent) == protocol.FoldAgentID(id) {
			for k := 2; taken[protocol.FoldAgentID(id)]; k++ {
				id = suffixed(all[i].Agent, k)
			}
			taken[protocol.FoldAgentID(id)] = true
		}
		out[i] = id
	}
	return out
}

// compare orders bindings of one id: who keeps it comes first.
func (b *Bound) compare(o *Bound) int {
	switch {
	case b.Guest && !o.Guest:
		return 1
	case !b.Guest && o.Guest:
		return -1
	case b.Guest:
		return cmp.Or(cmp.Compare(b.Admitted, o.Admitted), strings.Compare(string(b.First), string(o.First)))
	}
	return cmp.Or(cmp.Compare(b.Since, o.Since), strings.Compare(string(b.First), string(o.First)))
}

func suffixed(id protocol.AgentID, n int) protocol.AgentID {
	end := fmt.Sprintf("-%d", n)
	base := string(id)
	for len(base)+len(end) > protocol.AgentIDBytesMax {
		_, size := utf8.DecodeLastRuneInString(base)
		base = base[:len(base)-size]
	}
	return protocol.AgentID(base + end)
}
