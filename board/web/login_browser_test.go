package web

import (
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// TestPersonSignsInWithAPassword: the locked page asks for it where there are accounts, says that it was wrong, and opens.
func TestPersonSignsInWithAPassword(t *testing.T) {
	ctx := browser(t)
	s, ts := serve(t, newFake())
	withAccount(t, s, ts)
	password := chromedp.CSS("#login input[name=password]")
	do(t, ctx, chromedp.Navigate(ts.URL+"/"))
	until(t, ctx, `!document.getElementById("login").hidden`, 30*time.Second)
	do(t, ctx, chromedp.SendKeys(chromedp.CSS("#login input[name=id]"), "ann"), chromedp.SendKeys(password, "wrong words\r"))
	until(t, ctx, shows("No account has this id and password."), 30*time.Second)
	do(t, ctx, chromedp.SendKeys(password, goodPassword+"\r"))
	for deadline := time.Now().Add(30 * time.Second); ; { // the page is on its way to another one: what it says meanwhile may be an error
		open, err := chromedp.Run(ctx, chromedp.Evaluate[bool](`!!document.querySelector("body:not(.locked) main")`))
		if err == nil && open {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("the board does not open: %v", err)
		}
	}
}
