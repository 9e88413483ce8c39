package web

import (
	"fmt"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/api"
)

const meshRows = `document.querySelectorAll("as-mesh > .table tbody tr").length`

// TestMeshAloneAndSettingsBeforeAnythingWasMade: a node that nobody has used yet draws no picture of one, and says what there is not.
func TestMeshAloneAndSettingsBeforeAnythingWasMade(t *testing.T) {
	f := empty()
	s, ts := serve(t, f)
	ctx := browser(t)
	do(t, ctx, chromedp.EmulateViewport(1440, 900))
	openBoard(t, ctx, s, ts.URL)
	visit(t, ctx, "mesh")
	until(t, ctx, meshRows+` === 1 && document.querySelector("as-mesh .summary").textContent.includes("no other node yet") && document.querySelector("as-mesh .ring").hasAttribute("hidden")`, 2*time.Second)
	until(t, ctx, shows("Nobody holds a claim."), time.Second)
	visit(t, ctx, "settings")
	until(t, ctx, shows("No invite was made here."), 2*time.Second)
	until(t, ctx, shows("No room is open."), time.Second)
}

// TestMeshOfManyIsATable: a picture of more nodes than a ring holds is none; all of them are rows.
func TestMeshOfManyIsATable(t *testing.T) {
	f := newFake()
	for i := range 60 {
		p := f.snap.Peers[1]
		p.Peer, p.Name = protocol.PeerID(fmt.Sprintf("12D3KooWn%02d", i)), fmt.Sprintf("n-%02d", i)
		f.snap.Peers = append(f.snap.Peers, p)
	}
	for i := range 300 {
		f.invited = append(f.invited, api.InviteRow{ID: fmt.Sprint("i", i), Role: protocol.RoleLocal, Made: time.Now().UnixMilli(), Expires: time.Now().Add(time.Hour).UnixMilli()})
	}
	s, ts := serve(t, f)
	ctx := browser(t)
	do(t, ctx, chromedp.EmulateViewport(1440, 900))
	openBoard(t, ctx, s, ts.URL)
	visit(t, ctx, "mesh")
	until(t, ctx, meshRows+` === 64 && document.querySelector("as-mesh .ring").hasAttribute("hidden")`, 2*time.Second)
	visit(t, ctx, "settings")
	until(t, ctx, `document.querySelectorAll("as-settings .setting-rows [data-open=yes]").length >= 100`, 2*time.Second)
	if n := eval[int](t, ctx, `document.querySelectorAll("*").length`); n > 3000 {
		t.Errorf("%d elements", n)
	}
}

// TestMeshAndSettingsSayWhatIsRefusedAndWhoIsSilent: another node that is cut off, a refusal, a full disk, and then this
// board's own node gone: each is said where it happens.
func TestMeshAndSettingsSayWhatIsRefusedAndWhoIsSilent(t *testing.T) {
	f := working()
	s, ts := serve(t, f)
	ctx := browser(t)
	do(t, ctx, chromedp.EmulateViewport(1440, 900))
	openBoard(t, ctx, s, ts.URL)
	visit(t, ctx, "mesh")
	until(t, ctx, meshRows+` === 4`, 2*time.Second)
	f.mu.Lock()
	peers := append([]api.Peer{}, f.snap.Peers...)
	peers[1].Linked, peers[1].Alive = false, "dead"
	f.snap.Peers, f.snap.Status.Linked, f.snap.Status.DiskFull = peers, 2, true
	f.mu.Unlock()
	f.emit(api.Event{Type: "peers", Peers: peers})
	until(t, ctx, `document.querySelector("as-mesh > .table tbody").innerText.includes("not linked") && document.querySelector("as-mesh .ring [data-linked=no]") !== null`, 2*time.Second)
	until(t, ctx, shows("2 of 3 other nodes linked")+" && "+shows("No new messages:"), 2*time.Second)

	visit(t, ctx, "settings")
	withdraw := `[...document.querySelectorAll("as-settings button")].find((b) => b.textContent === "Withdraw")`
	until(t, ctx, `Boolean(`+withdraw+`)`, 2*time.Second)
	f.mu.Lock()
	f.invited = nil // somebody else was first
	f.mu.Unlock()
	do(t, ctx, chromedp.Evaluate[chromedp.Void](`void `+withdraw+`.click()`))
	until(t, ctx, shows("Not done: this node made no invite i2."), 2*time.Second)

	ts.CloseClientConnections()
	ts.Listener.Close()
	until(t, ctx, shows("Run aster up. This is what was known then."), 12*time.Second)
	do(t, ctx, chromedp.Evaluate[chromedp.Void](`void document.querySelector("as-settings form .primary").click()`))
	until(t, ctx, shows("Not done: your node does not answer."), 2*time.Second)
	visit(t, ctx, "mesh")
	until(t, ctx, meshRows+` === 4 && document.querySelector("as-top .fresh-word").dataset.health === "silent"`, 2*time.Second)
}
