package e2e

import (
	"fmt"
	"strings"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/api"
)

const toCodex = "Make ./cart pass, and ask before you push"

// usual is a working mesh: words, tasks, answers and the state document go both ways, and every view shows them.
func (w *walk) usual() {
	near, mini := w.nodes[0], w.nodes[1]
	w.says("as-agents", "mac-mini", "build-1", "codex")
	began := w.moment()
	mini.appends("mac-mini", note("main-agent", "seen across the mesh 4711"))
	w.says("as-stream .messages", "seen across the mesh 4711")
	w.writes("prompt", "mac-mini", "typed on the board 4712")
	mini.inInbox("mac-mini", "typed on the board 4712")
	w.writes("delegate", "build-1", "say hello")
	w.says("[data-part=done]", "say hello")
	w.works()

	w.asks("push", "approval", "May I push to main?", "Allow once", "Deny")
	w.sees(`document.title.startsWith("(1)")`)
	w.does(cardOf("May I push to main?") + `.querySelector("[data-choice='Allow once']").click()`)
	w.does(cardOf("May I push to main?") + `.querySelector("[data-choice='Allow once']").click()`)
	answer := w.codex.hears("the answer", func(f heard) bool { return f.Name == "SelectionAnswer" })
	if !strings.Contains(string(answer.Value), "Allow once") {
		w.t.Errorf("the agent was answered %s", answer.Value)
	}
	w.sees(answered("May I push to main?"))
	w.asks("table", "clarify", "Which table holds for 2026?", "the old one", "the new one")

	near.publishes(map[string]any{"planned": []any{map[string]any{"id": "p1", "title": "Read tables from one file"}},
		"decisions": []any{map[string]any{"id": "d1", "question": "Ship on Friday?", "kind": "approval", "status": "open"}}})
	w.view("agenda")
	w.says("as-agenda", "Read tables from one file", "Ship on Friday?")
	w.tellsMain("is it planned for this week")
	near.inInbox("main-agent", "is it planned for this week")
	w.view("mesh")
	w.sees(`document.querySelectorAll(".ring .link[data-linked=yes]").length === 2`)
	w.says("as-mesh", "2 of 2 other nodes linked", "main is main-agent on devbox")
	w.view("settings")
	w.presses("as-settings", "Make invite")
	w.says("as-settings", "An invite for a local node is made.")
	w.sees(`document.querySelectorAll("as-settings .setting-rows [data-open=yes]").length >= 1`)
	w.view("board")
	w.looksBack(began, "seen across the mesh 4711")
	w.does(`document.querySelector("as-stream"), history.pushState(null, "", "/?q=nobody-said-this"), dispatchEvent(new CustomEvent("route"))`)
	w.says("as-stream", "No message of", "has 'nobody-said-this'.")
	w.presses("as-stream", "Remove: words")
	w.says("as-stream .messages", "typed on the board 4712")
}

// works gives codex a task from the board, which it takes.
func (w *walk) works() {
	w.writes("delegate", "codex", toCodex)
	got := w.codex.hears("its task", func(f heard) bool { return f.Name == string(protocol.Delegate) })
	w.codex.say(`{"type":"CUSTOM","name":"AckProcessed","targetAgentId":%q,"value":{"ackFor":%q}}`, got.AgentID, got.MsgID)
	w.codex.say(`{"type":"CUSTOM","name":"WorkerReport","msgId":"m-begun","targetAgentId":"main-agent","value":{"re_msgId":%q,"status":"in_progress","summary":"reading ./cart"}}`, got.MsgID)
	w.says("[data-part=running]", toCodex)
}

// tellsMain says something to main on the agenda, and sees it there.
func (w *walk) tellsMain(words string) {
	w.t.Helper()
	w.sees(`document.querySelector(".ask-main textarea")?.disabled === false`)
	w.does(fmt.Sprintf(`((a) => { a.value = %q; a.dispatchEvent(new Event("input")); a.form.requestSubmit(); })(document.querySelector(".ask-main textarea"))`, words))
	w.says(".ask-main .words-list", words)
}

// looksBack replays a moment before words were said, and comes back.
func (w *walk) looksBack(at int64, before string) {
	w.t.Helper()
	w.does(fmt.Sprintf(`import("/static/route.js").then((m) => m.travel(%d))`, at))
	w.says("as-replay", "read only")
	w.sees(fmt.Sprintf(`document.body.classList.contains("past") && !document.body.classList.contains("past-wait") && !document.querySelector("as-stream .messages").innerText.includes(%q)`, before))
	w.sees(`document.querySelector("as-composer").hidden && document.querySelectorAll(".node-row[data-linked=no]").length === 0`)
	w.does(`import("/static/route.js").then((m) => m.travel(0))`)
	w.sees(`!document.body.classList.contains("past")`)
	w.says("as-stream .messages", before)
}

// wordsOfOthers are markup, bidi controls and long lines in everything that an agent may say: inert in every view.
func (w *walk) wordsOfOthers() {
	const evil = `<img src=x onerror="window.pwned=1"><script>window.pwned=1</script>` + "\u202Egnp.exe"
	w.nodes[1].appends("mac-mini", note("main-agent", evil+strings.Repeat("x", 5000)))
	w.says("as-stream .messages", "<script>window.pwned=1</script>")
	w.asks("evil", "clarify", "evil"+evil, "fine")
	w.nodes[0].publishes(map[string]any{"planned": []any{map[string]any{"id": "p1", "title": evil}}, "decisions": []any{map[string]any{"id": "d1", "question": evil, "kind": "choice", "options": []string{evil}, "status": "open"}}})
	w.view("agenda")
	w.says("as-agenda", "<script>window.pwned=1</script>")
	w.view("board")
	w.does(cardOf("evil") + `.querySelector("[data-choice=fine]").click()`)
	w.codex.hears("the answer", func(f heard) bool { return f.Name == "SelectionAnswer" })
	w.sees(answered("evil"))
	if valueIn[bool](w, `"pwned" in window || document.querySelectorAll("img:not([src='/static/icon.svg'])").length > 0`) {
		w.t.Error("words of others did something")
	}
	if over := valueIn[int](w, `document.documentElement.scrollWidth - innerWidth`); over > 0 {
		w.t.Errorf("words of others make the page %d px too wide", over)
	}
	w.nodes[0].publishes(map[string]any{"decisions": []any{map[string]any{"id": "d1", "question": "Ship on Friday?", "kind": "approval", "status": "open"}}})
}

// anotherKilled: what is known of a node that died stays, as of then; what is for it waits.
func (w *walk) anotherKilled() {
	gone := w.nodes[2]
	w.handsOver("mac-mini")
	before := w.moment()
	gone.kill()
	w.sees(`((r) => r?.dataset.state === "away" && r.innerText.includes("as of"))(` + fmt.Sprintf(rowOfAgent, "build-1") + `)`)
	w.says("as-foot", "1 of 2 other nodes linked")
	w.writes("delegate", "build-1", "greet whoever is back")
	w.says("[data-part=queued]", "greet whoever is back", "queued, build-1 is not linked")
	w.says("as-stream .messages", "greet whoever is back")
	w.sees(`[...document.querySelectorAll(".message")].find((m) => m.innerText.includes("greet whoever is back")).querySelector("as-ticks").dataset.all !== "ok"`)
	w.sees(cardOf("Which table holds") + `.innerText.includes("codex")`)
	w.view("mesh")
	w.sees(`document.querySelectorAll(".ring .link[data-linked=no]").length === 1`)
	w.says("as-mesh .table", "not linked")
	w.view("settings")
	w.sees(`document.querySelectorAll("as-settings .setting-rows [data-open]").length >= 3`)
	w.view("agenda")
	w.tellsMain("who has the tables while build-1 is gone")
	w.nodes[1].inInbox("mac-mini", "who has the tables while build-1 is gone")
	w.view("board")
	w.looksBack(before, "greet whoever is back")
}

// handsOver asks main to give its office to an agent of another node, and waits until it has.
func (w *walk) handsOver(agent string) {
	w.does(fmt.Sprintf(rowOfAgent, agent) + `.click()`)
	w.presses("as-panel", "Hand over main")
	w.presses("as-panel", "Hand it over")
	w.says("as-top .main", agent)
	w.presses("as-panel", "×")
}

// noMain: with one node of three the office is nobody's. Mail goes on; what only main does is off, and says so.
func (w *walk) noMain() {
	before := w.moment()
	w.nodes[1].kill()
	w.says("as-banner", "nobody can be elected")
	w.says("as-top .main", "no main")
	w.sees(`document.querySelectorAll(".node-row[data-linked=no]").length === 2 && !document.querySelector(".agent-row [data-main=true]")`)
	w.sees(cardOf("Which table holds") + ` !== undefined`)
	w.says("[data-part=running]", toCodex)
	w.writes("prompt", "main-agent", "said while nobody was main")
	w.says("as-stream .messages", "said while nobody was main")
	w.nodes[0].inInbox("main-agent", "said while nobody was main")
	w.view("mesh")
	w.says("as-mesh", "not reached since")
	w.view("settings")
	w.sees(`document.querySelectorAll("as-settings .setting-rows [data-open]").length >= 3`)
	w.view("agenda")
	w.says("as-agenda", "Ship on Friday?")
	w.view("board")
	w.looksBack(before, "said while nobody was main")
	w.nodes[1].up("")
	w.nodes[2].up("")
	w.codex = listen(w.outer, socketOf(w.nodes[1]), "codex")
	w.says("as-foot", "2 of 2 other nodes linked")
	w.sees(`document.querySelector("as-banner").innerText === ""`)
	w.says("as-top .main", "main ")
	w.says("[data-part=done]", "greet whoever is back")
	w.says("[data-part=running]", toCodex)
}

// kept is what must be the same over a cut, a restart and a reload.
const kept = `JSON.stringify({
  rows: [...document.querySelectorAll(".agent-row, .node-row, #needs .card, .task-row")].map((r) => r.dataset.key),
  seen: [...document.querySelectorAll(".message")].filter((r) => r.getBoundingClientRect().bottom > document.querySelector(".scroller").getBoundingClientRect().top && r.getBoundingClientRect().top < innerHeight).slice(0, 3).map((r) => r.dataset.key),
  draft: document.getElementById("compose-text").value, focus: document.activeElement.id,
})`

const firstSeen = `((s) => { const r = [...document.querySelectorAll(".message")].find((r) => r.getBoundingClientRect().bottom > s); return JSON.stringify([r.dataset.key, r.getBoundingClientRect().top]); })(document.querySelector(".scroller").getBoundingClientRect().top)`

// cutOff: somebody reads what is older and has begun to write when the connection to the node breaks. When it is back, what
// was said meanwhile is counted, and every row, the draft, the focus and the place in Messages are where they were.
func (w *walk) cutOff() {
	for i := range 30 { // each is logged when it has been sent, so a second never holds more than are rows of their own
		_, err := w.nodes[0].say(w.t.Context(), api.SendRequest{From: "main-agent", To: "mac-mini", Intent: "Report", Value: text(fmt.Sprintf("line %d of many %s", i, strings.Repeat("that somebody reads ", 12)))})
		must(w.t, err)
		instant(70 * time.Millisecond)
	}
	w.says("as-stream .messages", "line 29 of many")
	w.sees(`((s, v) => { if (v.atEnd) s.scrollTop = s.scrollHeight - s.clientHeight - 900; return !v.atEnd && s.scrollTop > 0; })(document.querySelector(".scroller"), document.querySelector("as-stream").vlist)`) // again if what came meanwhile took it to the end
	w.does(`document.getElementById("compose-text").focus()`)
	must(w.t, chromedp.Do(w.ctx, chromedp.SendKeys(chromedp.ID("compose-text"), "a draft that stays")))
	w.sees(`!document.querySelector("as-stream").vlist.atEnd && document.querySelector(".scroller").scrollTop > 0`)
	w.was, w.place = valueIn[string](w, kept), valueIn[string](w, firstSeen)

	w.wire.sever()
	w.lost()
	w.nodes[1].appends("mac-mini", note("main-agent", "said while the board was cut off"))
	w.nodes[0].inInbox("main-agent", "said while the board was cut off")
	w.keeps("cut off")
	w.wire.mend()
	w.sees(`document.body.dataset.feed === "open" && document.body.dataset.health === "live"`)
	w.says(".pill", "new")
	w.same("after a reconnect")
}

// ownKilled: the board's own node dies under it. Everything stays as it was known and nothing can be done; when the node is
// back every row, the draft, the focus and the place in Messages are where they were.
func (w *walk) ownKilled() {
	w.nodes[0].kill()
	w.lost()
	w.says("as-banner", "Your node has not answered since", "Run aster up. This is what was known then.")
	w.sees(`document.querySelector("as-composer .primary").disabled`)
	w.sees(cardOf("Which table holds") + `.querySelector(".option").disabled`)
	w.does(`import("/static/route.js").then((m) => m.travel(Date.now() - 1000))`)
	w.says("as-replay", "Your node does not answer.")
	w.does(`import("/static/route.js").then((m) => m.travel(0))`)
	w.view("agenda")
	w.says("as-agenda", "Your node does not answer. Nothing can be moved", "Ship on Friday?")
	w.sees(`document.querySelector(".ask-main textarea").disabled`)
	w.view("mesh")
	w.sees(`document.querySelectorAll("as-mesh > .table tbody tr").length === 3`)
	w.view("settings")
	w.presses("as-settings", "Make invite")
	w.says("as-settings", "Not done: your node does not answer.")
	w.view("board")
	w.does(`document.getElementById("compose-text").focus()`)
	w.keeps("while its node is dead")
	w.back()
	w.sees(`document.querySelector("as-banner").innerText === "" && document.body.dataset.feed === "open" && document.body.dataset.health === "live"`)
	w.says("as-foot", "2 of 2 other nodes linked")
	w.same("after a restart")
	must(w.t, chromedp.Do(w.ctx, chromedp.Reload()))
	w.sees(`document.body.dataset.feed === "open" && document.querySelectorAll(".message").length > 0`)
	w.says("as-foot", "2 of 2 other nodes linked")
	w.same("after a reload")
	w.nodes[1].appends("mac-mini", note("main-agent", "and it goes on"))
	w.says(".pill", "new")
	w.presses("as-stream", "new")
	w.says("as-stream .messages", "and it goes on")
}

// lost: the board says that it reaches its node no more, be it for so long already that it says since when.
func (w *walk) lost() {
	w.t.Helper()
	w.sees(`["reconnecting", "silent"].includes(document.querySelector("as-top .fresh-word").dataset.health)`)
}

// keeps: the board has what it had.
func (w *walk) keeps(when string) {
	w.t.Helper()
	if now := valueIn[string](w, kept); now != w.was {
		w.t.Errorf("%s the board has\n%s\nand had\n%s", when, now, w.was)
	}
}

// same waits until the board has what it had, and looks where what was read is.
func (w *walk) same(when string) {
	w.t.Helper()
	w.sees(fmt.Sprintf(`%s === %q`, kept, w.was))
	w.sees(fmt.Sprintf(`((a, b) => a[0] === b[0] && Math.abs(a[1] - b[1]) <= 4)(%s, JSON.parse(%q))`, "JSON.parse("+firstSeen+")", w.place))
	w.t.Log(when, w.place)
}
