package main

import (
	"strings"
	"testing"
	"time"
)

func TestDurationsAreSaidAsPeopleDo(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0 ms", 400 * time.Microsecond: "0.4 ms", 1800 * time.Microsecond: "1.8 ms", 25 * time.Millisecond: "25 ms", 3100 * time.Millisecond: "3.1 s",
		12 * time.Second: "12 s", 4 * time.Minute: "4 min", 3*time.Minute + 5*time.Second: "3 min 5 s", time.Hour: "1 h", 3*time.Hour + 12*time.Minute: "3 h 12 min", 50 * time.Hour: "2 days", -time.Second: "0 ms",
	} {
		if got := span(d); got != want {
			t.Errorf("span(%v) = %q, want %q", d, got, want)
		}
	}
}

func TestForeignWordsCannotMoveTheCursor(t *testing.T) {
	for in, want := range map[string]string{
		"a\nb\tc":     "a b c",
		"\x1b[2Jgone": "[2Jgone",
		"x\u202eevil": "x evil",
		"\xffbad":     "\ufffdbad",
		"plain ä 日本":  "plain ä 日本",
	} {
		if got := clean(in); got != want {
			t.Errorf("clean(%q) = %q, want %q", in, got, want)
		}
	}
	if got := cleanBlock("a\r\n\x1b]0;title\a\tb"); got != "a\n]0;title\tb" {
		t.Errorf("cleanBlock = %q", got)
	}
}

func TestSizesAndCounts(t *testing.T) {
	for n, want := range map[int64]string{0: "0 B", 1023: "1023 B", 3 << 20: "3 MiB", 8 << 30: "8 GiB", 1536: "1.5 KiB"} {
		if got := bytesText(n); got != want {
			t.Errorf("bytesText(%d) = %q, want %q", n, got, want)
		}
	}
	for n, want := range map[uint64]string{0: "0", 999: "999", 12304: "12,304", 1234567: "1,234,567"} {
		if got := count(n); got != want {
			t.Errorf("count(%d) = %q, want %q", n, got, want)
		}
	}
}

func TestColumnsStandUnderWideLetters(t *testing.T) {
	var out strings.Builder
	table(&out, []string{"AGENT", "ROLE"}, []string{"파이썬", "local"}, []string{"e\u0301🙂", "peer"})
	if want := "AGENT   ROLE\n파이썬  local\ne\u0301🙂     peer\n"; out.String() != want {
		t.Errorf("%q, want %q", out.String(), want)
	}
}
