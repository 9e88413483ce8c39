package foreign

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/asterism"
)

// Options say who comes.
type Options struct {
	Agent  protocol.AgentID // its id there
	Name   string           // shown beside it
	Client string           // clientId: which program, on whose behalf

	// Greeted is the main agent there that has been told who we are; another one is told once.
	Greeted protocol.AgentID

	// Asked says whether a msgId is that of a question of ours that waits for its answer; nil: none does. Frame calls it.
	Asked func(msgID string) bool
}

// Event is what a frame means. The set is closed.
type Event interface{ isEvent() }

// Accepted says that the HELLO holds: under which id, which the board may have changed, and in which role.
type Accepted struct {
	As   protocol.AgentID
	Role string
}

// Roster lists who is present at the board and of it: without us, and without guests of other boards. Part: there are more.
type Roster struct {
	Agents []Agent
	Part   bool
}

// Agent is one row of a Roster.
type Agent struct {
	ID   protocol.AgentID
	Name string
	Role string
}

// Greet asks for an AgentHello to the board's main agent.
type Greet struct{ To protocol.AgentID }

// Message is something said to our agent. Acks are the ids to acknowledge once it is durable here: one a frame.
type Message struct {
	From  protocol.AgentID // as called there; Person: its people
	Name  string
	Frame asterism.Frame
	Acks  []protocol.MsgID
}

// Passed is a frame with an id that is not for an agent's inbox: acknowledged, and nothing else.
type Passed struct {
	From protocol.AgentID // empty: acknowledged to the hub
	Ack  protocol.MsgID
}

// Settled says how far a message of ours got. Tier is empty for "an adapter has read it".
type Settled struct {
	ID     protocol.MsgID
	By     protocol.AgentID // as called there; empty: the hub does not say
	Tier   protocol.Tier
	Reason string

	// Of a room's word: how many it reached there, and who was absent, as called there.
	Reached int
	Offline []protocol.AgentID
}

// Later says that the hub could not take or deliver a message of ours now.
type Later struct{ ID protocol.MsgID }

// Rejected says why the connection ends.
type Rejected struct{ Code, Reason, Hint string }

func (Accepted) isEvent() {}
func (Roster) isEvent()   {}
func (Greet) isEvent()    {}
func (Message) isEvent()  {}
func (Passed) isEvent()   {}
func (Settled) isEvent()  {}
func (Later) isEvent()    {}
func (Rejected) isEvent() {}

// rosterMax bounds how many rows of an AgentList are looked at.
const rosterMax = protocol.AgentsMax

// Session is one connection to a board.
type Session struct {
	o        Options
	as       protocol.AgentID // as called there
	accepted bool
	keeps    bool // the hub keeps attachments
	greeted  protocol.AgentID
	speakers map[protocol.AgentID]*speaker

	// The last AgentList, until it is looked at.
	rows   []row
	part   bool
	listed bool
}

// New begins a connection.
func New(o Options) *Session {
	return &Session{o: o, as: o.Agent, greeted: o.Greeted, speakers: map[protocol.AgentID]*speaker{}}
}

// As is what our agent is called there.
func (s *Session) As() protocol.AgentID { return s.as }

// Hello is the first frame to send.
func (s *Session) Hello(now time.Time, id string) []byte {
	f := asterism.Frame{
		Type: asterism.TypeHello, ID: id, Timestamp: now.UnixMilli(), AgentID: s.o.Agent, AgentName: s.o.Name, ClientID: s.o.Client, Role: "collab",
		ProtocolVersion: asterism.ProtocolVersion, Capabilities: []string{asterism.CapAckLayer, asterism.CapTiers},
	}
	return f.Append(nil)
}

// Frame says what a frame means. Frames that mean nothing to a client of ours mean nothing here: History above all, which
// is no new mail.
func (s *Session) Frame(f *asterism.Frame) []Event {
	if f.Stream() {
		return s.stream(f)
	}
	if f.Type == "SERVER_HELLO" {
		s.keeps = f.Can(asterism.CapArtifacts)
		return nil
	}
	switch f.Intent() {
	case "ConnectionInfo":
		return s.info(f)
	case "ConnectionRejected":
		v := read[struct{ Code, Reason, Hint string }](f.Value)
		return []Event{Rejected{Code: protocol.CutText(v.Code, 64), Reason: protocol.CutText(v.Reason, 200), Hint: protocol.CutText(v.Hint, 200)}}
	case "AgentList":
		return s.roster(f)
	}
	if !s.accepted {
		return nil
	}
	switch f.Intent() {
	case protocol.Ack:
		return acked(f)
	case protocol.AckProcessed:
		return processed(f)
	case "RelayUnreachable":
		return unreachable(f)
	case "ServerNotice":
		return s.notice(f)
	case asterism.ArtifactState, asterism.ArtifactPiece:
		return answer(f)
	case "RoomCreated", "RoomJoined", "RoomLeft", "RoomClosed", "RoomYield", "RoomFloor", "RoomStall", "RoomArtifacts", "RoomGuard":
		return s.room(f)
	}
	return s.said(f)
}

func read[T any](raw json.RawMessage) (v T) {
	var got T
	if json.Unmarshal(raw, &got) != nil {
		return v // a wrong type says nothing
	}
	return got
}

func (s *Session) info(f *asterism.Frame) []Event {
	v := read[struct {
		AgentID protocol.AgentID `json:"agentId"`
		Role    string           `json:"role"`
	}](f.Value)
	if v.AgentID != "" && protocol.CheckAgentID(v.AgentID) == nil {
		s.as = v.AgentID
	}
	s.accepted = true
	out := []Event{Accepted{As: s.as, Role: protocol.CutText(v.Role, 32)}}
	if s.listed {
		s.listed = false
		out = append(out, s.present()...)
	}
	return out
}

func (s *Session) me(id protocol.AgentID) bool {
	return protocol.FoldAgentID(id) == protocol.FoldAgentID(s.as)
}

// row is one of AgentList.
type row struct {
	AgentID   protocol.AgentID `json:"agentId"`
	AgentName string           `json:"agentName"`
	Role      string           `json:"role"`
}

// roster reads an AgentList. One that came before the HELLO held is looked at when it does: some hubs send no other until
// somebody comes or goes. That our id stands in it proves nothing: it may be there by another client.
func (s *Session) roster(f *asterism.Frame) []Event {
	v := read[struct {
		Agents []row `json:"agents"`
		More   int   `json:"more"`
	}](f.Value)
	if len(v.Agents) > rosterMax {
		v.Agents, v.More = v.Agents[:rosterMax], 1
	}
	s.rows, s.part, s.listed = v.Agents, v.More > 0, !s.accepted
	if !s.accepted {
		return nil
	}
	return s.present()
}

// present is the last AgentList as it concerns us.
func (s *Session) present() []Event {
	r := Roster{Part: s.part}
	main := protocol.AgentID("")
	for _, a := range s.rows {
		if a.AgentID == "" || Guest(a.AgentID) || s.me(a.AgentID) {
			continue
		}
		r.Agents = append(r.Agents, Agent{ID: a.AgentID, Name: protocol.CutText(a.AgentName, 200), Role: protocol.CutText(a.Role, 32)})
		if a.Role == string(protocol.RoleMain) {
			main = a.AgentID
		}
	}
	s.rows = nil
	if main == "" || main == s.greeted {
		return []Event{r}
	}
	s.greeted = main
	return []Event{r, Greet{To: main}}
}

func acked(f *asterism.Frame) []Event {
	v := read[struct {
		AckFor protocol.MsgID
		Kind   string
		From   protocol.AgentID
		Reason string

		Recipients int
		Offline    []protocol.AgentID
	}](f.Value)
	switch {
	case v.AckFor == "":
		return nil
	case strings.HasPrefix(string(v.From), roomBy): // the hub has it for all who are in
		if v.Kind != asterism.KindDelivered || f.Source != string(protocol.SourceServer) {
			return nil
		}
		return []Event{Settled{ID: v.AckFor, By: v.From, Tier: protocol.Persisted, Reached: max(v.Recipients, 0), Offline: v.Offline[:min(len(v.Offline), participantsMax)]}}
	}
	e := Settled{ID: v.AckFor, By: v.From, Reason: protocol.CutText(v.Reason, 200)}
	switch t := protocol.Tier(v.Kind); t {
	case protocol.Persisted, protocol.Processed, protocol.Refused:
		e.Tier = t
	case asterism.KindDelivered:
	default:
		return nil // logged there and replicated there say nothing of the recipient
	}
	return []Event{e}
}

// processed reads AckProcessed: without a tier the agent itself vouches, with one its adapter does. A repeat that was
// recognised was had before.
func processed(f *asterism.Frame) []Event {
	v := read[struct {
		AckFor   protocol.MsgID
		Tier     string
		DedupHit bool
	}](f.Value)
	if v.AckFor == "" {
		return nil
	}
	tier := protocol.Processed
	if v.Tier != "" || v.DedupHit {
		tier = protocol.Persisted
	}
	return []Event{Settled{ID: v.AckFor, By: f.AgentID, Tier: tier}}
}

// unreachable reads RelayUnreachable. An absent recipient's message stays ours, to be sent when it is back.
func unreachable(f *asterism.Frame) []Event {
	v := read[struct {
		MsgID     *protocol.MsgID
		LastError string
		Reason    string
	}](f.Value)
	if f.Source != string(protocol.SourceServer) || v.MsgID == nil || *v.MsgID == "" {
		return nil
	}
	if v.Reason == "" && strings.HasPrefix(v.LastError, "recipient-absent") {
		return []Event{Later{ID: *v.MsgID}}
	}
	why := v.Reason
	if why == "" {
		why = v.LastError
	}
	return []Event{Settled{ID: *v.MsgID, Tier: protocol.Refused, Reason: protocol.CutText(why, 200)}}
}

// notice reads the error frame; what else is noticed there is not said to us.
func (s *Session) notice(f *asterism.Frame) []Event {
	v := read[struct {
		Kind, Code, Text, Hint string
		MsgID                  protocol.MsgID
	}](f.Value)
	switch {
	case f.Source != string(protocol.SourceServer):
		return nil
	case v.Kind == "parked-dropped" && v.MsgID != "": // what waited in a room was given up
		return append(s.said(f), Settled{ID: v.MsgID, Tier: protocol.Refused, Reason: v.Kind})
	case v.Kind != "refused" || v.MsgID == "":
		return s.said(f)
	}
	if s.o.Asked != nil && s.o.Asked(string(v.MsgID)) {
		no := &protocol.Refusal{Code: protocol.CutText(v.Code, 64), Reason: protocol.CutText(v.Text, 200), Hint: protocol.CutText(v.Hint, 200)}
		return []Event{Answer{To: string(v.MsgID), Refused: no}}
	}
	switch v.Code {
	case protocol.CodeRate, protocol.CodeInboxFull, protocol.CodeDiskFull:
		return []Event{Later{ID: v.MsgID}}
	}
	return []Event{Settled{ID: v.MsgID, Tier: protocol.Refused, Reason: protocol.CutText(v.Code, 64)}}
}
