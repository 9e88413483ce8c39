package web

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/api"
)

// corpus is what others may write anywhere.
var corpus = []string{
	`<img src=x onerror="window.pwned=1"><script>window.pwned=1</script>`,
	`<svg xmlns="http://www.w3.org/2000/svg" onload="window.pwned=1"><script>window.pwned=1</script></svg>`,
	`<a href="javascript:window.pwned=1">x</a> [x](javascript:window.pwned=1) data:text/html,<script>window.pwned=1</script>`,
	`<style>*{display:none}</style><link rel=stylesheet href="http://192.0.2.1/x.css"><meta http-equiv=refresh content="0;url=http://192.0.2.1/">`,
	`"><iframe src="http://192.0.2.1/"></iframe><form action="http://192.0.2.1/"><input autofocus onfocus="window.pwned=1">`,
	"\u202Egnp.exe \u2066\u2067\u202D reversed \u200F\u200E",
	"Z" + strings.Repeat("\u0334\u0335\u0336\u0337\u0338\u0300\u0301\u0302\u0303", 120) + "algo",
	strings.Repeat("unbroken", 2000),
	"`{{constructor.constructor('window.pwned=1')()}}` ${window.pwned=1} __proto__ constructor",
	"مرحبا بالعالم 12:30 שלום עולם 中文 한국어 テスト",
	"claude‑shop", // with a hyphen that only looks like one
	"line\n\n\n\n\n\n\n\nline\r\nline\u2028line\u0000",
}

// hostile is a mesh in which everybody writes the corpus everywhere.
func hostile() *fake {
	f := working()
	evil := func(i int) string { return corpus[i%len(corpus)] }
	for i := range f.snap.Messages {
		m := &f.snap.Messages[i]
		m.Text, m.NodeName, m.Envelope.Intent = evil(i), evil(i+1), protocol.Intent(protocol.CutText(evil(i+2), 64))
		m.Envelope.From, m.Envelope.To, m.Envelope.Thread = protocol.AgentID(protocol.CutText(evil(i+3), 128)), protocol.AgentID(protocol.CutText(evil(i+4), 128)), evil(i+5)
		m.Envelope.Value = value(map[string]string{"text": evil(i), "toolCallName": evil(i + 1), "path": evil(i + 2)})
		m.Envelope.Blobs = []protocol.BlobRef{{SHA256: strings.Repeat("ab", 32), Bytes: 9, Name: evil(i)}}
	}
	for i := range f.snap.Agents {
		a := &f.snap.Agents[i]
		a.ID, a.Name, a.Doing, a.Wakes, a.Node = protocol.AgentID(protocol.CutText(fmt.Sprint(i, evil(i)), 128)), evil(i), evil(i+1), evil(i+2), evil(i+3)
	}
	for i := range f.snap.Tasks {
		x := &f.snap.Tasks[i]
		x.Title, x.Summary, x.Tail, x.Commit, x.Branch, x.To = evil(i), evil(i+1), evil(i+2), evil(i+3), evil(i+4), protocol.AgentID(protocol.CutText(evil(i+5), 128))
		x.Diff = &api.Diff{Added: 1, Removed: 1, Paths: []string{evil(i)}}
	}
	for i := range f.snap.Peers {
		p := &f.snap.Peers[i]
		p.Name, p.Transport, p.Version, p.Addr, p.Board = evil(i), evil(i+1), evil(i+2), evil(i+3), "javascript:window.pwned=1"
	}
	for i := range f.snap.Asks.Asks {
		a := &f.snap.Asks.Asks[i]
		a.Text, a.Default, a.NodeName, a.TaskShort = evil(i+7), evil(i+1), evil(i+2), evil(i+3)
		for j := range a.Options {
			a.Options[j] = api.AskOption{Label: evil(i + j + 5), Detail: evil(i + j + 6)}
		}
	}
	f.openRooms[0].Topic, f.invited[1].UsedName = corpus[0], corpus[1]
	f.snap.Status.Name, f.snap.Status.Warnings, f.snap.Status.Main.Agent = corpus[7], []string{corpus[0], corpus[6]}, protocol.AgentID(corpus[5])
	f.snap.Messages[0].Envelope.Blobs[0].Name = "inv\u202Efdp.exe"
	return f
}

// TestHostileWordsAreInertInEveryView: nothing of the corpus runs, loads, becomes an element, or makes the page wider.
func TestHostileWordsAreInertInEveryView(t *testing.T) {
	f := hostile()
	f.blobs[strings.Repeat("ab", 32)] = []byte(corpus[1])
	s, ts := serve(t, f)
	ctx := browser(t)
	do(t, ctx, chromedp.EmulateViewport(1440, 900))
	said := listen(ctx)
	openBoard(t, ctx, s, ts.URL)
	views := []string{"/", "/mesh", "/settings", "/?q=" + "script", "/n/12D3KooWmac-mini"}
	for _, m := range f.snap.Messages[:4] {
		views = append(views, "/m/"+string(m.Envelope.ID))
	}
	for _, x := range f.snap.Tasks[:4] {
		views = append(views, "/t/"+string(x.ID))
	}
	for _, view := range views {
		do(t, ctx, chromedp.Evaluate[chromedp.Void](fmt.Sprintf(`void (history.pushState(null, "", %q), dispatchEvent(new Event("popstate")))`, view)))
		until(t, ctx, `document.querySelectorAll(".message").length > 3 && !document.querySelector("as-panel .quiet")?.innerText.includes("Looking it up")`, 3*time.Second)
		inert(t, ctx, view, 1440)
		if view == "/" && !eval[bool](t, ctx, `document.body.textContent.includes("مرحبا بالعالم 12:30 שלום עולם") && document.body.textContent.includes("gnp.exe  reversed")`) {
			t.Error("words that read from the right, or what is left of an attack, are not there whole")
		}
		if view == views[5] && !eval[bool](t, ctx, `document.querySelector("as-panel .attachments .name").textContent === "invfdp.exe"`) {
			t.Error("the attachment's name is not shown as it is")
		}
	}
	do(t, ctx, click(".open-palette"))
	inert(t, ctx, "palette", 1440)
	do(t, ctx, chromedp.KeyEvent("\x1b"), chromedp.EmulateViewport(360, 640))
	inert(t, ctx, "phone", 360)
	shot(t, ctx, "hostile", 1440, 900, false)
	said.none(t)
}

func inert(t *testing.T, ctx context.Context, where string, width int) {
	t.Helper()
	if eval[bool](t, ctx, `"pwned" in window`) {
		t.Errorf("%s: foreign words ran", where)
	}
	if n := eval[int](t, ctx, `document.querySelectorAll("img:not([src='/static/icon.svg']), script:not([src]), iframe, object, embed, form[action], a[href^=javascript], body style, body link, svg script").length`); n != 0 {
		t.Errorf("%s: %d elements came out of foreign words", where, n)
	}
	if over := eval[int](t, ctx, fmt.Sprintf(`document.documentElement.scrollWidth - %d`, width)); over > 0 {
		t.Errorf("%s: the page is %d px wider", where, over)
	}
	if n := eval[int](t, ctx, `performance.getEntriesByType("resource").filter(r => !r.name.startsWith(location.origin)).length`); n != 0 {
		t.Errorf("%s: %d requests left the origin", where, n)
	}
	if turned := eval[string](t, ctx, `(() => { const bad = /[\u202A-\u202E\u2066-\u2069]/; const of = (n) => [...n.attributes].filter((a) => !a.name.startsWith("data-") && !["value", "href"].includes(a.name)).map((a) => a.value); return [document.title, document.body.textContent, ...[...document.querySelectorAll("body *")].flatMap(of)].filter((s) => bad.test(s)).map((s) => s.slice(Math.max(0, s.search(bad) - 20)).slice(0, 60)).join("|"); })()`); turned != "" {
		t.Errorf("%s: something turns the letters around it: %q", where, turned)
	}
	if tall := eval[int](t, ctx, `Math.max(0, ...[...document.querySelectorAll(".message, .task-row, .agent-row")].map(r => r.getBoundingClientRect().height))`); tall > 180 {
		t.Errorf("%s: a row is %d px high", where, tall)
	}
}
