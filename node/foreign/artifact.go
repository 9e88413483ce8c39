package foreign

import (
	"encoding/json"
	"time"

	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/asterism"
)

// Answer is what the hub says to a question of ours about an attachment: a value, or a refusal.
type Answer struct {
	To      string // the question's msgId
	Value   json.RawMessage
	Refused *protocol.Refusal
}

func (Answer) isEvent() {}

// AskPrefix begins the msgId of each question of ours. Options.Asked tells such a one from an agent's message that is called so too.
const AskPrefix = "join-ask-"

// Keeps says whether the hub has said that it keeps attachments. One that has not is asked nothing about them: it would give
// names that it does not know to its main agent.
func (s *Session) Keeps() bool { return s.keeps }

// Ask is a question about an attachment: ArtifactOffer, ArtifactPut or ArtifactGet. msgID begins with AskPrefix.
func Ask(name protocol.Intent, value any, msgID string, now time.Time) []byte {
	f := asterism.Frame{Type: asterism.TypeCustom, Name: string(name), ID: msgID, MsgID: msgID, Timestamp: now.UnixMilli(), Value: protocol.EncodeBody(value)}
	return f.Append(nil)
}

// answer reads what a hub says about an attachment. Nobody else may.
func answer(f *asterism.Frame) []Event {
	to := read[struct {
		Re string `json:"re_msgId"`
	}](f.Value).Re
	if f.Source != string(protocol.SourceServer) || to == "" {
		return nil
	}
	return []Event{Answer{To: to, Value: f.Value}}
}
