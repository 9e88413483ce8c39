package client

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/api"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// counted counts the calls that a process would make to the system.
type counted struct {
	net.Conn
	calls *atomic.Int64
}

func (c counted) Read(b []byte) (int, error) {
	c.calls.Add(1)
	return c.Conn.Read(b)
}

func (c counted) Write(b []byte) (int, error) {
	c.calls.Add(1)
	return c.Conn.Write(b)
}

func TestAWaitingClientExchangesNotAByteForAnHour(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ours, theirs := net.Pipe()
		var calls atomic.Int64
		c := New(api.NodeFile{Board: "http://127.0.0.1:7878", Token: "x"})
		c.http.Transport.(*http.Transport).DialContext = func(context.Context, string, string) (net.Conn, error) {
			return counted{ours, &calls}, nil
		}
		answer := make(chan struct{})
		go func() {
			defer theirs.Close()
			if _, err := http.ReadRequest(bufio.NewReader(theirs)); err != nil {
				t.Error(err)
				return
			}
			<-answer
			_, _ = io.WriteString(theirs, "HTTP/1.1 200 OK\r\nContent-Length: 33\r\nConnection: close\r\n\r\n"+`{"agent":"a","unread":1,"ids":[]}`)
		}()
		got := make(chan error, 1)
		go func() {
			res, err := c.Wait(t.Context(), "a", false, 2*time.Hour)
			if err == nil && res.Unread != 1 {
				err = errors.New("another answer")
			}
			got <- err
		}()
		synctest.Wait() // the request is out, everything blocks
		before := calls.Load()
		time.Sleep(time.Hour)
		synctest.Wait()
		if during := calls.Load() - before; during != 0 {
			t.Errorf("%d reads and writes in an hour of waiting, want none", during)
		}
		close(answer)
		if err := <-got; err != nil {
			t.Error(err)
		}
		c.Close()
	})
}

func serve(t *testing.T, h http.HandlerFunc) *Client {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	c := New(api.NodeFile{Board: s.URL, Token: "x"})
	t.Cleanup(c.Close)
	return c
}

func answerWith(status int, v any) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(v)
	}
}

func TestWhatTheNodeRefusesComesBackAsItsRefusal(t *testing.T) {
	c := serve(t, answerWith(403, api.Error{Error: *protocol.Refuse(protocol.CodeNotAllowed, "collab may not delegate", "")}))
	_, err := c.Send(t.Context(), api.SendRequest{})
	var no *protocol.Refusal
	if !errors.As(err, &no) || no.Code != protocol.CodeNotAllowed || RefusalCode(err) != no.Code {
		t.Fatalf("Send: %v", err)
	}
}

func TestAnAbsentNodeIsToldFromOneThatGoesAway(t *testing.T) {
	if _, err := Open(t.TempDir()); !errors.Is(err, ErrNotRunning) {
		t.Errorf("a home without %s: %v", NodeFileName, err)
	}
	dead := New(api.NodeFile{Board: "http://127.0.0.1:1"})
	if _, err := dead.Status(t.Context()); !errors.Is(err, ErrNotRunning) || errors.Is(err, ErrLost) {
		t.Errorf("nobody listens: %v", err)
	}
	stranger := serve(t, answerWith(401, api.Error{Error: *protocol.Refuse("no-credential", "who are you", "")}))
	if _, err := stranger.Status(t.Context()); !errors.Is(err, ErrNotRunning) {
		t.Errorf("another process has the port: %v", err)
	}
	broken := serve(t, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	if _, err := broken.Status(t.Context()); !errors.Is(err, ErrLost) {
		t.Errorf("it goes away: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := broken.Status(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: %v", err)
	}
	short := serve(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{"type":"message"}`+"\n") })
	if err := short.Tail(t.Context(), TailQuery{Follow: true}, func(api.Event) (bool, error) { return false, nil }); !errors.Is(err, ErrLost) {
		t.Errorf("the end of what should go on: %v", err)
	}
	if err := short.Tail(t.Context(), TailQuery{}, func(api.Event) (bool, error) { return false, nil }); err != nil {
		t.Errorf("the end of the past: %v", err)
	}
}

func TestTheTokenFollowsNoRedirect(t *testing.T) {
	var leaked atomic.Bool
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { leaked.Store(true) }))
	defer elsewhere.Close()
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, elsewhere.URL, http.StatusTemporaryRedirect)
	})
	if _, err := c.Status(t.Context()); err == nil || leaked.Load() {
		t.Fatalf("err %v, leaked %v", err, leaked.Load())
	}
}

func TestIDsAreEscapedInAddresses(t *testing.T) {
	var path string
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		path = r.URL.EscapedPath()
		_, _ = io.WriteString(w, "{}")
	})
	if _, err := c.Message(t.Context(), "a/../b?c#d"); err != nil || path != api.Prefix+"/messages/a%2F..%2Fb%3Fc%23d" {
		t.Fatalf("asked for %s, %v", path, err)
	}
}

func TestABadNodeFileIsNamed(t *testing.T) {
	home := t.TempDir()
	if err := os.WriteFile(filepath.Join(home, NodeFileName), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(home); err == nil || errors.Is(err, ErrNotRunning) || !strings.Contains(err.Error(), NodeFileName) {
		t.Fatalf("Open: %v", err)
	}
}
