package web

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/api"
)

func TestBodiesAreBounded(t *testing.T) {
	f := newFake()
	s, ts := serve(t, f)
	in := signIn(t, s, ts)
	send := api.Prefix + "/send"
	deep := strings.Repeat("[", 100) + strings.Repeat("]", 100)
	for _, c := range []struct {
		name, body, code string
		status           int
	}{
		{"too large", `{"to":"` + strings.Repeat("a", protocol.FrameBytesMax) + `"}`, protocol.CodeFrameTooLarge, 413},
		{"a number that no double holds", `{"to":"a","intent":"UserPrompt","value":{"e":1e999999}}`, protocol.CodeWrongType, 415},
		{"too deep", `{"to":"a","intent":"UserPrompt","value":` + deep + `}`, protocol.CodeTooDeep, 400},
		{"not UTF-8", "{\"to\":\"a\xff\"}", protocol.CodeNotUTF8, 400},
		{"cut off", `{"to":"a"`, protocol.CodeBadFrame, 400},
		{"two values", `{"to":"a"}{}`, protocol.CodeBadFrame, 400},
		{"wrong type", `{"to":7}`, protocol.CodeBadFrame, 400},
	} {
		if got, code, _ := ask(t, ts, "POST", send, c.body, in); got != c.status || code != c.code {
			t.Errorf("%s: %d %s, want %d %s", c.name, got, code, c.status, c.code)
		}
	}
	if len(f.sent) != 0 {
		t.Errorf("the node was given %v", f.sent)
	}
	brackets := fmt.Sprintf(`{"to":"claude-shop","intent":"UserPrompt","value":{"text":%q}}`, deep+`\"`+deep)
	if got, code, _ := ask(t, ts, "POST", send, brackets, in); got != 200 {
		t.Errorf("brackets in a string: %d %s", got, code)
	}
}

func TestErrorsTellRefusalsOnly(t *testing.T) {
	f := newFake()
	_, ts := serve(t, f)
	if got, code, body := ask(t, ts, "GET", api.Prefix+"/messages/broken", "", bearer); got != 500 || code != "internal" || strings.Contains(body, "secret") {
		t.Errorf("%d %s", got, body)
	}
	if got, code, _ := ask(t, ts, "GET", api.Prefix+"/messages/zzzzz", "", bearer); got != 404 || code != protocol.CodeUnknownID {
		t.Errorf("unknown id: %d %s", got, code)
	}
	if got, code, body := ask(t, ts, "GET", api.Prefix+"/messages/a%2F..%2F%2Fb", "", bearer); got != 404 || code != protocol.CodeUnknownID || !strings.Contains(body, "a/..//b") {
		t.Errorf("an id with slashes: %d %s", got, body)
	}
	for code, want := range map[string]int{protocol.CodeUnknownAgent: 404, protocol.CodeNotAllowed: 403, protocol.CodeMsgIDReused: 409, protocol.CodeInboxFull: 409, protocol.CodeDiskFull: 507,
		protocol.CodeFrameTooLarge: 413, protocol.CodeAmbiguousID: 409, protocol.CodeRevoked: 403, protocol.CodeInviteUsed: 403, "a-code-to-come": 403} {
		f.sendErr = fmt.Errorf("send: %w", protocol.Refuse(code, "no", "hint"))
		got, gotCode, body := ask(t, ts, "POST", api.Prefix+"/send", `{"to":"a"}`, bearer)
		if got != want || gotCode != code || !strings.Contains(body, `"hint":"hint"`) {
			t.Errorf("%s: %d %s, want %d", code, got, body, want)
		}
	}
	if got, code, _ := ask(t, ts, "GET", api.Prefix+"/messages/"+url.PathEscape(string(f.snap.Messages[6].Envelope.ID))+"?wait=processed&timeout=10ms", "", bearer); got != 408 || code != codeTimedOut {
		t.Errorf("a tier that does not come: %d %s", got, code)
	}
	for _, q := range []string{"/messages?before=x", "/messages?limit=-1", "/messages/a?wait=soon", "/wait?timeout=later", "/search", "/events?since=a"} {
		if got, code, _ := ask(t, ts, "GET", api.Prefix+q, "", bearer); got != 400 || code != protocol.CodeBadFrame {
			t.Errorf("%s: %d %s", q, got, code)
		}
	}
}
