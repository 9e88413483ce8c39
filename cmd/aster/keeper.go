package main

import (
	"github.com/aster-mesh/aster/roles/worker/keeper"
	"github.com/spf13/cobra"
)

// keeperCommand is how a node starts the small process under which a run outlives it. It is not for people.
func keeperCommand() *cobra.Command {
	return &cobra.Command{
		Use: "keeper", Hidden: true, DisableFlagParsing: true,
		Short: "Run one attempt of a Delegate under a process of its own",
		RunE: func(_ *cobra.Command, args []string) error {
			if code := keeper.Main(args); code != 0 {
				return &exit{code: code}
			}
			return nil
		},
	}
}
