package main

import (
	"strings"
	"testing"
)

// TestNodeKeepsTheContractInMsgpack plays the vectors in the other form. What differs between the forms is tested beside
// them; here it is the whole way, so the short suite goes without.
func TestNodeKeepsTheContractInMsgpack(t *testing.T) {
	if testing.Short() {
		t.Skip("as long as the contract in JSON")
	}
	t.Parallel()
	got := typeIn(t, nil, "", "check", alone(t), "--patience", "20s", "--msgpack")
	if got.code != exitOK || got.err != "" || !strings.Contains(got.out, "ok       MPK-1 ") || strings.Contains(got.out, "BROKEN") {
		t.Errorf("exit %d\n%s\n%s", got.code, got.out, got.err)
	}
}
