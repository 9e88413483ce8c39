package web

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/api"
)

// englishWords are those of the English table that the Korean one does not use as well: names of programs and forms stay.
func englishWords(t *testing.T) []string {
	t.Helper()
	en, ko, ok := strings.Cut(string(loadAssets()["strings.js"].body), "\n  ko: {")
	if !ok {
		t.Fatal("no Korean table")
	}
	said := regexp.MustCompile(`: "([^"]*)"`)
	word := regexp.MustCompile(`[A-Za-z0-9][A-Za-z0-9'-]*`)
	words := func(table string) map[string]bool {
		out := map[string]bool{}
		for _, m := range said.FindAllStringSubmatch(table, -1) {
			for _, w := range word.FindAllString(regexp.MustCompile(`\{\w+\}`).ReplaceAllString(m[1], " "), -1) {
				out[strings.ToLower(w)] = true
			}
		}
		return out
	}
	foreign := words(ko)
	var out []string
	for w := range words(en) {
		if len(w) > 1 && !foreign[w] {
			out = append(out, w)
		}
	}
	if len(out) < 300 {
		t.Fatalf("%d words", len(out))
	}
	return out
}

// spokenEnglish is what of the page's own words is English: neither names, ids and words of others, which are isolated, nor
// what is typed as it stands.
const spokenEnglish = `((words) => {
  const out = [], seen = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const others = "bdi, code, kbd, [lang=en], .id, .commit, .intent, .version, select[data-name=intent], select[data-name=agent], #compose-to, noscript, .ring .name, .mover";
  const look = (text, node) => {
    const found = (text.match(/[A-Za-z0-9][A-Za-z0-9'-]*/g) ?? []).filter((w) => words.has(w.toLowerCase()));
    if (found.length) out.push(found.join(" ") + ": " + text.trim().slice(0, 80) + " in " + (node.closest("[class]")?.className.baseVal ?? node.closest("[class]")?.className ?? node.tagName));
  };
  for (let n; (n = seen.nextNode());) {
    const e = n.parentElement;
    if (!e.closest(others) && e.getClientRects().length) look(n.data, e);
  }
  for (const e of document.querySelectorAll("[title], [placeholder], [aria-label]")) {
    if (!e.getClientRects().length || e.closest(others) || e.closest(".message, .ring")) continue;
    for (const name of ["title", "placeholder", "aria-label"]) if (e.hasAttribute(name) && !e.querySelector("bdi") && e.localName !== "bdi") look(e.getAttribute(name), e);
  }
  return [...new Set(out)].join("\n");
})(new Set(%s))`

// TestAKoreanBoardSaysNothingInEnglish: no view of a Korean board, in any of its states, has a word of the page's own that
// is in the English table; warnings of the node have words here, with the node's own behind them.
func TestAKoreanBoardSaysNothingInEnglish(t *testing.T) {
	words, err := json.Marshal(englishWords(t))
	if err != nil {
		t.Fatal(err)
	}
	spoken := fmt.Sprintf(spokenEnglish, words)
	f := working()
	f.snap.Peers[2].Linked, f.snap.Status.Linked = false, 2
	f.snap.Status.WarningKinds = []string{"fork", "board/shop", "storm/a/b"}
	f.snap.Status.Warnings = []string{"build-1 wrote two records under one number: its key is stolen", "carla is not at the board shop any more", "a and b answer each other without end"}
	s, ts := serve(t, f)
	f.writes(sampleAgenda(time.Now()))
	ctx := browser(t)
	do(t, ctx, setLanguage("ko"), chromedp.EmulateViewport(1440, 900))
	look := func(where string) {
		t.Helper()
		if got := eval[string](t, ctx, spoken); got != "" {
			t.Errorf("%s says in English\n%s", where, got)
		}
		allShots(t, ctx, "ko-"+where)
	}
	openBoard(t, ctx, s, ts.URL)
	until(t, ctx, shows("한 노드가 같은 번호로 두 기록을 썼습니다."), 2*time.Second)
	do(t, ctx, click("as-banner button"))
	until(t, ctx, `document.querySelectorAll("as-banner details").length === 3 && document.querySelector("as-banner details").textContent.includes("its key is stolen")`, 2*time.Second)
	look("board")
	if got := eval[string](t, ctx, strings.Replace(spoken, `"bdi, `, `"`, 1)); got == "" {
		t.Error("words of others are looked at and none is English: nothing is looked at")
	}
	for _, row := range []string{".message", ".task-row", "[data-part=running] .task-row", ".agent-row", ".node-row", "[data-linked=no].node-row"} {
		do(t, ctx, click(row))
		until(t, ctx, `document.querySelector("as-panel .facts dl, as-panel .facts h3") !== null`, 2*time.Second)
		look("details-" + strings.Trim(strings.NewReplacer("[", "", "]", "", "=", "-", " ", "-", ".", "").Replace(row), "-"))
		press(t, ctx, "\x1b")
	}
	do(t, ctx, click(".filter-button"))
	look("filters")
	do(t, ctx, chromedp.Navigate(ts.URL+"/?q=nothing-of-it&role=collab&agent=mac-mini"))
	until(t, ctx, `document.querySelector("as-stream .none:not([hidden]) button") !== null`, 3*time.Second)
	look("nothing-found")
	f.mu.Lock()
	f.sendErr = protocol.Refuse(protocol.CodeInboxFull, "claude-shop's inbox is full (1,000)", "send again when it has read")
	f.mu.Unlock()
	do(t, ctx, chromedp.SendKeys(chromedp.ID("compose-text"), "x"), click("as-composer .primary"))
	until(t, ctx, `(([said]) => said.innerText.includes("받은 편지함이 가득 찼습니다") && said.querySelector("details").textContent.includes("claude-shop's inbox is full (1,000). send again when it has read."))(document.querySelectorAll("as-composer > .said, as-composer form > .said"))`, 2*time.Second)
	look("refused")
	do(t, ctx, chromedp.Evaluate[chromedp.Void](`document.activeElement.blur()`))
	press(t, ctx, "?")
	look("keys")
	press(t, ctx, "\x1b")
	do(t, ctx, chromedp.Navigate(ts.URL+"/"))
	until(t, ctx, `document.body.classList.contains("loaded")`, 3*time.Second)
	for _, view := range []string{"agenda", "mesh", "settings"} {
		visit(t, ctx, view)
		until(t, ctx, fmt.Sprintf(`document.querySelector("as-%s").innerText.length > 100`, view), 3*time.Second)
		look(view)
	}
	visit(t, ctx, "board")
	press(t, ctx, "t")
	until(t, ctx, `document.body.classList.contains("past") && !document.body.classList.contains("past-wait")`, 3*time.Second)
	look("replay")
	press(t, ctx, "L")
	f.mu.Lock()
	f.snap.Status.DiskFull, f.snap.Status.Main = true, api.Main{Lost: time.Now().Add(-time.Minute).UnixMilli(), Peer: "12D3KooWdevbox", Voters: []string{"devbox", "mac-mini", "build-1"}, Reach: 1}
	status := f.snap.Status
	f.mu.Unlock()
	f.emit(api.Event{Type: "status", Status: &status})
	until(t, ctx, `document.querySelectorAll("as-banner p").length > 2`, 3*time.Second)
	look("full-and-no-main")
}

// TestAKoreanBoardBeginsInKorean: the same of what a new person sees first.
func TestAKoreanBoardBeginsInKorean(t *testing.T) {
	words, err := json.Marshal(englishWords(t))
	if err != nil {
		t.Fatal(err)
	}
	spoken := fmt.Sprintf(spokenEnglish, words)
	s, ts := serve(t, empty())
	ctx := browser(t)
	do(t, ctx, setLanguage("ko"), chromedp.EmulateViewport(1440, 900), chromedp.Navigate(ts.URL))
	until(t, ctx, `document.body.innerText.length > 10`, 3*time.Second)
	if got := eval[string](t, ctx, spoken); got != "" {
		t.Errorf("the locked page says in English\n%s", got)
	}
	openBoard(t, ctx, s, ts.URL)
	for _, view := range []string{"board", "agenda", "mesh", "settings"} {
		visit(t, ctx, view)
		until(t, ctx, `document.body.innerText.length > 100`, 3*time.Second)
		if got := eval[string](t, ctx, spoken); got != "" {
			t.Errorf("%s says in English\n%s", view, got)
		}
	}
}
