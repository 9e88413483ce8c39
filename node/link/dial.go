package link

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/gorilla/websocket"
)

// handshakeWait bounds the HTTP part of a connection.
const handshakeWait = 10 * time.Second

// readBufferBytes and the shared pool of write buffers keep an idle connection small: some 10 KiB with both goroutines.
const readBufferBytes = 1 << 10

var writeBuffers sync.Pool

// Upgrade turns a request into a connection, without compression (its limit would count compressed bytes). Who may connect,
// by Origin, Host, key or session, the caller has decided before. On error the client has been answered. The handler should
// return soon after, so that the HTTP server's buffers go; Serve belongs into a goroutine of the caller's.
func Upgrade(w http.ResponseWriter, r *http.Request, opt Options) (*Conn, error) {
	opt.fill()
	up := websocket.Upgrader{
		HandshakeTimeout: handshakeWait,
		ReadBufferSize:   readBufferBytes,
		WriteBufferPool:  &writeBuffers,
		Subprotocols:     opt.Subprotocols,
		CheckOrigin:      func(*http.Request) bool { return true },
	}
	h := &hijacker{ResponseWriter: w}
	ws, err := up.Upgrade(h, r, opt.Header)
	if err != nil {
		return nil, fmt.Errorf("upgrade to websocket: %w", err)
	}
	return newConn(ws, h.wire, opt), nil
}

// hijacker puts our wire under the WebSocket.
type hijacker struct {
	http.ResponseWriter
	wire *wire
}

func (h *hijacker) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, rw, err := http.NewResponseController(h.ResponseWriter).Hijack()
	if err != nil {
		return nil, nil, err
	}
	h.wire = &wire{Conn: conn}
	return h.wire, rw, nil
}

// RefusedError is a server's answer that was no upgrade.
type RefusedError struct {
	Status     int
	Body       string        // its beginning
	RetryAfter time.Duration // what it asks for; 0: nothing, or no number of seconds
}

func (e *RefusedError) Error() string { return fmt.Sprintf("the server answered %d", e.Status) }

// Dial connects to a ws:// or wss:// address. A server that answers but does not upgrade gives a *RefusedError.
func Dial(ctx context.Context, url string, header http.Header, opt Options) (*Conn, error) {
	var d net.Dialer
	return dial(ctx, url, header, opt, d.DialContext)
}

func dial(ctx context.Context, url string, header http.Header, opt Options, connect func(context.Context, string, string) (net.Conn, error)) (*Conn, error) {
	opt.fill()
	var w *wire
	d := websocket.Dialer{
		Proxy:            http.ProxyFromEnvironment,
		HandshakeTimeout: handshakeWait,
		ReadBufferSize:   readBufferBytes,
		WriteBufferPool:  &writeBuffers,
		Subprotocols:     opt.Subprotocols,
		NetDialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			conn, err := connect(ctx, network, addr)
			if err != nil {
				return nil, err
			}
			w = &wire{Conn: conn}
			return w, nil
		},
	}
	ws, resp, err := d.DialContext(ctx, url, header)
	if err != nil {
		if resp != nil {
			body, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<10))
			seconds, _ := strconv.ParseUint(resp.Header.Get("Retry-After"), 10, 31)
			return nil, fmt.Errorf("dial: %w", &RefusedError{resp.StatusCode, string(body), time.Duration(seconds) * time.Second})
		}
		return nil, fmt.Errorf("dial: %w", err)
	}
	c := newConn(ws, w, opt)
	c.client = true
	return c, nil
}
