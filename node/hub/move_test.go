package hub

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/aster-mesh/aster/protocol"
)

// moves plays what is said of homes: move AGENT PEER [gone|busy]; moved PEER AGENT to PEER count N [forced] [seen SEQ]
// [unread SEQ]: another home's or main's record, which speaks of our inside log; arrive AGENT: all that its move named is here.
func (s *stage) moves(w []string) bool {
	switch w[0] {
	case "move":
		in := Move{Agent: protocol.AgentID(w[1]), To: s.peer(w[2]), Token: s.toks, Held: map[protocol.LogID]uint64{}}
		for ref, env := range s.envs {
			if a := s.core.find(in.Agent); a != nil && s.core.takes(env.To) == a {
				in.Held[ref.Log] = max(in.Held[ref.Log], ref.Seq)
			}
		}
		switch {
		case len(w) > 3 && w[3] == "gone":
			in.Gone = true
		case len(w) > 3 && w[3] == "togone":
			in.ToGone = true
		case len(w) > 3:
			in.Busy = protocol.Refuse(protocol.CodeBusy, "it works on t-7kq2m", "wait for it")
		}
		s.core.Step(s.now, in)
	case "moved":
		s.movedBy(w)
	case "arrive":
		in := Arrive{Agent: protocol.AgentID(w[1])}
		for _, a := range s.core.Arriving() {
			if a.Agent == in.Agent {
				in.Mail = s.mail(a)
			}
		}
		s.core.Step(s.now, in)
	case "arriving":
	default:
		return false
	}
	return true
}

func (s *stage) movedBy(w []string) {
	peer, to := s.peer(w[1]), s.peer(w[4])
	own := protocol.LogID{Peer: s.core.self, Start: protocol.Start{At: 1, Rand: 1}, Scope: protocol.ScopeInside}.String()
	body := protocol.MoveBody{Agent: protocol.AgentID(w[2]), Origin: peer, Since: 5, Role: protocol.RoleLocal, From: peer, To: to, Seen: map[string]uint64{}}
	if a := s.core.find(body.Agent); a != nil {
		body.Agent, body.Origin, body.From, body.Since = a.own, a.bind.First(), a.bind.Home, a.bind.Since
	}
	var n uint64
	for i := 5; i < len(w); i++ {
		if i+1 < len(w) {
			fmt.Sscan(w[i+1], &n)
		}
		switch w[i] {
		case "count":
			body.Moves = n
		case "seen":
			body.Seen[own] = n
		case "unread":
			body.Unread = append(body.Unread, protocol.LogRange{Log: own, Ranges: []uint64{n, n}})
		case "forced":
			body.Forced = true
		}
	}
	log := protocol.LogID{Peer: peer, Start: protocol.Start{At: 2, Rand: 2}, Scope: protocol.ScopeInside}
	s.seqs[log]++
	s.core.Step(s.now, Applied{Record: &protocol.Record{Log: log, Seq: s.seqs[log], At: protocol.HLCAt(s.now) + 1, Kind: protocol.KindMove, Body: protocol.EncodeBody(body)}})
}

// mail gathers as the node does, from all that was ever said here.
func (s *stage) mail(a Arrival) []Arrived {
	handed, _ := Refs(a.Move.Unread)
	refs := slices.SortedFunc(maps.Keys(s.envs), func(x, y Ref) int {
		if x.Log != y.Log {
			return strings.Compare(x.Log.String(), y.Log.String())
		}
		return int(x.Seq) - int(y.Seq)
	})
	var out []Arrived
	for _, ref := range refs {
		env := s.envs[ref]
		if s.over[ref] {
			continue
		}
		m := Arrived{Ref: ref, Env: env, At: s.now, Handed: slices.Contains(handed, ref)}
		for _, name := range a.Names {
			if protocol.FoldAgentID(name) == protocol.FoldAgentID(env.To) && (a.Move.Forced || m.Handed || ref.Seq > a.Move.Seen[ref.Log.String()]) {
				if old := s.seen[env.Identity()]; old.Ref != ref {
					m.Seen = &old
				}
				out = append(out, m)
			}
		}
	}
	return out
}

// bindWord is one word on an agent, by a home or by a move.
type bindWord struct {
	bind protocol.BindBody
	move bool
	at   protocol.HLC
}

// TestAgentsHomeDoesNotDependOnTheOrderOfWords: bindings, moves, forced moves and withdrawals of two names by three nodes,
// in every order, leave each hub with the same agents under the same names in the same homes.
func TestAgentsHomeDoesNotDependOnTheOrderOfWords(t *testing.T) {
	s := newStage()
	a, b, c := s.peer("aa"), s.peer("bb"), s.peer("cc")
	bob := protocol.BindBody{Agent: "bob", Home: a, Since: 10, Role: protocol.RoleLocal}
	with := func(bind protocol.BindBody, change func(*protocol.BindBody)) protocol.BindBody {
		change(&bind)
		return bind
	}
	at := func(home protocol.PeerID, moves uint64, forced bool) protocol.BindBody {
		return with(bob, func(x *protocol.BindBody) { x.Home, x.Origin, x.Moves, x.Forced = home, a, moves, forced })
	}
	words := []bindWord{
		{bob, false, 1}, {at(b, 1, false), true, 20}, {at(b, 1, false), false, 30}, {at(c, 1, true), true, 25}, {at(c, 1, true), false, 40},
		{bob, false, 50}, {at(a, 2, false), true, 60},
		{with(at(b, 1, false), func(x *protocol.BindBody) { x.Forgotten = true }), false, 90},
		{protocol.BindBody{Agent: "BOB", Home: b, Since: 4, Role: protocol.RoleLocal}, false, 70},
		{protocol.BindBody{Agent: "bob-2", Home: c, Since: 80, Role: protocol.RoleLocal}, false, 80},
		{protocol.BindBody{Agent: "zoe", Home: c, Since: 80, Role: protocol.RoleLocal}, false, 81},
		{protocol.BindBody{Agent: "zoe", Home: c, Since: 80, Role: protocol.RoleLocal, Forgotten: true}, false, 82},
	}
	want := ""
	for shuffle := range 500 {
		s := newStage()
		for _, name := range []string{"aa", "bb", "cc"} {
			s.do(t, []string{"member", name, "local"})
		}
		order := shuffled(len(words), uint64(shuffle))
		for _, i := range order {
			s.hears(words[i])
			if i%3 == 0 { // a copy by another log changes nothing
				s.hears(words[i])
			}
		}
		got := s.homes()
		if want == "" {
			want = got
		}
		if got != want {
			t.Fatalf("order %v:\n got %s\nwant %s", order, got, want)
		}
	}
	if !strings.Contains(want, "BOB@bb") || !strings.Contains(want, "bob-3@aa") || !strings.Contains(want, "bob-2@cc") || strings.Contains(want, "zoe") {
		t.Errorf("homes: %s", want)
	}
}

func shuffled(n int, seed uint64) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	for i := n - 1; i > 0; i-- {
		seed = seed*6364136223846793005 + 1442695040888963407
		j := int(seed>>33) % (i + 1)
		out[i], out[j] = out[j], out[i]
	}
	return out
}

func (s *stage) hears(w bindWord) {
	log := protocol.LogID{Peer: w.bind.Home, Start: protocol.Start{At: 2, Rand: uint64(w.at)}, Scope: protocol.ScopeInside}
	rec := protocol.Record{Log: log, Seq: 1, At: w.at, Kind: protocol.KindBind, Body: protocol.EncodeBody(w.bind)}
	if w.move {
		rec.Kind = protocol.KindMove
		rec.Body = protocol.EncodeBody(protocol.MoveBody{Agent: w.bind.Agent, Origin: w.bind.First(), Since: w.bind.Since, Role: w.bind.Role,
			From: w.bind.First(), To: w.bind.Home, Moves: w.bind.Moves, Forced: w.bind.Forced})
	}
	s.core.Step(s.now, Applied{Record: &rec})
}

func (s *stage) homes() string {
	var out []string
	for _, k := range s.core.Agents(s.now) {
		out = append(out, string(k.Agent)+"@"+s.names[k.Home])
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

// clientOf is what binds an agent that a play attaches with such a last word.
func clientOf(word string) string {
	if word == ClientBoard {
		return ClientBoard
	}
	return "ws"
}
