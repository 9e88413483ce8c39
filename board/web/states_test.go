package web

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/api"
)

// empty is a node that nobody has used yet.
func empty() *fake {
	f := newFake()
	f.snap.Peers, f.snap.Agents, f.snap.Tasks, f.snap.Messages, f.snap.Pos = f.snap.Peers[:1], nil, nil, nil, 0
	s := &f.snap.Status
	s.Nodes, s.Linked, s.Records, s.Main.Agent = 1, 0, 2, ""
	return f
}

func TestLockedPageSaysHowToOpenIt(t *testing.T) {
	s, ts := serve(t, newFake())
	ctx := browser(t)
	do(t, ctx, chromedp.EmulateViewport(1440, 900), chromedp.Navigate(ts.URL+"/t/7kq2m"))
	until(t, ctx, shows("This board opens with a link from your terminal."), 3*time.Second)
	until(t, ctx, shows("aster board"), time.Second)
	allShots(t, ctx, "locked")
	link := s.LinkURL(ts.URL)
	do(t, ctx, chromedp.Navigate(link))
	until(t, ctx, shows("claude-shop"), 3*time.Second)
	if at := eval[string](t, ctx, `location.pathname`); at != "/" {
		t.Errorf("the ticket stayed in the address: %s", at)
	}
	do(t, ctx, chromedp.Navigate(link))
	until(t, ctx, shows("This link was used. Run aster board for a new one."), 3*time.Second)
}

func TestFirstRunTicksItself(t *testing.T) {
	f := empty()
	s, ts := serve(t, f)
	ctx := browser(t)
	do(t, ctx, chromedp.EmulateViewport(1440, 900))
	said := listen(ctx)
	openBoard(t, ctx, s, ts.URL)
	until(t, ctx, shows("Three steps to a mesh that works"), 2*time.Second)
	until(t, ctx, shows("no other node yet"), time.Second)
	until(t, ctx, shows("No messages yet."), time.Second)
	allShots(t, ctx, "first-run")

	one := newFake().snap.Agents[:1]
	f.emit(api.Event{Type: "agents", Agents: one})
	until(t, ctx, `document.querySelectorAll(".steps [data-done=yes]").length === 1`, time.Second)
	until(t, ctx, shows("Nothing delegated yet. Press d to give claude-shop a task."), time.Second)
	shot(t, ctx, "one-agent", 1440, 900, false)
	f.emit(api.Event{Type: "agents", Agents: newFake().snap.Agents[:2]})
	until(t, ctx, `!document.querySelector(".steps")`, time.Second)
	do(t, ctx, chromedp.KeyEvent("d"))
	until(t, ctx, `document.activeElement.id === "compose-text" && document.querySelector("as-composer .primary").textContent === "Delegate task"`, time.Second)
	said.none(t)
}

func TestPageSaysWhatItDoesNotKnow(t *testing.T) {
	f := newFake()
	f.snap.Peers[1].Linked, f.snap.Peers[1].LastSeen = false, time.Now().Add(-4*time.Minute-5*time.Second).UnixMilli()
	f.snap.Status.Linked, f.snap.Status.Behind = 2, 1200
	f.snap.Status.DiskFull, f.snap.Status.Disk = true, f.snap.Status.DiskMax-12_000_000
	s, ts := serve(t, f)
	ctx := browser(t)
	do(t, ctx, chromedp.EmulateViewport(1440, 900))
	openBoard(t, ctx, s, ts.URL)
	until(t, ctx, shows("away, as of 4 min"), time.Second)
	until(t, ctx, shows("No new messages: 11 MiB left here. Nothing is lost. Free space; it goes on by itself."), time.Second)
	until(t, ctx, shows("2 of 3 other nodes linked"), time.Second)
	if kind := eval[string](t, ctx, `[...document.querySelectorAll(".agent-row")].find(r => r.innerText.includes("gemini-docs")).querySelector("as-glyph").getAttribute("kind")`); kind != "away" {
		t.Errorf("an agent behind a silent node shows as %s", kind)
	}
	allShots(t, ctx, "away-and-full")
}

func TestSilentNodeIsSaidAndActionsAreOff(t *testing.T) {
	f := working()
	s, ts := serve(t, f)
	ctx := browser(t)
	do(t, ctx, chromedp.EmulateViewport(1440, 900))
	openBoard(t, ctx, s, ts.URL)
	do(t, ctx, chromedp.SendKeys(chromedp.ID("compose-text"), "keep me"))
	ts.CloseClientConnections()
	ts.Listener.Close()
	until(t, ctx, shows("reconnecting"), 6*time.Second)
	until(t, ctx, shows("Run aster up. This is what was known then."), 12*time.Second)
	until(t, ctx, `document.querySelector("as-composer .primary").disabled && document.getElementById("compose-text").value === "keep me"`, time.Second)
	until(t, ctx, `document.querySelectorAll(".card .option").length > 1 && [...document.querySelectorAll(".card .option")].every((b) => b.disabled)`, 2*time.Second)
	until(t, ctx, shows("Where are we with the cart?"), time.Second)
	allShots(t, ctx, "silent")
}

func TestSlowNodeIsWaitedForInWords(t *testing.T) {
	f := newFake()
	f.slow = make(chan struct{})
	s, ts := serve(t, f)
	ctx := browser(t)
	do(t, ctx, chromedp.EmulateViewport(1440, 900), chromedp.Navigate(s.LinkURL(ts.URL)))
	until(t, ctx, `document.body.dataset.loading === "Loading the board" && !document.body.classList.contains("loaded")`, 3*time.Second)
	shot(t, ctx, "loading", 1440, 900, false)
	close(f.slow)
	until(t, ctx, shows("Where are we with the cart?"), 3*time.Second)
}

// The browser may be on another machine, whose clock is its own affair.
func TestAgesAreToldByTheNodesClock(t *testing.T) {
	f := newFake()
	f.ahead = 10 * time.Minute
	f.snap.Agents[4].Since = time.Now().Add(f.ahead - 3*time.Minute).UnixMilli()
	s, ts := serve(t, f)
	ctx := browser(t)
	do(t, ctx, chromedp.EmulateViewport(1440, 900))
	openBoard(t, ctx, s, ts.URL)
	until(t, ctx, shows("idle 3 min"), 2*time.Second)
}

func TestPageComesBackByItself(t *testing.T) {
	f := newFake()
	s, ts := serve(t, f)
	ctx := browser(t)
	do(t, ctx, chromedp.EmulateViewport(1440, 900))
	openBoard(t, ctx, s, ts.URL)
	until(t, ctx, shows("3 of 3 other nodes linked"), time.Second)
	ts.CloseClientConnections()
	f.emit(api.Event{Type: "message", Pos: 8, Message: message(8, "said while nobody listened")})
	f.mu.Lock()
	f.snap.Status.Linked = 1
	f.mu.Unlock()
	until(t, ctx, shows("said while nobody listened"), 3*time.Second)
	until(t, ctx, shows("1 of 3 other nodes linked"), time.Second)
	if n := eval[int](t, ctx, `[...document.querySelectorAll(".message .text")].filter(n => n.textContent === "said while nobody listened").length`); n != 1 {
		t.Errorf("the message is shown %d times", n)
	}
}

func TestThousandAgentsFoldToCounts(t *testing.T) {
	f := newFake()
	for i := range 1000 {
		a := f.snap.Agents[4]
		a.ID, a.Home, a.Node = protocol.AgentID(fmt.Sprintf("worker-%04d", i)), f.snap.Peers[i%4].Peer, f.snap.Peers[i%4].Name
		if i == 500 {
			a.State = protocol.StateDeaf
		}
		f.snap.Agents = append(f.snap.Agents, a)
	}
	first := f.snap.Messages[6]
	f.snap.Messages = nil
	for i := range 700 {
		m := first
		m.Pos, m.Envelope.ID, m.Text = uint64(i+1), protocol.MsgID(fmt.Sprintf("0190a0a0-0000-7000-8000-%012x", i)), fmt.Sprintf("message %d", i+1)
		m.At -= int64(700-i) * 1000
		if i < 600 {
			f.history = append(f.history, m)
		} else {
			f.snap.Messages = append(f.snap.Messages, m)
		}
	}
	f.snap.Pos = 700
	s, ts := serve(t, f)
	ctx := browser(t)
	do(t, ctx, chromedp.EmulateViewport(1440, 900))
	said := listen(ctx)
	openBoard(t, ctx, s, ts.URL)
	until(t, ctx, shows("calm: 250 idle"), 2*time.Second)
	if n := eval[int](t, ctx, `document.querySelectorAll(".agent-row").length`); n > 40 {
		t.Errorf("%d agent rows are drawn", n)
	}
	if !eval[bool](t, ctx, shows("worker-0500")) {
		t.Error("the agent in trouble was folded away")
	}
	if n := eval[int](t, ctx, `document.querySelectorAll("*").length`); n > 3000 {
		t.Errorf("%d elements", n)
	}
	// Whoever scrolls up gets what is older, page by page, and may come back at once.
	for _, want := range []string{"message 501", "message 1"} {
		until(t, ctx, fmt.Sprintf(`(() => { document.querySelector(".scroller").scrollTop = 0; return [...document.querySelectorAll(".message .text")].some(n => n.textContent === %q); })()`, want), 3*time.Second)
	}
	shot(t, ctx, "huge", 1440, 900, false)
	do(t, ctx, click(".pill"))
	until(t, ctx, shows("message 700"), 2*time.Second)
	said.none(t)
}

func TestDetailsHaveAnAddressAndGiveFocusBack(t *testing.T) {
	f := newFake()
	s, ts := serve(t, f)
	ctx := browser(t)
	do(t, ctx, chromedp.EmulateViewport(1440, 900))
	said := listen(ctx)
	openBoard(t, ctx, s, ts.URL)
	do(t, ctx, chromedp.Evaluate[chromedp.Void](`void document.querySelector("[data-part=running] .task-row:last-of-type").focus()`), chromedp.KeyEvent("\r"))
	until(t, ctx, `location.pathname.startsWith("/t/") && document.querySelector("as-panel").innerText.includes("Make ./cart pass")`, 2*time.Second)
	allShots(t, ctx, "task")
	do(t, ctx, chromedp.KeyEvent("x"))
	until(t, ctx, shows("Its run is stopped and its work so far is kept."), time.Second)
	do(t, ctx, chromedp.KeyEvent("\r"))
	until(t, ctx, `document.querySelector("as-panel").innerText.includes("cancelled")`, 2*time.Second)
	do(t, ctx, chromedp.KeyEvent("\x1b"))
	until(t, ctx, `document.getElementById("details").hidden && document.activeElement.matches(".task-row")`, time.Second)

	do(t, ctx, chromedp.Navigate(ts.URL+"/m/"+string(f.snap.Messages[1].Envelope.ID)))
	until(t, ctx, `document.querySelector("as-panel .body").innerText.includes("I can prepare both.")`, 3*time.Second)
	until(t, ctx, shows("Receipts"), time.Second)
	shot(t, ctx, "message", 1440, 900, true)
	shot(t, ctx, "message", 1920, 1080, false)
	shot(t, ctx, "message", 3840, 2160, false)
	do(t, ctx, chromedp.EmulateViewport(1440, 900), chromedp.Navigate(ts.URL+"/a/claude-shop"))
	until(t, ctx, `document.querySelector("as-panel .body").innerText.includes("runs go test ./cart")`, 3*time.Second)
	do(t, ctx, chromedp.Navigate(ts.URL+"/n/12D3KooWmac-mini"))
	until(t, ctx, `document.querySelector("as-panel .body").innerText.includes("tcp · 1.8 ms")`, 3*time.Second)
	do(t, ctx, chromedp.KeyEvent("\x1b"), chromedp.KeyEvent("?"))
	until(t, ctx, `document.querySelector("dialog").open`, time.Second)
	shot(t, ctx, "keys", 1440, 900, false)
	said.none(t)
}

// Narrow windows must not scroll sideways, in either language, in any tab.
func TestPageFitsNarrowWindows(t *testing.T) {
	f := newFake()
	f.snap.Agents[0].State, f.snap.Agents[0].Wakes, f.snap.Agents[0].Doing, f.snap.Agents[0].Home = protocol.StateIdle, "its own board", "", f.snap.Peers[0].Peer
	f.snap.Peers[0].Role, f.snap.Status.Main.Peer = protocol.RoleMain, f.snap.Peers[0].Peer
	f.snap.Peers[1].Version = "aster v0.0.0-20261201043015-0123456789ab+dirty"
	s, ts := serve(t, f)
	ctx := browser(t)
	says := map[string][2]string{"en": {"main", "wakes by its own board"}, "ko": {"메인", "깨우는 방법: 자기 보드"}}
	for _, locale := range []string{"en", "ko"} {
		do(t, ctx, setLanguage(locale), chromedp.EmulateViewport(360, 640))
		openBoard(t, ctx, s, ts.URL)
		for _, tab := range []string{"work", "messages", "agents", "mesh"} {
			do(t, ctx, click("[data-tab="+tab+"]:not(body)"))
			if over := eval[int](t, ctx, `Math.max(document.documentElement.scrollWidth, ...[...document.querySelectorAll("main > *, as-composer, as-foot")].map(n => n.getBoundingClientRect().right)) - 360`); over > 0 {
				t.Errorf("%s %s is %d px too wide", locale, tab, over)
			}
			shot(t, ctx, locale+"-"+tab, 390, 844, false)
			do(t, ctx, chromedp.EmulateViewport(360, 640))
		}
		for _, width := range []int64{800, 1024, 1280} {
			do(t, ctx, chromedp.EmulateViewport(width, 700))
			if over := eval[int](t, ctx, fmt.Sprintf(`document.documentElement.scrollWidth - %d`, width)); over > 0 {
				t.Errorf("%s at %d is %d px too wide", locale, width, over)
			}
			shot(t, ctx, locale, width, 700, false)
		}
		do(t, ctx, chromedp.EmulateViewport(1440, 900))
		until(t, ctx, fmt.Sprintf(`document.querySelector("as-agents").textContent.includes(%q)`, says[locale][1]), 2*time.Second)
		visit(t, ctx, "mesh")
		until(t, ctx, fmt.Sprintf(`document.querySelector("as-mesh td").textContent === %[1]q && document.querySelector(".ring [data-main=yes] .sub").textContent.split(" · ").filter((w) => w === "main" || w === %[1]q).join() === %[1]q`, says[locale][0]), 2*time.Second)
		until(t, ctx, `document.querySelector("as-mesh .table").scrollWidth <= document.querySelector("as-mesh .table").clientWidth && [...document.querySelectorAll("as-mesh td.version")].some((n) => n.title.endsWith("ab+dirty") && n.scrollWidth > n.clientWidth)`, 2*time.Second)
	}
}

func setLanguage(locale string) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, _ *chromedp.Target) error {
		_, err := chromedp.Call(ctx, emulation.SetUserAgentOverride, emulation.SetUserAgentOverrideParams{UserAgent: "test", AcceptLanguage: locale})
		return err
	})
}
