package protocol

import (
	"encoding/json"
	"strings"
	"testing"
)

func list(n int, item string) string {
	return "[" + strings.TrimSuffix(strings.Repeat(item+",", n), ",") + "]"
}

// TestLimitsOfDeclarationsAreNamed: each limit of wire 7.5 holds at its edge and is refused by name beyond it.
func TestLimitsOfDeclarationsAreNamed(t *testing.T) {
	long := strings.Repeat("é", 200)
	for _, c := range []struct{ name, value, code string }{
		{"CommandManifest", `{"commands":` + list(200, `{"name":"/x","desc":"y"}`) + `}`, ""},
		{"CommandManifest", `{"commands":` + list(201, `{"name":"/x"}`) + `}`, CodeTooMany},
		{"CommandManifest", `{"commands":[{"name":"x"}]}`, CodeWrongType},
		{"CommandManifest", `{"commands":[{"name":"/` + long[:126] + `"}]}`, ""},
		{"CommandManifest", `{"commands":[{"name":"/` + long[:128] + `"}]}`, CodeFrameTooLarge},
		{"CommandManifest", `{"commands":[{"name":"/x","desc":"` + long[:322] + `"}]}`, CodeFrameTooLarge},
		{"CommandManifest", `{"commands":{"toString":1}}`, CodeWrongType},
		{"OpsState", `{"model":"m","effort":"high","fast":true,"subscaler":{"on":true},"controls":["a"]}`, ""},
		{"OpsState", `{"model":"` + strings.Repeat("m", 65) + `"}`, CodeFrameTooLarge},
		{"OpsState", `{"effort":"` + strings.Repeat("m", 17) + `"}`, CodeFrameTooLarge},
		{"OpsState", `{"controls":` + list(9, `1`) + `}`, CodeTooMany},
		{"OpsState", `{"fast":"yes"}`, CodeWrongType},
		{"CapabilityManifest", `{"capabilities":` + list(64, `{"name":"a","version":"1","enabled":true}`) + `}`, ""},
		{"CapabilityManifest", `{"capabilities":` + list(65, `{"name":"a"}`) + `}`, CodeTooMany},
		{"CapabilityManifest", `{"capabilities":[{"name":"a","params":"` + strings.Repeat("x", 511) + `"}]}`, CodeFrameTooLarge},
		{"CorporateChart", `{"roles":[{"role":"lead","agentId":"m"}]}`, ""},
		{"CorporateChart", `{"roles":[]}`, CodeWrongType},
		{"CorporateChart", `{}`, CodeWrongType},
		{"CorporateChart", `{"roles":` + list(201, `{"role":"x"}`) + `}`, CodeTooMany},
		{"CorporateChart", `{"roles":[{"role":"x","desk":"` + strings.Repeat("x", 256<<10) + `"}]}`, CodeFrameTooLarge},
		{"RoleState", `{"role":"dev","status":"waiting-gate"}`, ""},
		{"RoleState", `{"role":"dev","status":"asleep"}`, CodeWrongType},
		{"RoleState", `{"status":"idle"}`, CodeWrongType},
		{"SeatTelemetry", `{"seat":"lead","tokens":1}`, ""},
		{"SeatTelemetry", `{"seat":1}`, CodeWrongType},
		{"SeatTelemetry", `{"seat":"lead","x":"` + strings.Repeat("x", 8<<10) + `"}`, CodeFrameTooLarge},
		{"EchoModeState", `{"agentId":"A","level":"mirror"}`, ""},
		{"EchoModeState", `{"agentId":"b","level":"on"}`, CodeNotAllowed},
		{"EchoModeState", `{"level":"loud"}`, CodeWrongType},
		{"EchoModeState", `null`, CodeWrongType},
		{"Report", `[]`, ""},
	} {
		no := CheckDeclaration(Intent(c.name), "a", json.RawMessage(c.value))
		if (no == nil) != (c.code == "") || no != nil && no.Code != c.code {
			t.Errorf("%s %.60s: %v, want code %q", c.name, c.value, no, c.code)
		}
	}
}
