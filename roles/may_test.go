package roles

import (
	"fmt"
	"strings"
	"testing"

	"github.com/aster-mesh/aster/protocol"
)

// The rights once more, written out cell by cell and independent of the table: rows are senders, columns targets, both
// in the order main local upstream collab peer board; y = may.
var cells = map[string]struct {
	intents []protocol.Intent
	rows    [6]string
}{
	"direct": {
		[]protocol.Intent{protocol.Delegate, protocol.UserPrompt, protocol.Cancel, "Handoff", "Command", "Priority", "PreemptForce", "OperatorFeedback"},
		[6]string{"yyy...", "yy....", "y.....", "......", "......", "yyy..."},
	},
	"answer":    {[]protocol.Intent{"SelectionAnswer", "SelectionCancel"}, [6]string{"......", "......", "......", "......", "......", "yyyyyy"}},
	"step down": {[]protocol.Intent{"HandoffReady"}, [6]string{"yyyyyy", "......", "......", "......", "......", "......"}},
	"chart":     {[]protocol.Intent{"CorporateChart"}, [6]string{"yyyyyy", "......", "......", "......", "......", "yyyyyy"}},
	"talk": {
		[]protocol.Intent{protocol.Request, protocol.Response, protocol.Report, protocol.WorkerReport, protocol.WorkerAck, protocol.Ping, protocol.ServerNotice, "never-heard-of"},
		[6]string{"yyyyyy", "yyyyyy", "yyyyyy", "yyyyyy", "yyyyyy", "yyyyyy"},
	},
	"the node's own": {
		[]protocol.Intent{protocol.Ack, "AgentList", "MainChanged", "SelectionExpired", "KeyIssued", "RelayUnreachable"},
		[6]string{"......", "......", "......", "......", "......", "......"},
	},
}

func TestEveryCellOfMay(t *testing.T) {
	order := []protocol.Role{protocol.RoleMain, protocol.RoleLocal, protocol.RoleUpstream, protocol.RoleCollab, protocol.RolePeer, protocol.RoleBoard}
	for name, group := range cells {
		for _, intent := range group.intents {
			for i, sender := range order {
				for j, target := range order {
					t.Run(fmt.Sprintf("%s/%s/%s-%s", name, intent, sender, target), func(t *testing.T) {
						got := May(sender, intent, target)
						if want := group.rows[i][j] == 'y'; (got == nil) != want {
							t.Fatalf("May(%s, %s, %s) = %v, want allowed %v", sender, intent, target, got, want)
						}
						if got != nil && (got.Code == "" || got.Reason == "" || got.Hint == "") {
							t.Errorf("the refusal %+v does not say what to do instead", got)
						}
					})
				}
			}
		}
	}
}

func TestEveryIntentOfTheCatalogueHasAnAnswerForEveryRole(t *testing.T) {
	for a, rows := range table {
		if len(rows) != len(everybody) {
			t.Errorf("act %s has %d senders, want %d", a, len(rows), len(everybody))
		}
	}
	for _, row := range protocol.Catalogue() {
		if r := May(protocol.RoleMain, row.Name, protocol.RoleLocal); row.HubOnly != (r != nil && r.Code == protocol.CodeReservedName) {
			t.Errorf("%s: hub-only %v, but main is told %v", row.Name, row.HubOnly, r)
		}
	}
	for name := range acts {
		if protocol.Lookup(name).Class == protocol.ClassUnknown {
			t.Errorf("%s has rights of its own but is not in the catalogue", name)
		}
	}
}

func TestARefusedDelegateNamesRequest(t *testing.T) {
	for _, pair := range [][2]protocol.Role{{collab, mainRole}, {peer, local}, {mainRole, collab}, {board, peer}, {local, upstream}, {upstream, local}} {
		r := May(pair[0], protocol.Delegate, pair[1])
		if r == nil || !strings.Contains(r.Error(), "use Request") {
			t.Errorf("%s to %s: %v, want a refusal that names Request", pair[0], pair[1], r)
		}
	}
}

func TestRolesNobodyKnowsAreRefused(t *testing.T) {
	for _, pair := range [][2]protocol.Role{{"", local}, {"root", local}, {local, ""}, {local, "admin"}} {
		if r := May(pair[0], protocol.Request, pair[1]); r == nil || r.Code != protocol.CodeWrongRole {
			t.Errorf("%q to %q: %v, want %s", pair[0], pair[1], r, protocol.CodeWrongRole)
		}
	}
}

func TestAnOutsideNodeLendsItsRoleToAllWhoSpeakThroughIt(t *testing.T) {
	for _, c := range []struct{ node, claimed, want protocol.Role }{
		{local, mainRole, mainRole}, {local, local, local}, {local, board, board}, {local, collab, collab},
		{upstream, mainRole, upstream}, {collab, board, collab}, {peer, local, peer}, {collab, upstream, collab},
	} {
		if got := Speaking(c.node, c.claimed); got != c.want {
			t.Errorf("Speaking(%s, %s) = %s, want %s", c.node, c.claimed, got, c.want)
		}
	}
}
