package claim

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/aster-mesh/aster/protocol"
)

func TestScopesThatNameOnePlaceOverlap(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{"src/api", "src/api", true}, {"src/api/", "path:src/api", true}, {"./src//api", "SRC/Api/x.go", true}, {`src\api`, "src/api/x", true},
		{"src/x/../api", "src/api", true}, {"src/api", "src/apis", false}, {"src/api", "src", true}, {".", "anything/at/all", true}, {"/src", "src/x", true},
		{"a", "b", false}, {"contract:Login", "contract: login ", true}, {"contract:login", "login", false}, {"contract:a", "contract:a/b", false},
		{"straße", "STRAßE/x", true}, {"K", "k/x", true}, {"src/..", "x", true},
		{".github", "github", false}, {".github/x", "./.GitHub", true}, {"..data", ".data", false}, {"...", ".", true}, {"...", "....", false}, {"İ", "i", false},
		{strings.Repeat("Ⱥ", 150), strings.Repeat("ⱥ", 150) + "/x", true}, {strings.Repeat("a", 512), "b", false},
	} {
		a, no := Parse(c.a)
		b, no2 := Parse(c.b)
		if no != nil || no2 != nil {
			t.Fatalf("%q, %q: %v, %v", c.a, c.b, no, no2)
		}
		if a.Overlaps(b) != c.want || b.Overlaps(a) != c.want {
			t.Errorf("%q and %q: want overlap %v", c.a, c.b, c.want)
		}
		if again, no := Parse(a.String()); no != nil || again != a {
			t.Errorf("%q is not %q when read again: %v", c.a, a, no)
		}
	}
	for _, bad := range []string{"", "..", "a/../../b", `..\x`, "contract:", "contract:  ", "a\x00b", "path:", string(make([]byte, 600)), "\xff"} {
		if s, no := Parse(bad); no == nil {
			t.Errorf("%q is %v", bad, s)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"src/api", "path:./a//b/../c/", "contract:Login API", `a\b`, "..", ".", "/", "ſ", "K", ".git", "..x", "İ", "Ⱥ"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, no := Parse(text)
		if no != nil {
			return
		}
		again, no := Parse(s.String())
		if no != nil || again != s {
			t.Fatalf("%q is %q, and that is %q (%v)", text, s, again, no)
		}
	})
}

func at(d time.Duration) protocol.Moment {
	return protocol.Moment{Wall: (time.Hour + d).Milliseconds(), Up: time.Hour + d, Boot: "b"}
}

func want(id string, home protocol.PeerID, scope string) Claim {
	return Claim{ID: id, Agent: protocol.AgentID("agent-" + home), Home: home, Session: "s", Scopes: []string{scope}}
}

func TestAClaimIsGrantedOnceAndEndsExactly(t *testing.T) {
	term := protocol.Term{Number: 1, Peer: "A"}
	g := NewGranter(term, at(0), nil, nil)
	c, no := g.Acquire(at(0), want("1", "A", "src/api"))
	if no != nil {
		t.Fatal(no)
	}
	if _, no := g.Acquire(at(time.Second), want("2", "B", "SRC/api/x.go")); no == nil || no.Code != protocol.CodeBusy {
		t.Fatalf("granted twice: %v", no)
	}
	if again, no := g.Acquire(at(time.Minute), want("3", "A", "src/api/")); no != nil || again.ID != "3" {
		t.Fatalf("the holder asks again: %+v, %v", again, no)
	}
	if g.Renew(at(time.Minute), "B", "1") || g.Release("B", "1", "") {
		t.Error("another node renewed or released it")
	}
	h, _ := NewHolder(nil)
	c.ID = "3"
	h.Granted(at(time.Minute), c)
	end := time.Minute + protocol.ClaimLease
	if left := h.Left(at(end-protocol.ClaimStopsEarly-time.Millisecond), "3"); left != time.Millisecond {
		t.Errorf("left %v", left)
	}
	if got := h.Expired(at(end - protocol.ClaimStopsEarly)); len(got) != 1 {
		t.Error("the holder goes on after its time")
	}
	if _, no := g.Acquire(at(end-time.Millisecond), want("4", "B", "src")); no == nil {
		t.Error("granted before the lease ended")
	}
	if _, no := g.Acquire(at(end), want("4", "B", "src")); no != nil {
		t.Errorf("not granted when the lease ended: %v", no)
	}
	ops := []protocol.ClaimOp{}
	for _, r := range g.Records() {
		ops = append(ops, r.Op)
	}
	if len(ops) != 5 || ops[0] != protocol.ClaimGrant || ops[1] != protocol.ClaimEnd || ops[3] != protocol.ClaimEnd {
		t.Errorf("records %v", ops)
	}
}

func TestALeaseGoesOnOverARestartOfItsHolder(t *testing.T) {
	h, _ := NewHolder(nil)
	h.Granted(at(0), want("1", "A", "x"))
	back, err := NewHolder(h.Encode())
	if err != nil || back.Left(at(time.Minute), "1") != protocol.ClaimLease-protocol.ClaimStopsEarly-time.Minute {
		t.Fatalf("after a restart: %v, %v", back.Left(at(time.Minute), "1"), err)
	}
	rebooted := at(time.Minute)
	rebooted.Boot, rebooted.Up = "c", time.Second
	if got := back.Left(rebooted, "1"); got != protocol.ClaimLease-protocol.ClaimStopsEarly-time.Minute {
		t.Errorf("after a reboot: %v", got)
	}
	rebooted.Wall -= time.Hour.Milliseconds()
	if got := back.Left(rebooted, "1"); got != 0 {
		t.Errorf("with a clock that was set back: %v", got)
	}
	for _, bad := range []string{"x", "[]", `{"a":null}`, `{"a":{"ID":"b"}}`} {
		if _, err := NewHolder([]byte(bad)); !errors.Is(err, ErrBadHeld) {
			t.Errorf("%s: %v", bad, err)
		}
	}
}

func FuzzNewHolder(f *testing.F) {
	f.Add([]byte(`{"a":{"ID":"a","Scopes":["x"],"Asked":{"wall":1,"up":2,"boot":"b"}}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		if h, err := NewHolder(text); err == nil {
			h.Expired(at(0))
			h.Encode()
		}
	})
}

func TestANewMainAsksFirst(t *testing.T) {
	old, now := protocol.Term{Number: 1, Peer: "A"}, protocol.Term{Number: 2, Peer: "B"}
	known := want("1", "C", "x")
	known.Term = old
	g := NewGranter(now, at(0), []Claim{known}, []protocol.PeerID{"C", "D"})
	if _, no := g.Acquire(at(time.Second), want("2", "B", "y")); no == nil {
		t.Fatal("granted before anybody was asked")
	}
	unseen := want("9", "D", "y")
	unseen.Term = old
	if lost := g.Held(at(time.Second), "D", []Claim{unseen}); len(lost) != 0 {
		t.Fatalf("lost %v", lost)
	}
	clash := want("8", "C", "y/z")
	if lost := g.Held(at(time.Second), "C", []Claim{clash}); len(lost) != 1 {
		t.Fatalf("lost %v, want the one that overlaps", lost)
	}
	if g.Caution(at(time.Second)) != 0 {
		t.Error("it waits although all have answered")
	}
	if _, no := g.Acquire(at(time.Second), want("2", "B", "y")); no == nil {
		t.Error("what D holds was granted to B")
	}
	if !g.Release("D", "9", "done") {
		t.Error("not released")
	}
	if _, no := g.Acquire(at(time.Second), want("4", "B", "y/z/1")); no == nil {
		t.Error("what C was told to give up was granted before its lease ended")
	}
	if _, no := g.Acquire(at(time.Second+protocol.ClaimLease), want("5", "B", "y/z/1")); no != nil {
		t.Errorf("and not after: %v", no)
	}
	if _, no := g.Acquire(at(time.Second), want("3", "B", "x")); no != nil {
		t.Errorf("what C no longer holds: %v", no)
	}
	var taken []protocol.ClaimBody
	for _, r := range g.Records() {
		if r.ID == "9" {
			taken = append(taken, r)
		}
	}
	if len(taken) != 2 || taken[0].Of != old || taken[0].Term != now {
		t.Errorf("taken over as %+v", taken)
	}
	h, _ := NewHolder(nil)
	h.Tell(now)
	late := want("7", "C", "z")
	if late.Term = old; h.Granted(at(0), late) {
		t.Error("an old main's yes counted after a new one was told")
	}
}

func TestAFormerMainsGrantThatComesLateEnds(t *testing.T) {
	old, now := protocol.Term{Number: 1, Peer: "A"}, protocol.Term{Number: 2, Peer: "B"}
	g := NewGranter(now, at(0), nil, nil)
	late := want("1", "C", "x")
	late.Term = old
	if !g.Learn(at(time.Second), late) || g.Learn(at(time.Second), late) {
		t.Fatal("it is news once")
	}
	if _, no := g.Acquire(at(time.Second), want("2", "D", "x/y")); no == nil {
		t.Error("what C may hold was granted to D")
	}
	if s := g.Silent(); len(s) != 1 || s[0] != "C" {
		t.Errorf("to be asked: %v, want C", s)
	}
	if lost := g.Held(at(time.Second), "C", nil); len(lost) != 0 || g.Knows("1") {
		t.Errorf("held after C said that it holds nothing; lost %v", lost)
	}
	if g.Learn(at(2*time.Second), late) {
		t.Error("what has ended was taken up again, as the records do not show its end yet")
	}

	unanswered := want("3", "D", "z")
	unanswered.Term = old
	g.Learn(at(0), unanswered)
	if g.Tick(at(protocol.ClaimLease)); g.Knows("3") {
		t.Error("held though its holder was silent for a lease")
	}
	own := want("4", "C", "q")
	if own, no := g.Acquire(at(protocol.ClaimLease), own); no != nil || !g.Release("C", "4", "done") || g.Learn(at(protocol.ClaimLease), own) {
		t.Errorf("a claim of this term that was released was taken up again (%v)", no)
	}
	ended := map[string]bool{}
	for _, r := range g.Records() {
		if r.Op == protocol.ClaimEnd && r.Of == old {
			ended[r.ID] = true
		}
	}
	if len(ended) != 2 {
		t.Errorf("ended on the record: %v", ended)
	}
}
