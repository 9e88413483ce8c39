package web

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/aster-mesh/aster/protocol/api"
)

// TestEveryRouteIsDescribed: spec/openapi.yaml has each route of the API, for whom it is, and none that there is not.
func TestEveryRouteIsDescribed(t *testing.T) {
	raw, err := os.ReadFile("../../spec/openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	described := map[string]bool{} // method and path → whether a session will do
	path, method := "", ""
	line := regexp.MustCompile(`^(?:  (/\S*):|    (get|post|put|delete):|      security: (.*))$`)
	for text := range strings.Lines(string(raw)) {
		m := line.FindStringSubmatch(strings.TrimRight(text, "\n"))
		switch {
		case m == nil:
		case m[1] != "":
			path = m[1]
		case m[2] != "":
			method = strings.ToUpper(m[2])
		default:
			described[method+" "+path] = strings.Contains(m[3], "session")
		}
	}
	s := newServer(t, Config{Backend: newFake()})
	for _, rt := range s.table() {
		short, ours := strings.CutPrefix(rt.path, api.Prefix)
		if !ours {
			continue
		}
		bySession, ok := described[rt.method+" "+short]
		if !ok {
			t.Errorf("%s %s is not described", rt.method, short)
		} else if bySession != (rt.who&session != 0) {
			t.Errorf("%s %s is described for others than it serves", rt.method, short)
		}
		delete(described, rt.method+" "+short)
	}
	for what := range described {
		t.Errorf("%s is described and not there", what)
	}
}
