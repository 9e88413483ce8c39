package web

import (
	"context"
	"encoding/json"
	"os"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// whyUnseen says for each answer why a person at 1440 × 900 would not read it, or nothing: its words are inside the
// window, inside everything that clips them, and nothing lies over them.
const whyUnseen = `(answers) => answers.map(({ in: region, words }) => {
	const root = document.querySelector(region);
	if (!root) return region + " is not there";
	let why = "is not there";
	const walk = document.createTreeWalker(root, NodeFilter.SHOW_ELEMENT);
	const whole = (node) => { // words may run over several text nodes of one element
		const texts = [], all = document.createTreeWalker(node, NodeFilter.SHOW_TEXT);
		let said = "";
		for (let n; (n = all.nextNode());) { texts.push([n, said.length]); said += n.data; }
		const at = said.indexOf(words);
		if (at < 0) return null;
		const spot = (i) => { const [n, from] = texts.findLast(([, f]) => f <= i); return [n, i - from]; };
		const range = document.createRange();
		range.setStart(...spot(at));
		const [last, end] = spot(at + words.length - 1);
		range.setEnd(last, end + 1);
		return range;
	};
	for (let node; (node = walk.nextNode());) {
		if ([...node.children].some((c) => c.textContent.includes(words))) continue; // the innermost element
		const range = whole(node);
		if (!range) continue;
		const boxes = [...range.getClientRects()].filter((b) => b.width > 0);
		if (!boxes.length) { why = "is not drawn"; continue; }
		why = "";
		for (const b of boxes) {
			if (b.left < 0 || b.top < 0 || b.right > innerWidth || b.bottom > innerHeight) why = "is outside the window";
			for (let up = node; up && up !== document.body; up = up.parentElement) {
				const style = getComputedStyle(up), a = up.getBoundingClientRect();
				if (style.visibility !== "visible" || Number(style.opacity) < 1) why = "is not visible";
				if (style.overflow !== "visible" && (b.left < a.left - 1 || b.right > a.right + 0.5 || b.top < a.top - 2 || b.bottom > a.bottom + 2)) why = "is clipped by " + up.tagName + "." + up.className;
			}
			for (const x of [b.left + 1, (b.left + b.right) / 2, b.right - 1]) {
				const hit = document.elementFromPoint(x, (b.top + b.bottom) / 2);
				if (!why && !(hit && (node.contains(hit) || hit.contains(node)))) why = "lies under " + hit?.tagName + "." + hit?.className;
			}
		}
		if (!why) return "";
	}
	return why;
})`

// TestFiveAnswersAreSeenAtOnce: in five meshes that are as unlike as they may be, what answers the board's five questions is
// read without a scroll or a click. ASTER_SHOTS keeps the pictures (make five).
func TestFiveAnswersAreSeenAtOnce(t *testing.T) {
	ctx := browser(t)
	do(t, ctx, chromedp.EmulateViewport(1440, 900))
	for _, made := range fiveMeshes {
		mesh := made(time.Now())
		t.Run(mesh.name, func(t *testing.T) {
			s, ts := serve(t, mesh.fake)
			openBoard(t, ctx, s, ts.URL)
			if got := eval[int](t, ctx, `[...document.querySelectorAll(".reason .word")].filter((x) => getComputedStyle(x).borderInlineStartWidth !== "0px" || getComputedStyle(x).display !== "inline").length`); got != 0 {
				t.Errorf("%d reasons are drawn as what people said on the agenda is", got)
			}
			for i, question := range questions {
				for _, a := range mesh.truth[i] {
					ask, err := json.Marshal([]map[string]string{{"in": a.in, "words": a.words}})
					if err != nil {
						t.Fatal(err)
					}
					if !seen(ctx, string(ask)) {
						t.Errorf("%s: %q in %s %s", question, a.words, a.in, eval[[]string](t, ctx, "("+whyUnseen+")("+string(ask)+")")[0])
					}
				}
			}
			if !t.Failed() || os.Getenv("ASTER_SHOTS") != "" {
				shot(t, ctx, "five-"+mesh.name, 1440, 900, false)
			}
		})
	}
}

// seen waits for what the page draws each second, and no longer than the words with minutes stay true.
func seen(ctx context.Context, ask string) bool {
	_, err := chromedp.Run(ctx, chromedp.Poll[bool]("("+whyUnseen+")("+ask+")[0] === ''", chromedp.WithPollingTimeout(12*time.Second)))
	return err == nil
}
