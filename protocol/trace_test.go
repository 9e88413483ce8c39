package protocol

import (
	"strings"
	"testing"
)

const aTrace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

func TestTraceParentIsReadInItsOneForm(t *testing.T) {
	p, ok := ParseTraceParent(aTrace)
	if !ok || p.String() != aTrace || !p.Sampled {
		t.Fatalf("got %v, %v", p, ok)
	}
	for _, bad := range []string{
		"", "00", aTrace + "-x", aTrace[:54], strings.ToUpper(aTrace), "ff" + aTrace[2:], "01" + aTrace[2:], strings.Replace(aTrace, "-", "_", 1),
		strings.Replace(aTrace, "b7", "xx", 1), "00-" + strings.Repeat("0", 32) + aTrace[35:], aTrace[:36] + strings.Repeat("0", 16) + "-01",
	} {
		if _, ok := ParseTraceParent(bad); ok || CleanTraceParent(bad) != "" {
			t.Errorf("%q counts as a traceparent", bad)
		}
	}
}

func FuzzTraceParent(f *testing.F) {
	f.Add(aTrace)
	f.Add("00-")
	f.Fuzz(func(t *testing.T, s string) {
		if p, ok := ParseTraceParent(s); ok {
			if again, ok := ParseTraceParent(p.String()); !ok || again != p {
				t.Errorf("%q reads as %v, and that as %v", s, p, again)
			}
		}
	})
}

func TestAnEnvelopeHoldsATraceParentOrNone(t *testing.T) {
	e := Envelope{ID: "m-1", Intent: "Inform"}
	for trace, want := range map[string]bool{"": true, aTrace: true, "00-nonsense": false} {
		e.Trace = trace
		if no := e.Check(); (no == nil) != want {
			t.Errorf("%q: %v", trace, no)
		}
	}
}
