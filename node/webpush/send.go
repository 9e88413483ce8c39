package webpush

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"time"

	"github.com/aster-mesh/aster/protocol"
)

const (
	sendWithin    = 20 * time.Second
	resolveWithin = 5 * time.Second
	answerBytes   = 4 << 10 // of an answer that nobody reads
	waitMax       = time.Hour
)

// Sender delivers notes. Make one with NewSender.
type Sender struct {
	client *http.Client

	// Changed by tests only, before the first use.
	resolve func(ctx context.Context, host string) ([]netip.Addr, error)
	dial    func(ctx context.Context, to netip.AddrPort) (net.Conn, error)
	roots   *x509.CertPool // nil: the system's
}

// NewSender makes a Sender. It starts nothing.
func NewSender() *Sender {
	s := &Sender{
		resolve: func(ctx context.Context, host string) ([]netip.Addr, error) {
			return net.DefaultResolver.LookupNetIP(ctx, "ip", host)
		},
		dial: func(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, "tcp", to.String())
		},
	}
	s.client = &http.Client{
		Timeout:       sendWithin,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }, // whoever is asked answers itself
		Transport: &http.Transport{ // without a proxy: what it would reach cannot be checked
			DialTLSContext: s.dialTLS,
			DialContext: func(context.Context, string, string) (net.Conn, error) {
				return nil, errors.New("only https is spoken")
			},
			DisableKeepAlives: true, // so that each delivery looks where its name stands now
		},
	}
	return s
}

// Check says whether notes may go to endpoint: by its name, and by what the name stands for now.
func (s *Sender) Check(ctx context.Context, endpoint string) *protocol.Refusal {
	u, no := checkEndpoint(endpoint)
	if no != nil {
		return no
	}
	_, err := s.addresses(ctx, u.Hostname())
	if errors.As(err, &no) {
		return no
	}
	if err != nil {
		return protocol.Refuse(protocol.CodeUnreachable, "this node does not find the push service %s", "Notifications by web push need a node that reaches the Internet", u.Hostname())
	}
	return nil
}

// addresses are all that a name stands for. One that is not public is enough to refuse it: no push service has it.
func (s *Sender) addresses(ctx context.Context, host string) ([]netip.Addr, error) {
	ctx, cancel := context.WithTimeout(ctx, resolveWithin)
	defer cancel()
	all, err := s.resolve(ctx, host)
	if err != nil {
		return nil, fmt.Errorf("find %s: %w", host, err)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("find %s: it has no address", host)
	}
	for _, a := range all {
		if !public(a) {
			return nil, protocol.Refuse(protocol.CodeNotAllowed, "this address is not one of a public push service: its name stands for an address that is not public", "")
		}
	}
	return all, nil
}

// dialTLS connects to one of the very addresses that were checked.
func (s *Sender) dialTLS(ctx context.Context, _, addr string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", addr, err)
	}
	if port != "443" {
		return nil, fmt.Errorf("not at port 443: %s", port)
	}
	all, err := s.addresses(ctx, host)
	if err != nil {
		return nil, err
	}
	for _, a := range all {
		var raw net.Conn
		if raw, err = s.dial(ctx, netip.AddrPortFrom(a, 443)); err != nil {
			continue
		}
		conn := tls.Client(raw, &tls.Config{ServerName: host, RootCAs: s.roots, MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}})
		if err = conn.HandshakeContext(ctx); err == nil {
			return conn, nil
		}
		_ = raw.Close()
	}
	return nil, fmt.Errorf("connect to %s: %w", host, err)
}

// Note is what is said, and how.
type Note struct {
	Text   []byte
	Life   time.Duration // how long the service keeps it for a browser that is off
	Urgent bool          // wakes a device that saves its battery
}

// Answer is what became of a note.
type Answer struct {
	OK   bool
	Gone bool          // the subscription is over: the browser or its person took it back
	Wait time.Duration // not OK, not Gone: what the service asks to wait; 0: it says nothing
	Why  string        // not OK: for the log; it names no endpoint
}

// Send delivers one note. A later note replaces one that still waits at the service.
func (s *Sender) Send(ctx context.Context, k *Key, to *Subscription, n Note, now time.Time) Answer {
	u, no := checkEndpoint(to.Endpoint)
	if no != nil {
		return Answer{Gone: true, Why: no.Reason}
	}
	sealed, err := seal(to, n.Text)
	if err != nil {
		return Answer{Gone: true, Why: err.Error()}
	}
	proof, err := k.proof(u, now)
	if err != nil {
		return Answer{Why: err.Error()}
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, to.Endpoint, bytes.NewReader(sealed))
	if err != nil {
		return Answer{Gone: true, Why: "its address cannot be asked"}
	}
	urgency := "normal"
	if n.Urgent {
		urgency = "high"
	}
	for name, value := range map[string]string{"Authorization": proof, "Content-Encoding": "aes128gcm", "Content-Type": "application/octet-stream",
		"TTL": strconv.Itoa(int(n.Life / time.Second)), "Urgency": urgency, "Topic": "aster", "User-Agent": "aster"} {
		req.Header.Set(name, value)
	}
	resp, err := s.client.Do(req)
	if err != nil {
		return failed(err, u.Hostname())
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, answerBytes))
	switch {
	case resp.StatusCode/100 == 2:
		return Answer{OK: true}
	case resp.StatusCode == http.StatusNotFound, resp.StatusCode == http.StatusGone:
		return Answer{Gone: true, Why: "the push service says that it is over"}
	}
	seconds, _ := strconv.Atoi(resp.Header.Get("Retry-After")) // a date, or nothing: our own pace
	return Answer{Wait: min(time.Duration(max(0, min(seconds, 1<<20)))*time.Second, waitMax), Why: "the push service answered " + strconv.Itoa(resp.StatusCode)}
}

// failed says what went wrong without the endpoint, which is a secret of its subscriber.
func failed(err error, host string) Answer {
	var no *protocol.Refusal
	if errors.As(err, &no) {
		return Answer{Why: no.Reason}
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return Answer{Why: host + " did not answer in time"}
	}
	return Answer{Why: host + " is not reached"}
}
