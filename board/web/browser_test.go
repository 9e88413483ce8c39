package web

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/api"
)

// chrome is one headless Chromium for all tests here; TestMain ends it.
var chrome struct {
	once sync.Once
	ctx  context.Context
	end  func()
	err  error
}

func startChrome(path string) {
	opts := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.Headless, chromedp.NoSandbox, chromedp.DisableGPU, chromedp.NoFirstRun,
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-background-networking", true), chromedp.Flag("disable-component-update", true),
		chromedp.Flag("disable-sync", true), chromedp.Flag("lang", "en-US"), chromedp.Env("LANGUAGE=en_US"))
	alloc, endAlloc := chromedp.NewExecAllocator(context.Background(), opts...)
	ctx, endBrowser := chromedp.NewContext(alloc)
	chrome.ctx, chrome.end = ctx, func() { endBrowser(); endAlloc() }
	chrome.err = chromedp.Do(ctx)
}

// browser gives t a window of its own, which shares nothing with those of other tests. Without a Chromium the test fails
// where CI runs and is skipped elsewhere; -short skips it everywhere.
func browser(t *testing.T) context.Context {
	t.Helper()
	return browserFor(t, 120*time.Second)
}

// browserFor is browser for a test that may take that long.
func browserFor(t *testing.T, long time.Duration) context.Context {
	t.Helper()
	if testing.Short() {
		t.Skip("a browser takes seconds")
	}
	path := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if p, err := exec.LookPath(name); err == nil {
			path = p
			break
		}
	}
	if path == "" {
		const how = "no browser: apt-get install -y chromium fonts-inter fonts-noto-cjk"
		if os.Getenv("CI") == "true" {
			t.Fatal(how)
		}
		t.Skip(how)
	}
	chrome.once.Do(func() { startChrome(path) })
	if chrome.err != nil {
		t.Fatal(chrome.err)
	}
	ctx, endTab := chromedp.NewContext(chrome.ctx, chromedp.WithNewBrowserContext())
	ctx, endTime := context.WithTimeout(ctx, long)
	t.Cleanup(func() { endTime(); endTab() })
	return ctx
}

// complaints collects what the page says to its console.
type complaints struct {
	mu   sync.Mutex
	said []string
}

func listen(ctx context.Context) *complaints {
	c := &complaints{}
	messages := chromedp.Console(ctx)
	go func() {
		for m, err := range messages {
			if err != nil {
				return
			}
			if m.Type == chromedp.ConsoleLog || m.Type == chromedp.ConsoleDebug || m.Type == chromedp.ConsoleInfo {
				continue
			}
			c.mu.Lock()
			c.said = append(c.said, m.String()+" "+m.URL)
			c.mu.Unlock()
		}
	}()
	return c
}

// none allows only what contains the word except, if any.
func (c *complaints) none(t *testing.T, except ...string) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.said {
		if len(except) == 0 || !strings.Contains(s, except[0]) {
			t.Errorf("the page complained: %s", s)
		}
	}
}

func do(t *testing.T, ctx context.Context, steps ...chromedp.Action[chromedp.Void]) {
	t.Helper()
	if err := chromedp.Do(ctx, steps...); err != nil {
		t.Fatal(err)
	}
}

func eval[T any](t *testing.T, ctx context.Context, js string) T {
	t.Helper()
	got, err := chromedp.Run(ctx, chromedp.Evaluate[T](js))
	if err != nil {
		t.Fatalf("%s: %v", js, err)
	}
	return got
}

// until waits for a JavaScript condition, checked each frame: five times as long as it should take, as other tests
// share the machine.
func until(t *testing.T, ctx context.Context, js string, within time.Duration) {
	t.Helper()
	within *= 15 // a wait costs its time only where it fails, and CI has two cores for all
	if _, err := chromedp.Run(ctx, chromedp.Poll[bool](js, chromedp.WithPollingTimeout(within))); err != nil {
		t.Fatalf("not within %s: %s: %v\n%s", within, js, err, eval[string](t, ctx, `document.body.innerText.slice(0, 2000)`))
	}
}

func openBoard(t *testing.T, ctx context.Context, s *Server, base string) {
	t.Helper()
	do(t, ctx, chromedp.Navigate(s.LinkURL(base)))
	until(t, ctx, `document.body.classList.contains("loaded") && document.body.dataset.feed === "open" && document.querySelector("as-work").childElementCount > 0 && Boolean(document.querySelector("as-stream").window)`, 10*time.Second)
}

func shows(text string) string { return fmt.Sprintf(`document.body.innerText.includes(%q)`, text) }

// shots are taken when ASTER_SHOTS names a folder (make shots).
func shot(t *testing.T, ctx context.Context, name string, width, height int64, dark bool) {
	t.Helper()
	dir := os.Getenv("ASTER_SHOTS")
	if dir == "" {
		return
	}
	scheme := "light"
	if dark {
		scheme = "dark"
	}
	do(t, ctx, chromedp.EmulateViewport(width, height), chromedp.Func(func(ctx context.Context, _ *chromedp.Target) error {
		_, err := chromedp.Call(ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}})
		return err
	}), chromedp.Sleep(1300*time.Millisecond)) // the last row's colour fades for 1.2 s
	png, err := chromedp.Run(ctx, chromedp.CaptureScreenshot())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%s-%dx%d-%s.png", name, width, height, scheme)), png, 0o644); err != nil {
		t.Fatal(err)
	}
}

func allShots(t *testing.T, ctx context.Context, name string) {
	t.Helper()
	for _, dark := range []bool{false, true} {
		shot(t, ctx, name, 1440, 900, dark)
		shot(t, ctx, name, 390, 844, dark)
	}
	if os.Getenv("ASTER_SHOTS") != "" {
		do(t, ctx, chromedp.EmulateViewport(1440, 900))
	}
}

func TestPageShowsWhatHappensWithinASecond(t *testing.T) {
	f := newFake()
	f.openRooms = working().openRooms
	s, ts := serve(t, f, func(s *Server) { s.beatEvery = time.Second })
	ctx := browser(t)
	do(t, ctx, chromedp.EmulateViewport(1440, 900))
	said := listen(ctx)
	openBoard(t, ctx, s, ts.URL)
	for _, want := range []string{"devbox", "claude-shop", "gemini-docs", "tcp · 1.8 ms", "Choose the tax table for exports", "3 of 3 other nodes linked", "50,212 records", "Where are we with the cart?", "3f9c2ab", "live", "Not begun 1", "Running 1"} {
		until(t, ctx, shows(want), 3*time.Second)
	}
	allShots(t, ctx, "live")

	m := f.snap.Messages[6]
	m.Pos, m.Envelope.ID, m.Text, m.At = 8, "0190a0a0-0000-7000-8000-0000000000ff", "all 3 tests pass now", time.Now().UnixMilli()
	m.Short = shortOf(m.Envelope.ID, m.Envelope.Intent)
	f.emit(api.Event{Type: "message", Pos: 8, Message: &m})
	until(t, ctx, shows("all 3 tests pass now"), time.Second)

	f.emit(api.Event{Type: "tiers", MsgID: m.Envelope.ID, From: m.Envelope.From, Tiers: []api.TierAt{{Tier: protocol.Logged}, {Tier: protocol.Replicated}, {Tier: protocol.Persisted}, {Tier: protocol.Processed}}})
	until(t, ctx, `document.querySelector(".messages > :last-child as-ticks")?.dataset.all === "ok"`, time.Second)

	// What was refused comes no further, and says so: nothing of it is "not yet". A room goes by what it is about.
	m.Pos, m.Envelope.ID, m.Text, m.Envelope.Room, m.Envelope.To = 9, "0190a0a0-0000-7000-8000-0000000000fe", "is anybody here", "rt-0123456789ab", ""
	m.Tiers = m.Tiers[:1]
	f.emit(api.Event{Type: "message", Pos: 9, Message: &m})
	until(t, ctx, shows("#Release 2.6"), 3*time.Second)
	m.Pos, m.Envelope.ID, m.Text, m.Envelope.Room, m.Envelope.To = 10, "0190a0a0-0000-7000-8000-0000000000fd", "one more report", "", "claude-shop"
	m.Tiers = []api.TierAt{{Tier: protocol.Logged, At: m.At}, {Tier: protocol.Refused, At: m.At, Agent: "claude-shop", Reason: protocol.CodeInboxFull}}
	f.emit(api.Event{Type: "message", Pos: 10, Message: &m})
	until(t, ctx, `(([row]) => row?.querySelector(".refused")?.textContent === "refused" && row.querySelector("as-ticks").title === "logged, refused")([...document.querySelectorAll(".message")].filter((x) => x.innerText.includes("one more report")))`, 2*time.Second)
	do(t, ctx, chromedp.Evaluate[chromedp.Void](`void [...document.querySelectorAll(".message")].find((x) => x.innerText.includes("one more report")).click()`))
	until(t, ctx, `(([all]) => all?.innerText.includes("claude-shop · The inbox is full") && !all.innerText.includes("not yet"))(document.querySelectorAll("as-panel .receipts"))`, 3*time.Second)
	press(t, ctx, "\x1b")

	task := f.snap.Tasks[2]
	task.State, task.Ended, task.Millis, task.Diff, task.Commit = api.TaskDone, time.Now().UnixMilli(), 3100, &api.Diff{Added: 2, Removed: 1}, "81d0e44aa3f9c2ab81d0e44aa3f9c2ab8"
	f.emit(api.Event{Type: "task", Task: &task})
	until(t, ctx, `document.querySelector("[data-part=done]").innerText.includes("81d0e44")`, time.Second)
	said.none(t)
}

// TestPageForgetsWhatSomebodyDeletes: the rows of a channel go from an open page; those of others, and what is said in it
// afterwards, stay.
func TestPageForgetsWhatSomebodyDeletes(t *testing.T) {
	f := newFake()
	s, ts := serve(t, f)
	ctx := browser(t)
	do(t, ctx, chromedp.EmulateViewport(1440, 900))
	openBoard(t, ctx, s, ts.URL)
	listed := func(text string) string {
		return `document.querySelector(".messages").innerText.includes(` + strconv.Quote(text) + `)`
	}
	until(t, ctx, listed("TestEmptyCart is left")+" && "+listed("Where are we with the cart?"), 10*time.Second)
	f.mu.Lock()
	f.snap.Messages = slices.DeleteFunc(f.snap.Messages, func(m api.Message) bool { return m.Envelope.From == "mac-mini" })
	f.mu.Unlock()
	f.emit(api.Event{Type: "channel", Channel: "Mac-Mini"})
	until(t, ctx, "!"+listed("TestEmptyCart is left")+" && "+listed("Where are we with the cart?"), 10*time.Second)
}

func TestPersonWritesAndKeepsTheTextWhenRefused(t *testing.T) {
	f := newFake()
	f.sendErr = protocol.Refuse(protocol.CodeInboxFull, "claude-shop's inbox is full (1,000)", "Send again when it has read")
	s, ts := serve(t, f)
	ctx := browser(t)
	do(t, ctx, chromedp.EmulateViewport(1440, 900))
	said := listen(ctx)
	openBoard(t, ctx, s, ts.URL)
	do(t, ctx, chromedp.SendKeys(chromedp.ID("compose-text"), "run the tests"), chromedp.Click(chromedp.CSS("as-composer .primary")))
	until(t, ctx, shows("Not sent: claude-shop's inbox is full (1,000). Your text is kept. Send again when it has read."), 3*time.Second)
	shot(t, ctx, "refused", 1440, 900, false)
	first := eval[string](t, ctx, `JSON.parse(sessionStorage["aster.draft"]).msgId`)

	f.mu.Lock()
	f.sendErr = nil
	f.mu.Unlock()
	do(t, ctx, chromedp.Click(chromedp.CSS("as-composer .primary")))
	until(t, ctx, `[...document.querySelectorAll(".message .text")].at(-1).textContent === "run the tests"`, time.Second)
	until(t, ctx, shows("is logged. claude-shop: idle, wakes by rewake."), time.Second)
	f.mu.Lock()
	sent := f.sent
	f.mu.Unlock()
	if len(sent) != 2 || sent[1].Intent != protocol.UserPrompt || !sent[1].FromBoard || sent[1].From != "" || sent[1].To != "claude-shop" {
		t.Errorf("sent %+v", sent)
	}
	if string(sent[0].MsgID) != first || sent[1].MsgID != sent[0].MsgID {
		t.Errorf("the same text went under two ids: %s, %s (kept %s)", sent[0].MsgID, sent[1].MsgID, first)
	}
	if text := eval[string](t, ctx, `document.getElementById("compose-text").value`); text != "" {
		t.Errorf("the sent text is still there: %q", text)
	}

	// What is written before the node has answered is no part of it, and stays.
	do(t, ctx, chromedp.Evaluate[chromedp.Void](`void ((c) => { c.words.value = "the first"; c.changed(); c.send(); c.words.value = "the next"; c.changed(); })(document.querySelector("as-composer"))`))
	until(t, ctx, `[...document.querySelectorAll(".message .text")].at(-1).textContent === "the first" && !document.querySelector("as-composer").sending`, 3*time.Second)
	until(t, ctx, `document.getElementById("compose-text").value === "the next" && !document.querySelector("as-composer .primary").disabled`, time.Second)
	said.none(t, "409") // the browser notes the refusal itself
}

func TestHostileWordsStayInert(t *testing.T) {
	f := newFake()
	evil := `<img src=x onerror="window.pwned=1"><script>window.pwned=1</script>` + "\u202Egnp.exe"
	for i := range f.snap.Messages {
		m := &f.snap.Messages[i]
		m.Text, m.NodeName, m.Envelope.Intent, m.Envelope.From, m.Envelope.To = evil, evil, protocol.Intent(evil), protocol.AgentID(evil), protocol.AgentID(evil)
		m.Envelope.Value = value(map[string]string{"text": evil, "more": evil})
	}
	for i := range f.snap.Agents {
		a := &f.snap.Agents[i]
		a.ID, a.Name, a.Doing, a.Wakes, a.State, a.Node = protocol.AgentID(fmt.Sprint(evil, i)), evil, evil, evil, protocol.AgentState(evil), evil
	}
	for i := range f.snap.Tasks {
		x := &f.snap.Tasks[i]
		x.Title, x.Summary, x.Tail, x.Commit, x.Branch, x.State, x.To = evil, evil, evil, evil, evil, api.TaskState([]string{evil, "blocked", "running"}[i%3]), protocol.AgentID(evil)
	}
	for i := range f.snap.Peers {
		p := &f.snap.Peers[i]
		p.Name, p.Transport, p.Version, p.Addr, p.Board = evil, evil, evil, evil, "javascript:window.pwned=1"
	}
	f.snap.Status.Name, f.snap.Status.Warnings, f.snap.Status.Main.Agent = evil, []string{evil}, protocol.AgentID(evil)
	s, ts := serve(t, f)
	ctx := browser(t)
	do(t, ctx, chromedp.EmulateViewport(1440, 900))
	said := listen(ctx)
	openBoard(t, ctx, s, ts.URL)
	until(t, ctx, shows("<script>window.pwned=1</script>"), 3*time.Second)
	for _, row := range []string{".message", ".task-row", ".agent-row", ".node-row"} {
		do(t, ctx, click(row))
		until(t, ctx, `document.querySelector("as-panel .body").innerText.includes("onerror")`, 2*time.Second)
	}
	if n := eval[int](t, ctx, `document.querySelectorAll("img:not([src='/static/icon.svg']), script:not([src]), a[href^=javascript]").length`); n != 0 {
		t.Errorf("%d elements came out of foreign words", n)
	}
	if eval[bool](t, ctx, `"pwned" in window`) {
		t.Error("foreign words ran")
	}
	said.none(t)
}

// click clicks without looking whether something lies above.
func click(selector string) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, _ *chromedp.Target) error {
		_, err := chromedp.Run(ctx, chromedp.Evaluate[chromedp.Void](fmt.Sprintf(`void document.querySelector(%q).click()`, selector)))
		return err
	})
}
