package web

import (
	"crypto/sha256"
	"encoding/hex"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// attachHelpers hand files to the composer as a person's hand would: dropped, pasted, chosen.
const attachHelpers = `window.carrying = (name, what) => { const d = new DataTransfer(); d.items.add(new File([what], name, { type: "text/plain" })); return d; };
window.composer = document.querySelector("as-composer");
window.dropped = (d) => composer.form.dispatchEvent(new DragEvent("drop", { dataTransfer: d, bubbles: true, cancelable: true }));
window.pasted = (d) => composer.words.dispatchEvent(new ClipboardEvent("paste", { clipboardData: d, bubbles: true, cancelable: true }));
window.chosen = (d) => { composer.files.pick.files = d.files; composer.files.pick.dispatchEvent(new Event("change")); };
window.rows = () => [...document.querySelectorAll(".attaching li .name")].map((n) => n.textContent).join();
window.there = () => composer.files.items.length > 0 && !composer.files.waits;0`

// TestFilesGoWithAMessage: by drop, paste and button; while one is on its way nothing is sent; one taken away stays here;
// what is too large is refused by name; a reload keeps them.
func TestFilesGoWithAMessage(t *testing.T) {
	f := working()
	f.slowBlob = make(chan struct{})
	s, ts := serve(t, f)
	ctx := browser(t)
	do(t, ctx, chromedp.EmulateViewport(1440, 900))
	said := listen(ctx)
	openBoard(t, ctx, s, ts.URL)
	js := func(code string) { t.Helper(); do(t, ctx, chromedp.Evaluate[chromedp.Void]("void ("+code+")")) }
	do(t, ctx, chromedp.Evaluate[chromedp.Void](attachHelpers), chromedp.SendKeys(chromedp.ID("compose-text"), "look at these"))
	js(`dropped(carrying("notes.txt", "three lines"))`)
	until(t, ctx, `rows() === "notes.txt" && document.querySelector(".attaching progress:not([hidden])") && document.querySelector("as-composer .primary").disabled`, 2*time.Second)
	shot(t, ctx, "attaching", 1440, 900, false)
	close(f.slowBlob)
	until(t, ctx, `there() && !document.querySelector("as-composer .primary").disabled && document.querySelector(".attaching progress").hidden`, 2*time.Second)
	js(`pasted(carrying("picture.png", "pixels"))`)
	until(t, ctx, `rows() === "notes.txt,picture.png" && there()`, 2*time.Second)
	js(`chosen(carrying("wrong.txt", "not this"))`)
	until(t, ctx, `rows() === "notes.txt,picture.png,wrong.txt" && there()`, 2*time.Second)
	do(t, ctx, click(`.attaching button[aria-label="Remove wrong.txt"]`))
	js(`dropped(carrying("big.bin", new Uint8Array(70 << 20)))`)
	until(t, ctx, shows("Not attached: big.bin has 70 MiB. An attachment has at most 64 MiB."), 3*time.Second)
	allShots(t, ctx, "attached")
	do(t, ctx, chromedp.Reload())
	until(t, ctx, `document.body.classList.contains("loaded") && document.querySelectorAll(".attaching li").length === 2`, 3*time.Second)
	until(t, ctx, `!document.querySelector("as-composer .primary").disabled`, 2*time.Second)
	do(t, ctx, click("as-composer .primary"))
	until(t, ctx, shows("is logged. claude-shop"), 2*time.Second)
	until(t, ctx, `document.querySelectorAll(".attaching li").length === 0`, 2*time.Second)
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.sent) != 1 || len(f.sent[0].Blobs) != 2 {
		t.Fatalf("sent %+v", f.sent)
	}
	for i, want := range []struct{ name, what string }{{"notes.txt", "three lines"}, {"picture.png", "pixels"}} {
		sum := sha256.Sum256([]byte(want.what))
		ref := f.sent[0].Blobs[i]
		if ref.Name != want.name || ref.SHA256 != hex.EncodeToString(sum[:]) || ref.Bytes != int64(len(want.what)) || ref.Mime != "text/plain" || string(f.blobs[ref.SHA256]) != want.what {
			t.Errorf("attachment %d is %+v", i, ref)
		}
	}
	said.none(t)
}

// TestFilesGoWithFeedback: what a person says on the agenda takes files like any message: on an item, a decision and as a wish;
// what is too large is refused where it was dropped, and what was sent says how many went with it.
func TestFilesGoWithFeedback(t *testing.T) {
	f := working()
	s, ts := serve(t, f)
	f.writes(sampleAgenda(time.Now()))
	ctx := browser(t)
	do(t, ctx, chromedp.EmulateViewport(1440, 900))
	said := listen(ctx)
	openBoard(t, ctx, s, ts.URL)
	visit(t, ctx, "agenda")
	until(t, ctx, shows("Totals that round as the bank does"), 3*time.Second)
	js := func(code string) { t.Helper(); do(t, ctx, chromedp.Evaluate[chromedp.Void]("void ("+code+")")) }
	do(t, ctx, chromedp.Evaluate[chromedp.Void](attachHelpers), click(`as-agenda .item[data-key="c1"] .open`))
	for i, at := range []string{`.item[data-key="c1"] form`, `.decision[data-key="d1"] form`, `.ask-main form`} {
		form := `document.querySelector('as-agenda ` + at + `')`
		until(t, ctx, form+` !== null`, 2*time.Second)
		js(form + `.dispatchEvent(new DragEvent("drop", { dataTransfer: carrying("table.csv", "a;b"), bubbles: true, cancelable: true }))`)
		js(form + `.querySelector("textarea").dispatchEvent(new ClipboardEvent("paste", { clipboardData: carrying("", "pixels"), bubbles: true, cancelable: true }))`)
		js(form + `.dispatchEvent(new DragEvent("drop", { dataTransfer: carrying("big.bin", new Uint8Array(70 << 20)), bubbles: true, cancelable: true }))`)
		until(t, ctx, form+`.innerText.includes("Not attached: big.bin has 70 MiB. An attachment has at most 64 MiB.")`, 3*time.Second)
		until(t, ctx, form+`.querySelectorAll(".attaching li").length === 2 && `+form+`.innerText.includes("table.csv") && `+form+`.innerText.includes("3 B") && !`+form+`.querySelector("[type=submit]").disabled`, 3*time.Second)
		if i == 0 {
			allShots(t, ctx, "feedback-attached")
		}
		js(form + `.requestSubmit()`)
		until(t, ctx, form+`.querySelectorAll(".attaching li").length === 0 && `+form+`.innerText.includes("Main is told.")`, 3*time.Second)
	}
	until(t, ctx, `[...document.querySelectorAll("as-agenda .words-list .word")].filter((w) => w.innerText.includes("2 attached")).length === 3`, 3*time.Second)
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.sent) != 3 {
		t.Fatalf("%d words were sent", len(f.sent))
	}
	for _, req := range f.sent {
		if req.Intent != "OperatorFeedback" || len(req.Blobs) != 2 || req.Blobs[0].Name != "table.csv" || string(f.blobs[req.Blobs[0].SHA256]) != "a;b" {
			t.Errorf("sent %+v", req)
		}
	}
	said.none(t)
}
