package e2e

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// TestPageShowsAMessageOfAnotherNodeWithinASecond opens the board of one node in headless Chromium by its one-time link and
// sends a message on another node: the page shows it within a second. Before the message it does not (the control), and
// the link opens nothing twice.
func TestPageShowsAMessageOfAnotherNodeWithinASecond(t *testing.T) {
	if testing.Short() {
		t.Skip("real processes and a browser")
	}
	nodes := meshOf(t, nil, "devbox", "mac-mini")
	far := nodes[1]
	for _, n := range nodes {
		n.declare("agent-of-" + n.name)
	}
	far.knows("agent-of-devbox")
	link := strings.TrimSpace(nodes[0].ok("board", "--print"))
	ctx := chromium(t)
	if err := chromedp.Do(ctx, chromedp.EmulateViewport(1440, 900), chromedp.Navigate(link)); err != nil {
		t.Fatal(err)
	}
	wait := func(js string, within time.Duration) {
		t.Helper()
		if _, err := chromedp.Run(ctx, chromedp.Poll[bool](js, chromedp.WithPollingTimeout(within))); err != nil {
			body, _ := chromedp.Run(ctx, chromedp.Evaluate[string](`document.body.innerText.slice(0, 2000)`))
			t.Fatalf("not within %s: %s: %v\n%s", within, js, err, body)
		}
	}
	shows := func(text string) string { return fmt.Sprintf(`document.body.innerText.includes(%q)`, text) }
	wait(shows("mac-mini"), 10*time.Second)
	wait(shows("live"), 10*time.Second)
	const words = "seen across the mesh 4711"
	if _, err := chromedp.Run(ctx, chromedp.Poll[bool](shows(words), chromedp.WithPollingTimeout(300*time.Millisecond))); err == nil {
		t.Fatal("the page shows a message that nobody has sent")
	}
	far.ok("send", "--from", "agent-of-mac-mini", "--to", "agent-of-devbox", "--intent", "Report", words)
	wait(shows(words), time.Second)

	again, err := http.Get(link)
	must(t, err)
	defer again.Body.Close()
	if page, err := io.ReadAll(again.Body); err != nil || again.StatusCode != http.StatusGone || !strings.Contains(string(page), "This link was used") {
		t.Errorf("the link a second time: got %d %v", again.StatusCode, err)
	}
}

func chromium(t *testing.T) context.Context {
	t.Helper()
	return chromiumFor(t, 90*time.Second)
}

// chromiumFor starts one headless browser that ends with the test, or after so long; where there is none the test fails in CI,
// with the step that installs it.
func chromiumFor(t *testing.T, long time.Duration) context.Context {
	t.Helper()
	path, err := exec.LookPath("chromium")
	if err != nil {
		const how = "no browser: apt-get install -y chromium fonts-inter fonts-noto-cjk"
		if os.Getenv("CI") == "true" {
			t.Fatal(how)
		}
		t.Skip(how)
	}
	opts := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.Headless, chromedp.NoSandbox, chromedp.DisableGPU, chromedp.NoFirstRun,
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-background-networking", true), chromedp.Flag("disable-component-update", true), chromedp.Flag("disable-sync", true))
	alloc, endAlloc := chromedp.NewExecAllocator(context.Background(), opts...)
	ctx, endTab := chromedp.NewContext(alloc)
	ctx, endTime := context.WithTimeout(ctx, long)
	began := time.Now()
	t.Cleanup(func() { endTime(); endTab(); endAlloc(); share(t, time.Since(began)) })
	return ctx
}

// share tells .ci/run how long a test had a browser.
func share(t *testing.T, took time.Duration) {
	at := os.Getenv("CI_SHARES")
	if at == "" {
		return
	}
	f, err := os.OpenFile(at, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	must(t, err)
	defer f.Close()
	_, err = fmt.Fprintf(f, "%.1f %s\n", took.Seconds(), t.Name())
	must(t, err)
}
