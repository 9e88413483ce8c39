package turn

import (
	"testing"

	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/roles/claim"
)

// holding is the office of a node that is not main, and whose agent holds a claim that main granted.
func holding(t *testing.T) (*Office, *askShell) {
	t.Helper()
	o, s, main := asking(t)
	o.Acquire(claim.Claim{ID: "c", Agent: "ada", Home: "me", Session: "1/2/b", Scopes: []string{"path:src"}}, func(_ claim.Claim, no *protocol.Refusal) {
		if no != nil {
			t.Fatal(no)
		}
	})
	s.grants(o, main, s.sent[0])
	s.commit()
	s.sent = nil
	if len(o.Held()) != 1 {
		t.Fatalf("holds %v", o.Held())
	}
	return o, s
}

// TestMainHearsOfAReleaseOnceItIsDurable: main may grant the same to another at once, and a store that dies before would
// still show it as held, with its lease.
func TestMainHearsOfAReleaseOnceItIsDurable(t *testing.T) {
	o, s := holding(t)
	if no := o.Release("c"); no != nil {
		t.Fatal(no)
	}
	if len(o.Held()) != 0 || len(s.sent) != 0 {
		t.Fatalf("before its commit this node holds %v and main heard %+v", o.Held(), s.sent)
	}
	s.commit()
	if len(o.Held()) != 0 || len(s.sent) != 1 || s.sent[0].Kind != askRelease || s.sent[0].Items[0].ID != "c" {
		t.Errorf("this node holds %v and main heard %+v", o.Held(), s.sent)
	}
}

// TestAReleaseThatIsTakenBackDidNotHappen: main did not hear of it, the store shows the claim, so its agent holds it with the
// lease that it had, and can release it again.
func TestAReleaseThatIsTakenBackDidNotHappen(t *testing.T) {
	o, s := holding(t)
	left := o.Left("c")
	if no := o.Release("c"); no != nil {
		t.Fatal(no)
	}
	s.end(protocol.Refuse(protocol.CodeDiskFull, "no room", ""))
	if len(o.Held()) != 1 || o.Left("c") != left || left == 0 || len(s.sent) != 0 {
		t.Fatalf("this node holds %v for %s of %s, and main heard %+v", o.Held(), o.Left("c"), left, s.sent)
	}
	if at := o.claimsDue(); !at.Equal(s.Now().Add(protocol.MainSilence)) {
		t.Errorf("a full store is tried again at %s", at)
	}
	if no := o.Release("c"); no != nil {
		t.Fatal(no)
	}
	s.commit()
	if len(o.Held()) != 0 || len(s.sent) != 1 || s.sent[0].Kind != askRelease {
		t.Errorf("once there is room this node holds %v and main heard %+v", o.Held(), s.sent)
	}
}

// TestAReleaseThatIsTakenBackLeavesWhatWasAskedForAgain: one claim of a process for the same, not two.
func TestAReleaseThatIsTakenBackLeavesWhatWasAskedForAgain(t *testing.T) {
	o, s := holding(t)
	if no := o.Release("c"); no != nil {
		t.Fatal(no)
	}
	o.Acquire(claim.Claim{ID: "d", Agent: "ada", Home: "me", Session: "1/2/b", Scopes: []string{"path:src"}}, func(claim.Claim, *protocol.Refusal) {})
	s.grants(o, o.main(), s.sent[0])
	s.end(protocol.Refuse(protocol.CodeDiskFull, "no room", ""))
	if held := o.Held(); len(held) != 1 || held[0].ID != "d" {
		t.Errorf("holds %v", held)
	}
}
