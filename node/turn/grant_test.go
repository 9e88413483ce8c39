package turn

import (
	"testing"
	"time"

	"github.com/aster-mesh/aster/board"
	"github.com/aster-mesh/aster/node/hub"
	"github.com/aster-mesh/aster/node/replica"
	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/meshwire"
	"github.com/aster-mesh/aster/roles/claim"
	"github.com/aster-mesh/aster/roles/election"
)

// holderShell is a loop of which a test needs no more than where a lost claim is said.
type holderShell struct {
	Shell
	core *hub.Core
	kept int
}

func (s *holderShell) Now() time.Time        { return time.UnixMilli(1) }
func (s *holderShell) NewID() protocol.MsgID { return "m" }
func (s *holderShell) Value(string, []byte)  { s.kept++ }
func (s *holderShell) Cores() (*hub.Core, *board.State, *replica.Replica) {
	return s.core, nil, nil
}

// A claim is lost when the main of the term says so. Nobody else's word ends it, and no word ends it in silence.
func TestOnlyItsTermsMainTakesAClaimBack(t *testing.T) {
	shell := &holderShell{core: hub.New(hub.Boot{Self: "me", Now: time.UnixMilli(1)})}
	holder, err := claim.NewHolder(nil)
	if err != nil {
		t.Fatal(err)
	}
	term := protocol.Term{Number: 1, Peer: "main"}
	if !holder.Granted(protocol.Moment{}, claim.Claim{ID: "c", Agent: "ada", Home: "me", Scopes: []string{"path:src"}, Term: term}) {
		t.Fatal("not granted")
	}
	o := &Office{self: "me", do: shell, core: &election.Core{}, claims: claims{holder: holder}}
	lost := meshwire.Claims{Kind: claimLost, Term: term, Items: []meshwire.ClaimItem{{ID: "c"}}}
	o.claimFrom("other", &lost)
	if len(o.Held()) != 1 || shell.kept != 0 {
		t.Fatal("another node's word ended the claim")
	}
	o.claimFrom("main", &lost)
	if len(o.Held()) != 0 || shell.kept != 1 {
		t.Errorf("main's word left %d claims and was kept %d times", len(o.Held()), shell.kept)
	}
}
