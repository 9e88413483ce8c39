package main

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

func timeNow() time.Time { return time.Now() }

func writeLine(w http.ResponseWriter, v any) {
	_ = json.NewEncoder(w).Encode(v)
	if f, ok := w.(http.Flusher); ok {
		f.Flush()
	}
}

func TestHelpOfEveryCommandListsItsFlags(t *testing.T) {
	var walk func(cmd *cobra.Command)
	walk = func(cmd *cobra.Command) {
		path := strings.Fields(cmd.CommandPath())[1:]
		if !cmd.Hidden {
			got := typeIn(t, nil, "", append(path, "-h")...)
			if got.code != 0 || got.err != "" {
				t.Errorf("aster %v -h: exit %d, stderr %q", path, got.code, got.err)
			}
			cmd.Flags().VisitAll(func(f *pflag.Flag) {
				if f.Hidden && f.Usage != "" { // for scripts of ours: it has words, and stands in no help
					return
				}
				if !strings.Contains(got.out, "--"+f.Name) || f.Usage == "" {
					t.Errorf("aster %v -h does not explain --%s", path, f.Name)
				}
			})
			if cmd.Short == "" {
				t.Errorf("aster %v says nothing of itself", path)
			}
			for _, word := range []string{"please", "successfully", "!"} {
				if strings.Contains(strings.ToLower(got.out), word) {
					t.Errorf("aster %v -h says %q", path, word)
				}
			}
		}
		for _, sub := range cmd.Commands() {
			walk(sub)
		}
	}
	walk(newRoot(&app{}))
}

func rawAnswer(content []byte) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(content) }
}
