package turn

import (
	"bytes"
	"crypto/ed25519"
	"testing"
	"time"

	"github.com/aster-mesh/aster/board"
	"github.com/aster-mesh/aster/node/hub"
	"github.com/aster-mesh/aster/node/replica"
	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/meshwire"
	"github.com/aster-mesh/aster/roles/claim"
	"github.com/aster-mesh/aster/roles/member"
)

// askShell is a loop whose main is elsewhere and linked. What waits for the turn to be durable runs with commit.
type askShell struct {
	holderShell
	board *board.State
	sent  []meshwire.Claims
	after []func(error)
}

func (s *askShell) Cores() (*hub.Core, *board.State, *replica.Replica) { return s.core, s.board, nil }
func (s *askShell) Moment() protocol.Moment                            { return protocol.Moment{Wall: 1, Boot: "b"} }
func (s *askShell) Inside(protocol.PeerID) bool                        { return true }
func (s *askShell) Linked(protocol.PeerID) bool                        { return true }
func (s *askShell) Durable(f func(error))                              { s.after = append(s.after, f) }
func (s *askShell) Send(_ protocol.PeerID, f meshwire.Frame) {
	s.sent = append(s.sent, f.(meshwire.Claims))
}

func (s *askShell) commit() { s.end(nil) }

// end is the end of a turn: it is durable, or taken back for err.
func (s *askShell) end(err error) {
	all := s.after
	s.after = nil
	for _, f := range all {
		f(err)
	}
}

// asking is the office of a node that is not main, and main.
func asking(t *testing.T) (*Office, *askShell, protocol.PeerID) {
	t.Helper()
	meshKey, key := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{9}, 32)), ed25519.NewKeyFromSeed(bytes.Repeat([]byte{1}, 32))
	main := protocol.PeerIDOf(key.Public().(ed25519.PublicKey))
	chain, no := member.Found(meshKey, member.Admit{Peer: main, Name: "main", Role: protocol.RoleLocal}, time.UnixMilli(1))
	if no != nil {
		t.Fatal(no)
	}
	st := board.New(member.MeshIDOf(meshKey.Public().(ed25519.PublicKey)))
	log := protocol.LogID{Peer: main, Start: protocol.Start{At: 1 << 20}, Scope: protocol.ScopeInside}
	for i, b := range []any{
		protocol.MemberBody{Peer: main, Name: "main", Role: protocol.RoleLocal, Chain: member.EncodeChain(chain)},
		protocol.TermBody{Number: 1, Peer: main},
	} {
		rec := protocol.Record{Log: log, Seq: uint64(i + 1), At: protocol.HLC(1<<20 + i + 1), Kind: []protocol.Kind{protocol.KindMember, protocol.KindTerm}[i], Body: protocol.EncodeBody(b)}
		if err := st.Apply(&rec, nil); err != nil {
			t.Fatal(err)
		}
	}
	holder, err := claim.NewHolder(nil)
	if err != nil {
		t.Fatal(err)
	}
	s := &askShell{holderShell: holderShell{core: hub.New(hub.Boot{Self: "me", Now: time.UnixMilli(1)})}, board: st}
	return &Office{self: "me", do: s, claims: claims{holder: holder}}, s, main
}

func (s *askShell) grants(o *Office, main protocol.PeerID, q meshwire.Claims) {
	q.Items[0].Scopes, q.Items[0].Term = []string{"path:src"}, protocol.Term{Number: 1, Peer: main}
	o.Asked(main, &meshwire.Claims{Kind: askAnswer, Token: q.Token, OK: true, Items: q.Items, Term: q.Items[0].Term})
}

// TestAClaimThatNobodyWaitsForIsReleased: whoever gave up was told that it has no claim, so neither this node nor main may
// go on holding one, whenever main's yes comes.
func TestAClaimThatNobodyWaitsForIsReleased(t *testing.T) {
	want := claim.Claim{ID: "c", Agent: "ada", Home: "me", Session: "1/2/b", Scopes: []string{"path:src"}}
	for _, when := range []string{"before the answer", "before the answer is durable"} {
		t.Run(when, func(t *testing.T) {
			o, s, main := asking(t)
			told := 0
			forget := o.Acquire(want, func(claim.Claim, *protocol.Refusal) { told++ })
			if len(s.sent) != 1 || s.sent[0].Kind != askAcquire {
				t.Fatalf("asked %+v", s.sent)
			}
			question := s.sent[0]
			if when == "before the answer" {
				forget()
				s.grants(o, main, question)
			} else {
				s.grants(o, main, question)
				forget()
			}
			s.commit()
			forget()
			if told != 0 || len(o.Held()) != 0 {
				t.Errorf("told %d times, holds %v", told, o.Held())
			}
			if len(s.sent) != 2 || s.sent[1].Kind != askRelease || s.sent[1].Items[0].ID != want.ID {
				t.Errorf("main heard %+v", s.sent)
			}
		})
	}
}

// TestGivingUpTakesNoClaimThatIsHeld: neither one that was answered, nor what the same process held before it asked again.
func TestGivingUpTakesNoClaimThatIsHeld(t *testing.T) {
	o, s, main := asking(t)
	told := 0
	ask := func(id string) func() {
		return o.Acquire(claim.Claim{ID: id, Agent: "ada", Home: "me", Session: "1/2/b", Scopes: []string{"path:src/"}}, func(_ claim.Claim, no *protocol.Refusal) {
			if told++; no != nil {
				t.Error(no)
			}
		})
	}
	forget := ask("c")
	s.grants(o, main, s.sent[0])
	s.commit()
	forget()
	if told != 1 || len(o.Held()) != 1 || len(s.sent) != 1 {
		t.Fatalf("told %d times, holds %v, main heard %+v", told, o.Held(), s.sent)
	}
	forget = ask("d")
	forget()
	if len(o.Held()) != 1 || len(s.sent) != 2 {
		t.Errorf("holds %v, main heard %+v", o.Held(), s.sent)
	}
	s.grants(o, main, s.sent[1])
	s.commit()
	if held := o.Held(); told != 1 || len(held) != 1 || held[0].ID != "d" {
		t.Errorf("told %d times, holds %v: main has ended the old one", told, held)
	}
}
