package main

import "testing"

func TestAReplacingNodeKeepsTheBoardUnlessItIsToldAnother(t *testing.T) {
	for _, c := range []struct {
		want, url, addr string
		same            bool
	}{
		{"", "http://127.0.0.1:7878", "127.0.0.1:7878", true},
		{"127.0.0.1:7878", "http://127.0.0.1:7878", "127.0.0.1:7878", true},
		{"127.0.0.1:0", "http://127.0.0.1:7878", "127.0.0.1:7878", true},
		{"127.0.0.1:7879", "http://127.0.0.1:7878", "127.0.0.1:7878", false},
		{"0.0.0.0:0", "http://127.0.0.1:7878", "127.0.0.1:7878", false},
		{"", "http://[::1]:7878/", "[::1]:7878", true},
		{"", "nonsense", "", false},
	} {
		if addr, same := sameBoard(c.want, c.url); same != c.same || same && addr != c.addr {
			t.Errorf("sameBoard(%q, %q) = %q, %v", c.want, c.url, addr, same)
		}
	}
}
