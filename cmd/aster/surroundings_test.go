package main

import (
	"strings"
	"testing"

	"github.com/aster-mesh/aster/protocol/api"
)

// TestDoctorLooksAroundTheNode: at variables that are no settings, at the disk under a node that is down, at a state document that
// cannot be read, at an address that is none.
func TestDoctorLooksAroundTheNode(t *testing.T) {
	for env, want := range map[string]string{
		"ASTER_STORE_BYTE_MAX=1": "env-unknown", "ASTER_STORE_BYTES_MAX=1": "", "ASTER_HOME=/x": "", "ASTER_TASK_ID=t": "", "ASTERISK=1": "", "PATH=/bin": "", "ASTER_=": "env-unknown",
	} {
		got := ""
		for _, f := range examineEnvironment([]string{env}) {
			got = f.Code
		}
		if got != want {
			t.Errorf("%s: %q, want %q", env, got, want)
		}
	}
	for _, tt := range []struct {
		left  int64
		known bool
		bad   bool
	}{{0, true, true}, {0, false, false}, {1 << 40, true, false}} {
		if got := len(examineFree(tt.left, tt.known)) > 0; got != tt.bad {
			t.Errorf("%d bytes left (known %t) is bad: %t", tt.left, tt.known, got)
		}
	}
	found := examineState(api.Status{Warnings: []string{"the state document is not readable (unexpected end): the last good one is served. Mend /h/state.json"}})
	if len(found) != 1 || found[0].Code != "state-bad" || found[0].Fix != "edit /h/state.json" {
		t.Errorf("a damaged state document is found as %+v", found)
	}
	for address, ok := range map[string]bool{"": true, "127.0.0.1:7878": true, "localhost:0": true, ":8080": true, "[::1]:7878": true, "banana": false, "127.0.0.1": false, "host:port": false, "h:70000": false} {
		if err := boardAddress(address); (err == nil) != ok {
			t.Errorf("board %q: %v", address, err)
		}
	}
	f := newFake(t, map[string]any{"GET /status": api.Status{Name: "devbox"}, "GET /store": api.StoreHealth{}})
	t.Setenv("ASTER_BOARD", "banana")
	if got := f.type_(t, "", "doctor"); !strings.Contains(got.out, "change ASTER_BOARD, or unset it") {
		t.Errorf("got %s", got.out)
	}
}
