package foreign

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/asterism"
)

// TestOnlyAHubThatSaysSoKeepsAttachments: an earlier one is asked nothing about them.
func TestOnlyAHubThatSaysSoKeepsAttachments(t *testing.T) {
	for in, want := range map[string]bool{
		`{"type":"SERVER_HELLO","protocolVersion":"0.3"}`:                                                            false,
		`{"type":"SERVER_HELLO","capabilities":["aster.artifacts"]}`:                                                 true,
		`{"type":"CUSTOM","name":"Note","agentId":"eve","targetAgentId":"alice","capabilities":["aster.artifacts"]}`: false,
	} {
		s := New(Options{Agent: "alice"})
		if s.Frame(frame(t, in)); s.Keeps() != want {
			t.Errorf("%s: %t", in, s.Keeps())
		}
	}
}

// TestAnAnswerIsTheHubs, and a refusal of a question is none of a message, whatever an agent calls its message.
func TestAnAnswerIsTheHubs(t *testing.T) {
	s := seated(t)
	s.o.Asked = func(id string) bool { return id == "join-ask-1" || id == "join-ask-2" }
	for in, want := range map[string][]Event{
		`{"name":"ArtifactState","source":"server","value":{"have":1,"re_msgId":"join-ask-1"}}`:                                                   {Answer{To: "join-ask-1", Value: []byte(`{"have":1,"re_msgId":"join-ask-1"}`)}},
		`{"name":"ArtifactPiece","source":"agent","agentId":"eve","targetAgentId":"alice","value":{"re_msgId":"join-ask-1"}}`:                     nil,
		`{"name":"ArtifactPiece","source":"server","value":{}}`:                                                                                   nil,
		`{"name":"ServerNotice","source":"server","value":{"kind":"refused","code":"attachment-quota","text":"full","msgId":"join-ask-2"}}`:       {Answer{To: "join-ask-2", Refused: &protocol.Refusal{Code: "attachment-quota", Reason: "full"}}},
		`{"name":"ServerNotice","source":"agent","agentId":"eve","value":{"kind":"refused","code":"attachment-quota","msgId":"join-ask-2"}}`:      nil,
		`{"name":"ServerNotice","source":"server","value":{"kind":"refused","code":"attachment-unknown","text":"no","msgId":"of-our-own-agent"}}`: {Settled{ID: "of-our-own-agent", Tier: protocol.Refused, Reason: "attachment-unknown"}},
		`{"name":"ServerNotice","source":"server","value":{"kind":"refused","code":"hop-loop","text":"no","msgId":"join-ask-of-our-own-agent"}}`:  {Settled{ID: "join-ask-of-our-own-agent", Tier: protocol.Refused, Reason: "hop-loop"}},
		`{"name":"ServerNotice","source":"server","value":{"kind":"refused","code":"rate","text":"no","msgId":"join-ask-of-our-own-agent"}}`:      {Later{ID: "join-ask-of-our-own-agent"}},
	} {
		if diff := cmp.Diff(want, s.Frame(frame(t, in))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", in, diff)
		}
	}
}

func TestAQuestionIsAFrameOfTheContract(t *testing.T) {
	f, no := asterism.Decode(Ask(asterism.ArtifactGet, asterism.Get{Artifact: "x", Of: "m"}, AskPrefix+"1", time.UnixMilli(1790000000000)), 0)
	if no != nil || f.Intent() != asterism.ArtifactGet || f.MsgID != AskPrefix+"1" || f.TargetAgentID != "" {
		t.Errorf("%v %+v", no, f)
	}
}
