package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// walk is one browser on the board of the first of three real nodes. Its steps share the mesh, and each leaves it whole.
type walk struct {
	t     *testing.T // of the step
	outer *testing.T
	nodes []*node // devbox, whose board is looked at, mac-mini, build-1
	codex *ear    // an agent of mac-mini, by socket
	ctx   context.Context
	board string // the board's host and port, the same after each restart
	wire  *wire  // from the browser to it

	was, place string // what is kept over a cut, a restart and a reload
}

func (w *walk) step(name string, act func()) {
	began := time.Now()
	ok := w.outer.Run(name, func(t *testing.T) { w.of(t); act(); t.Log(time.Since(began).Round(time.Millisecond)) })
	w.of(w.outer)
	if !ok {
		w.outer.FailNow() // what follows stands on it
	}
}

// of has whatever fails from now on fail t.
func (w *walk) of(t *testing.T) {
	w.t = t
	for _, n := range w.nodes {
		n.t = t
	}
	if w.codex != nil {
		w.codex.t = t
	}
}

// back starts the node whose board is looked at again, where it was.
func (w *walk) back() {
	w.t.Helper()
	w.nodes[0].up("", "--board", w.board)
}

// link is a new one-time link to the board, over the wire.
func (w *walk) link() string {
	w.t.Helper()
	return strings.Replace(w.nodes[0].ok("board", "--print"), w.board, w.wire.at, 1)
}

// sees waits for a JavaScript condition.
func (w *walk) sees(js string) {
	w.t.Helper()
	began := time.Now()
	defer func() {
		if took := time.Since(began); took > 2*time.Second {
			w.t.Logf("%s until %.120s", took.Round(time.Millisecond), js)
		}
	}()
	if _, err := chromedp.Run(w.ctx, chromedp.Poll[bool](js, chromedp.WithPollingTimeout(patience))); err != nil {
		body, _ := chromedp.Run(w.ctx, chromedp.Evaluate[string](`location.href + "\n" + document.body.innerText.slice(0, 4000)`))
		w.t.Fatalf("the board does not come to %s: %v\n%s", js, err, body)
	}
}

// says waits for words in a part of the page.
func (w *walk) says(part string, words ...string) {
	w.t.Helper()
	for _, s := range words {
		w.sees(fmt.Sprintf(`document.querySelector(%q)?.innerText.includes(%q) === true`, part, s))
	}
}

func (w *walk) does(js string) {
	w.t.Helper()
	must(w.t, chromedp.Do(w.ctx, chromedp.Evaluate[chromedp.Void]("void ("+js+")")))
}

func valueIn[T any](w *walk, js string) T {
	w.t.Helper()
	got, err := chromedp.Run(w.ctx, chromedp.Evaluate[T](js))
	if err != nil {
		w.t.Fatalf("%s: %v", js, err)
	}
	return got
}

// moment is one before anything that is done from now on: a mesh may need less than the millisecond that moments are told in.
func (w *walk) moment() int64 { w.t.Helper(); return valueIn[int64](w, `Date.now() - 1`) }

// view goes to a view as its button does.
func (w *walk) view(name string) {
	w.t.Helper()
	button := fmt.Sprintf(`document.querySelector('.views [data-view=%s]')`, name)
	w.sees(button + `.disabled === false`)
	w.does(button + `.click()`)
	w.sees(fmt.Sprintf(`document.body.dataset.view === %q`, name))
}

// presses presses the button of a part that says words.
func (w *walk) presses(part, words string) {
	w.t.Helper()
	found := fmt.Sprintf(`[...document.querySelectorAll(%q)].find((b) => b.textContent.includes(%q) && !b.disabled)`, part+" button", words)
	w.sees("Boolean(" + found + ")")
	w.does(found + ".click()")
}

// writes types into the composer and sends, as a prompt or a task.
func (w *walk) writes(kind, to, words string) {
	w.t.Helper()
	w.sees(fmt.Sprintf(`!document.querySelector("as-composer").sending && [...document.getElementById("compose-to").options].some((o) => o.value === %q)`, to)) // one at a time
	w.does(fmt.Sprintf(`document.querySelector("as-composer").choose(%q), document.querySelector("as-composer").focusFor(%q)`, to, kind))
	must(w.t, chromedp.Do(w.ctx, chromedp.SendKeys(chromedp.ID("compose-text"), words), chromedp.Click(chromedp.CSS("as-composer .primary"))))
}

// appends adds a line to a file of an agent's folder.
func (n *node) appends(agent string, line any) {
	n.t.Helper()
	raw, err := json.Marshal(line)
	must(n.t, err)
	f, err := os.OpenFile(filepath.Join(n.home, "agents", agent, "outbox.jsonl"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	must(n.t, err)
	defer f.Close()
	_, err = f.Write(append(raw, '\n'))
	must(n.t, err)
}

func note(to, words string) map[string]any {
	return map[string]any{"to": to, "intent": "Report", "value": map[string]string{"text": words}}
}

// inInbox waits until words are in an agent's inbox file.
func (n *node) inInbox(agent, words string) {
	n.t.Helper()
	path := filepath.Join(n.home, "agents", agent, "inbox.jsonl")
	eventually(n.t, patience, fmt.Sprintf("%q is in %s", words, path), func() (bool, string) {
		raw, err := os.ReadFile(path)
		return err == nil && strings.Contains(string(raw), words), fmt.Sprintf("%.2000s %v", raw, err)
	})
}

// publishes writes the state document of the node where main lives.
func (n *node) publishes(doc any) {
	n.t.Helper()
	raw, err := json.Marshal(doc)
	must(n.t, err)
	path := filepath.Join(n.home, "state.json")
	must(n.t, os.WriteFile(path+".new", raw, 0o600))
	must(n.t, os.Rename(path+".new", path))
}

// asks lets codex, which works on a task of the board's person, ask that person.
func (w *walk) asks(id, kind, question string, answers ...string) {
	w.t.Helper()
	var options []map[string]string
	for _, a := range answers {
		options = append(options, map[string]string{"label": a})
	}
	raw, err := json.Marshal(map[string]any{"type": "CUSTOM", "name": "SelectionPrompt", "msgId": "m-" + id, "value": map[string]any{
		"promptId": id, "question": question, "options": options, "timeout": map[string]any{"kind": kind, "seconds": 3600}}})
	must(w.t, err)
	w.codex.say("%s", raw)
	plain, _, _ := strings.Cut(question, "<")
	w.sees(cardOf(plain) + " !== undefined")
}

func cardOf(question string) string {
	return fmt.Sprintf(`[...document.querySelectorAll(".card[data-ask]")].find((c) => c.innerText.includes(%q))`, question)
}

// answered: the card says so for some seconds, and then it is gone.
func answered(question string) string {
	return `((c) => c === undefined || c.innerText.includes("Your answer holds"))(` + cardOf(question) + `)`
}

const rowOfAgent = `[...document.querySelectorAll(".agent-row")].find((r) => r.querySelector(".name").textContent === %q)`

// TestTheBoardOfThreeRealNodes walks a real browser through every view of a board in every state that can be caused: real
// nodes that are killed with kill -9, a store that is full, an office that nobody can have, a link that was used; over
// messages of real agents, by socket and by file.
func TestTheBoardOfThreeRealNodes(t *testing.T) {
	t.Parallel() // it mostly waits
	w := &walk{t: t, outer: t, nodes: []*node{newNode(t, "devbox", ""), newNode(t, "mac-mini", ""), newNode(t, "build-1", greets)}}
	for i, agent := range []string{"main-agent", "mac-mini"} {
		must(t, os.MkdirAll(filepath.Join(w.nodes[i].home, "agents", agent), 0o700)) // one that speaks by files
	}
	w.nodes[0].up("")
	w.board = strings.TrimPrefix(w.nodes[0].api().Node().Board, "http://")
	w.wire = wireTo(t, w.board)
	w.ctx = chromiumFor(t, 9*time.Minute)
	link := w.link()
	must(t, chromedp.Do(w.ctx, chromedp.EmulateViewport(1440, 900), chromedp.Navigate(link)))
	w.sees(`document.body.dataset.feed === "open"`)
	w.step("nobody yet", w.nobodyYet)
	for _, n := range w.nodes[1:] {
		n.up(w.nodes[0].invite())
	}
	for _, n := range w.nodes {
		n.linked(2)
		n.elects(3)
	}
	w.codex = listen(t, socketOf(w.nodes[1]), "codex")
	w.nodes[0].knows("codex")
	w.step("usual", w.usual)
	w.step("words of others", w.wordsOfOthers)
	w.step("another node killed", w.anotherKilled)
	w.step("no main", w.noMain)
	w.step("cut off", w.cutOff)
	w.step("own node killed", w.ownKilled)
	w.step("disk full", w.diskFull)
	w.step("link used twice", func() { w.usedTwice(link) })
}

func (w *walk) nobodyYet() {
	w.says("as-work", "Have one delegate to the other")
	w.says("as-needs", "Nothing needs you.")
	w.says("as-foot", "no other node yet")
	w.says("as-stream", "No messages yet.")
	w.view("mesh")
	w.says("as-mesh", "no other node yet", "Nobody holds a claim.")
	w.view("settings")
	w.says("as-settings", "No invite was made here.", "No room is open.")
	w.view("agenda")
	w.says("as-agenda", "No state document yet.")
	w.view("board")
}
