package web

import (
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// TestTheMeshShowsEachNodesHour: the charts of those who answer, of one that does not what it said last and when, and of one
// that never did that there is nothing; a node is folded and opened.
func TestTheMeshShowsEachNodesHour(t *testing.T) {
	f := working()
	f.snap.Peers[1].Linked = false
	s, ts := serve(t, f)
	ctx := browser(t)
	do(t, ctx, chromedp.EmulateViewport(1440, 900))
	said := listen(ctx)
	openBoard(t, ctx, s, ts.URL)
	visit(t, ctx, "mesh")
	until(t, ctx, `document.querySelectorAll("as-figures .figures").length === 3 && document.querySelectorAll("as-figures .spark").length === 14`, 2*time.Second)
	until(t, ctx, `(([own, gone, never]) => own.innerText.includes("devbox") && own.innerText.includes("this node") && /mac-mini.*not answering since \w/s.test(gone.innerText) && never.innerText.includes("not answering") && !never.innerText.includes("since") && never.innerText.includes("Nothing was measured yet."))(document.querySelectorAll("as-figures .figures"))`, 2*time.Second)
	until(t, ctx, `(([own, short, never]) => own.innerText.includes("Last hour") && short.innerText.includes("Last 11 min") && !never.innerText.includes("Last") && [...short.querySelectorAll(".spark .line")].filter((p) => /^M[\d.]+ [\d.]+h3$/.test(p.getAttribute("d"))).length === 1)(document.querySelectorAll("as-figures .figures"))`, time.Second)
	do(t, ctx, chromedp.Evaluate[chromedp.Void](`document.querySelector("as-figures").scrollIntoView()`))
	allShots(t, ctx, "mesh-health")
	do(t, ctx, click("as-figures summary"))
	until(t, ctx, `!document.querySelector("as-figures .figures").open`, 2*time.Second)
	said.none(t)
}
