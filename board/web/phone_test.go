package web

import (
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// TestAPhoneSaysWhereItIs: the tab of what is shown is marked and no other, views without a tab mark none; the strip below is
// one line; marks stand in the line that they belong to.
func TestAPhoneSaysWhereItIs(t *testing.T) {
	f := working()
	s, ts := serve(t, f)
	f.writes(sampleAgenda(time.Now()))
	ctx := browser(t)
	for _, locale := range []string{"en", "ko"} {
		do(t, ctx, setLanguage(locale), chromedp.EmulateViewport(390, 844))
		openBoard(t, ctx, s, ts.URL)
		const lit = `[...document.querySelectorAll("as-tabs [aria-current=page]")].map((b) => b.dataset.tab).join()`
		marks := func(view, tab string) {
			t.Helper()
			until(t, ctx, `document.body.dataset.view === "`+view+`" && `+lit+` === "`+tab+`"`, 2*time.Second)
		}
		marks("board", "work")
		do(t, ctx, click("as-tabs [data-tab=mesh]"))
		marks("mesh", "mesh")
		until(t, ctx, `document.getElementById("foot").getBoundingClientRect().height === 28 && document.querySelector("as-foot").scrollHeight <= 28`, 2*time.Second)
		until(t, ctx, `document.querySelector("as-mesh .ring").getBoundingClientRect().width / document.querySelector("as-mesh .ring").viewBox.baseVal.width > 0.85`, 2*time.Second)
		do(t, ctx, click("as-mesh .head .narrow:nth-of-type(2)"))
		marks("settings", "")
		do(t, ctx, click("as-tabs [data-tab=mesh]"))
		marks("mesh", "mesh")
		do(t, ctx, click("as-mesh .head .narrow"))
		marks("agenda", "")
		until(t, ctx, `document.querySelectorAll("as-agenda .decision .question").length > 1`, 3*time.Second)
		if off := eval[float64](t, ctx, `Math.max(...[...document.querySelectorAll("as-agenda .decision")].map((c) => { const g = c.querySelector("as-glyph").getBoundingClientRect(), q = document.createRange(); q.selectNodeContents(c.querySelector(".question")); const line = q.getClientRects()[0]; return Math.abs((g.top + g.bottom) / 2 - (line.top + line.bottom) / 2); }))`); off > 3 {
			t.Errorf("%s: a decision's mark is %.1f px off its line", locale, off)
		}
		do(t, ctx, click("as-tabs [data-tab=messages]"))
		marks("board", "messages")
		do(t, ctx, chromedp.Evaluate[chromedp.Void](`void history.back()`))
		marks("agenda", "")
	}
}
