package main

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/aster-mesh/aster/cmd/aster/internal/bench"
	"github.com/spf13/cobra"
)

// benchRecords is what start's second case holds: its bar is for so many.
const benchRecords = 1_000_000

func benchCommand(a *app) *cobra.Command {
	var seconds, records int
	var dir, attacks string
	names := append(slices.Clone(bench.Names), "all")
	cmd := &cobra.Command{
		Use: "bench " + strings.Join(names, "|"), Short: "Measure this machine and aster on it, side by side",
		Long: `Nodes start in a temporary folder and are measured beside what the machine does at least for the same work: a sync of
the disk, a relay that stores nothing, a libp2p round trip. The sides take turns, so compare ratios, not times of
different runs. Nothing of yours is touched; it needs some minutes and, for start, some 3 GB of disk.`,
		Args: cobra.MatchAll(cobra.ExactArgs(1), cobra.OnlyValidArgs), ValidArgs: names,
		RunE: func(cmd *cobra.Command, args []string) error {
			chosen := bench.Names
			if args[0] != "all" {
				chosen = args
			}
			return a.bench(cmd, chosen, bench.Bench{Dir: dir, For: time.Duration(seconds) * time.Second, Records: records, Attacks: attacks})
		},
	}
	f := cmd.Flags()
	f.IntVar(&seconds, "seconds", 0, "of each measured case (default 5; of idle 60)")
	f.IntVar(&records, "records", benchRecords, "in the filled home of start")
	f.StringVar(&attacks, "attacks", "", "of hostile only those whose name holds this")
	f.StringVar(&dir, "dir", "", "where the measured homes are made, and so which disk is measured (default the folder for temporary files)")
	cmd.AddCommand(&cobra.Command{
		Use: "bare", Hidden: true, Args: cobra.NoArgs,
		Short: "Relay frames without storing them, for comparison",
		RunE:  func(cmd *cobra.Command, _ []string) error { return bench.ServeBare(cmd.Context(), a.stdin, a.stdout) },
	})
	cmd.AddCommand(&cobra.Command{
		Use: "echo", Hidden: true, Args: cobra.NoArgs,
		Short: "Send back what comes on libp2p streams, for comparison",
		RunE:  func(cmd *cobra.Command, _ []string) error { return bench.ServeEcho(cmd.Context(), a.stdin, a.stdout) },
	})
	cmd.AddCommand(&cobra.Command{
		Use: "attack", Hidden: true, Args: cobra.NoArgs,
		Short: "Attack a node of hostile's, for the measurement",
		RunE:  func(cmd *cobra.Command, _ []string) error { return bench.ServeAttack(cmd.Context(), a.stdin, a.stdout) },
	})
	return cmd
}

func (a *app) bench(cmd *cobra.Command, names []string, b bench.Bench) error {
	if b.For < 0 || b.Records < 1000 {
		return usage("--seconds must not be below 0, --records not below 1000")
	}
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program: %w", err)
	}
	b.Self = self
	if onTerminal(a.stderr) {
		b.Say = func(text string) { a.talk("%s", text) }
	}
	given := b.For
	for i, name := range names {
		b.For = given
		if given == 0 {
			b.For = 5 * time.Second
			if name == "idle" {
				b.For = time.Minute
			}
		}
		rows, err := b.Run(cmd.Context(), name)
		if len(rows) > 0 {
			show := bench.Print
			if a.json {
				show = bench.PrintJSON
			} else if i > 0 {
				a.say("")
			}
			if err := show(a.stdout, rows); err != nil {
				return err
			}
		}
		if err != nil {
			return failed("%s", err)
		}
	}
	return nil
}
