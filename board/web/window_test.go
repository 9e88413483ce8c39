package web

import (
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// TestOlderOnesOfAnotherMomentStayOut: what was asked for beside one moment comes when the window holds another. Merged, it
// would leave a gap that nothing asks for again.
func TestOlderOnesOfAnotherMomentStayOut(t *testing.T) {
	s, ts := serve(t, newFake())
	ctx := browser(t)
	openBoard(t, ctx, s, ts.URL)
	do(t, ctx, chromedp.Evaluate[chromedp.Void](`void (async () => {
		const { MessageWindow } = await import("/static/window.js");
		const whole = window.fetch;
		let answer;
		const row = (pos) => ({ pos, envelope: { id: String(pos) } });
		const rows = (from) => Array.from({ length: 100 }, (_, i) => row(from + i));
		window.fetch = () => new Promise((done) => { answer = done; });
		try {
			const w = new MessageWindow(() => {});
			w.past({ at: 1000, messages: rows(301) }, {}, 0);
			const turn = w.turn, older = w.older();
			w.past({ at: 2000, messages: rows(701) }, {}, 0);
			answer(new Response(JSON.stringify({ messages: rows(201), before: 201 })));
			await older;
			const kept = w.turn === turn ? "one selection" : "another selection";
			const next = w.older();
			answer(new Response(JSON.stringify({ messages: rows(601), before: 601 })));
			await next;
			window.held = [kept, w.items.length, w.items[0].pos, w.items.at(-1).pos, w.before].join(" ");
		} finally {
			window.fetch = whole;
		}
	})().catch((e) => { window.held = String(e); })`))
	until(t, ctx, `Boolean(window.held)`, 10*time.Second)
	if got := eval[string](t, ctx, `window.held`); got != "one selection 200 601 800 601" {
		t.Errorf("the window holds %s", got)
	}
}
