package e2e

import (
	"fmt"
	"strings"

	"github.com/chromedp/chromedp"

	"github.com/aster-mesh/aster/cmd/aster/internal/client"
	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/api"
)

// diskFull: the store of the board's node has no room. All that is known is shown, whatever says something is refused by name
// and keeps its words, and with room it goes on.
func (w *walk) diskFull() {
	near := w.nodes[0]
	near.kill()
	near.configure("[store]\nbytes_max = 3000000\n")
	w.back()
	w.does(`dispatchEvent(new Event("online"))`) // somebody looks: it asks at once
	w.sees(`document.body.dataset.feed === "open" && document.body.dataset.health === "live"`)
	before := w.moment()
	words := strings.Repeat("a word or two ", 3500)
	for _, size := range []int{len(words), 2000} {
		eventually(w.t, patience, "it is full", func() (bool, string) {
			_, err := near.api().Send(w.t.Context(), api.SendRequest{From: "main-agent", To: "main-agent", Intent: "Report", Value: text(words[:size])})
			return client.RefusalCode(err) == protocol.CodeDiskFull, fmt.Sprint(err)
		})
	}
	w.says("as-banner", "No new messages:", "Nothing is lost. Free space; it goes on by itself.")
	w.sees(`document.querySelector("as-foot [data-part=disk]").dataset.tone === "bad"`)
	w.does(`document.getElementById("compose-text").value = "kept for later ".repeat(700)`)
	w.writes("prompt", "mac-mini", "and sent")
	w.says("as-composer", "Not sent:", "Your text is kept.")
	w.sees(`[...document.querySelectorAll(".message")].some((m) => /a word or two|\d+ messages/.test(m.innerText))`) // as one row where they came fast
	w.says("[data-part=running]", toCodex)
	w.says("as-agents", "codex", "build-1")
	w.sees(cardOf("Which table holds") + ` !== undefined`)
	for _, view := range []string{"agenda", "mesh", "settings"} {
		w.view(view)
		w.says("as-banner", "No new messages:")
	}
	w.sees(`document.querySelectorAll("as-settings .setting-rows [data-open]").length >= 3`)
	w.view("mesh")
	w.sees(`document.querySelectorAll("as-mesh > .table tbody tr").length === 3`)
	w.view("agenda")
	w.says("as-agenda", "Ship on Friday?")
	w.view("board")
	w.does(fmt.Sprintf(`import("/static/route.js").then((m) => m.travel(%d))`, before))
	w.sees(`document.body.classList.contains("past") && !document.body.classList.contains("past-wait") && ![...document.querySelectorAll(".message")].some((m) => m.innerText.includes("a word or two"))`)
	w.does(`import("/static/route.js").then((m) => m.travel(0))`)
	w.sees(`!document.body.classList.contains("past")`)

	near.kill()
	near.configure("[store]\nbytes_max = 400000000\n")
	w.back()
	w.does(`dispatchEvent(new Event("online"))`) // somebody looks: it asks at once
	w.sees(`document.querySelector("as-banner").innerText === "" && document.body.dataset.health === "live" && document.body.dataset.feed === "open"`)
	w.sees(`document.getElementById("compose-text").value.includes("kept for later")`)
	w.presses("as-composer", "Send prompt")
	w.nodes[1].inInbox("mac-mini", "kept for later and sent")
	w.does(cardOf("Which table holds") + `.querySelector("[data-choice='the new one']").click()`)
	w.codex.hears("the answer", func(f heard) bool {
		return f.Name == "SelectionAnswer" && strings.Contains(string(f.Value), "the new one")
	})
	w.sees(answered("Which table holds"))
}

// usedTwice: the link that opened this board opens it nowhere again, and no view shows anything without one.
func (w *walk) usedTwice(link string) {
	ctx, end := chromedp.NewContext(w.ctx, chromedp.WithNewBrowserContext())
	defer end()
	mine := w.ctx
	w.ctx = ctx
	defer func() { w.ctx = mine }()
	must(w.t, chromedp.Do(ctx, chromedp.EmulateViewport(1440, 900), chromedp.Navigate(link)))
	w.says("body", "This link was used. Run aster board for a new one.")
	for _, path := range []string{"/", "/agenda", "/mesh", "/settings", "/a/codex", "/?at=1", "/?q=mesh"} {
		must(w.t, chromedp.Do(ctx, chromedp.Navigate("http://"+w.wire.at+path)))
		w.says("body", "This board opens with a link from your terminal.")
		if got := valueIn[string](w, `document.body.innerText`); strings.Contains(got, "codex") || strings.Contains(got, "devbox") {
			w.t.Errorf("%s shows a stranger %s", path, got)
		}
	}
	must(w.t, chromedp.Do(ctx, chromedp.Navigate(w.link())))
	w.says("as-agents", "codex")
}
