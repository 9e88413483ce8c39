package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/api"
)

// TestWhoWasThereIsKnownAfterTheirNodeIsGone: presence that held is a record, so it outlives the link and a restart.
func TestWhoWasThereIsKnownAfterTheirNodeIsGone(t *testing.T) {
	nodes := meshOf(t, nil, "west", "east")
	west, east := nodes[0], nodes[1]
	a := attach(east, "anna")
	before, began := west.mustStatus().Journal, time.Now()
	west.knows("anna")
	eventually(t, patience, "anna's presence is a record on west", func() (bool, string) {
		st, err := west.status()
		return err == nil && time.Since(began) > protocol.PresenceSettles && st.Journal != before && st.Behind == 0, fmt.Sprintf("%d records, %v", st.Records, err)
	})
	sameEverywhere(t, nodes)
	east.kill()
	a.end()
	idle := func(what string) {
		t.Helper()
		eventually(t, patience, what, func() (bool, string) {
			all, err := west.api().Agents(t.Context())
			if err != nil || len(all) != 1 {
				return false, fmt.Sprintf("%+v, %v", all, err)
			}
			g := all[0]
			return g.State == protocol.StateIdle && g.AsOf >= began.UnixMilli() && g.AsOf <= time.Now().UnixMilli(), fmt.Sprintf("%+v", g)
		})
		if got := west.ok("agents"); !strings.Contains(got, "idle, as of ") {
			t.Errorf("%s: aster agents says:\n%s", what, got)
		}
	}
	idle("as of the end of the link")
	west.kill()
	west.up("")
	idle("as of its record, after a restart")
	var sent api.SendResult
	sent, err := west.say(t.Context(), api.SendRequest{From: "bert", To: "anna", Intent: protocol.Request, Value: text("for later")})
	if err != nil || sent.ToState != protocol.StateAway {
		t.Errorf("who sends to it now is told %q, %v: nobody can hear it", sent.ToState, err)
	}
}
