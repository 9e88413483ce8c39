package web

import (
	"encoding/base64"
	"net/http"
	"strings"
	"testing"
	"time"
)

// What a browser sends back is whatever anybody wrote into it: only what we signed, and in time, is a session.
func FuzzSession(f *testing.F) {
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	s := newSessions([]byte(strings.Repeat("k", 32)))
	good := s.issue(admission{round: 3, epoch: 7, account: "ann"}, now, false).Value
	for _, seed := range []string{good, good[1:], good + "A", "", "====", s.issue(admission{}, now.Add(-SessionLife), false).Value} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, value string) {
		r := &http.Request{Header: http.Header{"Cookie": {s.cookie + "=" + value}}}
		in, _, ok := s.read(r, now)
		// A worker's good one is another than that of the process that it works for: each session has a tag by chance.
		if _, err := base64.RawURLEncoding.DecodeString(value); ok && (err != nil || in.account != "ann" || in.round != 3 || in.epoch != 7) {
			t.Errorf("%q is a session of %+v", value, in)
		}
	})
}
