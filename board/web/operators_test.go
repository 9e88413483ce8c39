package web

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/api"
)

// memory is a Keeper.
type memory struct {
	mu  sync.Mutex
	raw []byte
	err error
}

func (m *memory) Load() ([]byte, error) { return m.raw, nil }

func (m *memory) Save(raw []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.err == nil {
		m.raw = raw
	}
	return m.err
}

const goodPassword = "correct horse 9"

func withAccount(t *testing.T, s *Server, ts *httptest.Server) {
	t.Helper()
	if got, code, body := ask(t, ts, "POST", "/api/operators", `{"id":"ann","password":"`+goodPassword+`"}`, bearer); got != 200 {
		t.Fatalf("the account was refused: %d %s %s", got, code, body)
	}
	if !s.HasOperators() {
		t.Fatal("there is no account")
	}
}

// logIn returns the status, and what a browser then sends.
func logIn(t *testing.T, ts *httptest.Server, id, words string) (int, func(*http.Request)) {
	t.Helper()
	res := open(t, ts, "POST", "/api/login", `{"id":"`+id+`","password":"`+words+`"}`, with("Origin", ts.URL))
	res.Body.Close()
	return res.StatusCode, func(r *http.Request) {
		for _, c := range res.Cookies() {
			r.AddCookie(&http.Cookie{Name: c.Name, Value: c.Value})
		}
		r.Header.Set("Origin", ts.URL)
	}
}

// Guards: KB15.
func TestNobodyBecomesOperatorByAskingFirst(t *testing.T) {
	s, ts := serve(t, newFake())
	body := `{"id":"eve","password":"` + goodPassword + `"}`
	in := signIn(t, s, ts)
	for name, who := range map[string]func(*http.Request){"nobody": func(*http.Request) {}, "a page": with("Origin", ts.URL), "a session": in, "a wrong token": with("Authorization", "Bearer x")} {
		if got, code, _ := ask(t, ts, "POST", "/api/operators", body, who); got != 401 || code != codeNoCredential {
			t.Errorf("%s: %d %s, want 401", name, got, code)
		}
	}
	if s.HasOperators() {
		t.Error("there is an account")
	}
	for _, bad := range []string{`null`, `{"id":"","password":"long enough words"}`, `{"id":"a b","password":"long enough words"}`, `{"id":"ann","password":"short"}`, `{"id":"ann","password":"` + strings.Repeat("x", passwordBytesMax+1) + `"}`} {
		if got, code, _ := ask(t, ts, "POST", "/api/operators", bad, bearer); got != 400 || code != protocol.CodeBadFrame {
			t.Errorf("%.60s: %d %s, want 400", bad, got, code)
		}
	}
}

// Guards: KA15.
func TestLoginOfNothingIsRefusedAndTheNextIsServed(t *testing.T) {
	s, ts := serve(t, newFake())
	withAccount(t, s, ts)
	for _, body := range []string{`null`, `[]`, `1`, `"x"`, `{}`, `{"id":null,"password":null}`, `{"id":{},"password":[]}`, `{"id":"ann"}`, `{"password":"x"}`, `{"id":"ann","password":""}`, `{`, ``} {
		got, code, text := ask(t, ts, "POST", "/api/login", body, with("Content-Type", "application/json"))
		if got < 400 || got >= 500 || code == "" {
			t.Errorf("%s: %d %s %s", body, got, code, text)
		}
	}
	if got, in := logIn(t, ts, "ann", goodPassword); got != 200 {
		t.Errorf("the right login: %d", got)
	} else if got, _, _ := ask(t, ts, "GET", api.Prefix+"/status", "", in); got != 200 {
		t.Errorf("with its session: %d", got)
	}
}

// Guards: KB16.
func TestWithAccountsNobodyIsLetInForBeingHere(t *testing.T) {
	f := newFake()
	s, ts := serve(t, f)
	before := s.operators.without
	if before.Err() != nil {
		t.Fatal("without accounts nothing is over")
	}
	withAccount(t, s, ts)
	if before.Err() == nil {
		t.Error("who was let in without credential stays in")
	}
	got, _, body := ask(t, ts, "GET", "/api/whoami", "")
	if got != 200 || !strings.Contains(body, `"loginRequired":true`) || strings.Contains(body, "ann") {
		t.Errorf("whoami of nobody: %d %s", got, body)
	}
	_, in := logIn(t, ts, "ann", goodPassword)
	if _, _, body = ask(t, ts, "GET", "/api/whoami", "", in); !strings.Contains(body, `"operator":"ann"`) || !strings.Contains(body, `"loginRequired":false`) {
		t.Errorf("whoami of ann: %s", body)
	}
	if got, _, body := ask(t, ts, "GET", "/api/operators", "", bearer); got != 200 || !strings.Contains(body, `["ann"]`) || strings.Contains(body, "salt") {
		t.Errorf("the list: %d %s", got, body)
	}
}

func TestEverySignInCanBeEndedBeforeItsTime(t *testing.T) {
	key, keep := []byte(strings.Repeat("k", 32)), &memory{}
	begin := func() (*Server, *httptest.Server) {
		s := newServer(t, Config{Backend: newFake(), Token: testToken, SessionKey: key, Keeper: keep})
		ts := httptest.NewServer(s.Handler())
		t.Cleanup(ts.Close)
		return s, ts
	}
	s, ts := begin()
	withAccount(t, s, ts)
	reach := func(in func(*http.Request)) int {
		got, _, _ := ask(t, ts, "GET", api.Prefix+"/status", "", in, with("Origin", ts.URL))
		return got
	}
	again := func() func(*http.Request) {
		t.Helper()
		got, in := logIn(t, ts, "ann", goodPassword)
		if got != 200 || reach(in) != 200 {
			t.Fatalf("a new sign-in: %d", got)
		}
		return in
	}
	post := func(method, path, body string, who func(*http.Request)) {
		t.Helper()
		if got, code, _ := ask(t, ts, method, path, body, who, with("Origin", ts.URL)); got != 200 {
			t.Fatalf("%s %s: %d %s", method, path, got, code)
		}
	}
	stays, leaves := again(), again()
	var over []func(*http.Request) // must never work again
	check := func(what string) {
		t.Helper()
		for i, in := range over {
			if got := reach(in); got != 401 {
				t.Errorf("after %s sign-in %d is answered %d", what, i, got)
			}
		}
	}
	post("POST", "/api/logout", "", leaves)
	over = append(over, leaves)
	check("signing out")
	if reach(stays) != 200 {
		t.Error("signing one out ended another")
	}
	s, ts = begin()
	check("a restart")
	if reach(stays) != 200 {
		t.Error("a restart ended a session")
	}
	link := signIn(t, s, ts)
	post("POST", api.Prefix+"/sign-out-all", "", bearer)
	over = append(over, stays, link)
	check("signing all out")
	in := again()
	post("POST", "/api/operators", `{"id":"ann","password":"another password"}`, bearer)
	over = append(over, in)
	check("a new password")
	if got, _ := logIn(t, ts, "ann", goodPassword); got != 401 {
		t.Errorf("the old password: %d", got)
	}
	post("POST", "/api/operators", `{"id":"ann","password":"`+goodPassword+`"}`, bearer)
	in = again()
	post("DELETE", "/api/operators/ann", "", bearer)
	over = append(over, in)
	check("the end of the account")
	s, ts = begin()
	check("another restart")
	if s.HasOperators() {
		t.Error("an account came back")
	}
	withAccount(t, s, ts)
	check("the account's return")
}

func TestWhatASessionHoldsOpenEndsWithIt(t *testing.T) {
	f := newFake()
	s, ts := serve(t, f)
	in := signIn(t, s, ts)
	res := open(t, ts, "GET", api.Prefix+"/events", "", in)
	defer res.Body.Close()
	if res.StatusCode != 200 {
		t.Fatal(res.Status)
	}
	socket := httptest.NewRequest("GET", "/ws", nil)
	in(socket)
	signed, _, _ := s.sessions.read(socket, s.now())
	while, ok := s.operators.enter(signed, s.now())
	if !ok {
		t.Fatal("the session does not hold")
	}
	if got, _, _ := ask(t, ts, "POST", api.Prefix+"/sign-out-all", "", bearer); got != 200 {
		t.Fatal(got)
	}
	<-while.Done()
	ended := make(chan error, 1)
	go func() {
		buf := make([]byte, 4096)
		for {
			if _, err := res.Body.Read(buf); err != nil {
				ended <- err
				return
			}
		}
	}()
	select {
	case <-ended:
	case <-time.After(20 * time.Second):
		t.Error("the stream goes on")
	}
}

func TestGuessingLocksAnAccountForAWhile(t *testing.T) {
	now := time.Date(2026, 11, 29, 14, 0, 0, 0, time.UTC)
	s, ts := serve(t, newFake(), func(s *Server) { s.now = func() time.Time { return now } })
	withAccount(t, s, ts)
	for _, id := range []string{"ann", "nobody"} { // a name that is none locks alike
		for i := range failuresMax {
			if got, _ := logIn(t, ts, id, "wrong words"); got != 401 {
				t.Errorf("%s, guess %d: %d", id, i, got)
			}
			now = now.Add(time.Second)
		}
		res := open(t, ts, "POST", "/api/login", `{"id":"`+id+`","password":"`+goodPassword+`"}`)
		res.Body.Close()
		if res.StatusCode != 429 || res.Header.Get("Retry-After") != "892" {
			t.Errorf("%s, once locked: %d, after %q s", id, res.StatusCode, res.Header.Get("Retry-After"))
		}
	}
	for i := range 3 * guessedMax { // no flood of other names opens it
		s.failures.add("x"+strings.Repeat("y", i%60)+string(rune('a'+i%26)), func(name string) bool { return name == "ann" }, now)
	}
	if s.failures.wait("ann", now) == 0 || len(s.failures.of) > guessedMax+operatorsMax {
		t.Errorf("ann waits %s, %d names are counted", s.failures.wait("ann", now), len(s.failures.of))
	}
	now = now.Add(failureSpan)
	if got, _ := logIn(t, ts, "ann", goodPassword); got != 200 {
		t.Errorf("after %s: %d", failureSpan, got)
	}
}

func TestAccountsThatCannotBeReadOrKeptAreAnError(t *testing.T) {
	for _, raw := range []string{"{", "null x", `{"round":-1}`, `{"accounts":[]}`} {
		if _, err := New(Config{Backend: newFake(), Keeper: &memory{raw: []byte(raw)}}); err == nil {
			t.Errorf("%s: taken for no accounts", raw)
		}
	}
	keep := &memory{}
	s := newServer(t, Config{Backend: newFake(), Token: testToken, Keeper: keep})
	ts := httptest.NewServer(s.Handler())
	t.Cleanup(ts.Close)
	keep.err = errors.New("no space")
	if got, code, _ := ask(t, ts, "POST", "/api/operators", `{"id":"ann","password":"`+goodPassword+`"}`, bearer); got != 500 || code != codeInternal || s.HasOperators() {
		t.Errorf("an account that is not kept: %d %s", got, code)
	}
	p, err := newPassword(goodPassword, 10)
	if err != nil || strings.Contains(string(p.Hash), goodPassword) || !p.is(goodPassword) || p.is(goodPassword+"x") || passwordRounds < 600_000 {
		t.Errorf("%v %v", p, err)
	}
}
