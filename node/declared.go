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
		seats, outside := map[string]bool{}, l.outsider(env.From)
		for _, x := range l.allDeclared().all {
			if outside && protocol.FoldAgentID(x.From) != protocol.FoldAgentID(env.From) || !outside && l.outsider(x.From) {
				continue // those of outside take no seat from the inside, nor from one another
			}
			if x.Intent == env.Intent && !seats[x.Item] {
				seats[x.Item] = true
				d.Seats = append(d.Seats, x.Item)
			}
		}
	}
	return d
}

// outsider says whether an agent is of an outside role.
func (l *loop) outsider(id protocol.AgentID) bool {
	k, ok := l.core.Agent(id)
	return ok && l.inside() && !k.Role.Inside()
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
	if v := l.valueOf(newest); v != nil { // until a large one is read the one before it holds
		l.n.shown.chart = v
	}
	return l.n.shown.chart
}

// valueOf is a declaration's value. One that the board does not hold is in its record; one that is content was read beside
// the loop as it came. nil: it could not be read, or not yet.
func (l *loop) valueOf(d *board.Declaration) json.RawMessage {
	if d.Value != nil {
		return d.Value
	}
	if v := l.n.shown.declared[hub.Ref{Log: d.Log, Seq: d.Seq}]; v != nil {
		return v
	}
	m, ok, err := l.store.Message(d.Log, d.Seq)
	if err != nil || !ok {
		l.log.Error("declaration not readable", "agent", d.From, "intent", d.Intent, "log", d.Log.String(), "seq", d.Seq, "err", err)
		return nil
	}
	return m.Envelope.Value
}

// keepDeclared keeps the value of a large declaration that was read, and no longer those that newer ones replaced. A value
// that no honest node lets in is kept by none.
func (l *loop) keepDeclared(ref hub.Ref, whole *protocol.Envelope) {
	if protocol.Lookup(whole.Intent).Class != protocol.ClassDeclaration || whole.ValueBlob != nil ||
		protocol.CheckDeclaration(whole.Intent, whole.From, whole.Value) != nil {
		return
	}
	l.declarations = nil
	now := map[hub.Ref]json.RawMessage{}
	for _, d := range l.allDeclared().all {
		of := hub.Ref{Log: d.Log, Seq: d.Seq}
		if v := l.n.shown.declared[of]; v != nil {
			now[of] = v
		} else if of == ref {
			now[of] = whole.Value
		}
	}
	l.n.shown.declared = now
}

// readDeclared reads the large declarations of before this start.
func (l *loop) readDeclared() {
	for _, d := range l.allDeclared().all {
		if d.Value != nil {
			continue
		}
		m, ok, err := l.store.Message(d.Log, d.Seq)
		if err == nil && ok && m.Envelope.ValueBlob != nil {
			if err = l.n.fill(&m.Envelope); err == nil {
				l.keepDeclared(hub.Ref{Log: d.Log, Seq: d.Seq}, &m.Envelope)
			}
		}
		if err != nil {
			l.log.Error("declaration not readable", "agent", d.From, "intent", d.Intent, "log", d.Log.String(), "seq", d.Seq, "err", err)
		}
	}
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
	main := protocol.FoldAgentID(l.core.Main())
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
