package main

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/api"
	"github.com/spf13/cobra"
)

func showCommand(a *app) *cobra.Command {
	var dir string
	cmd := &cobra.Command{
		Use: "show ID", Short: "One message with its receipts and its route", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.node()
			if err != nil {
				return err
			}
			defer c.Close()
			m, err := c.Message(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if dir != "" {
				return a.saveAttachments(cmd.Context(), c, m, dir)
			}
			if a.json {
				return a.emit(m)
			}
			table(a.stdout, messageRows(m)...)
			if attached(m.Envelope) {
				a.talk("to have what is attached: aster show %s --save DIR", idOf(m.Envelope.Intent, m.Short))
			}
			if body := bodyText(m.Envelope); body != "" {
				a.say("\n%s", cleanBlock(body))
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&dir, "save", "", "folder to put what is attached into, instead of showing")
	return cmd
}

func messageRows(m api.Message) [][]string {
	e := m.Envelope
	rows := [][]string{
		{idOf(e.Intent, m.Short), clean(string(e.Intent)) + "  " + string(e.ID)},
		{"from", sender(e)},
		{"to", dash(clean(string(e.To)) + clean(string(e.Room)))},
		{"at", clock(m.At) + doubt(m.Doubt) + " on " + dash(clean(m.NodeName))},
		{"log", clean(m.Log) + " seq " + count(m.Seq)},
	}
	if e.Re != "" {
		rows = append(rows, []string{"answers", protocol.ShortID(e.Re)})
	}
	if len(e.Hops) > 0 {
		var hops []string
		for _, h := range e.Hops {
			hops = append(hops, clean(string(h)))
		}
		rows = append(rows, []string{"through", strings.Join(hops, " -> ")})
	}
	for _, t := range m.Tiers {
		text := reached(t)
		if t.At >= m.At && m.At > 0 {
			text += ", after " + span(time.Duration(t.At-m.At)*time.Millisecond)
		}
		if t.Agent != "" {
			text += ", by " + clean(string(t.Agent))
		}
		if t.Reason != "" {
			text += ": " + clean(t.Reason)
		}
		rows = append(rows, []string{string(t.Tier), text})
	}
	if m.Waits != nil {
		rows = append(rows, []string{"waits", waitsText(m.Waits)})
	}
	for _, b := range e.AllBlobs() {
		rows = append(rows, []string{"attached", strings.Join([]string{dash(clean(b.Name)), bytesText(b.Bytes), b.SHA256[:min(12, len(b.SHA256))]}, "  ")})
	}
	return rows
}

// waitsText says what a message to another board waits for.
func waitsText(w *api.Waits) string {
	if w.Room == "" || w.For == api.WaitsBoard {
		return "for the board " + clean(w.Board) + ": there is no connection to it now. aster join-board --list says why"
	}
	until := map[api.WaitsFor]string{api.WaitsTurn: "until somebody else speaks there", api.WaitsMinute: "for a minute at most", api.WaitsPerson: "until a person speaks there"}[w.For]
	return "for the floor of room " + clean(string(w.Room)) + " at " + clean(w.Board) + ", " + until
}

// reached is when a tier was reached. That another node has the record is known without a time.
func reached(t api.TierAt) string {
	if t.At == 0 {
		return "yes"
	}
	return clock(t.At)
}

// doubt marks a time of a clock that is off.
func doubt(off bool) string {
	if off {
		return "~"
	}
	return ""
}

func sender(e protocol.Envelope) string {
	switch {
	case e.From != "":
		return clean(string(e.From))
	case e.Source == protocol.SourceBoard:
		return "a person"
	}
	return "the node"
}

// bodyText is a value for reading: a lone text as it is, anything else as indented JSON.
func bodyText(e protocol.Envelope) string {
	var s string
	if json.Unmarshal(e.Value, &s) == nil {
		return s
	}
	var only map[string]string
	if json.Unmarshal(e.Value, &only) == nil && len(only) == 1 {
		for _, s := range only {
			return s
		}
	}
	var out bytes.Buffer
	if json.Indent(&out, e.Value, "", "  ") != nil {
		return ""
	}
	return out.String()
}

func outboxCommand(a *app) *cobra.Command {
	var agent string
	var dead, all bool
	cmd := &cobra.Command{
		Use: "outbox", Short: "Own messages that nobody has processed yet", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.node()
			if err != nil {
				return err
			}
			defer c.Close()
			if all && agent != "" {
				return usage("give --agent or --all, not both")
			}
			whose := protocol.AgentID(agent)
			if whose == "" && !all {
				s, err := a.statusWithin(cmd.Context(), c)
				if err != nil {
					return err
				}
				whose = s.Agent
			}
			list, err := c.Outbox(cmd.Context(), whose, dead)
			if err != nil {
				return err
			}
			if a.json {
				return emitAll(a, list)
			}
			if len(list) == 0 {
				a.talk("nothing waits")
				return nil
			}
			rows := [][]string{{"AT", "ID", "MESSAGE", "TO", "STATE", "TEXT"}}
			for _, m := range list {
				rows = append(rows, []string{
					clock(m.At), idOf(m.Envelope.Intent, m.Short), clean(string(m.Envelope.Intent)), dash(clean(string(m.Envelope.To))),
					top(m.Tiers), shorten(clean(m.Text), 60),
				})
			}
			if all {
				rows[0] = slices.Insert(rows[0], 2, "FROM")
				for i := range list {
					rows[i+1] = slices.Insert(rows[i+1], 2, dash(clean(string(list[i].Envelope.From))))
				}
			}
			table(a.stdout, rows...)
			return nil
		},
	}
	cmd.Flags().StringVar(&agent, "agent", "", "whose (default: the node's own agent's)")
	cmd.Flags().BoolVar(&all, "all", false, "those of every agent of this node, with who said them")
	cmd.Flags().BoolVar(&dead, "dead", false, "what was given up instead")
	return cmd
}

// top is the furthest tier, with the reason of a refusal.
func top(tiers []api.TierAt) string {
	best := api.TierAt{Tier: protocol.Logged}
	for _, t := range tiers {
		if tierRank(t.Tier) > tierRank(best.Tier) {
			best = t
		}
	}
	if best.Reason != "" {
		return string(best.Tier) + ": " + clean(best.Reason)
	}
	return string(best.Tier)
}
