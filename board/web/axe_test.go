package web

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/api"
)

// axeSource is axe-core, which .ci/run installs; nothing of it is in the program.
func axeSource(t *testing.T) string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("..", "..", ".ci", "cache", "node_modules", "axe-core", "axe.min.js"))
	if err != nil {
		const how = "no axe-core: npm install --prefix .ci/cache --no-save axe-core@4.11.0"
		if os.Getenv("CI") == "true" {
			t.Fatal(how)
		}
		t.Skip(how)
	}
	return string(raw)
}

// looks are how a page is looked at: 200 % zoom is half the width with twice the pixels.
var looks = []struct {
	name, scheme, forced string
	zoom                 bool
}{{"light", "light", "none", false}, {"dark", "dark", "none", false}, {"forced colours", "light", "active", false}, {"200 %", "light", "none", true}}

func look(t *testing.T, ctx context.Context, scheme, forced string, zoom bool) {
	t.Helper()
	view := chromedp.EmulateViewport(1440, 900)
	if zoom {
		view = chromedp.EmulateViewport(720, 450, chromedp.EmulateScale(2))
	}
	do(t, ctx, view, chromedp.Func(func(ctx context.Context, _ *chromedp.Target) error {
		_, err := chromedp.Call(ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{
			{Name: "prefers-color-scheme", Value: scheme}, {Name: "forced-colors", Value: forced}, {Name: "prefers-reduced-motion", Value: "reduce"}}})
		return err
	}))
}

// axeFound is one thing that axe complains of, or cannot decide.
type axeFound struct {
	Rule   string `json:"rule"`
	Target string `json:"target"`
	Why    string `json:"why"`
	Sure   bool   `json:"sure"` // a violation
}

// axeRun takes what is looked at, and whether contrast is: it does not depend on zoom.
const axeRun = `axe.run(%s, { rules: { "color-contrast": { enabled: %t } }, resultTypes: ["violations", "incomplete"], runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"] }).then((r) =>
  [...r.violations.map((v) => [v, true]), ...r.incomplete.map((v) => [v, false])].flatMap(([v, sure]) => v.nodes.map((n) => ({ rule: v.id, target: n.target.join(" "), sure,
    why: [...n.any, ...n.all, ...n.none].map((c) => (c.data?.messageKey ? c.data.messageKey + ": " : "") + c.message).join("; ").slice(0, 300) }))))`

// axeUndecided are questions that axe leaves to a person, with the answer: what of which rule, for which reason, where.
// Colours are tokens, and TestStylesheetContrast compares each pair that the page uses.
var axeUndecided = []struct{ rule, why, at, answer string }{
	{"color-contrast", "nonBmp", "", "arrows and crosses have the colours of text"},
	{"color-contrast", "shortTextContent", "", "a count of one figure has those of its neighbours"},
	{"color-contrast", "bgOverlap", "text[", "a label in the picture of the mesh: text on --bg"},
	{"color-contrast", "bgOverlap", "g[transform=", "a node in the picture of the mesh: text on --surface"},
	{"color-contrast", "elmPartially", "", "a line that is cut where its list is scrolled has the colours of those that are not"},
	{"heading-order", "Unable to determine previous heading", ":root", "a part was looked at; the order is looked at in views without one"},
}

// axeLooks looks at a part of the page ("": all of it). What a layer covers was looked at without it.
func axeLooks(t *testing.T, ctx context.Context, view, part string) {
	t.Helper()

	for _, l := range looks {
		look(t, ctx, l.scheme, l.forced, l.zoom)
		found, err := chromedp.Run(ctx, chromedp.Evaluate[[]axeFound](fmt.Sprintf(axeRun, map[bool]string{true: "document", false: strconv.Quote(part)}[part == ""], !l.zoom), chromedp.EvalAwaitPromise))
		if err != nil {
			t.Fatalf("%s, %s: %v", view, l.name, err)
		}
		for _, f := range found {
			if !f.Sure && explained(f) {
				continue
			}
			t.Errorf("%s, %s: %s (violation %v) at %s: %s", view, l.name, f.Rule, f.Sure, f.Target, f.Why)
		}
	}
	look(t, ctx, "light", "none", false)
}

func explained(f axeFound) bool {
	return slices.ContainsFunc(axeUndecided, func(x struct{ rule, why, at, answer string }) bool {
		return f.Rule == x.rule && strings.HasPrefix(f.Why, x.why) && strings.HasPrefix(f.Target, x.at)
	})
}

// TestEveryViewIsAccessible: axe-core finds nothing in any view, light, dark, in forced colours and at 200 % zoom, and leaves
// nothing undecided that is not explained here.
func TestEveryViewIsAccessible(t *testing.T) {
	ctx := browserFor(t, 6*time.Minute)
	axe := axeSource(t)
	load := func() {
		t.Helper()
		do(t, ctx, chromedp.Evaluate[chromedp.Void](axe+"; void 0"))
	}
	f := working()
	f.snap.Status.DiskFull = true
	f.writes(sampleAgenda(time.Now()))
	f.hears("mac-mini", api.SendRequest{Intent: "OperatorFeedback", MsgID: "w1", Value: value(map[string]string{"kind": "context-feedback", "refId": "p2", "text": "with a table"})})
	f.snap.Peers[2].Linked = false
	f.late = f.snap.Messages[1].Envelope.ID
	f.snap.Messages[12].Envelope.Value = value(map[string]string{"summary": "3 of **3** tests pass\n\n- one\n- [log](https://ci.example/1)\n\n```\nok\n```"})
	f.snap.Messages[12].Envelope.Blobs = []protocol.BlobRef{{SHA256: strings.Repeat("ab", 32), Bytes: 12, Name: "notes.txt"}}
	s, ts := serve(t, f)
	look(t, ctx, "light", "none", false)
	openBoard(t, ctx, s, ts.URL)
	until(t, ctx, shows("The empty cart divides"), 3*time.Second)
	load()
	do(t, ctx, chromedp.Evaluate[chromedp.Void](`void Promise.all([import("/static/route.js"), import("/static/toast.js")]).then(([r, w]) => Object.assign(window, { route: r, toast: w.toast }))`))
	until(t, ctx, `Boolean(window.route)`, 2*time.Second)
	message := string(f.snap.Messages[12].Envelope.ID)
	for _, v := range []struct{ name, part, js, ready string }{
		{"board", "", `toast("Set aside in this browser.", { label: "Undo", act() {} })`, `document.querySelectorAll(".card").length > 2 && Boolean(document.querySelector(".toast"))`},
		{"others, more, filters open", "", `document.querySelectorAll("as-needs .fold:not([hidden])").forEach((b) => b.click()); document.querySelector(".filter-button").click()`, `!document.getElementById("filters").hidden`},
		{"task", "#details", `route.go("t", "` + string(f.snap.Tasks[0].ID) + `")`, `document.querySelector("as-panel").innerText.includes("Receipts")`},
		{"task asked to be cancelled", "#details", `route.go("t", "` + string(f.snap.Tasks[2].ID) + `"); setTimeout(function asks() { if (document.querySelector(".sure")) return; document.querySelector("[data-act=begin]")?.click(); setTimeout(asks, 100); }, 200)`, `Boolean(document.querySelector(".sure"))`},
		{"message with its record", "#details", `route.go("m", "` + message + `"); document.querySelector("as-panel").records()`, `!document.querySelector(".proof").hidden && document.querySelectorAll(".thread li").length > 0`},
		{"agent", "#details", `route.go("a", "gemini-docs")`, `document.querySelector("as-panel").innerText.includes("needs a person")`},
		{"node", "#details", `route.go("n", "12D3KooWdevbox")`, `document.querySelectorAll("as-panel .spark").length === 7`},
		{"not found", "#details", `route.go("t", "zzzzz")`, `document.querySelector("as-panel").innerText.includes("Not found here")`},
		{"nothing found", "", `route.leave(); route.select({ q: "nowhere", agent: "nobody" })`, `document.body.innerText.includes("No message of")`},
		{"replay", "", `route.clear(); route.travel(` + fmt.Sprint(f.snap.Messages[8].At) + `)`, `document.body.innerText.includes("read only") && document.querySelectorAll(".card").length > 1 && !document.body.classList.contains("past-wait")`},
		{"agenda", "", `route.travel(0); route.show("agenda"); (function opens() { if (!document.querySelector("[data-key=p2] .open")) return setTimeout(opens, 50); for (const b of document.querySelectorAll('[data-key=p2] .open, [data-key=p2] .mover, .resolved summary')) b.click(); })()`, `document.body.innerText.includes("it goes on with a draft")`},
		{"mesh", "", `route.show("mesh")`, `document.querySelectorAll(".ring .node").length === 4`},
		{"settings", "", `route.show("settings")`, `document.body.innerText.includes("used by build-1")`},
		{"invite made", "#view", `document.querySelector(".setting form button").click()`, `document.body.innerText.includes("aster1-x")`},
		{"keys", "as-help", `route.show("board"); document.querySelector("as-help").show()`, `document.querySelector("as-help dialog").open`},
		{"palette", "as-palette", `document.querySelector("as-help dialog").close(); dispatchEvent(new CustomEvent("act", { detail: "palette" }))`, `document.querySelector(".palette").open`},
	} {
		do(t, ctx, chromedp.Evaluate[chromedp.Void]("void (() => { "+v.js+" })()"))
		until(t, ctx, v.ready, 3*time.Second)
		axeLooks(t, ctx, v.name, v.part)
	}
	ts.CloseClientConnections()
	ts.Listener.Close()
	do(t, ctx, chromedp.Evaluate[chromedp.Void](`void document.querySelector(".palette").close()`))
	until(t, ctx, shows("Run aster up. This is what was known then."), 12*time.Second)
	axeLooks(t, ctx, "own node silent", "")

	bare := empty()
	s2, ts2 := serve(t, bare)
	link := s2.LinkURL(ts2.URL)
	for _, page := range []struct{ name, url, ready string }{
		{"locked", ts2.URL, "This board opens with a link"}, {"first run", link, "Three steps to a mesh that works"}, {"link used", link, "This link was used."},
	} {
		do(t, ctx, chromedp.Navigate(page.url))
		until(t, ctx, shows(page.ready), 5*time.Second)
		load()
		axeLooks(t, ctx, page.name, "")
	}
}
