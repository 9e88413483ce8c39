package hub

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/aster-mesh/aster/protocol"
)

// farStage is a hub with three agents of its own, and a room of another board with one agent of that board.
func farStage(t *testing.T) *stage {
	t.Helper()
	s := newStage()
	for i, id := range []string{"alice", "al", "carol"} {
		s.do(t, []string{"attach", string(rune('a' + i)), id})
	}
	for i, a := range []Attach{{Agent: "rt-1@far", Client: ClientRoom}, {Agent: "bob@far", Client: ClientBoard}} {
		a.Conn, a.Role = ConnID(100+i), protocol.RoleCollab
		s.core.Step(s.now, a)
	}
	s.core.Ready(s.now)
	return s
}

func inFar(from protocol.AgentID, id protocol.MsgID, intent protocol.Intent, text string) protocol.Envelope {
	return protocol.Envelope{ID: id, From: from, Room: "rt-1@far", Intent: intent, Value: protocol.EncodeBody(map[string]string{"text": text})}
}

// given are whom a turn gives mail to, in order, and the answer to its last token.
func (s *stage) given(in Input) (to []protocol.AgentID, code string) {
	seen := func(env *protocol.Envelope) *Seen {
		if was, ok := s.seen[env.Identity()]; ok {
			return &was
		}
		return nil
	}
	switch one := in.(type) {
	case Heard:
		one.Seen = seen(&one.Env)
		in = one
	case Say:
		one.Env.From = one.As
		one.Seen = seen(&one.Env)
		in = one
	}
	s.core.Step(s.now, in)
	rd := s.core.Ready(s.now)
	for _, d := range rd.Drafts {
		if d.Env != nil {
			s.seen[d.Env.Identity()] = Seen{d.Env.Content(), Ref{d.Record.Log, d.Record.Seq}}
		}
	}
	for _, p := range rd.Inbox {
		to = append(to, p.Agent)
	}
	for _, o := range rd.Out {
		if told, ok := o.(Told); ok && told.Refusal != nil {
			code = told.Refusal.Code
		}
	}
	return to, code
}

// TestWhatIsSaidInAFarRoomReachesWhomItsBoardGaveIt, once each, in one record; another's words under its id are no repeat.
func TestWhatIsSaidInAFarRoomReachesWhomItsBoardGaveIt(t *testing.T) {
	s := farStage(t)
	first := inFar("bob@far", "b1", "Say", "hello")
	for _, tt := range []struct {
		what string
		in   Heard
		to   protocol.AgentID
		code string
	}{
		{"the first copy", Heard{Env: first, To: "alice", Also: []protocol.AgentID{"al"}}, "alice", ""},
		{"the same once more", Heard{Env: first, To: "alice"}, "", ""},
		{"another's copy", Heard{Env: first, To: "al"}, "al", ""},
		{"one that was dealt with", Heard{Env: first, To: "carol", Had: true}, "", ""},
		{"other words", Heard{Env: inFar("bob@far", "b1", "Say", "bye"), To: "alice"}, "", protocol.CodeMsgIDReused},
		{"an order", Heard{Env: inFar("bob@far", "b2", protocol.Delegate, "do it"), To: "alice"}, "", protocol.CodeNotAllowed},
		{"a hub's name", Heard{Env: inFar("bob@far", "b3", "RoomClosed", ""), To: "alice"}, "", protocol.CodeReservedName},
		{"a forged speaker", Heard{Env: inFar("carol", "b4", "Say", "I am carol"), To: "alice"}, "", protocol.CodeUnknownAgent},
		{"our own word that nobody said", Heard{Env: inFar("carol", "b5", "Say", "x"), To: "alice", Own: true}, "", protocol.CodeUnknownID},
		{"for nobody here", Heard{Env: inFar("bob@far", "b6", "Say", "x"), To: "dave"}, "", protocol.CodeUnknownAgent},
	} {
		tt.in.Token = 7
		to, code := s.given(tt.in)
		if code != tt.code || len(to) > 1 || len(to) == 1 && to[0] != tt.to || len(to) == 0 && tt.to != "" {
			t.Errorf("%s: given to %v, refused %q; want %q, %q", tt.what, to, code, tt.to, tt.code)
		}
	}
}

// TestWhoSpeaksInAFarRoom: what a member says waits in the room's inbox, by whatever name the room is meant, until its board has
// it; nobody else says anything there.
func TestWhoSpeaksInAFarRoom(t *testing.T) {
	s := farStage(t)
	in := &Far{Room: "rt-1@far", In: true, There: true}
	out := &Far{Room: "rt-1@far", There: true}
	away := &Far{Room: "rt-1@far", In: true}
	byName := inFar("alice", "a2", "Say", "by its name")
	byName.Room, byName.To = "", "RT-1@far"
	for _, tt := range []struct {
		what string
		in   Say
		to   protocol.AgentID
		code string
	}{
		{"who is in", Say{As: "alice", Env: inFar("alice", "a1", "Say", "x"), Far: in}, "rt-1@far", ""},
		{"again", Say{As: "alice", Env: inFar("alice", "a1", "Say", "x"), Far: in}, "", ""},
		{"by its name", Say{As: "alice", Env: byName, Far: in}, "rt-1@far", ""},
		{"while the board is away", Say{As: "alice", Env: inFar("alice", "a3", "Say", "x"), Far: away}, "rt-1@far", ""},
		{"who is not in", Say{As: "carol", Env: inFar("carol", "c1", "Say", "x"), Far: out}, "", CodeNotParticipant},
		{"a person", Say{Env: inFar("", "p1", "Say", "x"), Far: out}, "", protocol.CodeNotAllowed},
		{"an order", Say{As: "alice", Env: inFar("alice", "a4", protocol.Delegate, "x"), Far: in}, "", protocol.CodeNotAllowed},
		{"a verb", Say{As: "alice", Env: inFar("alice", "a5", "RoomLeave", "x"), Far: in}, "", ""},
		{"a verb of who is not in", Say{As: "carol", Env: inFar("carol", "c2", "RoomClose", "x"), Far: out}, "", CodeNotParticipant},
		{"a verb while the board is away", Say{As: "alice", Env: inFar("alice", "a6", "RoomLeave", "x"), Far: away}, "", protocol.CodeNotAllowed},
	} {
		tt.in.Token = 7
		to, code := s.given(tt.in)
		if code != tt.code || len(to) > 1 || len(to) == 1 && to[0] != tt.to || len(to) == 0 && tt.to != "" {
			t.Errorf("%s: given to %v, refused %q; want %q, %q", tt.what, to, code, tt.to, tt.code)
		}
	}
	letters := s.core.home("rt-1@far").box.items
	ref := letters[0].Ref
	s.core.Step(s.now, Abroad{Agent: "rt-1@far", Ref: ref, Tier: protocol.Persisted, Reached: 2, Offline: []string{"dave@far"}})
	acked := false
	for _, o := range s.core.Ready(s.now).Out {
		if a, ok := o.(RoomAcked); ok {
			acked = a.Sender == "alice" && a.Room == "rt-1@far" && a.ID == "a1" && a.Reached == 2 && len(a.Offline) == 1
		}
	}
	if !acked || !letters[0].done {
		t.Error("the room's word on what it has is not passed on")
	}
	if to, code := s.given(Heard{Env: inFar("alice", "a1", "Say", "x"), To: "al", Own: true}); len(to) != 1 || to[0] != "al" {
		t.Errorf("al, who is in too, is given alice's word: %v %s", to, code)
	}
}

// TestWhoWroteToABoardThatIsLeftIsToldSo: in its inbox, once for all that it wrote to one there; the receipts say why.
func TestWhoWroteToABoardThatIsLeftIsToldSo(t *testing.T) {
	s := farStage(t)
	in := &Far{Room: "rt-1@far", In: true, There: true}
	for _, id := range []protocol.MsgID{"a1", "a2"} {
		s.given(Say{As: "alice", Env: inFar("alice", id, "Say", string(id)), Far: in})
	}
	s.given(Say{As: "al", Env: inFar("al", "b1", "Say", "x"), Far: in})
	s.core.Step(s.now, Detach{Conn: 100})
	s.core.Step(s.now, Forget{Agent: "rt-1@far", Left: "far"})
	rd, told, refused := s.core.Ready(s.now), map[protocol.AgentID]protocol.Envelope{}, 0
	for _, d := range rd.Drafts {
		if d.Env != nil {
			told[d.Env.To] = *d.Env
		}
		if body, err := protocol.DecodeBody[protocol.ReceiptsBody](&d.Record); err == nil && body.Tier == protocol.Refused && body.Reason == CodeBoardLeft {
			refused++
		}
	}
	var v struct {
		Kind, Code, Text string
		MsgIDs           []string
	}
	if len(told) != 2 || json.Unmarshal(told["alice"].Value, &v) != nil || v.Kind != CodeBoardLeft || len(v.MsgIDs) != 2 || !strings.Contains(v.Text, "2 messages") || !strings.Contains(v.Text, "left the board far") {
		t.Errorf("told %v; alice %+v", told, v)
	}
	if refused == 0 {
		t.Error("no receipt says that the board was left")
	}
	if mail := rd.Inbox; len(mail) != 2 {
		t.Errorf("mail for %v", mail)
	}
}
