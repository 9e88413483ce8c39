package main

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aster-mesh/aster/protocol/api"
)

// TestStatusNamesTheLayerThatFails: a node whose status does not come is asked for its layers, and the command ends in time.
func TestStatusNamesTheLayerThatFails(t *testing.T) {
	hangs := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	for _, c := range []struct {
		name   string
		layers any
		want   string
	}{
		{"loop", map[string]any{"layers": []api.Layer{{Name: "loop", Detail: "no turn within 1s"}, {Name: "disk", OK: true}}}, "loop: no turn within 1s"},
		{"slow", map[string]any{"layers": []api.Layer{{Name: "loop", OK: true}}}, "the node is slow"},
		{"port", hangs, "board port: no answer at"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f := newFake(t, map[string]any{"GET /status": hangs, "GET /layers": c.layers})
			began := time.Now()
			got := f.type_(t, "", "status")
			if took := time.Since(began); took > 2*statusTime {
				t.Errorf("it took %s", took)
			}
			if got.code != 1 || !strings.Contains(got.err, c.want) {
				t.Errorf("exit %d, %q, want %q", got.code, got.err, c.want)
			}
		})
	}
}
