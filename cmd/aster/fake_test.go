package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aster-mesh/aster/node"
	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/api"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	time.Local = time.UTC
	goleak.VerifyTestMain(m)
}

// fake answers as a node does, route by route, and remembers what it was asked.
type fake struct {
	home   string
	server *httptest.Server

	mu    sync.Mutex
	asked []string // "METHOD path?query body"
}

const fakeToken = "t0ken-of-the-test"

// newFake serves the routes, "METHOD /path" to an answer: a value for 200, a *protocol.Refusal, an int for a bare
// status, or a http.HandlerFunc.
func newFake(t *testing.T, routes map[string]any) *fake {
	t.Helper()
	f := &fake{home: newHome(t)}
	mux := http.NewServeMux()
	for route, answer := range routes {
		method, path, _ := strings.Cut(route, " ")
		mux.HandleFunc(method+" "+api.Prefix+path, func(w http.ResponseWriter, r *http.Request) { f.answer(t, w, r, answer) })
	}
	f.server = httptest.NewServer(mux)
	t.Cleanup(f.server.Close)
	f.writeNodeFile(t, f.server.URL)
	return f
}

func (f *fake) writeNodeFile(t *testing.T, url string) {
	t.Helper()
	writeJSONFile(t, filepath.Join(f.home, "node.json"), api.NodeFile{PID: os.Getpid(), Board: url, Token: fakeToken})
}

func writeJSONFile(t *testing.T, path string, v any) {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path+".new", raw, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}

func (f *fake) answer(t *testing.T, w http.ResponseWriter, r *http.Request, answer any) {
	if got := r.Header.Get("Authorization"); got != "Bearer "+fakeToken {
		t.Errorf("%s %s came with %q", r.Method, r.URL, got)
	}
	var body bytes.Buffer
	if _, err := body.ReadFrom(r.Body); err != nil {
		t.Error(err)
	}
	f.mu.Lock()
	f.asked = append(f.asked, strings.TrimSpace(fmt.Sprintf("%s %s %s", r.Method, strings.TrimPrefix(r.URL.RequestURI(), api.Prefix), body.String())))
	f.mu.Unlock()
	switch answer := answer.(type) {
	case http.HandlerFunc:
		answer(w, r)
	case *protocol.Refusal:
		status := http.StatusForbidden
		if answer.Code == "timed-out" {
			status = http.StatusRequestTimeout
		}
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(api.Error{Error: *answer})
	case int:
		w.WriteHeader(answer)
	default:
		_ = json.NewEncoder(w).Encode(answer)
	}
}

func (f *fake) last() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.asked) == 0 {
		return ""
	}
	return f.asked[len(f.asked)-1]
}

func newHome(t *testing.T) string {
	t.Helper()
	home := filepath.Join(t.TempDir(), "home")
	if err := os.Mkdir(home, 0o700); err != nil {
		t.Fatal(err)
	}
	return home
}

// typed is one command with what came of it.
type typed struct {
	code     int
	out, err string
}

func (f *fake) type_(t *testing.T, stdin string, args ...string) typed {
	t.Helper()
	got := typeIn(t, nil, stdin, append(args, "--home", f.home)...)
	plain := strings.NewReplacer("aster --home "+tilde(f.home)+" ", "aster ") // hints name the home: hints_test.go
	got.out, got.err = plain.Replace(got.out), plain.Replace(got.err)
	return got
}

func typeIn(t *testing.T, up runNode, stdin string, args ...string) typed {
	t.Helper()
	return typeCtx(t.Context(), up, stdin, args...)
}

func typeCtx(ctx context.Context, up runNode, stdin string, args ...string) typed {
	if up == nil {
		up = func(context.Context, node.Config) error { return fmt.Errorf("no node in this test") }
	}
	var out, talk bytes.Buffer
	code := runWith(ctx, up, args, strings.NewReader(stdin), &out, &talk)
	return typed{code, out.String(), talk.String()}
}
