package trace

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/aster-mesh/aster/protocol"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// collector is one that answers with a status, and keeps what it is sent.
func collector(t *testing.T, status int) (url string, got chan export) {
	t.Helper()
	got = make(chan export, 64)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		raw, err := io.ReadAll(r.Body)
		if err != nil {
			return // who sent it gave up in the middle: slow machines get there
		}
		var e export
		if r.URL.Path != "/v1/traces" || r.Header.Get("Content-Type") != "application/json" || json.Unmarshal(raw, &e) != nil {
			t.Errorf("%s %s %s: %s", r.Method, r.URL.Path, r.Header.Get("Content-Type"), raw)
		}
		w.WriteHeader(status)
		select {
		case got <- e:
		default:
		}
	}))
	t.Cleanup(srv.Close)
	return srv.URL, got
}

// running has an exporter run until the test, or stop, ends it.
func running(t *testing.T, e *Exporter) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := e.Run(ctx); err != nil {
			t.Error(err)
		}
	}()
	stop = func() { cancel(); <-done }
	t.Cleanup(stop)
	return stop
}

func TestSpansComeAsTheProtocolWantsThem(t *testing.T) {
	url, got := collector(t, http.StatusOK)
	e, err := New(Config{Endpoint: url + "/", Node: "devbox", Instance: "12D3", Version: "1.2"})
	if err != nil {
		t.Fatal(err)
	}
	e.lastFor = time.Minute // a slow machine, too
	stop := running(t, e)
	at := time.Unix(1_700_000_000, 5)
	of := Begin(protocol.TraceParent{}, false)
	e.Put(Span{Trace: of.Trace, ID: of.Span, Name: "logged Delegate", Start: at, End: at.Add(time.Millisecond), Tags: []Tag{{"aster.to", "w"}, {"aster.room", ""}}})
	e.Put(Span{Trace: of.Trace, ID: StepID(of, "m", protocol.Refused, "w"), Parent: of.Span, Name: "refused Delegate", Start: at, End: at, Failed: "inbox-full"})
	stop()
	var spans []span
	for len(spans) < 2 { // in one request or two
		select {
		case e := <-got:
			spans = append(spans, e.ResourceSpans[0].ScopeSpans[0].Spans...)
		default:
			t.Fatalf("the collector has %+v", spans)
		}
	}
	first := span{TraceID: hex.EncodeToString(of.Trace[:]), SpanID: hex.EncodeToString(of.Span[:]), Name: "logged Delegate", Kind: 1,
		Start: "1700000000000000005", End: "1700000000001000005", Attributes: []attribute{{"aster.to", text{"w"}}}}
	if fmt.Sprint(spans[0]) != fmt.Sprint(first) {
		t.Fatalf("got %+v", spans)
	}
	if s := spans[1]; s.ParentID != first.SpanID || s.TraceID != first.TraceID || s.Status == nil || s.Status.Code != 2 || s.Status.Message != "inbox-full" {
		t.Errorf("got %+v", s)
	}
	if sent, dropped := e.Counts(); sent != 2 || dropped != 0 {
		t.Errorf("%d sent, %d dropped", sent, dropped)
	}
}

// A collector that is not there, refuses, or never answers costs spans and nothing else: Put does not wait for it.
func TestAFailingCollectorCostsItsSpansAlone(t *testing.T) {
	silent := make(chan struct{})
	mute := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-silent:
		case <-r.Context().Done():
		}
	}))
	defer mute.Close()
	defer close(silent)
	refusing, _ := collector(t, http.StatusServiceUnavailable)
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	for name, url := range map[string]string{"silent": mute.URL, "refuses": refusing, "gone": gone.URL} {
		t.Run(name, func(t *testing.T) {
			e, err := New(Config{Endpoint: url})
			if err != nil {
				t.Fatal(err)
			}
			stop := running(t, e)
			const put = 3 * queueMax
			for range put {
				e.Put(Span{Name: "x"}) // would wait for ever, did it wait
			}
			stop()
			if sent, dropped := e.Counts(); sent != 0 || dropped != put {
				t.Errorf("%d sent, %d dropped, want none and %d", sent, dropped, put)
			}
		})
	}
}

func TestNothingIsSentWithoutAnEndpoint(t *testing.T) {
	var e *Exporter
	e.Put(Span{})
	if sent, dropped := e.Counts(); sent != 0 || dropped != 0 {
		t.Error("an exporter that is none counts")
	}
	running(t, e)
	for _, bad := range []string{"", "collector:4318", "ftp://x", "http://", "http://user:word@host", "http://host?key=word", "http://host#x", "::"} {
		if CheckEndpoint(bad) == nil {
			t.Errorf("%q counts as a collector's address", bad)
		}
		if _, err := New(Config{Endpoint: bad}); err == nil {
			t.Errorf("an exporter to %q", bad)
		}
	}
}

// The reason is named, and nothing of an address that may be a secret.
func TestARefusedAddressIsToldWhyWithoutItsSecret(t *testing.T) {
	for bad, why := range map[string]string{
		"http://127.0.0.1:99999": "port", "http://127.0.0.1:0": "port", "http://user:sesame@host": "holds a password", "http://host?token=sesame": "has a query",
		"javascript:sesame": "is no http or https address", "file:///sesame": "is no http or https address", "http://host#sesame": "has a fragment",
		"http://:4318": "names no host", "http://sesame:port": "cannot be read",
	} {
		if err := CheckEndpoint(bad); err == nil || !strings.Contains(err.Error(), why) || strings.Contains(err.Error(), "sesame") {
			t.Errorf("%s: %v", bad, err)
		}
	}
	for good, place := range map[string]string{"http://127.0.0.1:4318": "http://127.0.0.1:4318", "https://[::1]:65535/sesame/v1": "https://[::1]:65535", "http://host/": "http://host"} {
		if err := CheckEndpoint(good); err != nil || Place(good) != place {
			t.Errorf("%s: %q, %v", good, Place(good), err)
		}
	}
}

// What a collector's address has after its port may be a token: the log has it not.
func TestALogNamesTheCollectorWithoutItsPath(t *testing.T) {
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	refusing := httptest.NewServer(http.NotFoundHandler())
	defer refusing.Close()
	for _, url := range []string{gone.URL, refusing.URL} {
		var log bytes.Buffer
		e, err := New(Config{Endpoint: url + "/sesame", Log: slog.New(slog.NewTextHandler(&log, nil))})
		if err != nil {
			t.Fatal(err)
		}
		if place, _ := e.Failing(); place != "" {
			t.Errorf("%s fails before it was tried", place)
		}
		stop := running(t, e)
		e.Put(Span{Name: "x"})
		stop()
		if !strings.Contains(log.String(), url) || strings.Contains(log.String(), "sesame") {
			t.Errorf("the log has %s", &log)
		}
		if place, dropped := e.Failing(); place != url || dropped != 1 {
			t.Errorf("%q fails, %d dropped", place, dropped)
		}
	}
}

// A collector that says that it is elsewhere is not believed.
func TestRedirectionsAreNotFollowed(t *testing.T) {
	other, got := collector(t, http.StatusOK)
	srv := httptest.NewServer(http.RedirectHandler(other+"/v1/traces", http.StatusTemporaryRedirect))
	defer srv.Close()
	e, err := New(Config{Endpoint: srv.URL})
	if err != nil {
		t.Fatal(err)
	}
	stop := running(t, e)
	e.Put(Span{Name: "x"})
	stop()
	if _, dropped := e.Counts(); dropped != 1 || len(got) != 0 {
		t.Errorf("%d dropped, %d requests elsewhere", dropped, len(got))
	}
}
