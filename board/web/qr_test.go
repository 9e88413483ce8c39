package web

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// TestInviteIsAQRCodeForWhoIsSignedInOnly: in the answer to a person's page, never to a token's, never in storage, and gone
// with its layer.
func TestInviteIsAQRCodeForWhoIsSignedInOnly(t *testing.T) {
	f := working()
	s, ts := serve(t, f)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, ts.URL+"/api/v1/invites", strings.NewReader(`{"role":"local"}`))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+testToken)
	res, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if raw, err := io.ReadAll(res.Body); err != nil || res.StatusCode != 200 || strings.Contains(string(raw), "squares") || res.Header.Get("Cache-Control") != "no-store" {
		t.Errorf("a token gets %d %s (%v), to be cached as %q", res.StatusCode, raw, err, res.Header.Get("Cache-Control"))
	}
	ctx := browser(t)
	do(t, ctx, chromedp.EmulateViewport(1440, 900))
	said := listen(ctx)
	openBoard(t, ctx, s, ts.URL)
	visit(t, ctx, "settings")
	until(t, ctx, shows("used by build-1"), 3*time.Second)
	do(t, ctx, click(`.setting form button`))
	until(t, ctx, shows("aster up --detach --join aster1-x"), 2*time.Second)
	do(t, ctx, click(`.shown button:last-of-type`))
	until(t, ctx, `document.querySelector(".qr").open && document.querySelector(".qr .dark").getBoundingClientRect().width > 100`, 2*time.Second)
	allShots(t, ctx, "qr")
	// The three corners that every QR code has, at the size of version 3.
	if d := eval[string](t, ctx, `document.querySelector(".qr svg").getAttribute("viewBox") + document.querySelector(".qr .dark").getAttribute("d").slice(0, 12)`); !strings.HasPrefix(d, "0 0 ") || !strings.Contains(d, "M4 4h7v1h-7z") {
		t.Errorf("drawn as %s", d)
	}
	press(t, ctx, "\x1b")
	until(t, ctx, `!document.querySelector(".qr")`, time.Second)
	if eval[bool](t, ctx, `JSON.stringify({ ...localStorage, ...sessionStorage }).includes("aster1-x") || location.href.includes("aster1-x")`) {
		t.Error("the invite was kept in the browser")
	}
	said.none(t)
}

func TestSquaresAreNoneWhereATextIsTooLong(t *testing.T) {
	if got := squares(strings.Repeat("x", 3000)); got != nil {
		t.Errorf("%d rows", len(got))
	}
	if got := squares("aster1-x"); len(got) != 21 || len(got[0]) != 21 || got[0][:8] != "11111110" {
		t.Errorf("got %v", got)
	}
}
