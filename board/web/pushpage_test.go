package web

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	cdp "github.com/chromedp/cdproto/browser"
	proto "github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/serviceworker"
	"github.com/chromedp/cdproto/target"
	"github.com/chromedp/chromedp"

	"github.com/aster-mesh/aster/protocol"
)

// permits has the browser answer for its person whether url may notify.
func permits(t *testing.T, ctx context.Context, url string, answer cdp.PermissionSetting) {
	t.Helper()
	info, err := chromedp.Call(ctx, target.GetTargetInfo, target.GetTargetInfoParams{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = chromedp.CallBrowser(ctx, cdp.SetPermission, cdp.SetPermissionParams{
		Permission: &cdp.PermissionDescriptor{Name: "notifications"}, Setting: answer, Origin: url, BrowserContextID: info.TargetInfo.BrowserContextID})
	if err != nil {
		t.Fatal(err)
	}
}

// before runs script in each page before the page's own.
func before(t *testing.T, ctx context.Context, script string) {
	t.Helper()
	if _, err := chromedp.Call(ctx, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: script}); err != nil {
		t.Fatal(err)
	}
}

// aPushService stands for the browser maker's: it registers the browser, and remembers what was taken back.
const aPushService = `(() => {
  const made = { endpoint: "https://push.example.org/here", get options() { return { applicationServerKey: made.key }; }, toJSON: () => ({ endpoint: made.endpoint, expirationTime: null, keys: { p256dh: "BA", auth: "AA" } }),
    unsubscribe: async () => { localStorage.removeItem("test.key"); return true; } };
  PushManager.prototype.getSubscription = async () => { const key = localStorage.getItem("test.key"); made.key = key && Uint8Array.from(JSON.parse(key)).buffer; return key ? made : null; };
  PushManager.prototype.subscribe = async (how) => { if (!how.userVisibleOnly) throw new Error("silent"); localStorage.setItem("test.key", JSON.stringify([...how.applicationServerKey])); made.key = how.applicationServerKey.buffer; return made; };
})()`

const pushBox = `[...document.querySelectorAll("as-settings .switch input")].at(-1)`

func pushSays(words string) string {
	return fmt.Sprintf(`document.getElementById("push-about")?.textContent.includes(%q)`, words)
}

// openSettings opens the board there, and waits for the control of web push to be so.
func openSettings(t *testing.T, ctx context.Context, s *Server, url, wants string) {
	t.Helper()
	openBoard(t, ctx, s, url)
	visit(t, ctx, "settings")
	until(t, ctx, pushSays(wants), 2*time.Second)
}

// TestPushSaysWhyItCannotBe: on an insecure origin, without a push service's interface, refused: in words, and no dead control;
// who allows it after all finds it alive, and a browser that cannot register says so.
func TestPushSaysWhyItCannotBe(t *testing.T) {
	s, ts := serve(t, newFake())
	dead := pushBox + `.disabled && !` + pushBox + `.checked && ` + pushBox + `.getAttribute("aria-describedby") === "push-about"`
	for _, c := range []struct{ locale, script, words string }{
		{"en", `Object.defineProperty(globalThis, "isSecureContext", { value: false })`, "Web push works only on loopback or https."},
		{"ko", `delete globalThis.PushManager`, "이 브라우저에는 웹 푸시가 없거나"},
	} {
		ctx := browser(t)
		do(t, ctx, setLanguage(c.locale))
		before(t, ctx, c.script)
		openSettings(t, ctx, s, ts.URL, c.words)
		until(t, ctx, dead, time.Second)
	}
	ctx := browser(t)
	permits(t, ctx, ts.URL, cdp.PermissionSettingDenied)
	openSettings(t, ctx, s, ts.URL, "This browser refuses notifications of this board.")
	until(t, ctx, dead, time.Second)
	permits(t, ctx, ts.URL, cdp.PermissionSettingGranted)
	until(t, ctx, `!`+pushBox+`.disabled && `+pushSays("By web push"), 2*time.Second)
	do(t, ctx, chromedp.Evaluate[chromedp.Void](`PushManager.prototype.subscribe = async () => { throw new DOMException("no service", "AbortError"); }; `+pushBox+`.click()`))
	until(t, ctx, pushSays("Not switched on: the browser could not register with its push service (no service).")+` && !`+pushBox+`.checked && !`+pushBox+`.disabled`, 2*time.Second)
	if got := told(s); got != "" {
		t.Errorf("told: %s", got)
	}
	shot(t, ctx, "push-failed", 1440, 900, false)
}

// TestPushIsSwitchedOnAndOff: off until asked for; a node that refuses says why; on outlives a reload and a new session; off
// ends it at the node and in the browser.
func TestPushIsSwitchedOnAndOff(t *testing.T) {
	f := newFake()
	s, ts := serve(t, f)
	ctx := browser(t)
	permits(t, ctx, ts.URL, cdp.PermissionSettingGranted)
	before(t, ctx, aPushService)
	f.pushErr = protocol.Refuse(protocol.CodeUnreachable, "this node does not find the push service push.example.org", "Notifications by web push need a node that reaches the Internet")
	openSettings(t, ctx, s, ts.URL, "By web push")
	if got := told(s); got != "" || eval[bool](t, ctx, `localStorage.getItem("test.key") !== null`) {
		t.Errorf("on before anybody asked: %q", got)
	}
	press := chromedp.Evaluate[chromedp.Void](pushBox + `.click()`)
	do(t, ctx, press)
	until(t, ctx, pushSays("Not switched on: this node does not find the push service push.example.org. Notifications by web push need a node that reaches the Internet")+` && !`+pushBox+`.checked`, 2*time.Second)
	f.mu.Lock()
	f.pushErr = nil
	f.mu.Unlock()
	do(t, ctx, press)
	until(t, ctx, pushSays("This node tells this browser by web push")+` && `+pushBox+`.checked && document.querySelector("as-toast").innerText.includes("Web push is on in this browser.")`, 2*time.Second)
	if got := told(s); got != "/here" {
		t.Errorf("told: %q", got)
	}
	eventually(t, "the page is in sight", func() bool { x := s.PushTargets(); return len(x) == 1 && x[0].Looking })
	shot(t, ctx, "push-on", 1440, 900, false)

	// Another session of the same browser: the subscription goes over to it.
	if err := s.operators.endAll(s.now()); err != nil {
		t.Fatal(err)
	}
	if got := told(s); got != "" {
		t.Errorf("told after the session's end: %q", got)
	}
	openBoard(t, ctx, s, ts.URL)
	eventually(t, "it is told again", func() bool { return told(s) == "/here" })
	visit(t, ctx, "settings")
	until(t, ctx, pushBox+`.checked && !`+pushBox+`.disabled`, 2*time.Second)

	// Muted for an hour, and unmuted.
	do(t, ctx, chromedp.Evaluate[chromedp.Void](`[...document.querySelectorAll("as-settings button")].find((b) => b.textContent === "Mute for an hour").click()`))
	eventually(t, "quiet", func() bool { return s.PushTargets()[0].QuietUntil > time.Now().UnixMilli() })
	do(t, ctx, click(".toast button"))
	eventually(t, "no more quiet", func() bool { return s.PushTargets()[0].QuietUntil == 0 })

	do(t, ctx, press)
	until(t, ctx, pushSays("By web push")+` && !`+pushBox+`.checked && localStorage.getItem("test.key") === null`, 2*time.Second)
	if got := told(s); got != "" {
		t.Errorf("told after it was switched off: %q", got)
	}
}

func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !holds(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("never: %s", what)
		}
	}
}

// TestAPushShowsCountsAndOpensTheBoard: what the page's service worker makes of a note, in the page's language, while no page
// is in sight.
func TestAPushShowsCountsAndOpensTheBoard(t *testing.T) {
	s, ts := serve(t, newFake())
	ctx := browser(t)
	permits(t, ctx, ts.URL, cdp.PermissionSettingGranted)
	before(t, ctx, `if (globalThis.PushManager) `+aPushService)
	registered := make(chan serviceworker.RegistrationID, 64)
	if err := chromedp.Listen(ctx, func(ev any) {
		if e, ok := ev.(*serviceworker.EventWorkerRegistrationUpdated); ok {
			for _, r := range e.Registrations {
				if strings.HasPrefix(r.ScopeURL, ts.URL) {
					select {
					case registered <- r.RegistrationID:
					default:
					}
				}
			}
		}
	}); err != nil {
		t.Fatal(err)
	}
	if _, err := chromedp.Call(ctx, serviceworker.Enable, proto.Empty{}); err != nil {
		t.Fatal(err)
	}
	do(t, ctx, setLanguage("ko"))
	openSettings(t, ctx, s, ts.URL, "웹 푸시")
	do(t, ctx, chromedp.Evaluate[chromedp.Void](pushBox+`.click()`))
	until(t, ctx, pushBox+`.checked && !`+pushBox+`.disabled`, 2*time.Second)
	var id serviceworker.RegistrationID
	select {
	case id = <-registered:
	case <-time.After(30 * time.Second):
		t.Fatal("no service worker")
	}
	push := func(data string) {
		t.Helper()
		if _, err := chromedp.Call(ctx, serviceworker.DeliverPushMessage, serviceworker.DeliverPushMessageParams{Origin: ts.URL, RegistrationID: id, Data: data}); err != nil {
			t.Fatal(err)
		}
	}
	notes := `navigator.serviceWorker.ready.then((r) => r.getNotifications()).then((all) => { globalThis.notes = all.map((n) => n.title + "/" + n.body + "/" + n.tag).join(); }) && globalThis.notes === `
	do(t, ctx, chromedp.Navigate("about:blank")) // no page of the board
	push(`{"waiting":2,"noMain":1}`)
	openBoard(t, ctx, s, ts.URL)
	until(t, ctx, notes+`"확인할 일 2/메인이 없습니다/aster.push"`, 2*time.Second)
}
