package web

import (
	"fmt"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/aster-mesh/aster/protocol"
)

const shownTime = `document.querySelector("as-replay .moment").textContent`

// TestReplayShowsAMomentAndNothingCanBeDoneInIt: by keys alone into the past, message by message, and back; what acts is
// hidden or says why not, and nothing reaches the node.
func TestReplayShowsAMomentAndNothingCanBeDoneInIt(t *testing.T) {
	f := working()
	s, ts := serve(t, f)
	ctx := browser(t)
	do(t, ctx, chromedp.EmulateViewport(1440, 900))
	said := listen(ctx)
	openBoard(t, ctx, s, ts.URL)
	until(t, ctx, shows("The empty cart divides"), 2*time.Second)
	press(t, ctx, "t")
	until(t, ctx, `document.activeElement.type === "range" && /^\?at=\d{13}$/.test(location.search) && document.body.classList.contains("past")`, 2*time.Second)
	until(t, ctx, shows("read only"), time.Second)
	until(t, ctx, `document.querySelector("as-needs").innerText.includes("Answers that were offered:")`, time.Second)
	until(t, ctx, shows("The empty cart divides"), time.Second)
	for _, gone := range []string{"as-composer form", ".open-delegate", ".card .option", ".card input", "as-needs .count + button"} {
		if !eval[bool](t, ctx, fmt.Sprintf(`[...document.querySelectorAll(%q)].every((n) => n.getClientRects().length === 0)`, gone)) {
			t.Errorf("%s can be used in the past", gone)
		}
	}
	allShots(t, ctx, "replay")
	now := eval[string](t, ctx, shownTime)
	press(t, ctx, "[", "[", "[")
	until(t, ctx, `!document.querySelector("as-stream").innerText.includes("The empty cart divides") && document.querySelector("as-stream").innerText.includes("Where are we with the cart?")`, 2*time.Second)
	if then := eval[string](t, ctx, shownTime); then == now {
		t.Errorf("three steps back it is still %s", then)
	}
	press(t, ctx, "]")
	until(t, ctx, `document.querySelector("as-stream").innerText.includes("The empty cart divides") && !document.querySelector("as-stream").innerText.includes("3 of 3 tests pass")`, 2*time.Second)
	press(t, ctx, "d")
	until(t, ctx, shows("Nothing can be done in the past."), time.Second)
	press(t, ctx, "g", "s")
	if at := eval[string](t, ctx, `location.pathname`); at != "/" {
		t.Errorf("settings were opened out of the past: %s", at)
	}
	do(t, ctx, chromedp.Evaluate[chromedp.Void](`void import("/static/feed.js").then((m) => m.post("send", {})).catch((e) => { window.refused = e.refusal.reason; })`))
	until(t, ctx, `window.refused === "Nothing can be done in the past. L: back to live"`, time.Second)
	f.mu.Lock()
	if len(f.sent) > 0 {
		t.Errorf("sent %+v", f.sent)
	}
	f.mu.Unlock()
	do(t, ctx, click(".task-row"))
	until(t, ctx, `location.pathname.startsWith("/t/") && /at=/.test(location.search) && document.querySelector("as-panel").innerText.includes("Choose the tax table")`, 2*time.Second)
	if eval[bool](t, ctx, `Boolean(document.querySelector("as-panel [data-act=begin], as-panel [data-act=reply]"))`) {
		t.Error("a task can be acted on in the past")
	}
	press(t, ctx, "\x1b")
	press(t, ctx, "L")
	until(t, ctx, `location.search === "" && !document.body.classList.contains("past") && document.querySelector("as-composer form").getClientRects().length > 0 && document.querySelectorAll(".card .option").length > 0`, 2*time.Second)
	said.none(t)
}

// TestAMomentHasAnAddress: it is shown after a reload, with what is open and looked for, and Back leads out of it.
func TestAMomentHasAnAddress(t *testing.T) {
	f := newFake()
	f.long(2000)
	f.late = f.history[500].Envelope.ID
	s, ts := serve(t, f)
	ctx := browser(t)
	do(t, ctx, chromedp.EmulateViewport(1440, 900))
	said := listen(ctx)
	openBoard(t, ctx, s, ts.URL)
	do(t, ctx, chromedp.Navigate(fmt.Sprintf("%s/?at=%d", ts.URL, f.history[500].At)))
	until(t, ctx, `document.querySelector("as-stream").innerText.includes("message 501") && !document.querySelector("as-stream").innerText.includes("message 502")`, 3*time.Second)
	until(t, ctx, shows("1 came late"), time.Second)
	until(t, ctx, `[...document.querySelectorAll(".late")].filter((n) => n.textContent === "late").length === 1`, time.Second)
	do(t, ctx, chromedp.Evaluate[chromedp.Void](`void document.querySelector(".scroller").scrollTo(0, 0)`))
	until(t, ctx, shows("message 396"), 2*time.Second) // older ones of that moment come
	do(t, ctx, chromedp.Navigate(fmt.Sprintf("%s/?q=tax&at=%d", ts.URL, f.history[500].At)))
	until(t, ctx, `document.querySelectorAll(".message mark").length > 3 && document.querySelector("as-stream").innerText.includes("message 458 about tax")`, 3*time.Second)
	// The slider: a place for each message, by keys and by hand; the address follows.
	do(t, ctx, chromedp.Navigate(fmt.Sprintf("%s/?at=%d", ts.URL, f.history[500].At)))
	until(t, ctx, `document.querySelector("as-replay input").max === "1999" && document.querySelector("as-replay input").value === "500"`, 3*time.Second)
	do(t, ctx, chromedp.Evaluate[chromedp.Void](`void document.querySelector("as-replay input").focus()`), chromedp.KeyEvent("\u0302")) // arrow left
	until(t, ctx, fmt.Sprintf(`location.search === "?at=%d" && document.querySelector("as-stream").innerText.includes("message 500") && !document.querySelector("as-stream").innerText.includes("message 501")`, f.history[499].At), 2*time.Second)
	// It plays by itself, and a step stops it.
	do(t, ctx, click(`as-replay [aria-label="Play"]`))
	until(t, ctx, `document.querySelector("as-stream").innerText.includes("message 503")`, 5*time.Second)
	press(t, ctx, "[")
	until(t, ctx, `Boolean(document.querySelector('as-replay [aria-label="Play"]'))`, time.Second)
	do(t, ctx, click("as-replay .primary"))
	until(t, ctx, `location.search === "" && document.querySelector("as-stream").innerText.includes("message 2000")`, 2*time.Second)
	do(t, ctx, chromedp.Evaluate[chromedp.Void](`void history.back()`))
	until(t, ctx, `/at=/.test(location.search) && document.body.classList.contains("past")`, 2*time.Second)
	do(t, ctx, chromedp.EmulateViewport(390, 844))
	until(t, ctx, `document.documentElement.scrollWidth <= 390 && [...document.querySelectorAll("as-replay *")].every((n) => n.getBoundingClientRect().right <= 390)`, time.Second)
	said.none(t)
}

// TestReplayBeforeTheFirstRecordAndWithoutANode: there was nothing, the node refuses, and nobody answers: each has its words,
// and what is shown is never said to be of another time than it is.
func TestReplayBeforeTheFirstRecordAndWithoutANode(t *testing.T) {
	f := newFake()
	s, ts := serve(t, f)
	ctx := browser(t)
	do(t, ctx, chromedp.EmulateViewport(1440, 900))
	openBoard(t, ctx, s, ts.URL)
	at := f.snap.Messages[4].At
	do(t, ctx, chromedp.Navigate(ts.URL+"/?at=1000000"))
	for _, words := range []string{"Nothing was recorded before.", "Nothing had been said by then.", "No task had been delegated by then.", "Nothing needs you."} {
		until(t, ctx, shows(words), 3*time.Second)
	}
	f.mu.Lock()
	f.momentErr = protocol.Refuse(protocol.CodeBadFrame, "the clock ends before that", "Choose an earlier time")
	f.mu.Unlock()
	do(t, ctx, chromedp.Navigate(fmt.Sprintf("%s/?at=%d", ts.URL, at)))
	until(t, ctx, shows("Not shown: the clock ends before that. Choose an earlier time."), 3*time.Second)
	until(t, ctx, `getComputedStyle(document.querySelector("as-work")).visibility === "hidden"`, 2*time.Second) // not what is now
	f.mu.Lock()
	f.momentErr = nil
	f.mu.Unlock()
	do(t, ctx, click(".when-line button"))
	until(t, ctx, `document.querySelector("as-stream").innerText.includes("Make ./cart pass")`, 2*time.Second)
	then := eval[string](t, ctx, shownTime)
	ts.CloseClientConnections()
	ts.Listener.Close()
	press(t, ctx, "[")
	until(t, ctx, shows("Your node does not answer."), 3*time.Second)
	if got := eval[string](t, ctx, shownTime); got != then {
		t.Errorf("what is of %s is said to be of %s", then, got)
	}
}

// TestAMomentThatComesBeforeTheNodeIsKnownIsWhole: by its link, while the node is slow to say who it is, an ask of a past moment is for
// whom it is as soon as that is known.
func TestAMomentThatComesBeforeTheNodeIsKnownIsWhole(t *testing.T) {
	f := working()
	s, ts := serve(t, f)
	ctx := browser(t)
	do(t, ctx, chromedp.EmulateViewport(1440, 900))
	openBoard(t, ctx, s, ts.URL)
	f.slow = make(chan struct{})
	do(t, ctx, chromedp.Navigate(fmt.Sprintf("%s/?at=%d", ts.URL, time.Now().Add(-5*time.Second).UnixMilli())))
	until(t, ctx, `document.querySelector("as-stream") !== null && performance.getEntriesByType("resource").some((r) => r.name.includes("/moment?") && r.responseEnd > 0)`, 3*time.Second)
	close(f.slow)
	until(t, ctx, `document.body.classList.contains("past") && document.querySelectorAll(".card").length >= 2`, 3*time.Second)
}
