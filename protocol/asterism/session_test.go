package asterism

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/aster-mesh/aster/protocol"
)

// said shows an outcome in a line.
func said(o Outcome) string {
	var b strings.Builder
	for _, s := range o.Say {
		switch s.Kind {
		case SayHello:
			b.WriteString("hello ")
		case SayRoster:
			b.WriteString("roster ")
		case SayHistory:
			b.WriteString("history ")
		case SayInfo:
			fmt.Fprintf(&b, "info:%s/%s/%s ", s.Info.AgentID, s.Info.Role, s.Info.Surface)
		case SayRejected:
			fmt.Fprintf(&b, "rejected:%s ", s.Rejection.Code)
			if s.Rejection.PriorStateDelivered {
				b.WriteString("prior ")
			}
		case SayRefused:
			fmt.Fprintf(&b, "refused:%s ", s.Refusal.Code)
		}
	}
	switch o.Verdict {
	case Pass:
		b.WriteString("pass ")
	case Judge:
		b.WriteString("judge ")
	}
	if o.Close > 0 {
		fmt.Fprintf(&b, "close:%d:%s", o.Close, o.CloseReason)
	}
	return strings.TrimSpace(b.String())
}

// Each play is a connection: what opens it, then what happens and what the session wants.
func TestSessionPlays(t *testing.T) {
	type step struct{ do, want string }
	const report, hello, other = `{"name":"Report"}`, `{"type":"HELLO","agentId":"w"}`, `{"type":"HELLO","agentId":"x"}`
	for name, play := range map[string]struct {
		o     Opening
		begin string
		steps []step
	}{
		"a board": {Opening{Board: true}, "hello roster history", []step{
			{report, "pass"}, {`{"name":"AgentList"}`, "refused:hub-only-name"}, {hello, "refused:second-hello"}, {report, "pass"},
		}},
		"the node's own user as an agent": {Opening{Board: true}, "hello roster history", []step{
			{hello, "judge"}, {"accept", "info:w/local/agent"}, {report, "pass"}, {hello, "info:w/local/agent roster"}, {other, "refused:second-hello"}, {report, "pass"},
			{`{"type":"MainChanged"}`, "refused:hub-only-name"},
		}},
		"identity before state where a key came": {Opening{Keyed: true, Board: true}, "hello", []step{
			{report, "refused:hello-first"}, {hello, "judge"}, {"accept", "info:w/local/agent roster history"}, {report, "pass"},
		}},
		"an mcp client": {Opening{Keyed: true}, "hello", []step{
			{`{"type":"HELLO","agentId":"w","capabilities":["mcp-proxy"]}`, "judge"}, {"accept", "info:w/local/mcp roster history"},
		}},
		"another user's socket": {Opening{}, "hello", []step{{report, "refused:hello-first"}, {hello, "judge"}}},
		"refused at HELLO, and nothing passes after it": {Opening{Keyed: true}, "hello", []step{
			{hello, "judge"}, {"reject", "rejected:key-identity-mismatch close:4403:key-identity-mismatch"}, {report, ""}, {other, ""}, {"accept", ""},
		}},
		"refused with a key only in the HELLO": {Opening{Board: true}, "hello roster history", []step{
			{hello, "judge"}, {"reject", "rejected:key-identity-mismatch prior close:4403:key-identity-mismatch"},
		}},
		"the key alone decides": {Opening{Keyed: true, Rejected: &Rejection{Code: "key-expired"}}, "rejected:key-expired close:4003:key expired", []step{
			{hello, ""}, {report, ""},
		}},
		"an unknown key": {Opening{Keyed: true, Rejected: &Rejection{Code: protocol.CodeBadKey}}, "rejected:key-invalid close:4403:key-invalid", nil},
		"anonymous": {Opening{Keyed: true}, "hello", []step{
			{`{"type":"HELLO"}`, "rejected:no-agent-id close:4403:no-agent-id"}, {report, ""},
		}},
		"blank":    {Opening{}, "hello", []step{{`{"type":"HELLO","agentId":"  "}`, "rejected:no-agent-id close:4403:no-agent-id"}}},
		"bad id":   {Opening{}, "hello", []step{{`{"type":"HELLO","agentId":"a\u202eb"}`, "rejected:bad-agent-id close:4403:bad-agent-id"}}},
		"pending":  {Opening{}, "hello", []step{{hello, "judge"}, {report, "refused:hello-first"}, {other, "refused:hello-first"}, {"accept", "info:w/local/agent roster history"}}},
		"revoked":  {Opening{}, "hello", []step{{hello, "judge"}, {"accept", "info:w/local/agent roster history"}, {"revoke", "rejected:key-revoked prior close:4003:key revoked"}, {report, ""}, {"revoke", ""}}},
		"replaced": {Opening{}, "hello", []step{{hello, "judge"}, {"accept", "info:w/local/agent roster history"}, {"end", ""}, {report, ""}}},
	} {
		t.Run(name, func(t *testing.T) {
			s, out := NewSession(play.o)
			if got := said(out); got != play.begin {
				t.Errorf("at first: got %q, want %q", got, play.begin)
			}
			for i, st := range play.steps {
				switch st.do {
				case "accept":
					out = s.Accept(Accepted{Name: "W", Role: protocol.RoleLocal})
				case "reject":
					out = s.Reject(Rejection{Code: protocol.CodeIdentityMismatch})
				case "revoke":
					out = s.Revoke(Rejection{Code: "key-revoked"}, "key revoked")
				case "end":
					s.End()
					out = Outcome{}
				default:
					f := decode(t, st.do)
					out = s.Frame(&f)
				}
				if got := said(out); got != st.want {
					t.Errorf("step %d %s: got %q, want %q", i, st.do, got, st.want)
				}
			}
		})
	}
}

func TestSenderHoldsForLife(t *testing.T) {
	s, _ := NewSession(Opening{})
	f := decode(t, `{"type":"HELLO","agentId":"w","agentName":"x"}`)
	s.Frame(&f)
	s.Accept(Accepted{Name: "W", Role: protocol.RoleLocal})
	want := Sender{ID: "w", Name: "W", Role: protocol.RoleLocal, Source: protocol.SourceAgent}
	for _, in := range []string{`{"type":"HELLO","agentId":"x"}`, `{"type":"HELLO","agentId":"w"}`, `{"name":"Report","agentId":"x"}`} {
		f := decode(t, in)
		s.Frame(&f)
		if diff := cmp.Diff(want, s.Sender()); diff != "" {
			t.Errorf("after %s: %s", in, diff)
		}
	}
	s.SetRole(protocol.RoleMain)
	if s.Sender().Role != protocol.RoleMain {
		t.Error("the role does not follow")
	}
}

func TestKeyedConnectionWatchesNothingBeforeItsHello(t *testing.T) {
	for o, want := range map[Opening]bool{{Board: true}: true, {Keyed: true}: false, {Keyed: true, Board: true}: false, {}: false} {
		if s, _ := NewSession(o); s.Watches() != want {
			t.Errorf("%+v watches: %v", o, s.Watches())
		}
	}
}

func TestNamesThatMisleadFallBackToTheID(t *testing.T) {
	taken := func(id protocol.AgentID) bool { return id == "main-agent" }
	for in, want := range map[string]string{
		"Worker 1": "Worker 1", "  a \t\n b ": "a b", "a\u200bb\u202e": "ab", "": "w", "\u200b": "w", "\x00": "w",
		"Main-Agent": "w", "SERVER": "w", "System notice": "w", "관리자 김": "w", "W": "W", "\u200bAdmin": "w", "x admin": "x admin",
		strings.Repeat("é", 100): strings.Repeat("é", 80), strings.Repeat("a ", 100): strings.TrimSpace(strings.Repeat("a ", 40)),
	} {
		if got := CleanName(in, "w", taken); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
	if got := CleanName("Main-Agent", "main-agent", taken); got != "Main-Agent" {
		t.Errorf("an agent may be called like its own id, got %q", got)
	}
}
