package web

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/api"
)

// press sends one key each.
func press(t *testing.T, ctx context.Context, keys ...string) {
	t.Helper()
	for _, k := range keys {
		do(t, ctx, chromedp.KeyEvent(k))
	}
}

// visit goes to a view by its two keys: again if a busy machine left more than the page allows between them.
func visit(t *testing.T, ctx context.Context, view string) {
	t.Helper()
	for range 5 {
		press(t, ctx, "g", view[:1])
		if _, err := chromedp.Run(ctx, chromedp.Poll[bool](fmt.Sprintf("document.body.dataset.view === %q", view), chromedp.WithPollingTimeout(2*time.Second))); err == nil {
			return
		}
	}
	t.Fatalf("g %s does not lead to %s", view[:1], view)
}

func TestNeedsYouOrdersByClocksAndAnswersForReal(t *testing.T) {
	f := working()
	s, ts := serve(t, f)
	ctx := browser(t)
	do(t, ctx, chromedp.EmulateViewport(1440, 900))
	said := listen(ctx)
	openBoard(t, ctx, s, ts.URL)
	until(t, ctx, `document.querySelectorAll(".card").length === 3`, 2*time.Second)
	if order := eval[string](t, ctx, `[...document.querySelectorAll(".card")].map(c => c.dataset.ask).join()`); order != "approval,choice,blocked" {
		t.Errorf("the order is %s", order)
	}
	for _, want := range []string{"denied in 0:", "goes on with half even in 5", "1 waits for others"} {
		until(t, ctx, shows(want), time.Second)
	}
	until(t, ctx, `document.title === "(3) aster devbox"`, time.Second)
	press(t, ctx, "n")
	until(t, ctx, `document.activeElement.dataset.ask === "approval"`, time.Second)
	press(t, ctx, "1") // a risk is not sent by one key
	until(t, ctx, shows("Press Allow once again to send it."), time.Second)
	press(t, ctx, "\r") // nor by Enter
	f.mu.Lock()
	if len(f.sent) != 0 {
		t.Errorf("sent by one key: %+v", f.sent)
	}
	f.mu.Unlock()
	do(t, ctx, chromedp.Evaluate[chromedp.Void](`void history.back()`))
	press(t, ctx, "n")
	until(t, ctx, `document.activeElement.closest(".card") !== null`, time.Second)
	do(t, ctx, chromedp.Evaluate[chromedp.Void](`void document.querySelector("[data-ask=choice]").focus()`))
	press(t, ctx, "2")
	until(t, ctx, shows("is logged: the answer to mac-mini."), 2*time.Second)
	f.mu.Lock()
	sent := f.sent
	f.snap.Asks = api.Asks{Asks: f.snap.Asks.Asks[2:], Ended: []api.AskEnded{
		{ID: "s:mac-mini/q1", How: "answered", Labels: []string{"half up"}, By: sent[0].MsgID, NodeName: "devbox"},
		{ID: "s:claude-shop/q2", How: "answered", Labels: []string{"Deny"}, By: "other", NodeName: "mac-mini"}}}
	f.mu.Unlock()
	if len(sent) != 1 || sent[0].Intent != "SelectionAnswer" || sent[0].To != "mac-mini" || string(sent[0].Value) != `{"promptId":"q1","selectedLabels":["half up"]}` {
		t.Errorf("sent %+v", sent)
	}
	f.emit(api.Event{Type: "asks"})
	until(t, ctx, shows("Your answer holds: half up."), 2*time.Second)
	until(t, ctx, shows("Answered at mac-mini: Deny."), 2*time.Second)
	until(t, ctx, `document.querySelectorAll(".card").length === 1`, 8*time.Second)
	said.none(t, "404") // the opened message is not among the sample's
}

func TestAnAnswerThatCameSecondIsToldSo(t *testing.T) {
	f := working()
	s, ts := serve(t, f)
	ctx := browser(t)
	do(t, ctx, chromedp.EmulateViewport(1440, 900))
	openBoard(t, ctx, s, ts.URL)
	until(t, ctx, `document.querySelectorAll(".card").length === 3`, 2*time.Second)
	do(t, ctx, chromedp.Evaluate[chromedp.Void](`void document.querySelector("[data-ask=choice]").focus()`))
	press(t, ctx, "1")
	until(t, ctx, shows("is logged: the answer to mac-mini."), 2*time.Second)
	f.mu.Lock()
	f.snap.Asks = api.Asks{Ended: []api.AskEnded{{ID: "s:mac-mini/q1", How: "answered", Labels: []string{"half up"}, By: "somebody-else", NodeName: "build-1"}}}
	f.mu.Unlock()
	f.emit(api.Event{Type: "asks"})
	until(t, ctx, shows("Your answer came second. At build-1 it was answered: half up."), 2*time.Second)
}

func TestAboveFiveCardsTheRestAreRows(t *testing.T) {
	f := working()
	for i := range 12 {
		a := f.snap.Asks.Asks[2]
		a.ID, a.Text, a.At = fmt.Sprint("t:more", i), fmt.Sprintf("question %d", i), a.At+int64(i)
		f.snap.Asks.Asks = append(f.snap.Asks.Asks, a)
	}
	s, ts := serve(t, f)
	ctx := browser(t)
	do(t, ctx, chromedp.EmulateViewport(1440, 1400))
	openBoard(t, ctx, s, ts.URL)
	until(t, ctx, `document.querySelectorAll(".card").length === 5`, 2*time.Second)
	until(t, ctx, shows("10 more"), time.Second)
	// What runs and what is stuck can still be seen without a scroll: in a lower window fewer are cards.
	do(t, ctx, chromedp.EmulateViewport(1440, 900))
	until(t, ctx, `document.querySelectorAll(".card").length === 3`, 2*time.Second)
	for _, what := range []string{"[data-part=blocked] .task-row", "[data-part=running] .task-row", ".agent-row", ".message"} {
		until(t, ctx, fmt.Sprintf(`document.querySelector(%q)?.getBoundingClientRect().bottom <= 900`, what), time.Second)
	}
	do(t, ctx, click("[data-ask=blocked] .acts button:last-child"))
	until(t, ctx, shows("Set aside in this browser."), time.Second)
	until(t, ctx, shows("1 set aside"), time.Second)
	do(t, ctx, click(".toast button"))
	until(t, ctx, `!document.body.innerText.includes("1 set aside")`, time.Second)
	allShots(t, ctx, "needs")
}

// TestKeyboardAlone: find a blocked task, read why, answer, delegate a follow-up; at most 25 key presses beside the words.
func TestKeyboardAlone(t *testing.T) {
	f := working()
	s, ts := serve(t, f)
	ctx := browser(t)
	do(t, ctx, chromedp.EmulateViewport(1440, 900))
	said := listen(ctx)
	openBoard(t, ctx, s, ts.URL)
	until(t, ctx, `document.querySelectorAll(".card").length === 3`, 2*time.Second)
	presses := 0
	keys := func(all ...string) {
		t.Helper()
		presses += len(all)
		press(t, ctx, all...)
	}
	words := func(text string) { t.Helper(); press(t, ctx, text) }
	keys("n", "n", "n")
	until(t, ctx, `document.activeElement.dataset.ask === "blocked" && document.activeElement.innerText.includes("Which one should exports use?")`, time.Second)
	keys("\r")
	until(t, ctx, `document.activeElement.matches(".card input")`, time.Second)
	words("2025")
	keys("\r")
	until(t, ctx, shows("is logged: the answer to gemini-docs."), 2*time.Second)
	keys("\x1b", "j")
	keys("d")
	until(t, ctx, `document.activeElement.id === "compose-text"`, time.Second)
	words("Export with the 2025 table")
	do(t, ctx, chromedp.KeyEvent("\r", chromedp.KeyModifiers(chromedp.ModifierCtrl))) // Ctrl
	presses++
	until(t, ctx, `document.getElementById("compose-text").value === ""`, 2*time.Second)
	f.mu.Lock()
	sent := f.sent
	f.mu.Unlock()
	if len(sent) != 2 || sent[0].Intent != protocol.UserPrompt || sent[0].Re != f.snap.Tasks[0].ID || sent[1].Intent != protocol.Delegate {
		t.Errorf("sent %+v", sent)
	}
	if presses > 25 {
		t.Errorf("%d key presses", presses)
	}
	said.none(t)
}
