package link

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"
)

// server runs each upgraded connection with each, and waits for all at the end.
func server(tb testing.TB, opt Options, each func(*Conn) func([]byte, bool)) (url string) {
	tb.Helper()
	var wg sync.WaitGroup
	ctx, cancel := context.WithCancel(context.Background())
	ts := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, err := Upgrade(w, r, opt)
		if err != nil {
			return
		}
		wg.Go(func() { _ = c.Serve(ctx, each(c)) })
	}))
	tb.Cleanup(func() { cancel(); wg.Wait(); ts.Close() })
	return "ws" + strings.TrimPrefix(ts.URL, "http")
}

func client(tb testing.TB, url string, onMessage func(*Conn, []byte)) *Conn {
	tb.Helper()
	c, err := Dial(context.Background(), url, nil, Options{})
	if err != nil {
		tb.Fatal(err)
	}
	c.Authenticated()
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = c.Serve(context.Background(), func(b []byte, _ bool) { onMessage(c, b) })
	}()
	tb.Cleanup(func() { c.Close(1000, ""); <-done })
	return c
}

func TestFramesOfAllSizesPassRealSocketsInOrder(t *testing.T) {
	url := server(t, Options{}, func(c *Conn) func([]byte, bool) {
		c.Authenticated()
		return func(b []byte, binary bool) {
			if binary {
				c.SendBinary(b)
			} else {
				c.Send(b)
			}
		}
	})
	sizes := []int{0, 1, 125, 126, 4095, 4096, 32 << 10, 64<<10 - 1, 64 << 10, 1 << 20, 15 << 20, 3}
	got := make(chan [32]byte)
	c := client(t, url, func(_ *Conn, b []byte) { got <- sha256.Sum256(b) })
	for i, n := range sizes {
		b := []byte(strings.Repeat(string(rune('a'+i)), n))
		if i%2 == 0 {
			c.Send(b)
		} else {
			c.SendBinary(b)
		}
		if <-got != sha256.Sum256(b) {
			t.Errorf("the frame of %d bytes came back changed", n)
		}
	}
}

func TestPreparedFrameReachesEverybody(t *testing.T) {
	conns := make(chan *Conn, 3)
	url := server(t, Options{}, func(c *Conn) func([]byte, bool) {
		conns <- c
		return func([]byte, bool) {}
	})
	got := make(chan string)
	for range 3 {
		client(t, url, func(_ *Conn, b []byte) { got <- string(b) })
	}
	p := Prepare([]byte("to all"))
	for range 3 {
		(<-conns).SendPrepared(p)
	}
	for range 3 {
		if s := <-got; s != "to all" {
			t.Errorf("got %q", s)
		}
	}
}

func TestSubprotocolIsAgreedOn(t *testing.T) {
	agreed := make(chan string, 1)
	url := server(t, Options{Subprotocols: []string{"aster.msgpack.1"}}, func(c *Conn) func([]byte, bool) {
		agreed <- c.Subprotocol()
		return func([]byte, bool) {}
	})
	c, err := Dial(t.Context(), url, nil, Options{Subprotocols: []string{"aster.msgpack.1"}})
	if err != nil {
		t.Fatal(err)
	}
	if near, far := c.Subprotocol(), <-agreed; near != "aster.msgpack.1" || far != near {
		t.Errorf("agreed on %q and %q", near, far)
	}
	c.Close(1000, "")
	_ = c.Serve(t.Context(), func([]byte, bool) {})
}

func TestDialNamesTheStatusOfAServerThatRefuses(t *testing.T) {
	ts := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "no key", http.StatusUnauthorized)
	}))
	defer ts.Close()
	_, err := Dial(t.Context(), "ws"+strings.TrimPrefix(ts.URL, "http"), nil, Options{})
	var refused *RefusedError
	if !errors.As(err, &refused) || refused.Status != 401 || !strings.Contains(refused.Body, "no key") {
		t.Errorf("got %v", err)
	}
	ts.Client().CloseIdleConnections()
}

func TestDialToNobodyFails(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	if _, err := Dial(t.Context(), "ws://"+l.Addr().String(), nil, Options{}); err == nil {
		t.Error("got a connection")
	}
}

func BenchmarkEcho600(b *testing.B) {
	url := server(b, Options{}, func(c *Conn) func([]byte, bool) {
		return func(m []byte, _ bool) { c.Send(m) }
	})
	back := make(chan struct{})
	c := client(b, url, func(*Conn, []byte) { back <- struct{}{} })
	m := []byte(strings.Repeat("x", 600))
	for b.Loop() {
		c.Send(m)
		<-back
	}
}

// BenchmarkBurst600 sends without waiting.
func BenchmarkBurst600(b *testing.B) {
	conns := make(chan *Conn, 1)
	url := server(b, Options{}, func(c *Conn) func([]byte, bool) {
		conns <- c
		return func([]byte, bool) {}
	})
	got := make(chan struct{}, 1<<16)
	client(b, url, func(*Conn, []byte) { got <- struct{}{} })
	s := <-conns
	m := []byte(strings.Repeat("x", 600))
	window := 0
	for b.Loop() {
		s.Send(m)
		if window++; window > 1000 {
			<-got
			window--
		}
	}
	for ; window > 0; window-- {
		<-got
	}
}

// BenchmarkIdleConnection reports what one idle connection keeps: heap and stack, of the server's end and a bare client.
func BenchmarkIdleConnection(b *testing.B) {
	const n = 500
	ready := make(chan struct{}, n)
	url := server(b, Options{}, func(c *Conn) func([]byte, bool) {
		ready <- struct{}{}
		return func([]byte, bool) {}
	})
	measure := func() uint64 {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapInuse + m.StackInuse
	}
	for b.Loop() {
		before := measure()
		var conns []net.Conn
		for range n {
			nc, err := net.Dial("tcp", strings.TrimPrefix(url, "ws://"))
			if err != nil {
				b.Fatal(err)
			}
			fmt.Fprintf(nc, "GET / HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n")
			<-ready
			conns = append(conns, nc)
		}
		b.ReportMetric(float64(measure()-before)/n, "B/conn")
		for _, nc := range conns {
			nc.Close()
		}
	}
}
