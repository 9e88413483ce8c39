package asterism

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/aster-mesh/aster/protocol"
)

// What an earlier version let in stands in journals for ever, so it is the delivery that keeps readers from it.
func TestNumbersThatWereLetInAreShownAsStrings(t *testing.T) {
	wild := json.RawMessage(`{"m":` + strings.Repeat("9", 5000) + `,"display":[1e999999],"e":1e999999,"n":1.50,"text":"1e999"}`)
	for _, intent := range []protocol.Intent{"Note", protocol.AgentText, protocol.ToolCall, "RUN_FINISHED", "STATE_DELTA"} {
		env := protocol.Envelope{ID: "m", From: "a", Intent: intent, Value: wild}
		for name, frame := range map[string][]byte{"delivery": AppendDelivery(nil, &env, 1), "event": AppendEvent(nil, &env, 1)} {
			if no := protocol.RefuseNumbers("the frame", frame); no != nil || !json.Valid(frame) {
				t.Errorf("the %s of %s: %v, %.200s", name, intent, no, frame)
			}
		}
	}
	env := protocol.Envelope{ID: "m", From: "a", Intent: "Note", Value: wild}
	if got := string(AppendDelivery(nil, &env, 1)); !strings.Contains(got, `"e":"1e999999","n":1.50,"text":"1e999"`) {
		t.Errorf("delivered: %.900s", got)
	}
}

func TestNumbersThatNoReaderHoldsAreRefusedAndATimestampIsNone(t *testing.T) {
	for _, frame := range []string{`{"name":"X","value":{"e":1e999999}}`, `{"name":"X","value":` + strings.Repeat("7", 5000) + `}`, `{"name":"X","other":[-1E309]}`, `{"name":"X","value":{"timestamp":1e999}}`} {
		if _, no := Decode([]byte(frame), 0); no == nil || no.Code != protocol.CodeWrongType || !strings.Contains(no.Reason, "number") {
			t.Errorf("%.60s: %v", frame, no)
		}
	}
	if f, no := Decode([]byte(`{"name":"X","timestamp":1e999,"value":1e308}`), 0); no != nil || f.Timestamp != 0 {
		t.Errorf("a timestamp beyond every time: %v, %d", no, f.Timestamp)
	}
}
