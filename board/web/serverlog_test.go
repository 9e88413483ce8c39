package web

import (
	"bytes"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// A handler that panics is an error in the log; a connection that breaks is not.
func TestPanicsOfHandlersAreSeen(t *testing.T) {
	var said bytes.Buffer
	out := serverLog(slog.New(slog.NewTextHandler(&said, &slog.HandlerOptions{Level: slog.LevelError})))
	out.Printf("http: TLS handshake error from 10.0.0.1:1: EOF")
	if said.Len() > 0 {
		t.Errorf("it says %q of a stranger", said.String())
	}
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("a mistake of ours") }))
	s.Config.ErrorLog = out
	s.Start()
	if _, err := http.Get(s.URL); err == nil {
		t.Error("a handler that panics answered")
	}
	s.Close() // what it says comes before its connection ends
	if !strings.Contains(said.String(), "a mistake of ours") {
		t.Errorf("it says %q of a panic", said.String())
	}
}
