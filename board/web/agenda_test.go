package web

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/api"
)

// sampleAgenda is what a main that works writes.
func sampleAgenda(now time.Time) map[string]any {
	return map[string]any{
		"standby":  false,
		"projects": []any{map[string]any{"id": "shop", "name": "Shop"}, map[string]any{"id": "tax", "name": "Tax"}},
		"current": []any{
			map[string]any{"id": "c1", "project": "shop", "title": "Totals that round as the bank does", "detail": "Half even everywhere; receipts keep two digits.",
				"stages": []any{map[string]any{"label": "read", "status": "done"}, map[string]any{"label": "change cart/", "status": "active"}, map[string]any{"label": "review", "status": "pending"}}, "sub": []any{"cart/total.go", "cart/total_test.go"}},
			map[string]any{"id": "c2", "project": "tax", "title": "Tables for 2026", "blockedBy": "Which table is in force on 1 January"}},
		"planned": []any{
			map[string]any{"id": "p1", "project": "shop", "title": "Export invoices as CSV", "detail": "One line an item."},
			map[string]any{"id": "p2", "project": "shop", "title": "A page for returns", "waiting": true, "blockReason": "Waits for the words of the shop's owner", "unblock": "the text of the page", "proceedNote": "it goes on with a draft"},
			map[string]any{"id": "p3", "project": "tax", "title": "Read tables from one file"},
			map[string]any{"id": "p4", "title": "Delete the old importer"}},
		"done": []any{
			map[string]any{"id": "x1", "project": "shop", "title": "An empty cart costs nothing", "at": now.Add(-time.Hour).UnixMilli(), "commit": "3f9c2ab81d0e", "refs": []any{"cart/total.go"}},
			map[string]any{"id": "x2", "title": "Links in docs/ are alive", "when": "yesterday"}},
		"decisions": []any{
			map[string]any{"id": "d1", "status": "open", "kind": "choice", "project": "tax", "question": "Which tax table should exports use?", "detail": "Two apply after 1 January.", "options": []any{"2025, in force", "2026, announced"}, "recommendChoice": "2026, announced", "recommend": "2026, as exports are read next year"},
			map[string]any{"id": "d2", "status": "open", "kind": "approval", "question": "Delete the importer that nobody has used since March?"},
			map[string]any{"id": "d0", "status": "resolved", "kind": "input", "question": "What is the shop called on receipts?", "reviewedText": "Shop & Sons"}},
		"freeRequest": map[string]any{"reviewedText": "The search for receipts is planned now.", "reviewedAt": now.UnixMilli()},
	}
}

// writes lets the fake's main publish a document.
func (f *fake) writes(doc map[string]any) {
	raw := value(doc)
	var lists map[string]json.RawMessage
	_ = json.Unmarshal(raw, &lists)
	a := api.StateDocument{Doc: raw, At: time.Now().UnixMilli(), By: "12D3KooWdevbox", ByName: "devbox", Lists: map[string][]api.DocumentItem{}}
	for _, tab := range []string{"current", "planned", "done", "decisions"} {
		var items []struct{ ID string }
		_ = json.Unmarshal(lists[tab], &items)
		for i, x := range items {
			a.Lists[tab] = append(a.Lists[tab], api.DocumentItem{Key: x.ID, Index: i})
		}
	}
	f.mu.Lock()
	a.Words = f.agenda.Words
	f.agenda = a
	f.mu.Unlock()
	f.emit(api.Event{Type: "document"})
}

// hears does with a person's word what a node does.
func (f *fake) hears(node string, req api.SendRequest) {
	var v struct {
		Kind, ID, RefID, PlannedID, Tab, Text, Choice string
		Standby                                       *bool
		Moved                                         struct{ ID, Before string }
	}
	if req.Intent != "OperatorFeedback" || json.Unmarshal(req.Value, &v) != nil {
		return
	}
	f.mu.Lock()
	w := api.DocumentWord{ID: req.MsgID, Short: "abcde", At: time.Now().UnixMilli(), Node: protocol.PeerID("12D3KooW" + node), NodeName: node, Kind: v.Kind, Tab: v.Tab, Text: v.Text, Choice: v.Choice, Standby: v.Standby, Tier: protocol.Persisted, Open: true, Files: len(req.Blobs)}
	w.Ref = v.ID + v.RefID + v.PlannedID + v.Moved.ID
	f.agenda.Words = append(slices.Clone(f.agenda.Words), w)
	if v.Kind == "reorder" {
		list := slices.Clone(f.agenda.Lists[v.Tab])
		at := func(key string) int {
			return slices.IndexFunc(list, func(e api.DocumentItem) bool { return e.Key == key })
		}
		from := at(v.Moved.ID)
		e := list[from]
		list = slices.Delete(list, from, from+1)
		to := at(v.Moved.Before)
		if to < 0 {
			to = len(list)
		}
		f.agenda.Lists = map[string][]api.DocumentItem{"current": f.agenda.Lists["current"], "planned": f.agenda.Lists["planned"], "done": f.agenda.Lists["done"], "decisions": f.agenda.Lists["decisions"]}
		f.agenda.Lists[v.Tab] = slices.Insert(list, to, e)
	}
	f.mu.Unlock()
	f.emit(api.Event{Type: "document"})
}

// told is what main was told, by kind.
func (f *fake) told(t *testing.T, kind string) (out []map[string]any) {
	t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, req := range f.sent {
		var v map[string]any
		if err := json.Unmarshal(req.Value, &v); err != nil {
			t.Fatal(err)
		}
		if req.Intent == "OperatorFeedback" && req.FromBoard && v["kind"] == kind {
			out = append(out, v)
		}
	}
	return out
}

const plannedTitles = `[...document.querySelectorAll('as-agenda [data-part=planned] .title')].map((n) => n.textContent).join("|")`

func agendaItem(key string) string { return `as-agenda .item[data-key="` + key + `"]` }

// TestThePlanIsReorderedByHandAndByKeys: the same wish by a drag, by Alt and arrows, and by buttons; undo puts it back; what
// somebody else moves is shown when nobody works in the list.
func TestThePlanIsReorderedByHandAndByKeys(t *testing.T) {
	f := working()
	f.writes(sampleAgenda(time.Now()))
	s, ts := serve(t, f)
	ctx := browser(t)
	do(t, ctx, chromedp.EmulateViewport(1440, 900))
	said := listen(ctx)
	openBoard(t, ctx, s, ts.URL)
	visit(t, ctx, "agenda")
	order := func(want ...string) {
		t.Helper()
		titles := map[string]string{"p1": "Export invoices as CSV", "p2": "A page for returns", "p3": "Read tables from one file", "p4": "Delete the old importer"}
		for i, key := range want {
			want[i] = titles[key]
		}
		until(t, ctx, plannedTitles+" === "+fmt.Sprintf("%q", strings.Join(want, "|")), 2*time.Second)
	}
	order("p1", "p2", "p3", "p4")
	allShots(t, ctx, "agenda")

	// By keys: the focus goes along.
	do(t, ctx, chromedp.Evaluate[chromedp.Void](fmt.Sprintf(`document.querySelector(%q).focus()`, agendaItem("p3")+" .open")), chromedp.KeyEvent(kb.ArrowUp, chromedp.KeyModifiers(chromedp.ModifierAlt)))
	order("p1", "p3", "p2", "p4")
	until(t, ctx, `document.activeElement.closest(".item")?.dataset.key === "p3"`, 2*time.Second)
	until(t, ctx, shows("Read tables from one file is number 2 of 4 now. Main is told."), 2*time.Second)
	do(t, ctx, click(".toast button"))
	order("p1", "p2", "p3", "p4")
	until(t, ctx, shows("Read tables from one file is back in its place."), 2*time.Second) // the move is over: what comes now is somebody else's

	// Somebody else moves while this one works there: nothing jumps, and it is said.
	f.hears("mac-mini", api.SendRequest{Intent: "OperatorFeedback", MsgID: "m1", Value: value(map[string]any{"kind": "reorder", "tab": "planned", "moved": map[string]string{"id": "p4", "before": "p1"}})})
	until(t, ctx, shows("The order was changed elsewhere."), 2*time.Second)
	order("p1", "p2", "p3", "p4")
	do(t, ctx, click(`[data-part=planned] .held button`))
	order("p4", "p1", "p2", "p3")

	// By buttons, which are behind "Move".
	do(t, ctx, click(agendaItem("p4")+" .mover"), click(agendaItem("p4")+" [data-move=last]"))
	order("p1", "p2", "p3", "p4")
	until(t, ctx, `document.querySelector("as-toast").innerText.includes("Delete the old importer is number 4 of 4 now.") && document.querySelectorAll(".toast").length === 1`, 2*time.Second) // the last move's alone

	// By hand.
	place := func(selector string) (x, y float64) {
		still(t, ctx, selector)
		at := eval[[]float64](t, ctx, fmt.Sprintf(`(() => { const n = document.querySelector(%q); n.scrollIntoView({ block: "center" }); const b = n.getBoundingClientRect(); return [b.left + b.width / 2, b.top + b.height / 2]; })()`, selector))
		return at[0], at[1]
	}
	x, y := place(agendaItem("p4") + " .grip")
	top := eval[float64](t, ctx, fmt.Sprintf(`document.querySelector(%q).getBoundingClientRect().top + 2`, agendaItem("p1")))
	mouse := func(kind input.DispatchMouseEventType, x, y float64) {
		t.Helper()
		do(t, ctx, chromedp.MouseEvent(kind, x, y, chromedp.ButtonLeft))
	}
	mouse(input.DispatchMouseEventTypeMousePressed, x, y)
	mouse(input.DispatchMouseEventTypeMouseMoved, x, y-20)
	mouse(input.DispatchMouseEventTypeMouseMoved, x, top)
	until(t, ctx, fmt.Sprintf(`document.querySelector(%q).dataset.drop === "before"`, agendaItem("p1")), 2*time.Second)
	mouse(input.DispatchMouseEventTypeMouseReleased, x, top)
	order("p4", "p1", "p2", "p3")
	moves := f.told(t, "reorder")
	last := moves[len(moves)-1]
	if fmt.Sprint(last["order"]) != "[p4 p1 p2 p3]" || last["tab"] != "planned" || last["at"] == nil {
		t.Errorf("main was told %v", last)
	}
	said.none(t)
}

// still scrolls to an element and waits until it stays in its place: rows that come into sight get their true heights then.
func still(t *testing.T, ctx context.Context, selector string) {
	t.Helper()
	until(t, ctx, fmt.Sprintf(`(() => { const n = document.querySelector(%q); n.scrollIntoView({ block: "center" }); const at = Math.round(n.getBoundingClientRect().top); globalThis.stays = globalThis.stoodAt === at ? (globalThis.stays ?? 0) + 1 : 0; globalThis.stoodAt = at; return globalThis.stays > 5; })()`, selector), 2*time.Second)
}

// TestADragEndsThoughItsRowIsGone: main drops the item that a person holds; the list is free again when the pointer is.
func TestADragEndsThoughItsRowIsGone(t *testing.T) {
	f := working()
	f.writes(sampleAgenda(time.Now()))
	s, ts := serve(t, f)
	ctx := browser(t)
	do(t, ctx, chromedp.EmulateViewport(1440, 900))
	openBoard(t, ctx, s, ts.URL)
	visit(t, ctx, "agenda")
	until(t, ctx, plannedTitles+`.includes("Delete the old importer")`, 2*time.Second)
	still(t, ctx, agendaItem("p4")+" .grip")
	at := eval[[]float64](t, ctx, fmt.Sprintf(`(() => { const n = document.querySelector(%q); n.scrollIntoView({ block: "center" }); const b = n.getBoundingClientRect(); return [b.left + b.width / 2, b.top + b.height / 2]; })()`, agendaItem("p4")+" .grip"))
	do(t, ctx, chromedp.MouseEvent(input.DispatchMouseEventTypeMousePressed, at[0], at[1], chromedp.ButtonLeft))
	until(t, ctx, `document.querySelector("as-agenda").dragging`, time.Second)
	doc := sampleAgenda(time.Now())
	doc["planned"] = doc["planned"].([]any)[:3]
	f.writes(doc)
	until(t, ctx, "!"+plannedTitles+`.includes("Delete the old importer")`, 2*time.Second)
	do(t, ctx, chromedp.MouseEvent(input.DispatchMouseEventTypeMouseReleased, at[0], at[1], chromedp.ButtonLeft))
	until(t, ctx, `!document.querySelector("as-agenda").dragging`, time.Second)
	if told := f.told(t, "reorder"); len(told) > 0 {
		t.Errorf("main was told %v", told)
	}
}

// answersUnderNeedsYou gives the open decision another answer there: it is the same word, and whose it was is said there.
func answersUnderNeedsYou(t *testing.T, ctx context.Context, f *fake) {
	t.Helper()
	do(t, ctx, click(".views [data-view=board]"))
	until(t, ctx, `document.querySelector(".card[data-ask=decision] [data-pick='1']") !== null`, 2*time.Second)
	do(t, ctx, click(".card[data-ask=decision] [data-pick='1']"))
	until(t, ctx, shows("is logged: the answer to claude-shop."), 2*time.Second)
	if all := f.told(t, "decision"); len(all) != 2 || all[1]["id"] != "d1" || all[1]["choice"] != "2025, in force" || all[1]["accept"] != nil || all[1]["question"] != all[0]["question"] {
		t.Errorf("decisions: %v", all)
	}
	f.mu.Lock()
	f.snap.Asks = api.Asks{Asks: f.snap.Asks.Asks[:4], Ended: []api.AskEnded{{ID: "d:d1", How: "answered", Labels: []string{"2025, in force"}, By: f.sent[len(f.sent)-1].MsgID, NodeName: "devbox"}}}
	f.mu.Unlock()
	f.emit(api.Event{Type: "asks"})
	until(t, ctx, shows("Main is told: 2025, in force."), 2*time.Second)
	do(t, ctx, click(".views [data-view=agenda]"))
}

// TestDecisionsAndWordsGoToMain: an answer, a word on an item, a request, and what stands still going on all the same: main is
// told each as the contract says, it stands beside its item until main's document knows it, and a refusal keeps the words.
func TestDecisionsAndWordsGoToMain(t *testing.T) {
	f := working()
	f.writes(sampleAgenda(time.Now()))
	s, ts := serve(t, f)
	ctx := browser(t)
	do(t, ctx, chromedp.EmulateViewport(1440, 1300))
	said := listen(ctx)
	f.snap.Asks.Asks = append(f.snap.Asks.Asks, sampleDecision())
	openBoard(t, ctx, s, ts.URL)

	// It stands under Needs you as well, counted, and leads to its place in the agenda.
	decision := `.card[data-ask=decision]`
	until(t, ctx, fmt.Sprintf(`document.querySelector(%q)?.innerText.includes("recommended") && document.title === "(4) aster devbox"`, decision), 2*time.Second)
	until(t, ctx, `document.querySelector(".views .waits").textContent === "4" && document.querySelector("as-tabs .waits").textContent === "4"`, 2*time.Second)
	do(t, ctx, click(decision+" .acts button:nth-child(2)"))
	until(t, ctx, `document.body.dataset.view === "agenda" && document.activeElement.dataset.key === "d1"`, 2*time.Second)
	until(t, ctx, shows("Which tax table should exports use?"), 2*time.Second)
	only := func(kind string) map[string]any {
		t.Helper()
		all := f.told(t, kind)
		if len(all) != 1 {
			t.Fatalf("%s was told %d times: %v", kind, len(all), all)
		}
		return all[0]
	}

	// A decision, by keys alone: 2 picks, Ctrl Enter in the field sends.
	card := `as-agenda .decision[data-key=d1]`
	do(t, ctx, chromedp.Evaluate[chromedp.Void](fmt.Sprintf(`document.querySelector(%q).focus()`, card)), chromedp.KeyEvent("2"))
	until(t, ctx, fmt.Sprintf(`document.querySelector(%q).getAttribute("aria-pressed") === "true"`, card+" [data-pick='2']"), 2*time.Second)
	do(t, ctx, chromedp.SendKeys(chromedp.CSS(card+" textarea"), "from May on"), chromedp.KeyEvent(kb.Enter, chromedp.KeyModifiers(chromedp.ModifierCtrl)))
	until(t, ctx, shows("2026, announced: from May on"), 2*time.Second)
	until(t, ctx, shows("in main's inbox"), 2*time.Second)
	if d := only("decision"); d["id"] != "d1" || d["choice"] != "2026, announced" || d["text"] != "from May on" || d["accept"] != true || d["question"] == "" {
		t.Errorf("decision: %v", d)
	}

	// A word on an item is refused, kept, and taken the second time under the same id.
	f.mu.Lock()
	f.sendErr = protocol.Refuse(protocol.CodeInboxFull, "claude-shop's inbox is full (1,000)", "Send again when it has read")
	f.mu.Unlock()
	item := agendaItem("p2")
	do(t, ctx, click(item+" .open"))
	do(t, ctx, chromedp.SendKeys(chromedp.CSS(item+" textarea"), "with a table"), click(item+" form [type=submit]"))
	until(t, ctx, shows("Not sent: claude-shop's inbox is full (1,000). Your text is kept. Send again when it has read."), 2*time.Second)
	f.mu.Lock()
	f.sendErr = nil
	refused := f.sent[len(f.sent)-1].MsgID
	f.sent = f.sent[:len(f.sent)-1]
	f.mu.Unlock()
	do(t, ctx, click(item+" form [type=submit]"))
	until(t, ctx, fmt.Sprintf(`document.querySelector(%q).innerText.includes("1 comment") && document.querySelector(%q).value === ""`, item, item+" textarea"), 2*time.Second)
	if w := only("context-feedback"); w["refId"] != "p2" || w["ctx"] != "planned" || w["text"] != "with a table" || w["title"] != "A page for returns" {
		t.Errorf("word: %v", w)
	}
	f.mu.Lock()
	if again := f.sent[len(f.sent)-1].MsgID; again != refused {
		t.Errorf("the same words went as %s and %s", refused, again)
	}
	f.mu.Unlock()
	do(t, ctx, click(item+" .more-of .acts button"))
	until(t, ctx, shows("Main is told to go on."), 2*time.Second)
	if w := only("proceed"); w["plannedId"] != "p2" || w["title"] != "A page for returns" {
		t.Errorf("proceed: %v", w)
	}
	do(t, ctx, chromedp.SendKeys(chromedp.CSS(".ask-main textarea"), "a search for receipts"), click(".ask-main form [type=submit]"))
	until(t, ctx, `document.querySelector(".ask-main .words-list").innerText.includes("a search for receipts")`, 2*time.Second)
	if w := only("request"); w["id"] != "free-request" || w["text"] != "a search for receipts" {
		t.Errorf("request: %v", w)
	}
	allShots(t, ctx, "agenda-words")

	answersUnderNeedsYou(t, ctx, f)

	// Main's document knows it: the decision is over, and the words say so.
	doc := sampleAgenda(time.Now())
	doc["decisions"].([]any)[0].(map[string]any)["status"] = "resolved"
	f.mu.Lock()
	for i := range f.agenda.Words {
		f.agenda.Words[i].Open = false
	}
	f.mu.Unlock()
	f.writes(doc)
	until(t, ctx, `!document.querySelector("as-agenda .decision[data-key=d1]") && document.body.innerText.includes("Decided: 2")`, 2*time.Second)
	until(t, ctx, fmt.Sprintf(`document.querySelector(%q).innerText.includes("in main's document")`, item), 2*time.Second)
	said.none(t, "409")
}

// TestTheAgendaSaysWhatItCannotDo: without a document, without a main, with a thousand items, and cut off.
func TestTheAgendaSaysWhatItCannotDo(t *testing.T) {
	f := working()
	f.agenda, f.slowDoc = api.StateDocument{Lists: map[string][]api.DocumentItem{}}, make(chan struct{})
	s, ts := serve(t, f)
	ctx := browser(t)
	do(t, ctx, chromedp.EmulateViewport(1440, 900))
	openBoard(t, ctx, s, ts.URL)
	visit(t, ctx, "agenda")
	until(t, ctx, `document.querySelector("as-agenda").innerText.includes("Looking it up") && !document.querySelector("as-agenda").innerText.includes("Nothing is")`, 2*time.Second)
	close(f.slowDoc)
	until(t, ctx, shows("No state document yet."), 2*time.Second)
	allShots(t, ctx, "agenda-empty")

	evil := `<img src=x onerror="window.pwned=1">` + "\u202E"
	var many []any
	for i := range 1000 {
		many = append(many, map[string]any{"id": fmt.Sprint("n", i), "title": fmt.Sprint(i, " ", evil), "project": evil, "stages": "none", "waiting": evil})
	}
	f.writes(map[string]any{"planned": many, "current": "nothing", "decisions": []any{map[string]any{"id": evil, "question": evil, "options": []any{evil, 7, nil, map[string]any{"label": evil}}}}})
	until(t, ctx, `document.querySelectorAll("as-agenda [data-part=planned] .item").length === 50 && document.body.innerText.includes("950 more")`, 2*time.Second)
	do(t, ctx, click(`[data-part=planned] > .fold`))
	until(t, ctx, `document.querySelectorAll("as-agenda [data-part=planned] .item").length === 250`, 2*time.Second)
	do(t, ctx, click(agendaItem("n0")+" .mover"), click(agendaItem("n0")+" [data-move=last]"))
	until(t, ctx, `document.querySelector("as-agenda [data-part=planned] .item").dataset.key === "n1"`, 2*time.Second)
	if eval[bool](t, ctx, `"pwned" in window || document.querySelectorAll("as-agenda img").length > 0`) {
		t.Error("foreign words became markup")
	}
	shot(t, ctx, "agenda-huge", 1440, 900, false)

	off := func(words string) {
		t.Helper()
		until(t, ctx, shows(words), 12*time.Second)
		until(t, ctx, `[...document.querySelectorAll("as-agenda .mover, as-agenda .option, as-agenda textarea, as-agenda .say button")].every((b) => b.disabled)`, 2*time.Second)
	}
	f.mu.Lock()
	f.snap.Status.Main = api.Main{}
	f.mu.Unlock()
	off("No agent is main here, so nobody would read it.")
	ts.CloseClientConnections()
	ts.Listener.Close()
	off("Nothing can be moved, answered or asked until it is back.")
	until(t, ctx, shows("1 <img src=x"), 2*time.Second)
	allShots(t, ctx, "agenda-silent")
}
