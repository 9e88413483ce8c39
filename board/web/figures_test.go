package web

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/heapprofiler"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/aster-mesh/aster/protocol/api"
)

// TestFigures prints how fast the page is with 50,000 messages. It runs on demand, since what it says depends on the
// machine: ASTER_FIGURES=1 go test ./board/web -run TestFigures -v, or a part of it: -run TestFigures/wheel
func TestFigures(t *testing.T) {
	if os.Getenv("ASTER_FIGURES") == "" {
		t.Skip("ASTER_FIGURES=1")
	}
	f := working()
	f.long(50_000)
	for i := range f.history {
		if i%2 == 0 {
			f.history[i].Text += " 세금 계산"
		}
	}
	f.queue = 100_000
	s, ts := serve(t, f, func(s *Server) { s.beatEvery = 5 * time.Second }) // as a node's
	ctx := browser(t)
	do(t, ctx, chromedp.EmulateViewport(1440, 900))
	openBoard(t, ctx, s, ts.URL)
	t.Run("paint", func(t *testing.T) { firstPaint(t, ctx, ts.URL) })
	t.Run("search", func(t *testing.T) { searches(t, ctx) })
	t.Run("wheel", func(t *testing.T) { wheel(t, ctx) })
	t.Run("flood", func(t *testing.T) { flood(t, ctx, f) })
}

// awaited is eval for a promise.
func awaited[T any](t *testing.T, ctx context.Context, js string) T {
	t.Helper()
	got, err := chromedp.Run(ctx, chromedp.Evaluate[T](js, chromedp.EvalAwaitPromise))
	if err != nil {
		t.Fatalf("%s: %v", js, err)
	}
	return got
}

func quantile(all []float64, q float64) float64 {
	slices.Sort(all)
	return all[min(int(q*float64(len(all))), len(all)-1)]
}

func firstPaint(t *testing.T, ctx context.Context, base string) {
	t.Helper()
	var all []float64
	for range 10 {
		do(t, ctx, chromedp.Navigate(base+"/"))
		until(t, ctx, `document.querySelector(".agent-row") !== null && (window.painted ??= performance.now()) > 0`, 10*time.Second)
		all = append(all, eval[float64](t, ctx, `window.painted`))
	}
	t.Logf("navigation to the first agent row: median %.0f ms of 10", quantile(all, 0.5))
}

func searches(t *testing.T, ctx context.Context) {
	t.Helper()
	var all []float64
	for i := range 100 {
		words := fmt.Sprintf("message %d", 49_000-i*7)
		if i%4 == 0 {
			words = "세금"
		}
		took := awaited[float64](t, ctx, fmt.Sprintf(`(async () => {
			const began = performance.now(), word = %q;
			const box = document.getElementById("search-words");
			box.value = word; document.querySelector("as-search").go();
			const win = document.querySelector("as-stream").window;
			while (win.state !== "ready" || win.filter.q !== word || !document.querySelector(".message mark")) await new Promise(requestAnimationFrame);
			return performance.now() - began;
		})()`, words))
		all = append(all, took)
	}
	t.Logf("search, key to painted rows: p50 %.0f ms, p95 %.0f ms of 100", quantile(all, 0.5), quantile(all, 0.95))
	do(t, ctx, chromedp.Evaluate[chromedp.Void](`void (document.getElementById("search-words").value = "", document.querySelector("as-search").go())`))
	until(t, ctx, `!location.search && document.querySelectorAll(".message").length > 3`, 10*time.Second)
}

func wheel(t *testing.T, ctx context.Context) {
	t.Helper()
	long := awaited[string](t, ctx, `(async () => {
		const tasks = [];
		const watch = new PerformanceObserver((l) => tasks.push(...l.getEntries().map((e) => e.duration)));
		watch.observe({ type: "longtask" });
		const s = document.querySelector(".scroller");
		window.spent = [];
		const stream = document.querySelector("as-stream"), clocked = (o, name) => { const f = o[name].bind(o); o[name] = (...a) => { const b = performance.now(); const r = f(...a); const d = performance.now() - b; if (d > 8) spent.push(name + " " + Math.round(d)); return r; }; };
		for (const n of ["draw", "place", "follow", "span"]) clocked(stream.vlist, n);
		clocked(stream, "draw"); clocked(stream.window, "changed");
		for (let i = 0; i < 300; i++) { s.scrollBy(0, -120); await new Promise(requestAnimationFrame); }
		await new Promise((r) => setTimeout(r, 300));
		watch.disconnect();
		return tasks.filter((d) => d > 50).length + " above 50 ms, the longest " + Math.round(Math.max(0, ...tasks)) + " ms";
	})()`)
	t.Log(eval[string](t, ctx, `spent.join(", ")`))
	t.Logf("300 wheel steps: %s; %d elements", long, eval[int](t, ctx, `document.querySelectorAll("*").length`))
	do(t, ctx, click(".pill"))
}

// flood is 500 messages a second for 30 s, with a key pressed now and then.
func flood(t *testing.T, ctx context.Context, f *fake) {
	t.Helper()
	heap := func() (used float64) {
		do(t, ctx, chromedp.Func(func(ctx context.Context, _ *chromedp.Target) error {
			if _, err := chromedp.Call(ctx, heapprofiler.CollectGarbage, cdp.Empty{}); err != nil {
				return err
			}
			got, err := chromedp.Call(ctx, runtime.GetHeapUsage, cdp.Empty{})
			used = got.UsedSize
			return err
		}))
		return used
	}
	var answers []float64
	var early float64
	began, sent := time.Now(), 0
	for tick := time.NewTicker(20 * time.Millisecond); time.Since(began) < 30*time.Second; <-tick.C {
		for ; sent < int(time.Since(began).Seconds()*500); sent++ {
			m := message(uint64(1_000_000+sent), fmt.Sprintf("flood %d %s", sent, strings.Repeat("word ", 20)))
			m.At = time.Now().UnixMilli()
			f.emit(api.Event{Type: "message", Pos: m.Pos, Message: m})
		}
		if sent%500 < 10 {
			answers = append(answers, awaited[float64](t, ctx, `(async () => { const b = performance.now(); document.getElementById("compose-text").value += "x"; document.getElementById("compose-text").dispatchEvent(new Event("input")); await new Promise(requestAnimationFrame); return performance.now() - b; })()`))
		}
		if early == 0 && time.Since(began) > 5*time.Second {
			early = heap()
		}
	}
	late := heap()
	t.Logf("500 messages a second for 30 s: an input is answered within %.0f ms; heap %.1f MB after 5 s, %.1f MB after 30 s (%.2f x); %d elements", quantile(answers, 1), early/1e6, late/1e6, late/early, eval[int](t, ctx, `document.querySelectorAll("*").length`))
}
