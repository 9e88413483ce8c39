package web

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

// shown is a view to draw: how to get there, and what tells that it is there.
type shown struct {
	name, path string
	press      []string // clicked, one after another, where it is drawn wide
	narrow     []string // the same on a phone; nil: as wide
	there      string
}

// kept are the pictures that docs/ has of them, by what is drawn.
var kept = map[string]string{
	"board-en-1440-light": "board-busy.png", "board-en-1440-dark": "board-dark.png", "mesh-en-1440-light": "board-mesh.png",
	"node-en-1440-light": "board-node.png", "agenda-en-1440-light": "board-agenda.png", "board-en-390-light": "board-phone-asks.png",
}

// TestShots draws every view of a mesh at work, wide and on a phone, light and dark, in both languages, for people to look at:
// ASTER_SHOTS names the folder (make shots). ASTER_DOCS is where those are put that the papers show.
func TestShots(t *testing.T) {
	dir := os.Getenv("ASTER_SHOTS")
	if dir == "" {
		t.Skip("make shots")
	}
	f := working()
	s, ts := serve(t, f)
	f.writes(sampleAgenda(time.Now()))
	f.snap.Asks.Asks = append(f.snap.Asks.Asks, sampleDecision())
	task := f.snap.Tasks[0].ID
	views := []shown{
		{name: "board", path: "/", there: `document.querySelectorAll(".card").length > 1`},
		{name: "agents", path: "/", narrow: []string{"as-tabs [data-tab=agents]"}, there: `document.querySelectorAll(".agent-row").length > 5`},
		{name: "messages", path: "/", press: []string{".filter-button"}, narrow: []string{"as-tabs [data-tab=messages]"}, there: `document.querySelectorAll(".message").length > 3`},
		{name: "search", path: "/?q=cart", narrow: []string{"as-tabs [data-tab=messages]"}, there: `document.querySelectorAll(".message mark").length > 1`},
		{name: "task", path: "/t/" + string(task), there: `document.querySelector("as-panel .receipts") !== null`},
		{name: "message", path: "/m/" + string(f.snap.Messages[1].Envelope.ID), there: `document.querySelector("as-panel .receipts") !== null`},
		{name: "agent", path: "/a/claude-shop", there: `document.querySelector("as-panel dl") !== null`},
		{name: "node", path: "/n/12D3KooWdevbox", there: `document.querySelector("as-panel .charts") !== null`},
		{name: "agenda", path: "/agenda", there: `document.querySelectorAll("as-agenda .decision").length > 1`},
		{name: "mesh", path: "/mesh", there: `document.querySelectorAll("as-figures .charts").length > 0`},
		{name: "settings", path: "/settings", there: `document.querySelectorAll("as-settings .setting-rows li").length > 3`},
		{name: "replay", path: fmt.Sprint("/?at=", time.Now().Add(-30*time.Second).UnixMilli()), there: `document.body.classList.contains("past") && !document.body.classList.contains("past-wait")`},
		{name: "palette", path: "/", press: []string{".open-palette"}, there: `document.querySelector("dialog.palette").open`},
		{name: "keys", path: "/", press: []string{".open-keys"}, there: `document.querySelector("as-help dialog").open`},
	}
	for _, locale := range []string{"en", "ko"} {
		ctx := browserFor(t, 5*time.Minute)
		do(t, ctx, setLanguage(locale), chromedp.EmulateViewport(1440, 900))
		openBoard(t, ctx, s, ts.URL)
		for _, v := range views {
			for _, width := range []int64{1440, 390} {
				press, height := v.press, int64(900)
				if width == 390 {
					height = 844
					if v.narrow != nil {
						press = v.narrow
					}
				}
				do(t, ctx, chromedp.EmulateViewport(width, height), chromedp.Navigate(ts.URL+v.path))
				until(t, ctx, `document.body.classList.contains("loaded")`, 3*time.Second)
				for _, at := range press {
					do(t, ctx, click(at))
				}
				until(t, ctx, v.there, 3*time.Second)
				for _, scheme := range []string{"light", "dark"} {
					draw(t, ctx, dir, fmt.Sprintf("%s-%s-%d-%s", v.name, locale, width, scheme), scheme)
				}
			}
		}
	}
}

func draw(t *testing.T, ctx context.Context, dir, name, scheme string) {
	t.Helper()
	do(t, ctx, chromedp.Func(func(ctx context.Context, _ *chromedp.Target) error {
		_, err := chromedp.Call(ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}, {Name: "prefers-reduced-motion", Value: "reduce"}}})
		return err
	}))
	eval[bool](t, ctx, `document.fonts.status === "loaded"`)
	until(t, ctx, `(window.frames_ = (window.frames_ ?? 0) + 1) % 4 === 0`, time.Second) // what was drawn last is on the screen
	png, err := chromedp.Run(ctx, chromedp.CaptureScreenshot())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, name+".png"), png, 0o644); err != nil {
		t.Fatal(err)
	}
	if docs := os.Getenv("ASTER_DOCS"); docs != "" && kept[name] != "" {
		if err := os.WriteFile(filepath.Join(docs, kept[name]), png, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
