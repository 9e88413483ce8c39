package roles

import (
	"cmp"
	"strings"

	"github.com/aster-mesh/aster/protocol"
)

// Spoken is a name of a member outside and the time of its newest word on it. Where more are remembered than may be, boards
// and hubs alike let the first of them go.
type Spoken struct {
	Agent protocol.AgentID // folded
	At    protocol.HLC
}

// Before orders names by who was spoken of longer ago; of two at one time the smaller is first.
func (s Spoken) Before(o Spoken) bool {
	return cmp.Or(cmp.Compare(s.At, o.At), strings.Compare(string(s.Agent), string(o.Agent))) < 0
}
