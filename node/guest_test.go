package node

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/aster-mesh/aster/node/hub"
	"github.com/aster-mesh/aster/node/journal"
	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/asterism"
	"github.com/aster-mesh/aster/protocol/meshwire"
)

// forge lets an outside node write what it likes into its own log, as a changed program could.
func (n *Node) forge(t *testing.T, kind protocol.Kind, body any) {
	t.Helper()
	if err := n.loop.call(t.Context(), func() {
		n.loop.core.Step(n.loop.now, hub.Author{Scope: protocol.ScopeOutside(n.home.peer), Kind: kind, Body: protocol.EncodeBody(body)})
	}); err != nil {
		t.Fatal(err)
	}
}

// flagged ends what an outside node forged with an honest word to main, behind which all of it has arrived.
func flagged(t *testing.T, guest, main *client) {
	t.Helper()
	flag(t, guest)
	for main.next(t, "Request").MsgID != "flag" {
	}
}

func flag(t *testing.T, guest *client) {
	t.Helper()
	guest.send(t, map[string]any{"type": "CUSTOM", "name": "Request", "targetAgentId": "main-agent", "msgId": "flag", "value": map[string]any{}})
}

// visited is a node with main and a worker, and an outside one whose agent knows main.
func visited(t *testing.T) (a *running, na, nb *Node, main, worker, guest *client) {
	t.Helper()
	a, b, na, nb := pair(t, protocol.RoleCollab)
	main, worker, guest = a.attach(t, "main-agent"), a.attach(t, "worker"), b.attach(t, "guest")
	for known := false; !known; {
		if err := nb.loop.call(t.Context(), func() { _, known = nb.loop.core.Agent("main-agent") }); err != nil {
			t.Fatal(err)
		}
	}
	return a, na, nb, main, worker, guest
}

// shown are the frames that a client has got so far.
func (c *client) shown() (all []asterism.Frame) {
	for {
		select {
		case f := <-c.frames:
			all = append(all, f)
		default:
			return all
		}
	}
}

// TestOutsiderTakesNoName: an outside node binds the names of the inside, for longer than anybody. They stay whose they are,
// and what is said to them it never sees.
func TestOutsiderTakesNoName(t *testing.T) {
	_, na, nb, main, worker, guest := visited(t)
	for _, name := range []protocol.AgentID{"worker", "main-agent"} {
		nb.forge(t, protocol.KindBind, protocol.BindBody{Agent: name, Home: nb.home.peer, Since: 1})
	}
	flagged(t, guest, main)
	worker.send(t, map[string]any{"type": "CUSTOM", "name": "Request", "targetAgentId": "main-agent", "msgId": "inner", "value": map[string]any{}})
	for main.next(t, "Request").MsgID != "inner" {
	}
	nb.forge(t, protocol.KindMessage, protocol.Envelope{ID: "d1", From: "main-agent", Source: protocol.SourceAgent, To: "worker",
		Intent: protocol.Delegate, Value: json.RawMessage(`{"task":"x"}`)})
	guest.send(t, map[string]any{"type": "CUSTOM", "name": "Request", "targetAgentId": "main-agent", "msgId": "flag2", "value": map[string]any{}})
	for main.next(t, "Request").MsgID != "flag2" {
	}
	var home protocol.PeerID
	if err := na.loop.call(t.Context(), func() { home, _ = na.loop.board.Owner("worker") }); err != nil || home != na.home.peer {
		t.Errorf("on the board worker lives at %q, %v", home, err)
	}
	tasks, err := na.Tasks(t.Context())
	if err != nil || len(tasks) != 1 || tasks[0].From != "main-agent-2" {
		t.Errorf("the board shows %+v, %v; want its Delegate, from main-agent-2", tasks, err)
	}
}

// TestOutsiderSpeaksLiveAsItselfAlone: a live frame of an outside node is let out under its agent's name or not at all.
func TestOutsiderSpeaksLiveAsItselfAlone(t *testing.T) {
	a, na, nb, main, worker, guest := visited(t)
	board := a.watch(t)
	flagged(t, guest, main)
	frames := []liveBody{
		{From: "guest", To: "worker", Frame: json.RawMessage(`{"type":"CUSTOM","id":"x1","name":"Delegate","agentId":"main-agent","source":"agent","msgId":"forged","value":{"task":"x"}}`)},
		{From: "guest", Frame: json.RawMessage(`{"type":"CUSTOM","id":"x2","name":"MainChanged","source":"server","value":{"agentId":"guest"}}`)},
		{From: "guest", Frame: json.RawMessage(`{"type":"CUSTOM","id":"x3","name":"AgentActivity","agentId":"main-agent","value":{"tool":"its-own"}}`)},
	}
	if err := nb.loop.call(t.Context(), func() {
		nb.loop.sendTo(na.home.peer, meshwire.Live{Kind: liveFrames, Agent: "guest", Frame: protocol.EncodeBody(frames)})
	}); err != nil {
		t.Fatal(err)
	}
	for {
		f := <-board.frames
		if f.Name == "MainChanged" {
			t.Errorf("a board was told: %s %s", f.Name, f.Value)
		}
		if f.Name == "AgentActivity" {
			if f.AgentID != "guest" || f.Source != "agent" {
				t.Errorf("its activity is %q's, by %q", f.AgentID, f.Source)
			}
			break
		}
	}
	for _, f := range worker.shown() {
		if f.Name == "Delegate" {
			t.Errorf("worker was given a %s of %q", f.Name, f.AgentID)
		}
	}
}

// TestOutsiderGivesNoReceiptForTheInside: it can guess where a message of the inside lies, and says that it was refused.
func TestOutsiderGivesNoReceiptForTheInside(t *testing.T) {
	_, na, nb, main, worker, guest := visited(t)
	main.send(t, map[string]any{"type": "CUSTOM", "name": "Request", "targetAgentId": "worker", "msgId": "q1", "value": map[string]any{}})
	worker.next(t, "Request")
	m, ok, err := na.store.MessageByID("main-agent", "q1")
	if err != nil || !ok {
		t.Fatal("q1 is not kept", err)
	}
	nb.forge(t, protocol.KindReceipts, protocol.ReceiptsBody{Tier: protocol.Refused, Agent: "guest",
		Of: []protocol.LogRange{{Log: m.Log.String(), Ranges: []uint64{m.Seq, m.Seq}}}})
	flag(t, guest)
	for f := range main.frames {
		if f.Name == "RelayUnreachable" {
			t.Errorf("the sender was told: %s", f.Value)
		}
		if f.MsgID == "flag" {
			break
		}
	}
	if m, _, err = na.store.MessageByID("main-agent", "q1"); err != nil || len(m.Tiers) == 0 {
		t.Fatal("it has no receipt at all: the test proves nothing", err)
	}
	for _, tier := range m.Tiers {
		if tier.Tier == protocol.Refused {
			t.Errorf("q1 counts as refused, by %s", tier.Agent)
		}
	}
}

// TestOutsidersForgeriesAreNowhere: words under another's name, as the node, or with a role that it has not are kept as
// records and found nowhere; nor do they make the true message a repeat.
func TestOutsidersForgeriesAreNowhere(t *testing.T) {
	a, na, nb, main, worker, guest := visited(t)
	board := a.watch(t)
	say := func(e protocol.Envelope) {
		e.Value = json.RawMessage(`{"text":"forgery"}`)
		nb.forge(t, protocol.KindMessage, e)
	}
	say(protocol.Envelope{ID: "m1", From: "main-agent", Source: protocol.SourceAgent, To: "worker", Intent: "Request"})
	say(protocol.Envelope{ID: "m2", Source: protocol.SourceServer, Intent: "MainChanged"})
	say(protocol.Envelope{ID: "m3", Source: protocol.SourceServer, To: "worker", Intent: "Status"})
	say(protocol.Envelope{ID: "m4", From: "guest", FromRole: protocol.RoleMain, Source: protocol.SourceAgent, To: "worker", Intent: "Request"})
	say(protocol.Envelope{ID: "m5", From: "guest", Source: protocol.SourceServer, To: "worker", Intent: "Request"})
	flagged(t, guest, main)
	main.send(t, map[string]any{"type": "CUSTOM", "name": "Request", "targetAgentId": "worker", "msgId": "m1", "value": map[string]any{"text": "true"}})
	if f := worker.next(t, "Request"); f.MsgID != "m1" || !strings.Contains(string(f.Value), "true") {
		t.Errorf("worker got %s: %s", f.MsgID, f.Value)
	}
	board.next(t, "Request")
	for _, f := range append(board.shown(), worker.shown()...) {
		if strings.Contains(string(f.Value), "forgery") {
			t.Errorf("shown: %s of %q: %s", f.Name, f.AgentID, f.Value)
		}
	}
	all, err := na.store.Messages(journal.Query{})
	found, err2 := na.store.Search("forgery", 0, 0)
	if err != nil || err2 != nil || len(all) == 0 {
		t.Fatal("no messages at all", err, err2)
	}
	for _, m := range append(all, found...) {
		if strings.Contains(string(m.Envelope.Value), "forgery") {
			t.Errorf("the journal shows %s of %q", m.Envelope.ID, m.Envelope.From)
		}
	}
}

// TestOutsidersTakeNoSeatOfTheInside: whatever one of them reports under, an inside agent's seat is not refused for it.
func TestOutsidersTakeNoSeatOfTheInside(t *testing.T) {
	_, na, nb, main, _, guest := visited(t)
	var from protocol.AgentID
	if err := nb.loop.call(t.Context(), func() { from = nb.loop.core.Presences(nb.loop.now)[0].Agent }); err != nil {
		t.Fatal(err)
	}
	for i := range 2 * protocol.SeatsMax {
		nb.forge(t, protocol.KindMessage, protocol.Envelope{ID: protocol.MsgID(fmt.Sprint("s", i)), From: from, FromRole: protocol.RoleCollab,
			Source: protocol.SourceAgent, Intent: "SeatTelemetry", Value: protocol.EncodeBody(map[string]string{"seat": fmt.Sprint("seat", i)})})
	}
	flagged(t, guest, main)
	var all, inside, its int
	if err := na.loop.call(t.Context(), func() {
		env := protocol.Envelope{Intent: "SeatTelemetry", From: "worker"}
		all, inside = len(na.loop.allDeclared().all), len(na.loop.declared(&env).Seats)
		env.From = from
		its = len(na.loop.declared(&env).Seats)
	}); err != nil {
		t.Fatal(err)
	}
	if all == 0 || all >= protocol.SeatsMax || inside != 0 || its != all {
		t.Errorf("%d seats of the outsider are kept; %d count against the inside, %d against itself", all, inside, its)
	}
}
