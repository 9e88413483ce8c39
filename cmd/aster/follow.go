package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aster-mesh/aster/cmd/aster/internal/client"
	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/api"
	"github.com/aster-mesh/aster/roles/worker/repo"
)

// following tells what becomes of one Delegate until its final report. It survives a restart of the node: what was told
// is not told again.
type following struct {
	a       *app
	sent    api.SendResult
	began   time.Time
	told    map[protocol.Tier]bool
	reports map[protocol.MsgID]bool
	ended   string // outcome of the final report
	summary string
}

// line is one line of delegate --wait --json.
type followLine struct {
	Event   string          `json:"event"` // "tier", "report", "end"
	MsgID   protocol.MsgID  `json:"msgId"`
	Short   string          `json:"short"`
	Tier    protocol.Tier   `json:"tier,omitempty"`
	At      int64           `json:"at,omitempty"`
	Alone   bool            `json:"alone,omitempty"`
	Status  string          `json:"status,omitempty"`
	Outcome string          `json:"outcome,omitempty"`
	Summary string          `json:"summary,omitempty"`
	Reason  string          `json:"reason,omitempty"`
	Report  protocol.MsgID  `json:"report,omitempty"` // the report's own id
	Value   json.RawMessage `json:"value,omitempty"`
	Exit    *int            `json:"exit,omitempty"`
	Millis  int64           `json:"durationMs,omitempty"`
	Diff    *api.Diff       `json:"diff,omitempty"`
	Commit  string          `json:"commit,omitempty"`
}

func (f *following) id() string { return idOf(protocol.Delegate, f.sent.Short) }

func (f *following) run(ctx context.Context, c *client.Client) error {
	if err := f.begin(); err != nil {
		return err
	}
	for {
		err := f.follow(ctx, c)
		if f.ended != "" {
			return errors.Join(err, f.end(ctx, c))
		}
		if !isLost(err) {
			return err
		}
		c.Close()
		if c, err = f.a.nodeReturns(ctx); err != nil {
			return err
		}
	}
}

func (f *following) begin() error {
	f.told[protocol.Logged] = true
	if f.a.json {
		return f.a.emit(followLine{Event: "tier", MsgID: f.sent.MsgID, Short: f.id(), Tier: protocol.Logged, At: time.Now().UnixMilli(), Alone: f.sent.Alone})
	}
	if err := f.a.sent(f.sent, f.id()); err != nil {
		return err
	}
	if f.sent.Alone {
		f.a.talk("replicated cannot come: no other node is here")
	}
	return nil
}

// follow reads the message with its tiers, then everything after it.
func (f *following) follow(ctx context.Context, c *client.Client) error {
	m, err := c.Message(ctx, string(f.sent.MsgID))
	if err != nil {
		return err
	}
	q := client.TailQuery{Agent: m.Envelope.From, Follow: true, After: m.Pos - 1}
	if m.Pos <= 1 {
		q.After, q.Since = 0, time.UnixMilli(1) // after 0 would mean: nothing of the past
	}
	return c.Tail(ctx, q, func(e api.Event) (bool, error) {
		switch {
		case e.Type == "tiers" && e.MsgID == f.sent.MsgID && e.From == m.Envelope.From:
			return f.tiers(e.Tiers)
		case e.Message == nil:
			return false, nil
		case e.Message.Envelope.ID == f.sent.MsgID && e.Message.Envelope.From == m.Envelope.From:
			return f.tiers(e.Message.Tiers)
		case e.Message.Envelope.Intent == protocol.WorkerReport && e.Message.Envelope.Re == f.sent.MsgID:
			return f.report(e.Message)
		}
		return false, nil
	})
}

func (f *following) tiers(all []api.TierAt) (stop bool, err error) {
	all = slices.Clone(all)
	slices.SortStableFunc(all, func(x, y api.TierAt) int { return tierRank(x.Tier) - tierRank(y.Tier) })
	for _, t := range all {
		if f.told[t.Tier] {
			continue
		}
		f.told[t.Tier] = true
		if t.Tier == protocol.Refused {
			f.ended, f.summary = "refused", clean(t.Reason)
		}
		if f.a.json {
			err = f.a.emit(followLine{Event: "tier", MsgID: f.sent.MsgID, Short: f.id(), Tier: t.Tier, At: t.At, Reason: t.Reason})
		} else {
			f.a.say("%s %s", t.Tier, span(time.Since(f.began)))
		}
		if err != nil {
			return true, err
		}
	}
	return f.ended != "", nil
}

func tierRank(t protocol.Tier) int {
	if at := slices.Index(protocol.TierOrder, t); at >= 0 {
		return at
	}
	return len(protocol.TierOrder)
}

// endOf is how a report ends the wait for it: its outcome, or the word of a client that writes none. Of those a "blocked" ends
// the wait, though not the task: whoever waits is told to decide.
func endOf(v *api.ReportValue) string {
	if v.Ended() == "" && v.Status == "blocked" {
		return v.Status
	}
	return string(v.Ended())
}

func (f *following) report(m *api.Message) (stop bool, err error) {
	if f.reports[m.Envelope.ID] {
		return false, nil
	}
	f.reports[m.Envelope.ID] = true
	v, _ := api.ReadReport(m.Envelope.Value)
	if v.Summary == "" {
		v.Summary = m.Text // as of a value of another shape, or one that is a blob
	}
	f.ended, f.summary = endOf(&v), clean(v.Summary)
	if f.a.json {
		err = f.a.emit(followLine{
			Event: "report", MsgID: f.sent.MsgID, Short: f.id(), At: m.At, Report: m.Envelope.ID,
			Status: v.Status, Outcome: f.ended, Summary: v.Summary, Value: m.Envelope.Value,
		})
	} else if f.ended == "" {
		f.a.say("%s", strings.TrimSpace(strings.ReplaceAll(clean(v.Status), "_", " ")+"  "+f.summary))
	}
	return f.ended != "", err
}

// end says how it ended; the node knows commit and diff.
func (f *following) end(ctx context.Context, c *client.Client) error {
	t, err := c.Task(ctx, string(f.sent.MsgID))
	if err != nil {
		f.a.talk("the task's details could not be read: %s", clean(err.Error()))
	}
	code := exitFailed
	if f.ended == string(api.TaskDone) {
		code = exitOK
	}
	if f.a.json {
		err := f.a.emit(followLine{
			Event: "end", MsgID: f.sent.MsgID, Short: f.id(), Outcome: f.ended, Summary: f.summary,
			Exit: t.Exit, Millis: t.Millis, Diff: t.Diff, Commit: t.Commit,
		})
		if err != nil || code == exitOK {
			return err
		}
		return &exit{code: code}
	}
	f.a.say("%s", endText(f.ended, f.summary, t))
	if t.Commit != "" {
		f.a.talk("in the repository: aster task fetch %s", f.id())
	}
	if code == exitOK {
		return nil
	}
	return &exit{code: code}
}

// endText is a task's result in one line: done in 3.1 s  +2 -1 cart/total.go  commit 3f9c2ab.
func endText(outcome, summary string, t api.Task) string {
	line := clean(outcome)
	if t.Millis > 0 {
		line += " in " + span(time.Duration(t.Millis)*time.Millisecond)
	}
	if t.Diff != nil {
		line += "  " + diffText(*t.Diff)
	}
	if t.Commit != "" {
		line += "  commit " + repo.Short(clean(t.Commit))
	}
	if t.Exit != nil && *t.Exit != 0 {
		line += fmt.Sprintf("  exit %d", *t.Exit)
	}
	if summary != "" && (t.Diff == nil || outcome != string(api.TaskDone)) {
		line += "  " + shorten(summary, 200)
	}
	return line
}

func diffText(d api.Diff) string {
	text := fmt.Sprintf("+%d -%d", d.Added, d.Removed)
	switch {
	case len(d.Paths) == 1:
		text += " " + clean(d.Paths[0])
	case d.Files > 1:
		text += fmt.Sprintf(" in %d files", d.Files)
	}
	return text
}
