package link

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"
)

// plain is a connection over a real socket, and the client's plain end of it.
func plain(t *testing.T, opt Options) (*Conn, net.Conn) {
	t.Helper()
	conns := make(chan *Conn, 1)
	done := make(chan struct{})
	ts := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if c, err := Upgrade(w, r, opt); err == nil {
			conns <- c
			go func() {
				defer close(done)
				_ = c.Serve(context.Background(), func([]byte, bool) {})
			}()
		}
	}))
	t.Cleanup(ts.Close)
	far, err := net.Dial("tcp", strings.TrimPrefix(ts.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := far.Write([]byte("GET / HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n")); err != nil {
		t.Fatal(err)
	}
	c := <-conns
	t.Cleanup(func() { far.Close(); c.Close(1000, ""); <-done })
	return c, far
}

// handshaken reads the answer to the upgrade.
func handshaken(t *testing.T, far net.Conn) *bufio.Reader {
	t.Helper()
	br := bufio.NewReader(far)
	if resp, err := http.ReadResponse(br, nil); err != nil || resp.StatusCode != http.StatusSwitchingProtocols {
		t.Fatalf("handshake: %v, %v", resp, err)
	}
	return br
}

// TestUncorkNeverWaitsForAPeerThatDoesNotRead fills a socket by Uncork alone, which returns each time, and then reads: what
// the socket did not take comes all the same, in order.
func TestUncorkNeverWaitsForAPeerThatDoesNotRead(t *testing.T) {
	c, far := plain(t, Options{QueueBytes: 64 << 20, QueueWait: time.Minute})
	const frames, size = 2000, 16 << 10 // more than any socket's buffers
	ended := make(chan bool)
	go func() {
		for i := range frames {
			c.Cork()
			frame := make([]byte, size)
			binary.BigEndian.PutUint32(frame, uint32(i))
			c.SendBinary(frame)
			c.Uncork(true)
		}
		close(ended)
	}()
	select {
	case <-ended:
	case <-time.After(30 * time.Second):
		t.Fatal("Uncork waits for the peer")
	}
	r := &raw{t: t, conn: far, br: handshaken(t, far)}
	for i := range frames {
		op, payload := r.read()
		if op != 2 || len(payload) != size || binary.BigEndian.Uint32(payload) != uint32(i) {
			t.Fatalf("frame %d came as %d bytes of kind %d", i, len(payload), op)
		}
	}
}

// TestFramesKeepTheirOrderWhoeverWritesThem sends some corked and some not, with pings between.
func TestFramesKeepTheirOrderWhoeverWritesThem(t *testing.T) {
	const frames = 3000
	next := uint32(0)
	all := make(chan struct{})
	conns := make(chan *Conn, 1)
	url := server(t, Options{QueueBytes: 64 << 20}, func(c *Conn) func([]byte, bool) {
		conns <- c
		return func([]byte, bool) {}
	})
	client(t, url, func(_ *Conn, b []byte) {
		if got := binary.BigEndian.Uint32(b); got != next {
			t.Errorf("frame %d came when %d was due", got, next)
		}
		if next++; next == frames {
			close(all)
		}
	})
	c := <-conns
	for i := range frames {
		frame := binary.BigEndian.AppendUint32(nil, uint32(i))
		switch i % 4 {
		case 0:
			c.SendBinary(frame)
		case 1:
			c.Cork()
			c.SendBinary(frame)
		case 2:
			c.SendBinary(append(frame, bytes.Repeat([]byte{1}, 3000)...))
			c.Probe()
			c.Uncork(true)
		case 3:
			c.Cork()
			c.SendBinary(frame)
			c.Uncork(i%8 == 3)
		}
	}
	<-all
}

func TestWhatIsCorkedIsWrittenBeforeTheFarewell(t *testing.T) {
	c, far := plain(t, Options{})
	c.Cork()
	c.Send([]byte("last words"))
	c.Close(1000, "done")
	r := &raw{t: t, conn: far, br: handshaken(t, far)}
	if op, payload := r.read(); op != 1 || string(payload) != "last words" {
		t.Fatalf("got kind %d with %q", op, payload)
	}
	if code, reason := r.readClose(); code != 1000 || reason != "done" {
		t.Errorf("closed with %d %q", code, reason)
	}
}

// TestAConnectionEndsWithAnUncorkThatFails: its frames are gone, so nothing may follow them.
func TestAConnectionEndsWithAnUncorkThatFails(t *testing.T) {
	conns := make(chan *Conn, 1)
	ts := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if c, err := Upgrade(w, r, Options{}); err == nil {
			conns <- c // without its loops: nobody else may notice
		}
	}))
	t.Cleanup(ts.Close)
	far, err := net.Dial("tcp", strings.TrimPrefix(ts.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { far.Close() })
	if _, err := far.Write([]byte("GET / HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n")); err != nil {
		t.Fatal(err)
	}
	c := <-conns
	t.Cleanup(func() { c.wire.Conn.Close() })
	c.wire.arm(-time.Second, time.Minute)
	if err := c.ws.WriteMessage(websocket.TextMessage, []byte("too late")); err == nil {
		t.Fatal("a write after its time went through")
	}
	c.wire.arm(time.Minute, time.Minute)
	if c.wire.raw == nil {
		t.Skip("no Uncork writes here")
	}
	c.put(false)
	c.Cork()
	if !c.Send([]byte("lost")) {
		t.Fatal("not taken")
	}
	if c.Uncork(true) {
		t.Error("Uncork says that all is written")
	}
	select {
	case <-c.Done():
	default:
		t.Error("the connection goes on")
	}
	if c.Send([]byte("behind a gap")) || c.written != 0 {
		t.Errorf("a frame is taken behind those that are gone, and %d count as written", c.written)
	}
}
