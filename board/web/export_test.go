package web

import (
	"bufio"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/api"
)

// TestAThreadIsExportedWholeAndInert: its messages in order, in Markdown whose words cannot leave their fence, and in JSON
// lines; another form is refused.
func TestAThreadIsExportedWholeAndInert(t *testing.T) {
	f := working()
	root := &f.snap.Messages[4]
	root.Envelope.Value = value(map[string]string{"task": "Make ./cart pass\n```\n# not a heading\n<b>bold</b>"})
	root.Text, root.Envelope.From = "Make ./cart pass", "evil](x)\n# name"
	last := &f.snap.Messages[len(f.snap.Messages)-1]
	last.Tiers = append(last.Tiers, api.TierAt{Tier: protocol.Refused, Agent: "claude-shop", Reason: protocol.CodeInboxFull})
	_, ts := serve(t, f)
	get := func(query string) (*http.Response, string) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, ts.URL+"/api/v1/messages/"+string(root.Envelope.ID)+"/export"+query, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+testToken)
		res, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		raw, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		return res, string(raw)
	}
	res, text := get("")
	if !strings.HasPrefix(res.Header.Get("Content-Type"), "text/markdown") || res.Header.Get("Content-Disposition") != "attachment; filename=thread-"+root.Short+".md" {
		t.Errorf("it comes as %v", res.Header)
	}
	if !strings.HasPrefix(text, "## evil'(x)' name → mac-mini\n\nDelegate · ") && !strings.HasPrefix(text, "## evil'(x)") || !strings.Contains(text, "\n````\nMake ./cart pass\n```\n# not a heading\n<b>bold</b>\n````\n") || !strings.Contains(text, " · refused: inbox-full\n\n```\n3 of 3 tests pass") {
		t.Errorf("in Markdown it is\n%s", text)
	}
	_, text = get("?as=jsonl")
	n := 0
	for lines := bufio.NewScanner(strings.NewReader(text)); lines.Scan(); n++ {
		var m api.Message
		if err := json.Unmarshal(lines.Bytes(), &m); err != nil || m.Envelope.ID == "" {
			t.Errorf("line %d is %s", n+1, lines.Bytes())
		}
	}
	if n != 2 {
		t.Errorf("%d lines, want 2", n)
	}
	if res, text = get("?as=html"); res.StatusCode != http.StatusBadRequest {
		t.Errorf("as html: %d %s", res.StatusCode, text)
	}
}

// TestDetailsOfferTheThreadAsAFile, of the moment that is shown.
func TestDetailsOfferTheThreadAsAFile(t *testing.T) {
	f := working()
	s, ts := serve(t, f)
	ctx := browser(t)
	do(t, ctx, chromedp.EmulateViewport(1440, 900))
	openBoard(t, ctx, s, ts.URL)
	id := string(f.snap.Messages[4].Envelope.ID)
	do(t, ctx, chromedp.Navigate(ts.URL+"/m/"+id))
	until(t, ctx, `document.querySelector("[data-act=save-md]")?.getAttribute("href") === "/api/v1/messages/`+id+`/export?as=md"`, 3*time.Second)
	until(t, ctx, `document.querySelectorAll("[data-act^=save-]").length === 2 && [...document.querySelectorAll("[data-act^=save-]")].every((a) => a.hasAttribute("download"))`, time.Second)
	press(t, ctx, "t")
	until(t, ctx, `/&until=\d{13}$/.test(document.querySelector("[data-act=save-jsonl]")?.getAttribute("href"))`, 3*time.Second)
}
