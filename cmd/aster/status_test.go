package main

import (
	"strings"
	"testing"

	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/api"
)

// A start that is fenced says so first, and claims nothing of who is main.
func TestAFencedStartSaysSoFirst(t *testing.T) {
	f := newFake(t, map[string]any{"GET /status": api.Status{
		Name: "devbox", Role: protocol.RoleMain, Fenced: true, Nodes: 3,
		Main: api.Main{Peer: "p", Node: "devbox", Agent: "main-agent", Term: 7, Here: true, Fenced: true},
	}})
	got := f.type_(t, "", "status")
	if got.code != 0 || !strings.HasPrefix(got.out, "fenced") || !strings.Contains(got.out, "this one is fenced") || strings.Contains(got.out, "term 7") || strings.Contains(got.out, "this one is main") {
		t.Errorf("%+v", got)
	}
}
