package protocol

import (
	"encoding/json"
	"errors"
	"strings"
	"unicode/utf8"
)

// Limits of declarations (wire 7.5), in bytes or items.
const (
	commandsMax      = 200
	commandNameMax   = 64
	commandDescMax   = 160
	modelBytesMax    = 64
	effortBytesMax   = 16
	controlsMax      = 8
	capabilitiesMax  = 64
	capParamsMax     = 512
	chartRolesMax    = 200
	chartBytesMax    = 256 << 10
	seatBytesMax     = 8 << 10
	declaredNameMax  = 64
	declaredBytesMax = ValueBytesInline
	// SeatsMax is how many seats of telemetry a mesh shows.
	SeatsMax = 64
	// SeatsOutsideMax is how many of its own an agent of an outside role may add, beside those of the inside.
	SeatsOutsideMax = 4
)

// DeclaredItem is what a sender may declare several of: the role of a RoleState, the seat of a SeatTelemetry. Of all else
// it has one, and the item is empty.
func DeclaredItem(name Intent, value json.RawMessage) string {
	var v struct {
		Role string `json:"role"`
		Seat string `json:"seat"`
	}
	switch name {
	case "RoleState":
		_ = json.Unmarshal(value, &v)
		return CutText(v.Role, declaredNameMax)
	case "SeatTelemetry":
		_ = json.Unmarshal(value, &v)
		return CutText(v.Seat, declaredNameMax)
	}
	return ""
}

// Seats reads who fills which role from a CorporateChart's value; a role that names no agent is nobody's.
func Seats(chart json.RawMessage) map[string]AgentID {
	var v struct {
		Roles []struct {
			Role    string  `json:"role"`
			AgentID AgentID `json:"agentId"`
		} `json:"roles"`
	}
	if json.Unmarshal(chart, &v) != nil || len(v.Roles) == 0 {
		return nil
	}
	out := make(map[string]AgentID, len(v.Roles))
	for _, r := range v.Roles {
		if _, twice := out[r.Role]; !twice {
			out[r.Role] = r.AgentID
		}
	}
	return out
}

// CheckDeclaration says which limit the value of a declaration of sender breaks, or nil; also for names that are none.
// Who may declare at all is not its business.
func CheckDeclaration(name Intent, sender AgentID, value json.RawMessage) *Refusal {
	switch name {
	case "CorporateChart":
		return checkChart(value)
	case "CommandManifest", "OpsState", "CapabilityManifest", "RoleState", "SeatTelemetry", "EchoModeState":
	default:
		return nil
	}
	limit := declaredBytesMax
	if name == "SeatTelemetry" {
		limit = seatBytesMax
	}
	if len(value) > limit {
		return Refuse(CodeFrameTooLarge, "a %s has at most %d bytes", "", string(name), limit)
	}
	switch name {
	case "CommandManifest":
		return checkCommands(value)
	case "OpsState":
		return checkOps(value)
	case "CapabilityManifest":
		return checkCapabilities(value)
	case "RoleState":
		return checkRoleState(value)
	case "SeatTelemetry":
		return checkSeat(value)
	}
	return checkEcho(sender, value)
}

// declared reads a declaration's fields; the Refusal names the one of a wrong type.
func declared(name Intent, value json.RawMessage, into any) *Refusal {
	err := json.Unmarshal(value, into)
	if err == nil && len(value) > 0 && value[0] != '{' {
		err = errors.New("null")
	}
	if err == nil {
		return nil
	}
	var wrong *json.UnmarshalTypeError
	if errors.As(err, &wrong) && wrong.Field != "" {
		return Refuse(CodeWrongType, "value.%s of %s must not be a %s", "", wrong.Field, string(name), wrong.Value)
	}
	return Refuse(CodeWrongType, "the value of %s must be an object", "", string(name))
}

func tooMany(name Intent, what string, n, limit int) *Refusal {
	return Refuse(CodeTooMany, "%s has %d %s, at most %d", "", string(name), n, what, limit)
}

// tooLong refuses a text of more than limit characters.
func tooLong(name Intent, field, text string, limit int) *Refusal {
	if n := utf8.RuneCountInString(text); n > limit {
		return Refuse(CodeFrameTooLarge, "%s of %s has %d characters, at most %d", "", field, string(name), n, limit)
	}
	return nil
}

func checkCommands(value json.RawMessage) *Refusal {
	const name = "CommandManifest"
	var v struct {
		Commands []struct {
			Name string `json:"name"`
			Desc string `json:"desc"`
		} `json:"commands"`
	}
	if no := declared(name, value, &v); no != nil {
		return no
	}
	if len(v.Commands) > commandsMax {
		return tooMany(name, "commands", len(v.Commands), commandsMax)
	}
	for _, c := range v.Commands {
		if !strings.HasPrefix(c.Name, "/") {
			return Refuse(CodeWrongType, "a command's name begins with a slash, not %q", "", CutText(c.Name, declaredNameMax))
		}
		if no := tooLong(name, "a command's name", c.Name, commandNameMax); no != nil {
			return no
		}
		if no := tooLong(name, "a command's desc", c.Desc, commandDescMax); no != nil {
			return no
		}
	}
	return nil
}

func checkOps(value json.RawMessage) *Refusal {
	const name = "OpsState"
	var v struct {
		Model    string            `json:"model"`
		Effort   string            `json:"effort"`
		Fast     bool              `json:"fast"`
		Controls []json.RawMessage `json:"controls"`
	}
	if no := declared(name, value, &v); no != nil {
		return no
	}
	if len(v.Controls) > controlsMax {
		return tooMany(name, "controls", len(v.Controls), controlsMax)
	}
	if no := tooLong(name, "model", v.Model, modelBytesMax); no != nil {
		return no
	}
	return tooLong(name, "effort", v.Effort, effortBytesMax)
}

func checkCapabilities(value json.RawMessage) *Refusal {
	const name = "CapabilityManifest"
	var v struct {
		Capabilities []struct {
			Name    string          `json:"name"`
			Enabled bool            `json:"enabled"`
			Params  json.RawMessage `json:"params"`
		} `json:"capabilities"`
	}
	if no := declared(name, value, &v); no != nil {
		return no
	}
	if len(v.Capabilities) > capabilitiesMax {
		return tooMany(name, "capabilities", len(v.Capabilities), capabilitiesMax)
	}
	for _, c := range v.Capabilities {
		if len(c.Params) > capParamsMax {
			return Refuse(CodeFrameTooLarge, "the params of capability %q have %d bytes, at most %d", "", CutText(c.Name, declaredNameMax), len(c.Params), capParamsMax)
		}
	}
	return nil
}

func checkChart(value json.RawMessage) *Refusal {
	const name = "CorporateChart"
	if len(value) > chartBytesMax {
		return Refuse(CodeFrameTooLarge, "a chart has at most %d bytes", "", chartBytesMax)
	}
	var v struct {
		Roles []struct {
			Role    string `json:"role"`
			AgentID string `json:"agentId"`
		} `json:"roles"`
	}
	if no := declared(name, value, &v); no != nil {
		return no
	}
	if len(v.Roles) == 0 {
		return Refuse(CodeWrongType, "a chart without roles is no chart", "")
	}
	if len(v.Roles) > chartRolesMax {
		return tooMany(name, "roles", len(v.Roles), chartRolesMax)
	}
	return nil
}

func checkRoleState(value json.RawMessage) *Refusal {
	const name = "RoleState"
	var v struct {
		Role   string `json:"role"`
		Status string `json:"status"`
	}
	if no := declared(name, value, &v); no != nil {
		return no
	}
	if v.Role == "" || len(v.Role) > declaredNameMax {
		return Refuse(CodeWrongType, "value.role of RoleState must be a text of 1 to %d bytes", "", declaredNameMax)
	}
	switch v.Status {
	case "idle", "working", "blocked", "waiting-gate", "offline":
		return nil
	}
	return Refuse(CodeWrongType, "value.status of RoleState must be idle, working, blocked, waiting-gate or offline", "")
}

func checkSeat(value json.RawMessage) *Refusal {
	var v struct {
		Seat string `json:"seat"`
	}
	if no := declared("SeatTelemetry", value, &v); no != nil {
		return no
	}
	if v.Seat == "" || len(v.Seat) > declaredNameMax {
		return Refuse(CodeWrongType, "value.seat of SeatTelemetry must be a text of 1 to %d bytes", "", declaredNameMax)
	}
	return nil
}

func checkEcho(sender AgentID, value json.RawMessage) *Refusal {
	var v struct {
		AgentID AgentID `json:"agentId"`
		Level   string  `json:"level"`
	}
	if no := declared("EchoModeState", value, &v); no != nil {
		return no
	}
	if v.AgentID != "" && FoldAgentID(v.AgentID) != FoldAgentID(sender) {
		return Refuse(CodeNotAllowed, "an agent declares its own echo mode alone", "")
	}
	switch v.Level {
	case "off", "on", "mirror":
		return nil
	}
	return Refuse(CodeWrongType, "value.level of EchoModeState must be off, on or mirror", "")
}
