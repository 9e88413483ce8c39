package node

import (
	"encoding/json"

	"github.com/aster-mesh/aster/board"
	"github.com/aster-mesh/aster/node/hub"
	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/asterism"
)

// declarations are what is declared, put together once for all who connect until something changes.
type declarations struct {
	all   []board.Declaration
	shown *asterism.History // to boards and the agents of the inside; nil: nobody asked yet
}

func (l *loop) allDeclared() *declarations {
	if l.declarations == nil {
		l.declarations = &declarations{all: l.board.Declarations()}
	}
	return l.declarations
}

// declared is what the board holds of declarations, by which one of env's name is judged.
func (l *loop) declared(env *protocol.Envelope) (d hub.Declared) {
	switch env.Intent {
	case "RoleState":
		d.Chart = l.chart(l.allDeclared().all)
	case "SeatTelemetry":
		seats := map[string]bool{}
		for _, x := range l.allDeclared().all {
			if x.Intent == env.Intent && !seats[x.Item] {
				seats[x.Item] = true
				d.Seats = append(d.Seats, x.Item)
			}
		}
	}
	return d
}

// chart is the newest CorporateChart, or nil.
func (l *loop) chart(all []board.Declaration) json.RawMessage {
	var newest *board.Declaration
	for i := range all {
		if d := &all[i]; d.Intent == "CorporateChart" && (newest == nil || newest.Before(d)) {
			newest = d
		}
	}
	if newest == nil {
		return nil
	}
	return l.valueOf(newest)
}

// valueOf is a declaration's value; a large one is read where it lies. nil: it could not be read.
func (l *loop) valueOf(d *board.Declaration) json.RawMessage {
	if d.Value != nil {
		return d.Value
	}
	m, ok, err := l.store.Message(d.Log, d.Seq)
	if err == nil && ok {
		err = l.n.fill(&m.Envelope)
	}
	if err != nil || !ok {
		l.log.Error("declaration not readable", "agent", d.From, "intent", d.Intent, "log", d.Log.String(), "seq", d.Seq, "err", err)
		return nil
	}
	return m.Envelope.Value
}

// showDeclared adds what is declared to what a new connection is shown: all of it to boards and the agents of the inside,
// nothing to an agent of an outside role but its own.
func (l *loop) showDeclared(h *asterism.History, viewer protocol.AgentID) {
	d := l.allDeclared()
	if k, ok := l.core.Agent(viewer); ok && viewer != "" && l.n.role().Inside() && !k.Role.Inside() {
		l.putDeclared(h, d.all, protocol.FoldAgentID(viewer))
		return
	}
	if d.shown == nil {
		d.shown = &asterism.History{CorporateChart: l.chart(d.all)}
		l.putDeclared(d.shown, d.all, "")
	}
	h.Manifests, h.OpsStates, h.CapManifests = d.shown.Manifests, d.shown.OpsStates, d.shown.CapManifests
	h.CorporateChart, h.RoleStates, h.SeatTelemetry = d.shown.CorporateChart, d.shown.RoleStates, d.shown.SeatTelemetry
}

// putDeclared sorts declarations into a History, of one agent (folded) or, when only is empty, of all.
func (l *loop) putDeclared(h *asterism.History, all []board.Declaration, only protocol.AgentID) {
	seats := protocol.Seats(l.chart(all))
	main := protocol.FoldAgentID(l.roster().Term().Agent)
	newest := map[*map[string]json.RawMessage]map[string]*board.Declaration{}
	for i := range all {
		d := &all[i]
		from := protocol.FoldAgentID(d.From)
		if only != "" && from != only {
			continue
		}
		var into *map[string]json.RawMessage
		key := string(d.From)
		switch d.Intent {
		case "CommandManifest":
			into = &h.Manifests
		case "OpsState":
			into = &h.OpsStates
		case "CapabilityManifest":
			into = &h.CapManifests
		case "RoleState":
			if seats != nil && from != main && from != protocol.FoldAgentID(seats[d.Item]) {
				continue // who held the seat before the present chart
			}
			into, key = &h.RoleStates, d.Item
		case "SeatTelemetry":
			into, key = &h.SeatTelemetry, d.Item
		default:
			continue
		}
		if newest[into] == nil {
			newest[into] = map[string]*board.Declaration{}
		}
		if old := newest[into][key]; old == nil || old.Before(d) {
			newest[into][key] = d
		}
	}
	for into, byKey := range newest {
		*into = make(map[string]json.RawMessage, len(byKey))
		for key, d := range byKey {
			if v := l.valueOf(d); v != nil {
				(*into)[key] = v
			}
		}
	}
}
