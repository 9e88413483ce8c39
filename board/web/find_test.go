package web

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/api"
)

// long gives the fake n messages a second apart, the last 100 of them in the snapshot.
func (f *fake) long(n int) {
	first := f.snap.Messages[0]
	f.snap.Messages = nil
	for i := range n {
		m := first
		m.Pos, m.Envelope.ID, m.Text = uint64(3*i+1), protocol.MsgID(fmt.Sprintf("0190a0a0-0000-7000-8000-%012x", i)), fmt.Sprintf("message %d", i+1)
		m.At = time.Now().UnixMilli() - int64(n-i)*1000
		if i%50 == 7 {
			m.Text += " about tax"
		}
		if i < n-100 {
			f.history = append(f.history, m)
		} else {
			f.snap.Messages = append(f.snap.Messages, m)
		}
	}
	f.snap.Pos = uint64(3 * n)
}

const top = `[...document.querySelectorAll(".message")].find(r => r.getBoundingClientRect().bottom > document.querySelector(".scroller").getBoundingClientRect().top)`

// TestSearchStandsInTheAddress: words and filters are painted, survive a reload and Back, and say when there is nothing.
func TestSearchStandsInTheAddress(t *testing.T) {
	f := newFake()
	f.long(2000)
	s, ts := serve(t, f)
	ctx := browser(t)
	do(t, ctx, chromedp.EmulateViewport(1440, 900))
	said := listen(ctx)
	openBoard(t, ctx, s, ts.URL)
	press(t, ctx, "/")
	// A test's key types its letter although the page took it; a person's does not.
	until(t, ctx, `document.activeElement.id === "search-words" && (document.activeElement.value = "", true)`, time.Second)
	press(t, ctx, "tax")
	until(t, ctx, `location.search === "?q=tax" && document.querySelectorAll(".message mark").length > 3`, 2*time.Second)
	until(t, ctx, shows("message 1958 about tax"), time.Second)
	press(t, ctx, "\r")
	until(t, ctx, `document.activeElement.matches(".message")`, time.Second)
	do(t, ctx, chromedp.Navigate(ts.URL+"/?q=tax&agent=nobody-here"))
	until(t, ctx, shows("No message of 2,000 has 'tax' from or to nobody-here."), 3*time.Second)
	do(t, ctx, click(".remove button:last-child"))
	until(t, ctx, shows("message 1958 about tax"), 2*time.Second)
	do(t, ctx, chromedp.Evaluate[chromedp.Void](`void history.back()`))
	until(t, ctx, shows("No message of 2,000 has 'tax' from or to nobody-here."), 2*time.Second)
	// From a time on: what was said then, with both directions open.
	at := f.history[500].At
	do(t, ctx, chromedp.Navigate(fmt.Sprintf("%s/?since=%d", ts.URL, at)))
	until(t, ctx, shows("message 501"), 3*time.Second)
	until(t, ctx, shows("message 499"), 2*time.Second)
	press(t, ctx, "L")
	until(t, ctx, shows("message 2000"), 2*time.Second)
	said.none(t)
}

// TestNothingMovesUnderAReader: what comes while somebody reads is counted, and moves no row.
func TestNothingMovesUnderAReader(t *testing.T) {
	f := newFake()
	f.long(600)
	s, ts := serve(t, f)
	ctx := browser(t)
	do(t, ctx, chromedp.EmulateViewport(1440, 900))
	openBoard(t, ctx, s, ts.URL)
	until(t, ctx, shows("message 600"), 2*time.Second)
	do(t, ctx, chromedp.Evaluate[chromedp.Void](`void document.querySelector(".scroller").scrollBy(0, -1500)`))
	until(t, ctx, `!document.body.innerText.includes("message 600")`, time.Second)
	where := fmt.Sprintf(`(() => { const r = %s; return r.dataset.key + " " + Math.round(r.getBoundingClientRect().top); })()`, top)
	until(t, ctx, fmt.Sprintf(`(() => { const now = %s; const same = window.lastWhere === now; window.lastWhere = now; return same; })()`, where), 2*time.Second)
	before := eval[string](t, ctx, where)
	for i := range 12 {
		m := message(uint64(2000+i), fmt.Sprintf("new %d", i))
		f.emit(api.Event{Type: "message", Pos: m.Pos, Message: m})
	}
	until(t, ctx, shows("12 new"), 2*time.Second)
	if after := eval[string](t, ctx, where); after != before {
		t.Errorf("the row that was read was at %s and is at %s", before, after)
	}
	do(t, ctx, click(".pill"))
	until(t, ctx, shows("new 11"), 2*time.Second)
	until(t, ctx, `document.querySelector(".pill").hidden`, time.Second)
}

// TestABurstIsOneLineAPair: above twenty rows a second a pair has one line, which opens.
func TestABurstIsOneLineAPair(t *testing.T) {
	f := newFake()
	s, ts := serve(t, f)
	ctx := browser(t)
	do(t, ctx, chromedp.EmulateViewport(1440, 900))
	openBoard(t, ctx, s, ts.URL)
	at := time.Now().UnixMilli() / 1000 * 1000
	for i := range 60 {
		m := message(uint64(100+i), fmt.Sprintf("burst %d", i))
		m.At = at
		f.emit(api.Event{Type: "message", Pos: m.Pos, Message: m})
	}
	until(t, ctx, shows("60 messages"), 3*time.Second)
	do(t, ctx, click(`.message[data-kind=burst] button`))
	until(t, ctx, shows("burst 3"), 2*time.Second)
}

func TestToolsFoldAndThreadsAreWhole(t *testing.T) {
	f := working()
	f.snap.Messages[12].Envelope.Value = value(map[string]string{"summary": "3 of **3** tests pass\n\n- <b>one</b>\n- [log](https://ci.example/1)"})
	f.snap.Messages[12].Envelope.Blobs = []protocol.BlobRef{{SHA256: strings.Repeat("ab", 32), Bytes: 12, Name: "notes.txt"}}
	s, ts := serve(t, f)
	ctx := browser(t)
	do(t, ctx, chromedp.EmulateViewport(1440, 900))
	openBoard(t, ctx, s, ts.URL)
	until(t, ctx, shows("4 tool calls, 3 files, 6 s"), 2*time.Second)
	do(t, ctx, click(`.message[data-kind=steps] button`))
	until(t, ctx, shows("Edit cart/total.go"), 2*time.Second)
	do(t, ctx, chromedp.Navigate(ts.URL+"/m/"+string(f.snap.Messages[12].Envelope.ID)))
	until(t, ctx, `document.querySelectorAll(".thread li").length === 2 && document.querySelector(".thread [aria-current]").innerText.includes("3 of 3 tests pass")`, 3*time.Second)
	until(t, ctx, shows("notes.txt"), time.Second)
	until(t, ctx, `document.querySelector(".tree strong").textContent === "3" && document.querySelectorAll(".tree li").length === 2 && !document.querySelector(".tree b")`, time.Second)
	press(t, ctx, "w")
	until(t, ctx, shows("Signed by mac-mini. Hash chain and signature were checked now, and hold."), 2*time.Second)
	press(t, ctx, "r")
	until(t, ctx, `document.activeElement.id === "compose-text" && document.querySelector(".re-line").innerText.startsWith("Answers m-")`, time.Second)
}

// TestPaletteGoesEverywhere, by letters alone, and gives the focus back.
func TestPaletteGoesEverywhere(t *testing.T) {
	f := working()
	s, ts := serve(t, f)
	ctx := browser(t)
	do(t, ctx, chromedp.EmulateViewport(1440, 900))
	said := listen(ctx)
	openBoard(t, ctx, s, ts.URL)
	do(t, ctx, chromedp.KeyEvent("k", chromedp.KeyModifiers(chromedp.ModifierCtrl)))
	until(t, ctx, `document.activeElement.matches(".palette input")`, time.Second)
	press(t, ctx, "gemini")
	until(t, ctx, `document.querySelector("[aria-selected=true]").innerText.includes("gemini-docs")`, time.Second)
	press(t, ctx, "\r")
	until(t, ctx, `location.pathname === "/a/gemini-docs" && document.querySelector("as-panel").innerText.includes("needs a person")`, 2*time.Second)
	press(t, ctx, "\x1b")
	visit(t, ctx, "mesh")
	until(t, ctx, `location.pathname === "/mesh" && document.querySelectorAll(".ring .node").length === 4 && document.querySelectorAll("as-mesh > .table tbody tr").length === 4`, 2*time.Second)
	do(t, ctx, chromedp.Evaluate[chromedp.Void](`void document.querySelector(".ring [data-self=yes]").focus()`), chromedp.KeyEvent("\r"))
	until(t, ctx, `location.pathname === "/n/12D3KooWdevbox" && document.querySelectorAll("as-panel .spark").length === 7`, 3*time.Second)
	allShots(t, ctx, "node")
	press(t, ctx, "\x1b")
	until(t, ctx, `location.pathname === "/mesh"`, time.Second)
	allShots(t, ctx, "mesh")
	visit(t, ctx, "settings")
	until(t, ctx, shows("used by build-1"), 3*time.Second)
	allShots(t, ctx, "settings")
	do(t, ctx, chromedp.EmulateViewport(390, 844))
	if !eval[bool](t, ctx, `document.querySelector("as-settings").getClientRects().length > 0`) {
		t.Error("a phone shows nothing of settings")
	}
	do(t, ctx, chromedp.EmulateViewport(1440, 900))
	do(t, ctx, click(`.setting form button`))
	until(t, ctx, shows("aster up --detach --join aster1-x"), 2*time.Second)
	do(t, ctx, click(`.setting-rows [data-open=yes] button`))
	until(t, ctx, shows("The invite for a local node is withdrawn."), 2*time.Second)
	press(t, ctx, "?")
	until(t, ctx, `document.querySelector("as-help dialog").open`, time.Second)
	do(t, ctx, click("as-help input"), chromedp.KeyEvent("\x1b"))
	until(t, ctx, `!document.querySelector("as-help dialog").open`, time.Second)
	press(t, ctx, "d") // single keys are off now
	if eval[bool](t, ctx, `document.activeElement.id === "compose-text"`) {
		t.Error("a single key works although they are off")
	}
	press(t, ctx, "\x1b")
	said.none(t)
}
