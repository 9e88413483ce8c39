package link

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/aster-mesh/aster/protocol"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// pipeWriter is a ResponseWriter whose connection is one end of a pipe.
type pipeWriter struct {
	conn   net.Conn
	header http.Header
}

func (w *pipeWriter) Header() http.Header { return w.header }
func (w *pipeWriter) WriteHeader(int)     {}
func (w *pipeWriter) Write(b []byte) (int, error) {
	return len(b), errors.New("the handshake failed: " + string(b))
}
func (w *pipeWriter) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	return w.conn, bufio.NewReadWriter(bufio.NewReader(w.conn), bufio.NewWriter(w.conn)), nil
}

// accept upgrades one end of a pipe.
func accept(t *testing.T, conn net.Conn, opt Options) *Conn {
	t.Helper()
	req, err := http.ReadRequest(bufio.NewReader(conn))
	if err != nil {
		t.Error(err)
		return nil
	}
	c, err := Upgrade(&pipeWriter{conn, http.Header{}}, req, opt)
	if err != nil {
		t.Error(err)
	}
	return c
}

// raw is a client that writes its own bytes.
type raw struct {
	t    *testing.T
	conn net.Conn
	br   *bufio.Reader
}

// newRaw connects a raw client to a new server connection over a pipe.
func newRaw(t *testing.T, opt Options) (*Conn, *raw) {
	t.Helper()
	near, far := net.Pipe()
	done := make(chan *Conn, 1)
	go func() { done <- accept(t, far, opt) }()
	r := &raw{t, near, bufio.NewReader(near)}
	fmt.Fprintf(near, "GET /ws HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n")
	resp, err := http.ReadResponse(r.br, nil)
	if err != nil || resp.StatusCode != 101 {
		t.Fatalf("handshake: %v, %v", resp, err)
	}
	if ext := resp.Header.Get("Sec-WebSocket-Extensions"); ext != "" {
		t.Errorf("extension %q was agreed on", ext)
	}
	return <-done, r
}

// frame is one masked frame (with a mask of zeros).
func frame(op byte, payload []byte) []byte {
	b := []byte{0x80 | op}
	switch n := len(payload); {
	case n < 126:
		b = append(b, 0x80|byte(n))
	case n < 1<<16:
		b = binary.BigEndian.AppendUint16(append(b, 0x80|126), uint16(n))
	default:
		b = binary.BigEndian.AppendUint64(append(b, 0x80|127), uint64(n))
	}
	return append(append(b, 0, 0, 0, 0), payload...)
}

func (r *raw) write(b ...[]byte) {
	var all []byte
	for _, x := range b {
		all = append(all, x...)
	}
	_, _ = r.conn.Write(all) // the server may have closed
}

// read returns the next frame from the server; op 0 is the end.
func (r *raw) read() (op byte, payload []byte) {
	var h [2]byte
	if _, err := io.ReadFull(r.br, h[:]); err != nil {
		return 0, nil
	}
	n := uint64(h[1] & 0x7f)
	switch n {
	case 126:
		var l [2]byte
		_, _ = io.ReadFull(r.br, l[:])
		n = uint64(binary.BigEndian.Uint16(l[:]))
	case 127:
		var l [8]byte
		_, _ = io.ReadFull(r.br, l[:])
		n = binary.BigEndian.Uint64(l[:])
	}
	payload = make([]byte, n)
	if _, err := io.ReadFull(r.br, payload); err != nil {
		return 0, nil
	}
	return h[0] & 0xf, payload
}

// readClose reads up to the close frame.
func (r *raw) readClose() (code int, reason string) {
	r.t.Helper()
	for {
		op, p := r.read()
		switch {
		case op == 0:
			r.t.Error("the socket ended without a close frame")
			return 0, ""
		case op == 8 && len(p) < 2:
			return 1005, ""
		case op == 8:
			return int(binary.BigEndian.Uint16(p)), string(p[2:])
		}
	}
}

// served runs Serve and collects what it hands over.
type served struct {
	mu   sync.Mutex
	got  []string
	err  error
	done chan struct{}
}

func serve(ctx context.Context, c *Conn, each func(string)) *served {
	s := &served{done: make(chan struct{})}
	go func() {
		defer close(s.done)
		s.err = c.Serve(ctx, func(data []byte, _ bool) {
			s.mu.Lock()
			s.got = append(s.got, string(data))
			s.mu.Unlock()
			if each != nil {
				each(string(data))
			}
		})
	}()
	return s
}

func (s *served) messages() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.got...)
}

func wantClose(t *testing.T, err error, code int, remote bool) {
	t.Helper()
	var ce *CloseError
	if !errors.As(err, &ce) || ce.Code != code || ce.Remote != remote {
		t.Errorf("got reason %v, want close %d (by the peer: %v)", err, code, remote)
	}
}

func TestNothingIsHandedOverAfterCloseInsideOneSegment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, r := newRaw(t, Options{})
		s := serve(t.Context(), c, func(string) {
			c.Send([]byte("rejected"))
			c.Close(4403, "key-identity-mismatch")
		})
		go r.write(frame(1, []byte("hello")), frame(1, []byte("forged")), frame(1, []byte("forged again")))
		if op, p := r.read(); op != 1 || string(p) != "rejected" {
			t.Errorf("got frame %d %q before the close, want what was sent before it", op, p)
		}
		if code, reason := r.readClose(); code != 4403 || reason != "key-identity-mismatch" {
			t.Errorf("got close %d %q", code, reason)
		}
		r.write(frame(8, []byte{0x11, 0x33}))
		<-s.done
		if got := s.messages(); len(got) != 1 {
			t.Errorf("handed over %q, want only the first", got)
		}
		wantClose(t, s.err, 4403, false)
	})
}

func TestPeersCloseCodeIsEchoed(t *testing.T) {
	for _, code := range []int{1000, 1001, 4001, 1005} {
		synctest.Test(t, func(t *testing.T) {
			c, r := newRaw(t, Options{})
			s := serve(t.Context(), c, nil)
			payload := binary.BigEndian.AppendUint16(nil, uint16(code))
			if code == 1005 {
				payload = nil
			}
			r.write(frame(8, payload))
			if got, _ := r.readClose(); got != code {
				t.Errorf("got close %d, want %d back", got, code)
			}
			<-s.done
			wantClose(t, s.err, code, true)
			if c.Send([]byte("x")) {
				t.Error("Send took a frame after the end")
			}
		})
	}
}

func TestOffencesCloseWithTheirCode(t *testing.T) {
	opt := Options{LimitStranger: 1000, Limit: 4000}
	for name, tt := range map[string]struct {
		bytes []byte
		code  int
	}{
		"stranger's oversize":  {frame(1, make([]byte, 1001)), 1009},
		"announced oversize":   {frame(2, make([]byte, 4001)), 1009},
		"length with top bit":  {[]byte{0x81, 0xff, 0x80, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0}, 1009},
		"not UTF-8":            {frame(1, []byte("a\xff")), 1007},
		"unmasked":             {[]byte{0x81, 1, 'x'}, 1002},
		"reserved bit":         {[]byte{0xc1, 0x80, 0, 0, 0, 0}, 1002},
		"unknown opcode":       {frame(3, nil), 1002},
		"large control":        {frame(9, make([]byte, 126)), 1002},
		"fragmented control":   {[]byte{0x09, 0x80, 0, 0, 0, 0}, 1002},
		"lone continuation":    {frame(0, []byte("x")), 1002},
		"impossible code":      {frame(8, []byte{0x03, 0xed}), 1002}, // 1005 on the wire
		"close reason of junk": {frame(8, []byte{0x03, 0xe8, 0xff}), 1002},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, r := newRaw(t, opt)
				s := serve(t.Context(), c, nil)
				go r.write(tt.bytes)
				if code, _ := r.readClose(); code != tt.code {
					t.Errorf("got close %d, want %d", code, tt.code)
				}
				r.conn.Close()
				<-s.done
				if len(s.messages()) != 0 {
					t.Errorf("handed over %q", s.messages())
				}
				wantClose(t, s.err, tt.code, false)
			})
		})
	}
}

func TestLargeFrameRightBehindHelloWaitsForTheVerdict(t *testing.T) {
	for _, accepted := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			c, r := newRaw(t, Options{LimitStranger: 1000})
			s := serve(t.Context(), c, nil)
			big := strings.Repeat("x", 5000)
			go r.write(frame(1, []byte("hello")), frame(1, []byte(big)))
			time.Sleep(time.Second) // in the bubble: the hub judges meanwhile
			if got := s.messages(); len(got) != 1 {
				t.Fatalf("handed over %d messages before the verdict", len(got))
			}
			if accepted {
				c.Authenticated()
				synctest.Wait()
				if got := s.messages(); len(got) != 2 || got[1] != big {
					t.Errorf("handed over %d messages after the verdict, want 2", len(got))
				}
				r.conn.Close()
			} else if code, _ := r.readClose(); code != 1009 {
				t.Errorf("got close %d, want 1009", code)
			}
			r.conn.Close()
			<-s.done
		})
	}
}

func TestSilentPeerIsDeadAfterPingDead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, r := newRaw(t, Options{})
		begin := time.Now()
		s := serve(t.Context(), c, nil)
		pings := 0
		for {
			op, _ := r.read() // it reads and never answers
			if op == 0 {
				break
			}
			if op == 9 {
				pings++
			}
		}
		<-s.done
		if took := time.Since(begin); took != protocol.PingDead || pings != 2 {
			t.Errorf("dead after %v and %d pings, want %v and 2", took, pings, protocol.PingDead)
		}
		if !errors.Is(s.err, ErrDead) {
			t.Errorf("got reason %v, want ErrDead", s.err)
		}
	})
}

func TestIdlePeerThatAnswersPingsLives(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, client := pair(t, Options{}, Options{})
		a, b := serve(t.Context(), server, nil), serve(t.Context(), client, nil)
		time.Sleep(24 * time.Hour)
		if !server.Send([]byte("still here")) {
			t.Error("the connection ended")
		}
		synctest.Wait()
		if got := b.messages(); len(got) != 1 {
			t.Errorf("got %q", got)
		}
		client.Close(1000, "")
		<-a.done
		<-b.done
		wantClose(t, a.err, 1000, true)
		wantClose(t, b.err, 1000, false)
	})
}

// pair connects two Conns over a pipe.
func pair(t *testing.T, server, client Options) (*Conn, *Conn) {
	t.Helper()
	near, far := net.Pipe()
	done := make(chan *Conn, 1)
	go func() { done <- accept(t, far, server) }()
	c, err := dial(t.Context(), "ws://h/ws", nil, client, func(context.Context, string, string) (net.Conn, error) { return near, nil })
	if err != nil {
		t.Fatal(err)
	}
	return <-done, c
}

func TestPingIsAnsweredWithItsPayload(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, r := newRaw(t, Options{})
		s := serve(t.Context(), c, nil)
		r.write(frame(9, []byte("mark")))
		if op, p := r.read(); op != 10 || string(p) != "mark" {
			t.Errorf("got %d %q, want the pong", op, p)
		}
		r.conn.Close()
		<-s.done
		if !errors.Is(s.err, io.ErrUnexpectedEOF) {
			t.Errorf("got reason %v for a socket that was cut", s.err)
		}
	})
}

func TestSlowReaderCostsItsQueueAndIsClosedWith1013(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, r := newRaw(t, Options{QueueBytes: 100_000})
		s := serve(t.Context(), c, nil)
		frameOf := make([]byte, 1000)
		most, sent := 0, 0
		for c.Send(frameOf) {
			most = max(most, c.Waiting())
			sent++
			synctest.Wait()
		}
		if most > 100_000 || sent > 100 {
			t.Errorf("%d bytes waited in %d frames, limit 100000", most, sent)
		}
		if c.Waiting() != 0 {
			t.Errorf("%d bytes still wait after the close", c.Waiting())
		}
		if code, _ := r.readClose(); code != 1013 { // it wakes up within the closing time
			t.Errorf("got close %d, want 1013", code)
		}
		r.conn.Close()
		<-s.done
		wantClose(t, s.err, 1013, false)
	})
}

func TestReaderThatStopsIsGoneAfterTheQueuesWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, r := newRaw(t, Options{})
		defer r.conn.Close()
		s := serve(t.Context(), c, nil)
		begin := time.Now()
		c.Send([]byte("a"))
		<-s.done
		if took := time.Since(begin); took != protocol.LinkQueueWait {
			t.Errorf("gone after %v, want %v", took, protocol.LinkQueueWait)
		}
		wantClose(t, s.err, 1013, false)
	})
}

func TestFrameLargerThanTheQueueWaitsItsTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, client := pair(t, Options{QueueBytes: 10_000}, Options{})
		client.Authenticated()
		big := []byte(strings.Repeat("b", 2<<20))
		for i, f := range [][]byte{[]byte("before"), big, []byte("after")} {
			if !server.Send(f) {
				t.Fatalf("frame %d was not taken", i)
			}
		}
		a, b := serve(t.Context(), server, nil), serve(t.Context(), client, nil)
		synctest.Wait()
		if got := b.messages(); len(got) != 3 || got[0] != "before" || len(got[1]) != len(big) || got[2] != "after" {
			t.Errorf("got %d messages, want all three in order", len(got))
		}
		for range 3 { // one after the other, not only once
			server.Send(big)
			synctest.Wait()
		}
		if got := b.messages(); len(got) != 6 {
			t.Errorf("got %d messages, want 6", len(got))
		}
		server.Send(big)
		if first, second := server.Send(big), server.Send(big); first && second {
			t.Error("several frames above the limit wait at once")
		}
		<-a.done
		<-b.done
		wantClose(t, a.err, 1013, false)
	})
}

func TestPongBehindAFrameShowsThatItWasRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var read []uint64
		server, client := pair(t, Options{OnRead: func(seq uint64) { read = append(read, seq) }}, Options{})
		a, b := serve(t.Context(), server, nil), serve(t.Context(), client, nil)
		server.Send([]byte("1"))
		seq, _ := server.SendCounted([]byte("2"))
		server.Probe()
		synctest.Wait()
		if len(read) != 1 || read[0] != seq || seq != 2 {
			t.Errorf("read %v, want [2]", read)
		}
		if got := b.messages(); len(got) != 2 {
			t.Errorf("got %q", got)
		}
		server.Close(1000, "")
		<-a.done
		<-b.done
	})
}

func TestPongForWhatWasNeverSentIsIgnored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, r := newRaw(t, Options{OnRead: func(seq uint64) { t.Errorf("a lie was believed: %d", seq) }})
		s := serve(t.Context(), c, nil)
		r.write(frame(10, []byte{0, 0, 0, 0, 0, 0, 0, 9}), frame(10, []byte("short")), frame(10, nil))
		r.conn.Close()
		<-s.done
	})
}

func TestEndOfContextTellsThePeer1001(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		server, client := pair(t, Options{}, Options{})
		a, b := serve(ctx, server, nil), serve(t.Context(), client, nil)
		synctest.Wait()
		server.Send([]byte("last words"))
		cancel()
		<-a.done
		<-b.done
		wantClose(t, a.err, 1001, false)
		wantClose(t, b.err, 1001, true)
		if got := b.messages(); len(got) != 1 {
			t.Errorf("got %q, want what was sent before", got)
		}
	})
}

func TestPeerThatIgnoresOurCloseIsLeftAfterAMoment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, r := newRaw(t, Options{})
		defer r.conn.Close()
		c.Close(4003, strings.Repeat("é", 100)) // before Serve, too
		begin := time.Now()
		s := serve(t.Context(), c, nil)
		if code, reason := r.readClose(); code != 4003 || len(reason) != 122 {
			t.Errorf("got close %d with %d bytes of reason, want 4003 and 122", code, len(reason))
		}
		<-s.done
		if took := time.Since(begin); took != closeWait {
			t.Errorf("left after %v, want %v", took, closeWait)
		}
	})
}

func TestTricklingLargeMessageIsNotTakenForDead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, r := newRaw(t, Options{})
		go func() { // it reads pings and cannot answer them inside a frame
			for op := byte(1); op != 0; {
				op, _ = r.read()
			}
		}()
		s := serve(t.Context(), c, nil)
		for _, b := range frame(1, []byte("slow as can be")) {
			r.write([]byte{b})
			time.Sleep(10 * time.Second)
		}
		if got := s.messages(); len(got) != 1 {
			t.Errorf("got %q", got)
		}
		r.conn.Close()
		<-s.done
	})
}
