package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/api"
)

// wordsOfBoard keeps what the board says at this very moment: with the page's clock held, so that ages are those of it.
// What no record tells, how an agent wakes and what it says it is doing, is not looked at, nor is what can be pressed.
const wordsOfBoard = `
window.words = () => ["as-work", "as-stream .messages", "as-needs .head", "as-needs .calm", "as-top .main"].map((q) => document.querySelector(q).innerText)
  .concat([...document.querySelectorAll(".card .question, .card .from")].map((n) => n.innerText))
  .concat([...document.querySelectorAll(".agent-row")].map((r) => r.querySelector(".name").innerText + " " + r.querySelector(".role").innerText)).join("\n--\n");
window.frames2 = () => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
window.hold = async () => {
  const real = Date.now, at = real();
  Date.now = () => at;
  dispatchEvent(new Event("redraw"));
  await frames2();
  window.held = { at, words: words() };
  Date.now = real;
};
window.lookBack = async (at) => {
  window.then = null;
  (await import("/static/route.js")).travel(at);
  while (document.querySelector("as-replay").hidden || document.body.classList.contains("past-wait") || !location.search.includes(at) || document.querySelector("as-stream").store.past !== at) await frames2();
  await frames2();
  window.then = words();
};`

// TestReplayGivesWhatTheLiveBoardShowed: of three moments in the life of two nodes the board says later, looking back, what
// it said then, word for word; and of the present what it says live. The control: the three differ.
func TestReplayGivesWhatTheLiveBoardShowed(t *testing.T) {
	if testing.Short() {
		t.Skip("real processes and a browser")
	}
	nodes := meshOf(t, nil, "devbox", "mac-mini")
	near, far := nodes[0], nodes[1]
	near.declare("claude-shop")
	far.declare("codex-shop")
	near.knows("codex-shop")
	far.knows("claude-shop")
	ctx := chromium(t)
	if err := chromedp.Do(ctx, chromedp.EmulateViewport(1440, 900), chromedp.Navigate(strings.TrimSpace(near.ok("board", "--print")))); err != nil {
		t.Fatal(err)
	}
	wait := func(js string) {
		t.Helper()
		if _, err := chromedp.Run(ctx, chromedp.Poll[bool](js, chromedp.WithPollingTimeout(20*time.Second))); err != nil {
			body, _ := chromedp.Run(ctx, chromedp.Evaluate[string](`document.body.innerText.slice(0, 2000)`))
			t.Fatalf("%s: %v\n%s", js, err, body)
		}
	}
	run := func(js string) {
		t.Helper()
		if err := chromedp.Do(ctx, chromedp.Evaluate[chromedp.Void]("void "+js)); err != nil {
			t.Fatal(err)
		}
	}
	wait(`document.body.innerText.includes("codex-shop") && document.body.dataset.feed === "open"`)
	if err := chromedp.Do(ctx, chromedp.Evaluate[chromedp.Void](wordsOfBoard+"; void 0")); err != nil {
		t.Fatal(err)
	}
	type held struct {
		At    int64  `json:"at"`
		Words string `json:"words"`
	}
	var kept []held
	keep := func(shows string, cards int) {
		t.Helper()
		wait(fmt.Sprintf(`document.querySelector("as-work").innerText.includes(%q) && document.querySelectorAll(".card").length === %d`, shows, cards))
		run(`(window.held = null, hold())`)
		wait(`window.held !== null`)
		got, err := chromedp.Run(ctx, chromedp.Evaluate[held](`window.held`))
		must(t, err)
		kept = append(kept, got)
	}
	task, err := near.say(t.Context(), api.SendRequest{From: "claude-shop", To: "codex-shop", Intent: protocol.Delegate, Value: []byte(`{"task":"Make ./cart pass"}`)})
	must(t, err)
	keep("in the inbox", 0)
	report := func(status, summary string) {
		t.Helper()
		_, err := far.say(t.Context(), api.SendRequest{From: "codex-shop", To: "claude-shop", Intent: protocol.WorkerReport, Re: task.MsgID, Value: fmt.Appendf(nil, `{"re_msgId":%q,"status":%q,"summary":%q}`, task.MsgID, status, summary)})
		must(t, err)
	}
	report("blocked", "Which table: 2025 or 2026?")
	keep("Which table: 2025 or 2026?", 1)
	far.ok("send", "--from", "codex-shop", "--to", "claude-shop", "--intent", "Report", "세금 표를 봅니다")
	wait(`document.querySelector("as-stream").innerText.includes("세금 표를 봅니다")`)
	report("done", "All tests pass.")
	keep("All tests pass.", 0)
	for i, was := range kept {
		run(fmt.Sprintf(`lookBack(%d)`, was.At))
		wait(`window.then !== null`)
		got, err := chromedp.Run(ctx, chromedp.Evaluate[string](`window.then`))
		must(t, err)
		if got != was.Words {
			t.Errorf("moment %d: live it said\n%s\nand looking back\n%s", i+1, was.Words, got)
		}
		if i > 0 && was.Words == kept[i-1].Words {
			t.Errorf("moments %d and %d do not differ: nothing was compared", i, i+1)
		}
	}
}
