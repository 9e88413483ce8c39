package main

import (
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"
)

func configCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "config", Short: "Print each setting with its value and where that came from", Args: cobra.NoArgs,
		Long: `Settings come from, in this order: the default, config.toml in the home, ASTER_*, a flag of aster up.
Change one in config.toml and start the node again.`,
		RunE: func(*cobra.Command, []string) error {
			if err := checkHome(a.home); err != nil {
				return err
			}
			got, err := settle(a.home, nil)
			if err != nil {
				return err
			}
			if a.json {
				if err := a.emit(map[string]any{"setting": "home", "value": a.home, "source": a.homeFrom, "env": "ASTER_HOME"}); err != nil {
					return err
				}
			}
			rows := [][]string{{"SETTING", "VALUE", "FROM"}, {"home", tilde(a.home), a.homeFrom}}
			for _, s := range settings {
				value := s.of(&got.Config)
				if a.json {
					if err := a.emit(map[string]any{"setting": s.key, "value": value, "source": got.source[s.key], "env": s.env}); err != nil {
						return err
					}
				}
				rows = append(rows, []string{s.key, valueText(value), got.source[s.key]})
			}
			if !a.json {
				table(a.stdout, rows...)
			}
			return nil
		},
	}
}

// valueText shows a value as config.toml would hold it; nothing set is a dash.
func valueText(v any) string {
	switch v := v.(type) {
	case string:
		return dash(v)
	case []string:
		if len(v) == 0 {
			return "-"
		}
		raw, err := json.Marshal(v)
		if err != nil {
			return fmt.Sprint(v)
		}
		return string(raw)
	}
	return fmt.Sprint(v)
}
