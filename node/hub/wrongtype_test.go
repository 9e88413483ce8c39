package hub

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/aster-mesh/aster/protocol"
)

// verbFields are the fields that the hub reads of what it carries out itself, by verb, with a value of the right type.
var verbFields = map[protocol.Intent]map[string]string{
	"RoomCreate": {
		"topic": `"t"`, "mode": `"temporary"`, "moderated": `true`, "moderator": `"a"`, "participants": `["a"]`,
		"budgets": `{"ratePerMin":3}`, "header": `{"text":"h"}`, "roomId": `"rt-1"`,
	},
	"RoomJoin": {"roomId": `"ROOM"`, "agentId": `"b"`}, "RoomLeave": {"roomId": `"ROOM"`, "agentId": `"a"`},
	"RoomClose": {"roomId": `"ROOM"`, "reason": `"r"`}, "RequestRoomArtifacts": {"roomId": `"ROOM"`},
	"RoomArtifactsUpdate": {"roomId": `"ROOM"`, "header": `{"text":"h"}`, "decision": `{"text":"d"}`, "summary": `{"text":"s"}`},
	"SelectionPrompt":     {"promptId": `"p"`, "text": `"t"`, "options": `[{"label":"A"}]`, "timeout": `{"kind":"clarify","seconds":5}`},
	"SelectionAnswer":     {"promptId": `"open"`, "selectedLabels": `["A"]`, "freeText": `"f"`},
	"SelectionCancel":     {"promptId": `"open"`, "reason": `"r"`},
	"CommandManifest":     {"commands": `[{"name":"/a"}]`}, "OpsState": {"model": `"m"`, "effort": `"e"`, "fast": `true`, "controls": `["c"]`},
	"CapabilityManifest": {"capabilities": `[{"name":"c"}]`}, "CorporateChart": {"roles": `[{"role":"r"}]`},
	"RoleState": {"role": `"r"`, "status": `"idle"`}, "SeatTelemetry": {"seat": `"s"`}, "EchoModeState": {"level": `"on"`, "agentId": `"a"`},
}

// wrongValues are one of each type, and some that killed the old hub.
var wrongValues = []string{
	`{"toString":1}`, `[]`, `[1]`, `[null]`, `1`, `-1`, `1e300`, `1e20`, `true`, `""`, `"` + strings.Repeat("x", 70_000) + `"`, `"\u0000"`, `{}`,
	`{"kind":1}`, `{"kind":"clarify","seconds":"soon"}`, `{"kind":"approval","seconds":-1}`, `{"text":{}}`, `[{"name":{}}]`, `[{"role":1}]`, `[""]`,
}

// TestAWrongTypedValueInAnyFieldEndsNothing: whatever stands in a field, the hub answers its sender and goes on; what it
// refuses leaves no record. Guards: KA6.
func TestAWrongTypedValueInAnyFieldEndsNothing(t *testing.T) {
	for verb, fields := range verbFields {
		for field := range fields {
			for _, wrong := range wrongValues {
				for _, as := range []string{"a", "person"} {
					s := newStage()
					var out strings.Builder
					s.run(t, "attach m main\nattach c a\nsay a - SelectionPrompt q {\"promptId\":\"open\"}\nsay person - RoomCreate r {\"participants\":[\"a\"]}\n")
					var value strings.Builder
					for f, right := range fields {
						if f == field {
							right = wrong
						}
						fmt.Fprintf(&value, ",%q:%s", f, strings.ReplaceAll(right, "ROOM", string(s.room)))
					}
					env := protocol.Envelope{ID: "x", Intent: verb, Value: json.RawMessage("{" + value.String()[1:] + "}")}
					in := Say{As: protocol.AgentID(as), Env: env, Token: 99}
					if as == "person" {
						in.As = ""
					}
					s.core.Step(s.now, in)
					rd := s.core.Ready(s.now)
					told := false
					for _, o := range rd.Out {
						if w, ok := o.(Told); ok && w.Token == 99 {
							told = true
							if w.Refusal != nil && len(rd.Drafts) > 0 {
								t.Errorf("%s by %s with %s=%.40s is refused (%v) and written", verb, as, field, wrong, w.Refusal)
							}
						}
					}
					if !told {
						t.Errorf("%s by %s with %s=%.40s: no answer", verb, as, field, wrong)
					}
					s.do(t, strings.Fields("say main a Request after"))
					if s.settle(&out); !strings.Contains(out.String(), "msg after") {
						t.Errorf("%s with %s=%.40s: the hub does not go on: %s", verb, field, wrong, out.String())
					}
				}
			}
		}
	}
}
