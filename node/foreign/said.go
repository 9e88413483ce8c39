package foreign

import (
	"strings"

	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/asterism"
)

// said sorts out what is mail for our agent.
func (s *Session) said(f *asterism.Frame) []Event {
	key, keyed := f.RecoveryKey()
	if f.TargetAgentID != "" && !s.me(f.TargetAgentID) || f.Type != asterism.TypeCustom {
		return nil
	}
	from := f.AgentID
	mail := false
	switch protocol.Lookup(f.Intent()).Class {
	case protocol.ClassA2A, protocol.ClassUnknown, protocol.ClassProbe:
		mail = true
	case protocol.ClassRun:
		mail = f.Intent() == protocol.AgentText
	}
	switch {
	case f.Source == string(protocol.SourceServer): // the hub's own word: it waits for an answer without a target
		mail, from = false, ""
	case s.me(from):
		mail = false
	}
	if !mail || f.Live() {
		if !keyed {
			return nil
		}
		return []Event{Passed{From: from, Ack: key}}
	}
	m := Message{From: from, Name: f.AgentName, Frame: *f}
	if keyed {
		m.Acks = []protocol.MsgID{key}
	}
	return []Event{m}
}

// speakersMax bounds whose streams are joined at once, piecesMax how often one is acknowledged.
const (
	speakersMax = 64
	piecesMax   = 256
)

// speaker is what one agent has begun to say to us in pieces.
type speaker struct {
	streams asterism.Streams
	pieces  map[string]int // of a stream: how many frames
}

// stream joins a text that comes in pieces. Earlier hubs wait for an acknowledgement of each piece that was addressed to
// us, under the stream's id (fault B26).
func (s *Session) stream(f *asterism.Frame) (out []Event) {
	if !s.accepted || !s.me(f.TargetAgentID) || s.me(f.AgentID) || f.AgentID == "" || !strings.HasPrefix(f.Type, "TEXT_MESSAGE_") {
		return nil
	}
	sp := s.speakers[f.AgentID]
	if sp == nil {
		if len(s.speakers) >= speakersMax {
			return nil
		}
		sp = &speaker{pieces: map[string]int{}}
		s.speakers[f.AgentID] = sp
	}
	if _, known := sp.pieces[f.MessageID]; known || len(sp.pieces) < piecesMax {
		sp.pieces[f.MessageID]++
	}
	for _, whole := range sp.streams.Add(f) {
		whole.AgentID, whole.AgentName, whole.Source = f.AgentID, f.AgentName, f.Source
		out = append(out, Message{From: f.AgentID, Name: f.AgentName, Frame: whole})
	}
	if f.Type != "TEXT_MESSAGE_END" {
		return out
	}
	n := min(sp.pieces[f.MessageID], piecesMax)
	if delete(sp.pieces, f.MessageID); len(sp.pieces) == 0 {
		delete(s.speakers, f.AgentID)
	}
	for range n {
		switch {
		case f.MessageID == "":
		case len(out) > 0:
			last := out[len(out)-1].(Message)
			last.Acks = append(last.Acks, protocol.MsgID(f.MessageID))
			out[len(out)-1] = last
		default:
			return append(out, Passed{From: f.AgentID, Ack: protocol.MsgID(f.MessageID)})
		}
	}
	return out
}
