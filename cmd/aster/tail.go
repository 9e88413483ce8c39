package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/aster-mesh/aster/cmd/aster/internal/client"
	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/api"
	"github.com/spf13/cobra"
)

func tailCommand(a *app) *cobra.Command {
	var agent, intent, from string
	var follow bool
	cmd := &cobra.Command{
		Use: "tail", Short: "Follow what is said on the mesh", Args: cobra.NoArgs,
		Example: "  aster tail --since 1m\n  aster tail --agent claude-shop --since 14:00 --follow=false",
		RunE: func(cmd *cobra.Command, _ []string) error {
			q := client.TailQuery{Agent: protocol.AgentID(agent), Intent: protocol.Intent(intent), Follow: follow, Limit: 100}
			if from != "" {
				var err error
				if q.Since, err = moment(from, time.Now()); err != nil {
					return err
				}
			}
			return a.tail(cmd.Context(), q)
		},
	}
	f := cmd.Flags()
	f.StringVar(&agent, "agent", "", "only what this agent says or gets")
	f.StringVar(&intent, "intent", "", "only messages of this name")
	f.StringVar(&from, "since", "", "begin in the past: 1m, 2h, 14:00, 2006-01-02T15:04:05Z")
	f.BoolVarP(&follow, "follow", "f", true, "go on with what comes; --follow=false: the past, then end")
	return cmd
}

// moment reads how long ago, a time of today, or an instant.
func moment(text string, now time.Time) (time.Time, error) {
	if d, err := time.ParseDuration(text); err == nil && d >= 0 {
		return now.Add(-d), nil
	}
	for _, form := range []string{"15:04", "15:04:05"} {
		if t, err := time.Parse(form, text); err == nil {
			y, m, d := now.Date()
			return time.Date(y, m, d, t.Hour(), t.Minute(), t.Second(), 0, now.Location()), nil
		}
	}
	if t, err := time.Parse(time.RFC3339, text); err == nil {
		return t, nil
	}
	return time.Time{}, usage("--since %s: write 1m, 2h, 14:00 or 2006-01-02T15:04:05Z", text)
}

func (a *app) tail(ctx context.Context, q client.TailQuery) error {
	a.following = q.Follow
	c, err := a.node()
	if err != nil {
		return err
	}
	defer func() { c.Close() }()
	s, err := c.Status(ctx)
	if err != nil {
		return err
	}
	began := time.UnixMilli(s.Now) // of the node's clock, as messages are
	t := &tailing{a: a, alone: s.Nodes <= 1, told: map[tailKey]map[protocol.Tier]bool{}}
	for {
		err := c.Tail(ctx, q, func(e api.Event) (bool, error) {
			if e.Message != nil {
				q.After, q.Since = max(q.After, e.Message.Pos), time.Time{}
			}
			return false, t.event(e)
		})
		if !q.Follow || !isLost(err) {
			return err
		}
		next, err := a.nodeReturns(ctx)
		if err != nil {
			return err
		}
		c.Close()
		c = next
		if q.After == 0 && q.Since.IsZero() {
			q.Since = began // nothing was said before it went: what was said since must not be missed
		}
	}
}

// tailing prints events. It remembers what it said of the latest messages, so that each tier is told once.
type tailing struct {
	a     *app
	alone bool // no other node exists, so that replicated cannot come
	told  map[tailKey]map[protocol.Tier]bool
	order []tailKey
	last  map[tailKey]api.Message
}

type tailKey struct {
	from protocol.AgentID
	id   protocol.MsgID
}

// tailMax bounds what a tail that runs for days remembers.
const tailMax = 4096

func (t *tailing) event(e api.Event) error {
	if t.a.json {
		return t.a.emit(e)
	}
	switch {
	case e.Message != nil:
		t.message(*e.Message)
	case e.Type == "tiers":
		t.tiers(tailKey{e.From, e.MsgID}, e.Tiers)
	}
	return nil
}

func (t *tailing) message(m api.Message) {
	key := tailKey{m.Envelope.From, m.Envelope.ID}
	if t.last == nil {
		t.last = map[tailKey]api.Message{}
	}
	if _, known := t.last[key]; !known {
		t.order = append(t.order, key)
	}
	if len(t.order) > tailMax {
		delete(t.told, t.order[0])
		delete(t.last, t.order[0])
		t.order = t.order[1:]
	}
	t.last[key], t.told[key] = m, map[protocol.Tier]bool{protocol.Logged: true, protocol.Replicated: true}
	for _, tier := range m.Tiers {
		if tier.Tier == protocol.Persisted {
			t.told[key][tier.Tier] = true // stands in the line itself
		}
	}
	t.a.say("%s", messageLine(m, t.alone))
	t.tiers(key, m.Tiers)
}

func (t *tailing) tiers(key tailKey, tiers []api.TierAt) {
	told := t.told[key]
	if told == nil {
		return
	}
	m := t.last[key]
	for _, tier := range tiers {
		if told[tier.Tier] || m.Envelope.To == "" || m.Envelope.Intent == protocol.WorkerReport {
			continue
		}
		told[tier.Tier] = true
		who := tier.Agent
		if who == "" {
			who = m.Envelope.To
		}
		line := fmt.Sprintf("%s %s  %s %s", clock(tier.At), dash(clean(string(who))), tier.Tier, idOf(m.Envelope.Intent, m.Short))
		if tier.Reason != "" {
			line += ": " + clean(tier.Reason)
		}
		t.a.say("%s", line)
	}
}

// messageLine is one line of tail and search:
// 14:02:07 codex-shop -> claude-shop  Delegate t-7kq2m  persisted 2 ms.
func messageLine(m api.Message, alone bool) string {
	e := m.Envelope
	var b strings.Builder
	b.WriteString(clock(m.At) + doubt(m.Doubt) + " " + sender(e))
	if to := clean(string(e.To) + string(e.Room)); to != "" {
		b.WriteString(" -> " + to)
	}
	b.WriteString("  " + clean(string(e.Intent)) + " ")
	if e.Intent == protocol.WorkerReport && e.Re != "" {
		b.WriteString(idOf(protocol.Delegate, protocol.ShortID(e.Re)) + " " + reportLine(m))
		return b.String()
	}
	b.WriteString(idOf(e.Intent, m.Short))
	if e.To != "" {
		b.WriteString("  " + tierText(m, alone))
	}
	if text := shorten(clean(m.Text), 100); text != "" && e.Intent != protocol.Delegate {
		b.WriteString("  " + text)
	}
	return b.String()
}

func reportLine(m api.Message) string {
	v, object := api.ReadReport(m.Envelope.Value)
	if !object {
		return shorten(clean(m.Text), 100)
	}
	return strings.TrimRight(standText(m.Envelope.Value)+" "+shorten(clean(v.Summary), 100), " ")
}

// standText is how the work stands that a report is about: its outcome, else its status.
func standText(value json.RawMessage) string {
	v, object := api.ReadReport(value)
	if !object {
		return "reported"
	}
	if outcome := endOf(&v); outcome != "" {
		return clean(outcome)
	}
	return dash(strings.ReplaceAll(clean(v.Status), "_", " "))
}

// tierText is how far it came by itself, with how long that took; processed and refused get lines of their own.
func tierText(m api.Message, alone bool) string {
	best := api.TierAt{Tier: protocol.Logged, At: m.At}
	replicated := false
	for _, t := range m.Tiers {
		replicated = replicated || t.Tier == protocol.Replicated
		if tierRank(t.Tier) >= tierRank(best.Tier) && tierRank(t.Tier) <= tierRank(protocol.Persisted) {
			best = t
		}
	}
	text := string(best.Tier)
	if best.At > m.At {
		text += " " + span(time.Duration(best.At-m.At)*time.Millisecond)
	}
	if alone && !replicated {
		text += " (replicated: no other node yet)"
	}
	return text
}

func searchCommand(a *app) *cobra.Command {
	var limit int
	cmd := &cobra.Command{
		Use: "search WORDS", Short: "Find words in what was said, newest first", Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if limit < 1 || limit > 1000 {
				return usage("--limit %d: between 1 and 1000", limit)
			}
			c, err := a.node()
			if err != nil {
				return err
			}
			defer c.Close()
			found, err := c.Search(cmd.Context(), joinWords(args), 0, limit)
			if err != nil {
				return err
			}
			if a.json {
				return emitAll(a, found)
			}
			if len(found) == 0 {
				a.talk("nothing found")
			}
			for _, m := range found {
				line := messageLine(m, false)
				if text := shorten(clean(m.Text), 100); m.Envelope.Intent == protocol.Delegate && text != "" {
					line += "  " + text // what was looked for stands there, which a tail leaves to the task's own lines
				}
				a.say("%s", line)
			}
			return nil
		},
	}
	cmd.Flags().IntVar(&limit, "limit", 50, "how many at most")
	return cmd
}
