package main

import (
	"fmt"
	"strings"

	"github.com/aster-mesh/aster/spec/check"
	"github.com/spf13/cobra"
)

func checkCommand(a *app) *cobra.Command {
	var opt check.Options
	cmd := &cobra.Command{
		Use:   "check WSURL…",
		Short: "Check rule by rule whether a hub keeps the contract",
		Long: "Check plays the contract's vectors against the hub at WSURL, such as ws://127.0.0.1:7878/ws, and says of each rule whether\n" +
			"it holds. With the addresses of several nodes of one mesh, its clients are spread over them, main at the first. It joins as\n" +
			"the main agent, so point it at a hub that nobody works on. Exit code 1: a rule does not hold.",
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			report, err := check.Run(cmd.Context(), args, opt)
			if err != nil {
				return err
			}
			return a.checked(report)
		},
	}
	f := cmd.Flags()
	f.StringVar(&opt.Filter, "filter", "", "only vectors whose name, a rule or a fault of which begins with this")
	f.StringSliceVar(&opt.Without, "without", nil, "chapters that this hub does not serve, such as KEY")
	f.BoolVar(&opt.Slow, "slow", false, "also vectors that wait for longer than 5 s, some of them minutes")
	f.BoolVar(&opt.Msgpack, "msgpack", false, "say the same in msgpack, with the subprotocol aster.msgpack.1")
	f.StringVar(&opt.Main, "main", "main-agent", "id of the agent that is main at this hub")
	f.DurationVar(&opt.Patience, "patience", 0, "how long an expected frame may take (default 5s)")
	return cmd
}

// checked prints one line a rule, and under a broken one the step, why, and the frames.
func (a *app) checked(report *check.Report) error {
	counts := map[check.Status]int{}
	for _, r := range report.Results {
		counts[r.Status]++
		if a.json {
			if err := a.emit(r); err != nil {
				return err
			}
			continue
		}
		a.sayRule(&r)
	}
	if len(report.Results) == 0 {
		return usage("no vector is about that")
	}
	if !a.json {
		a.say("%s: %s", plural(report.Ran, "vector", "vectors"), countText(counts))
		if len(report.Slow) > 0 {
			a.say("%s left out, --slow plays them: %s", plural(len(report.Slow), "slow vector", "slow vectors"), strings.Join(report.Slow, ", "))
		}
		if len(report.Needy) > 0 {
			a.say("%s left out, since they need what only the hub's owner has: %s", plural(len(report.Needy), "vector", "vectors"), strings.Join(report.Needy, ", "))
		}
	}
	if !report.OK() {
		return &exit{code: exitFailed}
	}
	return nil
}

func (a *app) sayRule(r *check.Result) {
	switch r.Status {
	case check.Holds:
		a.say("ok       %-7s %s", r.Rule, firstSentence(r.Text))
	case check.Unchecked:
		a.say("-        %-7s %s (not checked here: needs %s)", r.Rule, firstSentence(r.Text), strings.Join(r.Needs, ", "))
	case check.Unproved:
		a.say("unproved %-7s %s", r.Rule, firstSentence(r.Text))
	default:
		a.say("BROKEN   %-7s %s", r.Rule, r.Text)
		if len(r.Faults) > 0 {
			a.say("         known faults of this kind: %s", strings.Join(r.Faults, ", "))
		}
	}
	for _, f := range r.Failures {
		a.say("         %s.txtar:%d: %s", f.Vector, f.Line, clean(f.Step))
		a.say("         %s", clean(f.Why))
		for _, g := range f.Got {
			a.say("           came: %s", clean(g))
		}
	}
}

func firstSentence(text string) string {
	if i := strings.Index(text, ". "); i > 0 {
		return text[:i+1]
	}
	return text
}

func countText(counts map[check.Status]int) string {
	var parts []string
	for _, s := range []check.Status{check.Holds, check.Broken, check.Unproved, check.Unchecked} {
		if n := counts[s]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, s))
		}
	}
	return strings.Join(parts, ", ")
}
