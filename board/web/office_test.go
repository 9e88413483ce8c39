package web

import (
	"slices"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/aster-mesh/aster/protocol/api"
)

// TestNoMainIsSaidWithWhoCouldElectOne: since when, how many are here, and what to do when those cannot elect anybody.
func TestNoMainIsSaidWithWhoCouldElectOne(t *testing.T) {
	f := working()
	lost := time.Now().Add(-2 * time.Minute)
	tell := func(reach int, lost int64) {
		f.mu.Lock()
		m := &f.snap.Status.Main
		m.Peer, m.Node, m.Agent, m.Here, m.Term = "12D3KooWmac-mini", "mac-mini", "mac-mini", false, 3
		m.Voters, m.Reach, m.Lost = []string{"devbox", "mac-mini", "build-1"}, reach, lost
		s := f.snap.Status
		f.mu.Unlock()
		s.Now = time.Now().UnixMilli()
		f.emit(api.Event{Type: "status", Status: &s})
	}
	s, ts := serve(t, f)
	ctx := browser(t)
	do(t, ctx, chromedp.EmulateViewport(1440, 900))
	said := listen(ctx)
	openBoard(t, ctx, s, ts.URL)
	tell(2, lost.UnixMilli())
	until(t, ctx, shows("No main since "+lost.Format("15:04")+", electing"), 2*time.Second)
	until(t, ctx, shows("electing (2 of 3 here)"), 2*time.Second)
	until(t, ctx, `document.querySelector("as-top .main").textContent === "no main"`, 2*time.Second)
	shot(t, ctx, "no-main", 1440, 900, false)
	tell(1, lost.UnixMilli())
	until(t, ctx, shows("1 of 3 here: nobody can be elected. Mail and tasks flow, claims and plans wait. To go on without the others: aster main take --force"), 2*time.Second)
	visit(t, ctx, "mesh")
	until(t, ctx, shows("main was mac-mini on mac-mini, term 3, not reached since"), 2*time.Second)
	tell(3, 0)
	until(t, ctx, shows("main is mac-mini on mac-mini, term 3"), 2*time.Second)
	until(t, ctx, `!document.querySelector("as-banner").innerText.includes("No main")`, 2*time.Second)
	until(t, ctx, `Boolean([...document.querySelectorAll("as-claims tbody tr")].map((r) => r.innerText).join().match(/path:cart\/, contract:totals\s+claude-shop · devbox\s+rounding[\s\S]*4 min[\s\S]*path:tax\/\s+mac-mini[\s\S]*known at mac-mini/))`, 2*time.Second)
	allShots(t, ctx, "mesh-claims")
	said.none(t)
}

// TestMainIsHandedOverAfterItsEffectWasNamed: from an agent's details, once asked in place.
func TestMainIsHandedOverAfterItsEffectWasNamed(t *testing.T) {
	f := working()
	s, ts := serve(t, f)
	ctx := browser(t)
	do(t, ctx, chromedp.EmulateViewport(1440, 900))
	openBoard(t, ctx, s, ts.URL)
	do(t, ctx, click(`.agent-row[data-key="codex-shop"]`))
	until(t, ctx, `document.querySelector("as-panel [data-act=begin]")?.innerText === "Hand over main"`, 2*time.Second)
	do(t, ctx, click("as-panel [data-act=begin]"))
	until(t, ctx, shows("Hand over main to codex-shop on devbox? claude-shop is asked to finish what it decides and to give up its office; then codex-shop grants claims and runs plans."), 2*time.Second)
	until(t, ctx, `document.activeElement.dataset.act === "no"`, 2*time.Second)
	shot(t, ctx, "hand-over", 1440, 900, false)
	do(t, ctx, click("as-panel [data-act=yes]"))
	until(t, ctx, shows("claude-shop was asked to hand over to codex-shop."), 2*time.Second)
	f.mu.Lock()
	defer f.mu.Unlock()
	if !slices.Contains(f.calls, "handoff codex-shop") {
		t.Errorf("calls: %q", f.calls)
	}
}
