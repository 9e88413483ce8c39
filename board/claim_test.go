package board

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/aster-mesh/aster/protocol"
)

// randomDecision is a term of the log's author, or a decision of such a term, which may have been overruled long ago.
func randomDecision(dice *rand.Rand, j *journal, l *journalLog, logs []*journalLog) (protocol.Kind, []byte) {
	term := protocol.Term{Number: uint64(1 + dice.IntN(3)), Peer: l.id.Peer}
	if dice.IntN(4) == 0 {
		b := protocol.TermBody{Number: term.Number, Peer: term.Peer, Cuts: map[string]uint64{},
			Prev: protocol.Term{Number: uint64(dice.IntN(3)), Peer: j.peers[dice.IntN(3)]}}
		for _, other := range logs {
			if other.id.Peer == b.Prev.Peer && dice.IntN(4) > 0 {
				b.Cuts[other.id.String()] = uint64(dice.IntN(60))
			}
		}
		return protocol.KindTerm, protocol.EncodeBody(b)
	}
	body := protocol.ClaimBody{Op: protocol.ClaimGrant, ID: fmt.Sprint("c", dice.IntN(4)), Term: term, Agent: "a", Scopes: []string{fmt.Sprint("path:", dice.IntN(9))}}
	if dice.IntN(3) == 0 {
		body.Of = protocol.Term{Number: uint64(1 + dice.IntN(3)), Peer: j.peers[dice.IntN(3)]}
	}
	if dice.IntN(3) == 0 {
		body.Op, body.Scopes = protocol.ClaimEnd, nil
	}
	return protocol.KindClaim, protocol.EncodeBody(body)
}

// claims answers from all records at once.
func (w twin) claims() (out []string) {
	type key struct {
		id   string
		term protocol.Term
	}
	over, open := map[key]bool{}, map[key]string{}
	for _, r := range w.records {
		b, err := protocol.DecodeBody[protocol.ClaimBody](r)
		if r.Kind != protocol.KindClaim || err != nil || r.Log.Scope != protocol.ScopeInside || b.ID == "" || r.Seq > w.roster.DecisionBound(b.Term, r.Log) {
			continue
		}
		if b.Op == protocol.ClaimGrant {
			if k := (key{b.ID, b.Term}); open[k] == "" {
				open[k] = fmt.Sprint(b.ID, b.Term, b.Scopes, r.Log, r.Seq)
			}
			if b.Of.Number == 0 || b.Of == b.Term {
				continue
			}
		}
		over[key{b.ID, b.Of}] = true
	}
	for k, text := range open {
		if !over[k] {
			out = append(out, text)
		}
	}
	slices.Sort(out)
	return out
}

func TestClaimsAgreeWithTheirDumbTwinInEveryOrder(t *testing.T) {
	seeds, held := uint64(60), 0
	if testing.Short() {
		seeds = 15
	}
	for seed := range seeds {
		j := randomJournal(t, seed, 300)
		want := twinOf(j).claims()
		held += len(want)
		for order := range uint64(4) {
			s := fold(t, emptyState(j, KeptTasks), j.merged(rand.New(rand.NewPCG(seed, order))))
			var got []string
			for _, c := range s.Claims() {
				got = append(got, fmt.Sprint(c.ID, c.Term, c.Scopes, c.Log, c.Seq))
			}
			slices.Sort(got)
			if !slices.Equal(got, want) {
				t.Fatalf("seed %d order %d: got %v, want %v", seed, order, got, want)
			}
		}
	}
	if held < int(seeds)/4 {
		t.Errorf("only %d claims in %d journals: they try nothing", held, seeds)
	}
}
