package web

import (
	"crypto/sha256"
	"encoding/hex"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/api"
)

// TestATaskOffersItsFiles: what was given with it and what its reports brought, with name, size and who gave it, as bytes to
// save; what is being looked at stays open while the panel goes on.
func TestATaskOffersItsFiles(t *testing.T) {
	f := working()
	f.named = map[string]protocol.BlobRef{}
	put := func(of protocol.MsgID, name, use, content string) protocol.BlobRef {
		sum := sha256.Sum256([]byte(content))
		ref := protocol.BlobRef{SHA256: hex.EncodeToString(sum[:]), Bytes: int64(len(content)), Name: name, Use: use, Mime: "text/html"}
		f.blobs[ref.SHA256], f.named[string(of)+"/"+ref.SHA256] = []byte(content), ref
		return ref
	}
	task := &f.snap.Tasks[2]
	asked, report := f.snap.Messages[4], f.snap.Messages[5]
	asked.Envelope.ID, asked.Short = task.ID, task.Short
	asked.Envelope.Blobs = []protocol.BlobRef{put(task.ID, "<b>plan</b>.html", "", "<script>document.title = 'run'</script>"), put(task.ID, "base.bundle", "base", "# v2 git bundle")}
	report.Envelope.Re = task.ID
	report.Envelope.Blobs = []protocol.BlobRef{put(report.Envelope.ID, "output.txt", "output", "three lines\nof output\n")}
	other := f.snap.Messages[6]
	other.Envelope.Re, other.Envelope.Intent = task.ID, "Note"
	other.Envelope.Blobs = []protocol.BlobRef{put(other.Envelope.ID, "not-of-the-task.txt", "", "x")}
	f.snap.Messages = []api.Message{asked, report, other}
	task.Reports = []api.Message{report}
	s, ts := serve(t, f)
	ctx := browser(t)
	do(t, ctx, chromedp.EmulateViewport(1440, 900))
	said := listen(ctx)
	openBoard(t, ctx, s, ts.URL)
	do(t, ctx, chromedp.Navigate(ts.URL+"/t/"+string(task.ID)))
	until(t, ctx, `[...document.querySelectorAll(".attachments li .name")].map((n) => n.textContent).join() === "<b>plan</b>.html,base.bundle,output.txt"`, 3*time.Second)
	want := "39 B · claude-shop|15 B · base · claude-shop|22 B · output · mac-mini"
	if got := eval[string](t, ctx, `[...document.querySelectorAll(".attachments li .quiet")].map((n) => n.textContent).join("|")`); got != want {
		t.Errorf("beside the names stands %q, want %q", got, want)
	}
	until(t, ctx, `[...document.querySelectorAll(".attachments a")].every((a) => a.hasAttribute("download")) && document.querySelectorAll(".attachments a").length === 3`, time.Second)
	do(t, ctx, chromedp.Evaluate[chromedp.Void](`void Promise.all([...document.querySelectorAll(".attachments a")].map(async (a) => { const r = await fetch(a.href); return r.headers.get("content-type") + (await r.text()).length; })).then((all) => { window.came = all.join(); })`))
	until(t, ctx, `window.came === "application/octet-stream39,application/octet-stream15,application/octet-stream22"`, 3*time.Second)
	do(t, ctx, click(".attachments li:nth-child(1) button"))
	until(t, ctx, `document.querySelector(".attachments .preview:not([hidden])")?.textContent.includes("<script>")`, 3*time.Second)
	do(t, ctx, chromedp.Evaluate[chromedp.Void](`void (window.before = document.querySelector("as-panel .title"))`))
	until(t, ctx, `document.querySelector("as-panel .title") !== window.before`, 3*time.Second) // a task that runs is drawn each second
	until(t, ctx, `document.querySelector(".attachments .preview:not([hidden])")?.textContent.includes("<script>") && document.title !== "run"`, time.Second)
	allShots(t, ctx, "task-files")
	said.none(t)
}
