package web

import (
	"fmt"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/api"
)

const standbyBox = `document.querySelector("as-agenda [data-part=modes] input")`

func modesSay(words string) string {
	return fmt.Sprintf(`document.querySelector("as-agenda [data-part=modes]").innerText.includes(%q)`, words)
}

// TestStandbyIsAWishUntilMainHasTakenIt: the document's modes are shown; a wish goes to main once, stands until main's document
// says so, can be taken back, and a refused one changes nothing; without a main nobody can wish.
func TestStandbyIsAWishUntilMainHasTakenIt(t *testing.T) {
	f := working()
	evil := `<img src=x onerror="window.pwned=1">`
	says := func(standby any) {
		doc := sampleAgenda(time.Now())
		doc["monitor"], doc["modes"] = "watching", map[string]any{"autopilot": true, "liveBoard": false, evil: evil, "odd": []int{1}}
		if doc["standby"] = standby; standby == nil {
			delete(doc, "standby")
		}
		f.writes(doc)
	}
	says(false)
	s, ts := serve(t, f)
	ctx := browser(t)
	do(t, ctx, chromedp.EmulateViewport(1440, 900))
	said := listen(ctx)
	openBoard(t, ctx, s, ts.URL)
	visit(t, ctx, "agenda")
	until(t, ctx, modesSay("Not in standby: main goes on")+` && !`+standbyBox+`.checked && !`+standbyBox+`.disabled`, 2*time.Second)
	until(t, ctx, modesSay("monitor watching")+` && `+modesSay("autopilot on")+` && `+modesSay("live board off")+` && `+modesSay("<img src=x")+` && !("pwned" in window)`, 2*time.Second)
	press := chromedp.Evaluate[chromedp.Void](standbyBox + `.click()`)

	do(t, ctx, chromedp.Evaluate[chromedp.Void](standbyBox+`.click(); `+standbyBox+`.click(); `+standbyBox+`.focus()`)) // the second comes too soon
	until(t, ctx, modesSay("Main was asked to go into standby.")+` && `+modesSay("Go into standby")+` && `+modesSay("in main's inbox")+` && `+standbyBox+`.checked && document.activeElement === `+standbyBox, 2*time.Second)
	if all := f.told(t, "mode"); len(all) != 1 || all[0]["standby"] != true || all[0]["at"] == nil {
		t.Fatalf("main was told %v", all)
	}
	allShots(t, ctx, "standby-asked")
	says(true)
	until(t, ctx, modesSay("In standby: main waits")+` && `+standbyBox+`.checked`, 2*time.Second)

	f.mu.Lock()
	f.sendErr = protocol.Refuse(protocol.CodeInboxFull, "claude-shop's inbox is full (1,000)", "Send again when it has read")
	f.mu.Unlock()
	do(t, ctx, press)
	until(t, ctx, shows("Not sent: claude-shop's inbox is full (1,000).")+` && `+standbyBox+`.checked`, 2*time.Second)
	f.mu.Lock()
	f.sendErr, f.sent = nil, f.sent[:1]
	f.mu.Unlock()

	do(t, ctx, press)
	until(t, ctx, modesSay("Main was asked to leave standby.")+` && !`+standbyBox+`.checked`, 2*time.Second)
	until(t, ctx, `document.querySelector("as-toast").innerText.includes("Main is told to leave standby.")`, 2*time.Second)
	do(t, ctx, chromedp.Evaluate[chromedp.Void](`[...document.querySelectorAll(".toast")].find((n) => n.innerText.includes("leave standby")).querySelector("button").click()`))
	until(t, ctx, modesSay("In standby: main waits")+` && `+standbyBox+`.checked`, 2*time.Second) // as main's document says anyway
	if all := f.told(t, "mode"); len(all) != 3 || all[1]["standby"] != false || all[2]["standby"] != true {
		t.Errorf("main was told %v", all)
	}

	f.mu.Lock()
	f.agenda.Words = nil
	f.mu.Unlock()
	says(nil)
	until(t, ctx, modesSay("Main's document does not say whether it is in standby.")+` && `+standbyBox+`.indeterminate`, 2*time.Second)
	do(t, ctx, setLanguage("ko"))
	openBoard(t, ctx, s, ts.URL)
	visit(t, ctx, "agenda")
	until(t, ctx, modesSay("자동 진행 켜짐")+` && `+modesSay("대기 모드인지 메인의 문서에 적혀 있지 않습니다."), 2*time.Second)
	f.mu.Lock()
	f.snap.Status.Main = api.Main{}
	f.mu.Unlock()
	until(t, ctx, standbyBox+`.disabled`, 12*time.Second)
	said.none(t, "409")
}

// TestOneWordIsSaidOnce: a button that tells main something tells it once, however often it is pressed, until main has taken
// it, and keeps the focus; and a decision that is sent takes no focus from where it went meanwhile.
func TestOneWordIsSaidOnce(t *testing.T) {
	f := working()
	f.writes(sampleAgenda(time.Now()))
	s, ts := serve(t, f)
	ctx := browser(t)
	do(t, ctx, chromedp.EmulateViewport(1440, 900))
	openBoard(t, ctx, s, ts.URL)
	visit(t, ctx, "agenda")
	item := agendaItem("p2")
	until(t, ctx, fmt.Sprintf(`Boolean(document.querySelector(%q))`, item), 2*time.Second)
	do(t, ctx, click(item+" .open"))
	proceed := fmt.Sprintf(`document.querySelector(%q)`, item+" .more-of .acts button")
	rephrase := `document.querySelector("as-agenda .decision[data-key=d1] .quiet-button")`
	until(t, ctx, `Boolean(`+proceed+`)`, 2*time.Second)
	for kind, button := range map[string]string{"proceed": proceed, "fallback-rerender": rephrase} {
		do(t, ctx, chromedp.Evaluate[chromedp.Void](fmt.Sprintf(`%[1]s.focus(); for (let i = 0; i < 3; i++) %[1]s.click();`, button)))
		until(t, ctx, button+`.getAttribute("aria-disabled") === "true" && !`+button+`.sends && document.activeElement === `+button, 2*time.Second)
		do(t, ctx, chromedp.Evaluate[chromedp.Void](button+`.click()`))
		if all := f.told(t, kind); len(all) != 1 {
			t.Errorf("%s was said %d times", kind, len(all))
		}
	}
	f.mu.Lock()
	for i := range f.agenda.Words {
		f.agenda.Words[i].Open = false
	}
	f.mu.Unlock()
	f.emit(api.Event{Type: "document"})
	until(t, ctx, `!`+proceed+`.hasAttribute("aria-disabled") && !`+rephrase+`.hasAttribute("aria-disabled")`, 2*time.Second) // it may be said again

	card := `as-agenda .decision[data-key=d1]`
	send := fmt.Sprintf(`document.querySelector(%q)`, card+" form button[type=submit]")
	elsewhere := `document.querySelector(".ask-main textarea")`
	do(t, ctx, click(card+" [data-pick='1']"), chromedp.Evaluate[chromedp.Void](send+`.focus(); `+send+`.click(); `+elsewhere+`.focus()`))
	until(t, ctx, fmt.Sprintf(`document.querySelector(%q).dataset.ended === "told" && !document.querySelector(%q).sends`, card, card+" form"), 2*time.Second)
	if !eval[bool](t, ctx, `document.activeElement === `+elsewhere) {
		t.Error("the focus was taken away")
	}
	do(t, ctx, click(card+" [data-pick='2']"), chromedp.Evaluate[chromedp.Void](send+`.focus(); `+send+`.click()`))
	until(t, ctx, fmt.Sprintf(`!document.querySelector(%q).sends && document.activeElement === document.querySelector(%q)`, card+" form", card), 2*time.Second)
}

// TestFiguresThatAreRefusedSaySo: they are not for ever being looked up.
func TestFiguresThatAreRefusedSaySo(t *testing.T) {
	f := working()
	f.figuresErr = protocol.Refuse(protocol.CodeNotAllowed, "a member outside has no figures of the others", "Ask its owner")
	s, ts := serve(t, f)
	ctx := browser(t)
	do(t, ctx, chromedp.EmulateViewport(1440, 900))
	openBoard(t, ctx, s, ts.URL)
	visit(t, ctx, "mesh")
	until(t, ctx, `document.querySelector("as-figures").innerText.includes("a member outside has no figures of the others. Ask its owner") && !document.querySelector("as-figures").innerText.includes("Looking it up")`, 2*time.Second)
}
