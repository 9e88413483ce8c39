package check

import (
	"bufio"
	"context"
	"crypto/sha1"
	"crypto/tls"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"
)

// noCode stands for a close without a code, or an end of the connection without a close.
const noCode = 1005

// socket is one connection of a vector.
type socket struct {
	// Fixed at creation.
	conn net.Conn
	news chan struct{} // capacity 1: something came since it was last taken
	done chan struct{} // closed when the reader has ended
	pack bool          // binary messages are msgpack, both ways

	// Owned by the runner.
	cursor int // frames before it were looked at
	base   int // where "!" begins
	held   []byte

	writing sync.Mutex // held across a write: the reader answers pings

	// Guarded by mu.
	mu     sync.Mutex
	got    []message
	closed bool
	code   int
	reason string
	muted  bool
}

type message struct {
	raw   []byte
	value any // nil when it is not JSON
}

// errRefused: the upgrade was answered by something else than 101. Status 0: the connection was dropped.
type errRefused struct{ status int }

func (e *errRefused) Error() string {
	if e.status == 0 {
		return "the upgrade got no answer"
	}
	return fmt.Sprintf("the upgrade was answered %d", e.status)
}

// dial opens a connection with an extra query and extra headers.
func dial(ctx context.Context, address, query string, header http.Header) (*socket, error) {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "ws" && u.Scheme != "wss" || u.Host == "" {
		return nil, fmt.Errorf("%q is no ws:// address", address)
	}
	conn, err := connect(ctx, u)
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	if path := header.Get("Path"); path != "" {
		u.Path = path
		header.Del("Path")
	}
	target := u.RequestURI()
	if query = strings.TrimPrefix(query, "?"); query != "" {
		sep := "?"
		if u.RawQuery != "" {
			sep = "&"
		}
		target += sep + query
	}
	r, agreed, err := upgrade(conn, u.Host, target, header)
	if err != nil {
		conn.Close()
		return nil, err
	}
	s := &socket{conn: conn, news: make(chan struct{}, 1), done: make(chan struct{}), pack: agreed == subprotocol}
	if header.Get("Sec-WebSocket-Protocol") != "" { // a vector may look at the answer
		s.take(message{raw: []byte("the hub agreed on " + strconv.Quote(agreed)), value: map[string]any{"agreed": agreed}})
	}
	go s.read(r)
	return s, nil
}

func connect(ctx context.Context, u *url.URL) (net.Conn, error) {
	host := u.Host
	if u.Scheme == "wss" {
		if u.Port() == "" {
			host = net.JoinHostPort(u.Hostname(), "443")
		}
		return (&tls.Dialer{}).DialContext(ctx, "tcp", host)
	}
	if u.Port() == "" {
		host = net.JoinHostPort(u.Hostname(), "80")
	}
	return (&net.Dialer{}).DialContext(ctx, "tcp", host)
}

const (
	upgradeWait = 10 * time.Second
	writeWait   = 10 * time.Second
	challenge   = "dGhlIHNhbXBsZSBub25jZQ==" // the same always: nothing is hidden from a cache on the way
	acceptGUID  = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
)

func upgrade(conn net.Conn, host, target string, header http.Header) (r *bufio.Reader, agreed string, err error) {
	var b strings.Builder
	fmt.Fprintf(&b, "GET %s HTTP/1.1\r\n", target)
	if h := header.Get("Host"); h != "" {
		host = h
	}
	fmt.Fprintf(&b, "Host: %s\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: %s\r\n", host, challenge)
	if header.Get("Sec-WebSocket-Version") == "" {
		b.WriteString("Sec-WebSocket-Version: 13\r\n")
	}
	for name, values := range header {
		for _, v := range values {
			if name != "Host" {
				fmt.Fprintf(&b, "%s: %s\r\n", name, v)
			}
		}
	}
	b.WriteString("\r\n")
	if err := conn.SetDeadline(time.Now().Add(upgradeWait)); err != nil {
		return nil, "", fmt.Errorf("set deadline: %w", err)
	}
	if _, err := conn.Write([]byte(b.String())); err != nil {
		return nil, "", &errRefused{}
	}
	r = bufio.NewReader(conn)
	resp, err := http.ReadResponse(r, nil)
	if err != nil {
		return nil, "", &errRefused{}
	}
	if resp.StatusCode != http.StatusSwitchingProtocols {
		resp.Body.Close()
		return nil, "", &errRefused{resp.StatusCode}
	}
	sum := sha1.Sum([]byte(challenge + acceptGUID))
	if resp.Header.Get("Sec-WebSocket-Accept") != base64.StdEncoding.EncodeToString(sum[:]) {
		return nil, "", errors.New("the hub's Sec-WebSocket-Accept is wrong")
	}
	return r, resp.Header.Get("Sec-WebSocket-Protocol"), conn.SetDeadline(time.Time{})
}

// read takes what comes until the connection ends. It answers pings and closes as every client does.
func (s *socket) read(r *bufio.Reader) {
	defer close(s.done)
	var parts frame
	for {
		f, err := readMessage(r, &parts)
		if err != nil {
			reason := "the connection ended without a close"
			if errors.Is(err, errFraming) {
				reason = err.Error()
			}
			s.ended(noCode, reason)
			return
		}
		switch f.op {
		case opPing:
			if !s.isMuted() {
				s.write(appendFrame(nil, opPong, f.payload))
			}
		case opPong:
			s.take(message{raw: f.payload, value: map[string]any{"pong": string(f.payload)}})
		case opClose:
			code, reason := noCode, ""
			if len(f.payload) >= 2 {
				code, reason = int(binary.BigEndian.Uint16(f.payload)), string(f.payload[2:])
			}
			s.ended(code, reason)
			s.write(appendFrame(nil, opClose, f.payload[:min(2, len(f.payload))]))
			s.conn.Close()
			return
		default:
			s.take(s.message(f))
		}
	}
}

// message reads one in the form that was agreed on; one in another form has no value.
func (s *socket) message(f frame) message {
	m := message{raw: f.payload}
	switch {
	case !s.pack:
		_ = json.Unmarshal(f.payload, &m.value) // nil says that it is none
	case f.op == opBinary:
		var err error
		if m.value, err = unpacked(f.payload); err == nil {
			if raw, err := json.Marshal(m.value); err == nil {
				m.raw = raw
			}
		}
	}
	return m
}

// saying appends a frame that says text, in the form that was agreed on.
func (s *socket) saying(b, text []byte) []byte {
	if s.pack {
		return appendFrame(b, opBinary, packed(text))
	}
	return appendFrame(b, opText, text)
}

func (s *socket) take(m message) {
	s.mu.Lock()
	s.got = append(s.got, m)
	s.mu.Unlock()
	s.ring()
}

func (s *socket) ended(code int, reason string) {
	s.mu.Lock()
	if !s.closed {
		s.closed, s.code, s.reason = true, code, reason
	}
	s.mu.Unlock()
	s.ring()
}

func (s *socket) ring() {
	select {
	case s.news <- struct{}{}:
	default:
	}
}

func (s *socket) isMuted() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.muted
}

// state returns what came so far, and how it ended if it did.
func (s *socket) state() (got []message, closed bool, code int, reason string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.got, s.closed, s.code, s.reason
}

// write sends bytes as they are, in one segment where they fit one. That the hub has gone is noticed by reading.
func (s *socket) write(b []byte) {
	s.writing.Lock()
	defer s.writing.Unlock()
	_ = s.conn.SetWriteDeadline(time.Now().Add(writeWait))
	_, _ = s.conn.Write(b)
}

// shut ends the connection without a word and waits for its reader.
func (s *socket) shut() {
	s.conn.Close()
	<-s.done
}
