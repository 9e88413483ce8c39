package node

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/aster-mesh/aster/board/web"
	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/asterism"
	"github.com/aster-mesh/aster/roles/keys"
)

// TestOutsideMemberHasItsQuota: what an outside member writes is booked with its records, survives a restart, and beyond its
// bound nothing more of it is taken, which a warning says; others are not touched.
func TestOutsideMemberHasItsQuota(t *testing.T) {
	a, b, na, nb := pair(t, protocol.RoleCollab)
	main, guest := a.attach(t, "main-agent"), b.attach(t, "visitor")
	ask := func(id string) {
		guest.send(t, map[string]any{"type": "CUSTOM", "id": id, "name": "Request", "targetAgentId": "main-agent", "msgId": id, "value": map[string]any{"text": strings.Repeat("x", 1000)}})
	}
	for { // until it knows of main
		if known(t, nb, "main-agent") {
			break
		}
	}
	ask("first")
	if got := main.next(t, "Request"); got.MsgID != "first" {
		t.Fatalf("got %s", got.MsgID)
	}
	booked, _ := na.outsideUsed.Load(nb.home.peer)
	if bytes, _ := booked.(int64); bytes < logCosts+nameCosts+1000 || bytes > logCosts+3*nameCosts+10_000 {
		t.Errorf("booked %v bytes for a log, a name or two, and some 1,000", booked)
	}
	if raw, ok, err := na.store.Value(keyOutside + string(nb.home.peer)); err != nil || !ok || string(raw) == "0" {
		t.Errorf("stored count: %s, %v, %v", raw, ok, err)
	}
	na.outsideUsed.Store(nb.home.peer, int64(outsideBytesMax-500))
	ask("second")
	warned := func() bool {
		st, err := na.Status(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return strings.Contains(strings.Join(st.Warnings, "\n"), "aster member revoke mac-mini")
	}
	for !warned() {
	}
	if !na.affords(na.home.peer, outsideBytesMax) {
		t.Error("the inside has a quota, too")
	}
	other := a.attach(t, "worker")
	main.send(t, map[string]any{"type": "CUSTOM", "id": "in", "name": "Request", "targetAgentId": "worker", "msgId": "in", "value": map[string]any{}})
	if got := other.next(t, "Request"); got.MsgID != "in" {
		t.Errorf("got %s", got.MsgID)
	}
	rows, err := na.Inbox(t.Context(), inboxOf("main-agent"))
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rows {
		if r.MsgID == "second" {
			t.Error("what lies beyond the quota was taken")
		}
	}
}

// TestAnAgentAtWorkUsesLittleOfItsQuota: its presence becomes a record each minute, for years.
func TestAnAgentAtWorkUsesLittleOfItsQuota(t *testing.T) {
	cost := func(kind protocol.Kind) int64 {
		return weigh([]protocol.Record{{Seq: 2, Kind: kind, Body: []byte(`{"agent":"visitor"}`)}}, []*protocol.Envelope{nil})
	}
	if is, name := cost(protocol.KindPresence), cost(protocol.KindBind); is > 1000 || name < nameCosts {
		t.Errorf("a presence costs %d bytes, a name %d", is, name)
	}
}

// TestAKeyOfOutsidersHasItsQuota: what a client gives that came with such a key is booked, also what is refused, and survives
// a restart; beyond its bound nothing of it is kept, which it and a warning say. Agents inside have none.
func TestAKeyOfOutsidersHasItsQuota(t *testing.T) {
	var n *Node
	r := start(t, func(c *Config) { c.probe = func(x *Node) { n = x } })
	main := r.attach(t, "main-agent")
	secret := issueByAPI(t, r, `{"kind":"collab","label":"guest"}`)
	guest := r.joinWith(t, secret, "guest")
	who := protocol.PeerID("key/" + keys.HashOf(secret).String())
	large := map[string]any{"text": strings.Repeat("x", 2<<20)}
	say := func(name, id string) string {
		guest.send(t, map[string]any{"type": "CUSTOM", "name": name, "targetAgentId": "main-agent", "msgId": id, "value": large})
		for {
			f := guest.next(t, "ServerNotice")
			var v struct{ Code, MsgID string }
			if err := json.Unmarshal(f.Value, &v); err != nil {
				t.Fatal(err)
			}
			if v.MsgID == id {
				return v.Code
			}
		}
	}
	if code := say("Delegate", "refused"); code != protocol.CodeNotAllowed {
		t.Fatalf("a Delegate of a guest: %q", code)
	}
	booked, _ := n.outsideUsed.Load(who)
	if bytes, _ := booked.(int64); bytes < 2<<20 || bytes > 3<<20 {
		t.Errorf("booked %v bytes for some 2 MiB that were refused", booked)
	}
	if raw, ok, err := n.store.Value(keyOutside + string(who)); err != nil || !ok || string(raw) == "0" {
		t.Errorf("stored count: %s, %v, %v", raw, ok, err)
	}
	n.outsideUsed.Store(who, int64(outsideBytesMax-500))
	before := n.store.Parts("")
	if code := say("Request", "beyond"); code != protocol.CodeTooMany {
		t.Errorf("beyond the quota: %q", code)
	}
	piece := []byte(strings.Repeat("y", 1000))
	sum := asterism.HashOf(piece)
	if _, code := guest.ask(t, asterism.ArtifactOffer, map[string]any{"artifact": sum, "size": len(piece)}); code != "" {
		t.Errorf("offer: %q", code)
	}
	if _, code := guest.ask(t, asterism.ArtifactPut, map[string]any{"artifact": sum, "chunk_index": 0, "sha256": sum, "data": piece}); code != protocol.CodeTooMany {
		t.Errorf("a piece beyond the quota: %q", code)
	}
	if got := n.store.Parts(""); len(got) != len(before)+1 || got[0].Have != 0 {
		t.Errorf("kept: %+v", got)
	}
	st, err := n.Status(t.Context())
	if err != nil || !strings.Contains(strings.Join(st.Warnings, "\n"), "aster key revoke kr-") {
		t.Errorf("warnings: %q, %v", st.Warnings, err)
	}
	main.send(t, map[string]any{"type": "CUSTOM", "name": "Note", "targetAgentId": "guest", "msgId": "in", "value": map[string]any{}})
	if got := guest.next(t, "Note"); got.MsgID != "in" {
		t.Errorf("got %s", got.MsgID)
	}
}

// TestNoAttachmentIsLargerThanItsRecordSays: what a record says is what its author is booked for, so no more is fetched.
func TestNoAttachmentIsLargerThanItsRecordSays(t *testing.T) {
	_, _, na, nb := pair(t, protocol.RoleCollab)
	ref, err := nb.store.PutBlob(t.Context(), strings.NewReader(strings.Repeat("x", 1<<20)), "")
	if err != nil {
		t.Fatal(err)
	}
	lie := ref
	lie.Bytes = 10
	if err := na.blobs.fetchFrom(t.Context(), nb.home.peer, lie); err == nil || na.store.HasBlob(ref.SHA256) || len(na.store.Parts("")) > 0 {
		t.Errorf("more was fetched than said: %v", err)
	}
	if err := na.blobs.fetchFrom(t.Context(), nb.home.peer, ref); err != nil || !na.store.HasBlob(ref.SHA256) {
		t.Errorf("what was said as it is: %v", err)
	}
}

func known(t *testing.T, n *Node, id protocol.AgentID) bool {
	t.Helper()
	all, err := n.Agents(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range all {
		if a.ID == id {
			return true
		}
	}
	return false
}

func inboxOf(agent protocol.AgentID) web.InboxQuery { return web.InboxQuery{Agent: agent, All: true} }
