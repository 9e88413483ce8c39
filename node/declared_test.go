package node

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/aster-mesh/aster/node/journal"
	"github.com/aster-mesh/aster/protocol"
)

func declare(name, value string) map[string]any {
	return map[string]any{"type": "CUSTOM", "name": name, "value": raw(value)}
}

// TestWhatWasDeclaredIsShownToWhoeverConnects: on every node, to boards and agents, the newest of each; also a chart too
// large for a record. Main's inbox holds none of it, and talk is not pushed out by it.
// Guards: B42, B20.
func TestWhatWasDeclaredIsShownToWhoeverConnects(t *testing.T) {
	a, b, na, nb := pair(t, protocol.RoleLocal)
	main, worker, board := a.attach(t, "main-agent"), a.attach(t, "worker-1"), a.watch(t)
	main.send(t, declare("CommandManifest", `{"commands":[{"name":"/old"}]}`))
	main.send(t, declare("CommandManifest", `{"commands":[{"name":"/status"}]}`))
	main.send(t, declare("OpsState", `{"model":"demo"}`))
	main.send(t, declare("CapabilityManifest", `{"capabilities":[{"name":"selection","version":"1","enabled":true}]}`))
	main.send(t, declare("CorporateChart", `{"org":"`+strings.Repeat("x", 100_000)+`","roles":[{"role":"lead","agentId":"main-agent"},{"role":"dev","agentId":"worker-1"}]}`))
	board.next(t, "CorporateChart")
	worker.send(t, declare("RoleState", `{"role":"dev","status":"working"}`))
	worker.send(t, declare("RoleState", `{"role":"lead","status":"idle"}`))
	if got := worker.next(t, "ServerNotice"); !strings.Contains(string(got.Value), protocol.CodeNotAllowed) {
		t.Errorf("another's seat: %s", got.Value)
	}
	worker.send(t, declare("CorporateChart", `{"roles":[{"role":"x"}]}`))
	if got := worker.next(t, "ServerNotice"); !strings.Contains(string(got.Value), protocol.CodeNotAllowed) {
		t.Errorf("a worker's chart: %s", got.Value)
	}
	main.send(t, map[string]any{"type": "CUSTOM", "name": "SeatTelemetry", "telemetry": true, "value": raw(`{"seat":"lead","tokens":10}`)})
	board.next(t, "SeatTelemetry")
	worker.send(t, map[string]any{"type": "CUSTOM", "name": "Report", "targetAgentId": "main-agent", "msgId": "r1", "value": raw(`{"topic":"after"}`)})
	if got := main.next(t, "Report"); got.MsgID != "r1" {
		t.Errorf("main got %s first", got.Name)
	}
	rows, err := na.store.Inbox("main-agent", journal.InboxQuery{})
	if err != nil || len(rows) != 1 {
		t.Errorf("main's inbox has %d messages, %v; want the report alone", len(rows), err)
	}
	for {
		var seats int
		if err := nb.loop.call(t.Context(), func() {
			for _, d := range nb.loop.board.Declarations() {
				if d.Intent == "SeatTelemetry" {
					seats++
				}
			}
		}); err != nil {
			t.Fatal(err)
		}
		if seats > 0 {
			break
		}
	}
	for _, at := range []*running{a, b} {
		late := at.dial(t)
		var h struct {
			Events         []json.RawMessage
			Manifests      map[string]json.RawMessage
			OpsStates      map[string]json.RawMessage
			CapManifests   map[string]json.RawMessage
			CorporateChart struct {
				Roles []struct{ Role, AgentID string }
			}
			RoleStates    map[string]struct{ Status string }
			SeatTelemetry map[string]struct{ Tokens int }
		}
		if err := json.Unmarshal(late.next(t, "History").Value, &h); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(h.Manifests["main-agent"]), "/status") || h.OpsStates["main-agent"] == nil || h.CapManifests["main-agent"] == nil ||
			len(h.CorporateChart.Roles) != 2 || h.RoleStates["dev"].Status != "working" || len(h.RoleStates) != 1 || h.SeatTelemetry["lead"].Tokens != 10 {
			t.Errorf("declared: %+v", h)
		}
		for _, e := range h.Events {
			if strings.Contains(string(e), "Manifest") {
				t.Errorf("a declaration among the talk: %s", e)
			}
		}
	}
}
