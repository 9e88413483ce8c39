package access

import (
	"net/netip"
	"testing"
)

func parse(t *testing.T, text string) Rules {
	t.Helper()
	r, no := Parse([]byte(text))
	if no != nil {
		t.Fatalf("%s: %v", text, no)
	}
	return r
}

// TestEveryEntryLetsInWhatItNames: each entry at a door, and that the other doors stay as they are.
func TestEveryEntryLetsInWhatItNames(t *testing.T) {
	all := []string{"127.0.0.1", "::1", "10.1.2.3", "172.16.9.9", "172.32.0.1", "192.168.1.1", "100.64.0.1", "169.254.7.7", "fe80::1%eth0", "fd00::1",
		"203.0.113.5", "2001:db8::1", "::ffff:10.1.2.3", "::ffff:203.0.113.5"}
	for list, want := range map[string][]string{
		`null`:                      {"10.1.2.3", "172.16.9.9", "192.168.1.1", "100.64.0.1", "169.254.7.7", "fe80::1%eth0", "fd00::1", "::ffff:10.1.2.3"},
		`["all"]`:                   {"10.1.2.3", "172.16.9.9", "192.168.1.1", "100.64.0.1", "169.254.7.7", "fe80::1%eth0", "fd00::1", "::ffff:10.1.2.3"},
		`["*"]`:                     {"10.1.2.3", "172.16.9.9", "192.168.1.1", "100.64.0.1", "169.254.7.7", "fe80::1%eth0", "fd00::1", "::ffff:10.1.2.3"},
		`[]`:                        {},
		`["loopback"]`:              {},
		`["private"]`:               {"10.1.2.3", "172.16.9.9", "192.168.1.1", "::ffff:10.1.2.3"},
		`["cgnat","linklocal"]`:     {"100.64.0.1", "169.254.7.7", "fe80::1%eth0"},
		`["ula","192.168.1.1"]`:     {"192.168.1.1", "fd00::1"},
		`["10.1.0.0/16"]`:           {"10.1.2.3", "::ffff:10.1.2.3"},
		`["10.1.2.99/24"]`:          {"10.1.2.3", "::ffff:10.1.2.3"},
		`["10.0.0.0/30","fd00::9"]`: {},
	} {
		open := map[string]bool{"127.0.0.1": true, "::1": true} // this machine always
		for _, a := range want {
			open[a] = true
		}
		for _, door := range []Surface{UI, Agent, MCP} {
			r := Closed()
			if door == UI {
				r = parse(t, `{"ui":{"allowlist":`+list+`},"agent":{"allowlist":[]},"mcp":{"allowlist":[]}}`)
			} else {
				r = parse(t, `{"ui":{"allowlist":[]},"`+string(door)+`":{"allowlist":`+list+`},"`+map[Surface]string{Agent: "mcp", MCP: "agent"}[door]+`":{"allowlist":[]}}`)
			}
			for _, a := range all {
				addr := netip.MustParseAddr(a)
				for _, by := range []Surface{UI, Agent, MCP} {
					if got, want := r.Allows(by, addr), open[a] && (by == door || addr.IsLoopback()); got != want {
						t.Errorf("%s for %s: %s by %s is %v, want %v", list, door, a, by, got, want)
					}
				}
				if r.AllowsAny(addr) != open[a] {
					t.Errorf("%s for %s: %s by any door is %v", list, door, a, !open[a])
				}
			}
		}
	}
}

func TestWhatWouldOpenTheNodeOrIsNotUnderstoodIsRefused(t *testing.T) {
	for text, code := range map[string]string{
		``: "bad-frame", `null`: "bad-frame", `[]`: "bad-frame", `{} {}`: "bad-frame", `{"ui":{"allowlist":"all"}}`: "bad-frame",
		`{"agent":{"requirekey2":true}}`: "bad-frame", `{"agent":{"requireKey":"yes"}}`: "bad-frame", `{"ui":{"allowlist":[1]}}`: "bad-frame",
		`{"ui":{"allowlist":["example.org"]}}`: "bad-frame", `{"ui":{"allowlist":[""]}}`: "bad-frame", `{"ui":{"allowlist":["fe80::1%eth0"]}}`: "bad-frame",
		`{"ui":{"allowlist":["::ffff:10.0.0.0/104"]}}`: "bad-frame",
		`{"mcp":{"allowlist":["0.0.0.0/0"]}}`:          "public-address", `{"mcp":{"allowlist":["203.0.113.5"]}}`: "public-address",
		`{"mcp":{"allowlist":["10.0.0.0/7"]}}`: "public-address", `{"mcp":{"allowlist":["::/0"]}}`: "public-address",
	} {
		if r, no := Parse([]byte(text)); no == nil || no.Code != code {
			t.Errorf("%s: %v, want %s", text, no, code)
		} else if closed := (Rules{}); !r.Equal(&closed) {
			t.Errorf("%s: something of it holds", text)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{`{}`, `{"expose":true,"ui":{"allowlist":null},"agent":{"allowlist":["private"],"requireKey":true},"mcp":{"allowlist":[]}}`,
		`{"ui":{"allowlist":["10.0.0.0/8","fd00::/8","*"]}}`, `{"ui":{"allowlist":["0.0.0.0/0"]}}`} {
		f.Add([]byte(s))
	}
	public := []netip.Addr{netip.MustParseAddr("203.0.113.5"), netip.MustParseAddr("2001:db8::1"), netip.MustParseAddr("0.0.0.0"), netip.MustParseAddr("::")}
	f.Fuzz(func(t *testing.T, raw []byte) {
		r, no := Parse(raw)
		if no != nil {
			return
		}
		for _, a := range public {
			if r.AllowsAny(a) {
				t.Errorf("%s lets in %v", raw, a)
			}
		}
		if !r.Allows(UI, netip.MustParseAddr("127.0.0.1")) {
			t.Errorf("%s shuts out this machine", raw)
		}
		again, no := Parse(r.Encode())
		if no != nil || !again.Equal(&r) {
			t.Errorf("%s comes back as %s: %v", raw, again.Encode(), no)
		}
	})
}
