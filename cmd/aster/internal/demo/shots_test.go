package demo_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// shotBytesMax keeps pictures in a repository small.
const shotBytesMax = 300 << 10

// TestShots takes the README's pictures of the demo's board. It runs on demand, since its result is for people to look
// at: ASTER_SHOTS names the folder (make shots).
func TestShots(t *testing.T) {
	dir := os.Getenv("ASTER_SHOTS")
	if dir == "" {
		t.Skip("make shots")
	}
	s := show(t)
	ctx := chromium(t)
	if err := chromedp.Do(ctx, chromedp.Navigate(s.part(t, `^board +(http://\S+) `))); err != nil {
		t.Fatal(err)
	}
	for _, shot := range []struct {
		name          string
		width, height int64
		phone         bool
	}{{"board.png", 1440, 900, false}, {"board-phone.png", 390, 844, true}} {
		var how []chromedp.EmulateViewportOption
		if shot.phone {
			how = append(how, chromedp.EmulateMobile)
		}
		if err := chromedp.Do(ctx, chromedp.EmulateViewport(shot.width, shot.height, how...)); err != nil {
			t.Fatal(err)
		}
		// Both results are there, and where there is room so are their words and the four nodes.
		ready := `document.querySelectorAll(".task-row[data-state=done]").length === 2`
		if !shot.phone {
			ready += ` && document.body.innerText.includes("cart/total.go") && ["devbox", "mac-mini", "build-1", "guest"].every((n) => document.body.innerText.includes(n))`
		}
		if _, err := chromedp.Run(ctx, chromedp.Poll[bool](ready, chromedp.WithPollingTimeout(20*time.Second))); err != nil {
			text, _ := chromedp.Run(ctx, chromedp.Evaluate[string](`document.body.innerText`))
			t.Fatalf("%s: %v\n%s", shot.name, err, text)
		}
		image, err := chromedp.Run(ctx, chromedp.CaptureScreenshot())
		if err != nil {
			t.Fatal(err)
		}
		if len(image) > shotBytesMax {
			t.Errorf("%s has %d bytes, at most %d", shot.name, len(image), shotBytesMax)
		}
		if err := os.WriteFile(filepath.Join(dir, shot.name), image, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// chromium starts a browser that ends with the test.
func chromium(t *testing.T) context.Context {
	t.Helper()
	path := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if found, err := exec.LookPath(name); err == nil {
			path = found
			break
		}
	}
	if path == "" {
		t.Fatal("no browser: install chromium")
	}
	opts := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.Headless, chromedp.NoSandbox,
		chromedp.DisableGPU, chromedp.NoFirstRun, chromedp.Flag("disable-background-networking", true), chromedp.Flag("lang", "en-US"))
	alloc, endAlloc := chromedp.NewExecAllocator(context.Background(), opts...)
	ctx, endTab := chromedp.NewContext(alloc)
	ctx, endTime := context.WithTimeout(ctx, patience)
	t.Cleanup(func() { endTime(); endTab(); endAlloc() })
	return ctx
}
