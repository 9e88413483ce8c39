package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"time"

	"github.com/aster-mesh/aster/cmd/aster/internal/client"
	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/api"
	"github.com/spf13/cobra"
)

// tierWait is how long send --wait waits if it is not told.
const tierWait = time.Minute

type sendOptions struct {
	to, from, intent, value, wait, re string
	attach                            []string
	noWake, isNew                     bool
	timeout                           time.Duration
}

func sendCommand(a *app) *cobra.Command {
	var o sendOptions
	cmd := &cobra.Command{
		Use: "send --to AGENT [TEXT|-]", Short: "Send one message; returns when it is logged",
		Example: "  aster send --to claude-shop is the empty cart tested?\n  git diff | aster send --to claude-shop --intent PRRequest -",
		RunE:    func(cmd *cobra.Command, args []string) error { return a.send(cmd.Context(), o, args) },
	}
	f := cmd.Flags()
	f.StringVar(&o.to, "to", "", "agent that gets it")
	f.StringVar(&o.from, "from", "", "agent that speaks (default: the node's own)")
	f.StringVar(&o.intent, "intent", string(protocol.Request), "name of the message")
	f.StringVar(&o.value, "value", "", `whole value as JSON, or "-" to read it from stdin, instead of TEXT`)
	f.StringVar(&o.re, "re", "", "whole id of the message that this one answers")
	f.BoolVar(&o.isNew, "new", false, "--from is a new agent, though it looks like one that is here")
	f.BoolVar(&o.noWake, "no-wake", false, "leave the recipient asleep")
	f.StringArrayVar(&o.attach, "attach", nil, "file that goes along; once for each")
	f.StringVar(&o.wait, "wait", "", "return only at this tier: logged, replicated, persisted or processed")
	f.DurationVar(&o.timeout, "timeout", tierWait, "how long --wait waits")
	return cmd
}

func (a *app) send(ctx context.Context, o sendOptions, args []string) error {
	if o.to == "" {
		if len(args) > 1 {
			return usage("say to whom: %s --to %s %s. Names: aster agents", a.typed("send"), args[0], strings.Join(args[1:], " "))
		}
		return usage("say to whom: --to AGENT. Names: aster agents")
	}
	if o.wait != "" && !protocol.KnownTier(protocol.Tier(o.wait)) {
		return usage("--wait %s: a tier is logged, replicated, persisted or processed", o.wait)
	}
	if o.timeout <= 0 {
		return usage("--timeout %s: it is longer than nothing, such as 30s", o.timeout)
	}
	value, err := a.value(o.value, args, len(o.attach) > 0)
	if err != nil {
		return err
	}
	c, err := a.node()
	if err != nil {
		return err
	}
	defer c.Close()
	blobs, err := a.attach(ctx, c, o.attach)
	if err != nil {
		return err
	}
	got, err := c.Send(ctx, api.SendRequest{
		From: protocol.AgentID(o.from), New: o.isNew, To: protocol.AgentID(o.to), Intent: protocol.Intent(o.intent),
		Value: value, Re: protocol.MsgID(o.re), NoWake: o.noWake, Blobs: blobs, Trace: os.Getenv("TRACEPARENT"),
	})
	if err != nil {
		return err
	}
	id := idOf(protocol.Intent(o.intent), got.Short)
	late := error(nil)
	if o.wait != "" {
		got.Tier, late = a.reach(ctx, c, got, protocol.Tier(o.wait), o.timeout, id)
	}
	if err := a.sent(got, id); err != nil {
		return err
	}
	return late
}

// value is the message's value: --value as it stands, or {"text": TEXT}; with files beside it it may be empty.
func (a *app) value(flag string, args []string, files bool) (json.RawMessage, error) {
	switch {
	case flag == "" && len(args) == 0 && files:
		return json.RawMessage("{}"), nil
	case flag != "" && len(args) > 0:
		return nil, usage("give TEXT or --value, not both")
	case flag == "" && len(args) == 0:
		return nil, usage(`there is nothing to send: give TEXT, "-" for stdin, or --value JSON`)
	case flag == "":
		text, err := a.text(args)
		switch {
		case err != nil:
			return nil, err
		case text == "" && !files && args[0] == "-":
			return nil, usage("stdin was empty, so nothing was sent")
		case text == "" && !files:
			return nil, usage("the text is empty, so nothing was sent")
		}
		return json.Marshal(map[string]string{"text": text})
	}
	if flag == "-" {
		text, err := a.text([]string{"-"})
		if err != nil {
			return nil, err
		}
		flag = text
	}
	if !json.Valid([]byte(flag)) {
		return nil, usage(`--value is not JSON. A text is JSON in quotes: --value '"hello"'`)
	}
	return json.RawMessage(flag), nil
}

// reach waits for a tier and returns the one that was reached.
func (a *app) reach(ctx context.Context, c *client.Client, got api.SendResult, tier protocol.Tier, within time.Duration, id string) (protocol.Tier, error) {
	if tier == got.Tier {
		return tier, nil
	}
	if tier == protocol.Replicated && got.Alone {
		return got.Tier, failed("%s is logged; replicated cannot come: no other node is here", id)
	}
	_, err := c.WaitTier(ctx, string(got.MsgID), tier, within)
	if errors.Is(err, client.ErrTimedOut) {
		return got.Tier, &exit{exitTimedOut, id + " is not " + string(tier) + " after " + span(within) + ". Where it is: aster show " + id}
	}
	var no *client.RefusedError
	if errors.As(err, &no) {
		return protocol.Refused, refused("%s was logged and then refused: %s. All of it: aster show %s", id, clean(no.Reason), id)
	}
	if err != nil {
		return got.Tier, err
	}
	return tier, nil
}

// sent says what became of a message so far.
func (a *app) sent(got api.SendResult, id string) error {
	if a.json {
		return a.emit(got)
	}
	line := id + " " + string(got.Tier)
	if got.Repeat {
		line += " before; nothing new was written"
	}
	if got.ToState != "" {
		line += "; " + clean(string(got.To)) + " is " + string(got.ToState)
		if why, nothing := strings.CutPrefix(got.ToWakes, "nothing: "); nothing {
			line += ": " + clean(why)
		} else if got.ToWakes != "" {
			line += ", wakes by " + clean(got.ToWakes)
		}
	}
	a.say("%s", line)
	return nil
}

func reportCommand(a *app) *cobra.Command {
	var re, status, summary, from string
	cmd := &cobra.Command{
		Use: "report --re ID --status STATUS --summary TEXT", Short: "Report on a Delegate: its sender gets a WorkerReport", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch status {
			case "in_progress", "done", "blocked":
			default:
				return usage("--status is in_progress, done or blocked")
			}
			if re == "" {
				return usage("say which Delegate: --re ID. Open ones: aster inbox")
			}
			return a.report(cmd.Context(), re, status, summary, from)
		},
	}
	f := cmd.Flags()
	f.StringVar(&re, "re", "", "id of the Delegate")
	f.StringVar(&status, "status", "", "in_progress, done or blocked")
	f.StringVar(&summary, "summary", "", `what there is to say, or "-" to read it from stdin`)
	f.StringVar(&from, "from", "", "agent that speaks (default: whom the Delegate was given to)")
	return cmd
}

// report looks the Delegate up, since its sender is whom the report goes to and its whole id is the parent.
func (a *app) report(ctx context.Context, re, status, summary, from string) error {
	summary, err := a.text([]string{summary})
	if err != nil {
		return err
	}
	c, err := a.node()
	if err != nil {
		return err
	}
	defer c.Close()
	asked, err := c.Message(ctx, re)
	if err != nil {
		return err
	}
	value := map[string]string{"status": status, "summary": summary, "re_msgId": string(asked.Envelope.ID)}
	if status != "in_progress" {
		value["outcome"] = status
	}
	raw, err := json.Marshal(value)
	if err != nil {
		return err
	}
	got, err := c.Send(ctx, api.SendRequest{
		From: cmp.Or(protocol.AgentID(from), asked.Envelope.To), To: asked.Envelope.From, Intent: protocol.WorkerReport, Value: raw, Re: asked.Envelope.ID,
	})
	if err != nil {
		return err
	}
	return a.sent(got, idOf(protocol.WorkerReport, got.Short))
}
