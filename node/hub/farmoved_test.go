package hub

import (
	"testing"

	"github.com/aster-mesh/aster/protocol"
)

// letters are what a turn wrote for others, as AGENT←ID, and whom it gave mail to here.
func (s *stage) letters(in Input) (copies, here []string) {
	s.core.Step(s.now, in)
	rd := s.core.Ready(s.now)
	for _, d := range rd.Drafts {
		if d.Env == nil {
			continue
		}
		if _, ok := s.seen[d.Env.Identity()]; !ok {
			s.seen[d.Env.Identity()] = Seen{d.Env.Content(), Ref{d.Record.Log, d.Record.Seq}}
		}
		if d.Env.To != "" {
			copies = append(copies, string(d.Env.To)+"←"+string(d.Env.ID))
		}
	}
	for _, p := range rd.Inbox {
		here = append(here, string(p.Agent))
	}
	return copies, here
}

func one(all []string) string {
	if len(all) == 1 {
		return all[0]
	}
	return ""
}

// TestARoomsWordFollowsAnAgentThatMoved: what its board gives an agent at the node that brought it there is written for its home
// now, be it the first copy, one that another agent had before, or another agent's own word; and once.
func TestARoomsWordFollowsAnAgentThatMoved(t *testing.T) {
	s := farStage(t)
	for _, line := range [][]string{{"member", "there", "local"}, {"move", "al", "there"}} {
		s.do(t, line)
		s.core.Ready(s.now)
	}
	s.given(Say{As: "alice", Env: inFar("alice", "a1", "Say", "x"), Far: &Far{Room: "rt-1@far", In: true, There: true}})
	for _, tt := range []struct {
		what         string
		env          protocol.Envelope
		to           protocol.AgentID
		own, had     bool
		copies, here string
	}{
		{"first given to who moved", inFar("bob@far", "b1", "Say", "hello"), "al", false, false, "al←b1", ""},
		{"then to who is here", inFar("bob@far", "b1", "Say", "hello"), "alice", false, false, "", "alice"},
		{"given to who moved once more", inFar("bob@far", "b1", "Say", "hello"), "al", false, true, "", ""},
		{"first given to who is here", inFar("bob@far", "b2", "Say", "hello"), "alice", false, false, "", "alice"},
		{"then to who moved", inFar("bob@far", "b2", "Say", "hello"), "al", false, false, "al←b2", ""},
		{"what alice said", inFar("alice", "a1", "Say", "x"), "al", true, false, "al←a1", ""},
	} {
		in := Heard{Env: tt.env, To: tt.to, Own: tt.own, Had: tt.had, Also: []protocol.AgentID{"al", "alice"}}
		if was, ok := s.seen[in.Env.Identity()]; ok {
			in.Seen = &was
		}
		copies, here := s.letters(in)
		if one(copies) != tt.copies || one(here) != tt.here || len(copies) > 1 || len(here) > 1 {
			t.Errorf("%s: written for others %q, given here %q; want %q, %q", tt.what, copies, here, tt.copies, tt.here)
		}
	}
	in := Heard{Env: inFar("bob@far", "b3", "Say", "hello"), To: "al"}
	s.core.Step(s.now, in) // twice in one turn
	if copies, _ := s.letters(in); len(copies) != 1 {
		t.Errorf("a word that its board gave twice in one turn was written for it as %q", copies)
	}
}

// TestTheHomeOfAnAgentThatMovedTakesItsRoomsWords of the node that is at the board, and says there what it says: in that room, by
// whatever name it means it.
func TestTheHomeOfAnAgentThatMovedTakesItsRoomsWords(t *testing.T) {
	s := newStage()
	for _, line := range [][]string{{"member", "there", "local"}, {"member", "third", "local"}, {"attach", "a", "al"}} {
		s.do(t, line)
	}
	log := protocol.LogID{Peer: s.peer("there"), Start: protocol.Start{At: 2, Rand: 2}, Scope: protocol.ScopeInside}
	apply := func(log protocol.LogID, kind protocol.Kind, body any, env *protocol.Envelope) (here []string) {
		s.seqs[log]++
		in := Applied{Record: &protocol.Record{Log: log, Seq: s.seqs[log], At: protocol.HLCAt(s.now), Wall: s.now.UnixMilli(), Kind: kind}, Env: env}
		if env != nil {
			if was, ok := s.seen[env.Identity()]; ok {
				in.Seen = &was
			} else {
				s.seen[env.Identity()] = Seen{env.Content(), Ref{log, in.Record.Seq}}
			}
		} else {
			in.Record.Body = protocol.EncodeBody(body)
		}
		_, here = s.letters(in)
		return here
	}
	for id, client := range map[protocol.AgentID]string{"rt-1@far": ClientRoom, "bob@far": ClientBoard} {
		apply(log, protocol.KindBind, protocol.BindBody{Agent: id, Home: log.Peer, Since: protocol.HLCAt(s.now), Role: protocol.RoleCollab, Client: client}, nil)
	}
	word := inFar("bob@far", "b1", "Say", "hello")
	if here := apply(log, protocol.KindMessage, nil, &word); len(here) > 0 {
		t.Errorf("a word that names nobody here was given to %q", here)
	}
	mine := word
	mine.To, mine.Rcpt = "al", []protocol.AgentID{"al"}
	forged, third := mine, log
	third.Peer = s.peer("third")
	if here := apply(third, protocol.KindMessage, nil, &forged); len(here) > 0 {
		t.Errorf("another node's copy was given to %q", here)
	}
	if here := apply(log, protocol.KindMessage, nil, &mine); one(here) != "al" {
		t.Errorf("the copy that names al was given to %q", here)
	}
	for i, env := range []protocol.Envelope{inFar("al", "m1", "Say", "x"), {ID: "m2", From: "al", To: "RT-1@far", Intent: "Say"}} {
		s.core.Step(s.now, Say{As: "al", Env: env})
		said := (*protocol.Envelope)(nil)
		for _, d := range s.core.Ready(s.now).Drafts {
			if d.Env != nil {
				said = d.Env
			}
		}
		if said == nil || said.Room != "rt-1@far" || said.To != "" || len(said.Rcpt) != 1 || said.Rcpt[0] != "rt-1@far" {
			t.Errorf("what al says (%d) is written as %+v", i, said)
		}
	}
	if _, code := s.given(Say{As: "al", Env: inFar("al", "m3", "RoomLeave", ""), Token: 1}); code != protocol.CodeNotAllowed {
		t.Errorf("a verb is answered with %q", code)
	}
	if len(s.core.rooms) > 0 {
		t.Error("this node keeps the room itself")
	}
}

// TestARoomOfAnotherBoardTakesWhatIsSaidElsewhere: of an agent that this node brought there and that lives on another now.
func TestARoomOfAnotherBoardTakesWhatIsSaidElsewhere(t *testing.T) {
	s := farStage(t)
	for _, line := range [][]string{{"member", "there", "local"}, {"move", "al", "there"}} {
		s.do(t, line)
		s.core.Ready(s.now)
	}
	log := protocol.LogID{Peer: s.peer("there"), Start: protocol.Start{At: 2, Rand: 2}, Scope: protocol.ScopeInside}
	env := inFar("al", "m1", "Say", "x")
	env.Rcpt = []protocol.AgentID{"rt-1@far"}
	_, here := s.letters(Applied{Record: &protocol.Record{Log: log, Seq: 1, At: protocol.HLCAt(s.now), Wall: s.now.UnixMilli(), Kind: protocol.KindMessage}, Env: &env})
	if one(here) != "rt-1@far" || len(s.core.home("rt-1@far").box.items) != 1 {
		t.Errorf("the room's inbox has it not: %q", here)
	}
}
