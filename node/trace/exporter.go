package trace

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

const (
	queueMax  = 4096 // spans that wait
	batchMax  = 512  // spans of one request
	gatherFor = time.Second
	answerMax = 5 * time.Second
	lastFor   = time.Second // the last try, when the node ends
	tellEvery = time.Minute // that the collector does not take them
)

// Config says where spans go.
type Config struct {
	Endpoint string // the collector's base, as CheckEndpoint wants it; spans go to v1/traces below it
	Node     string // its name, for people
	Instance string // what tells it from others
	Version  string
	Log      *slog.Logger
}

// Exporter sends spans. Make one with New; it sends nothing before Run.
type Exporter struct {
	cfg     Config
	to      string
	queue   chan Span // capacity queueMax: full means that spans are dropped
	sent    atomic.Uint64
	dropped atomic.Uint64
	failing atomic.Bool // the last batch was not taken
	client  http.Client
	told    time.Time // owned by Run
	lastFor time.Duration
}

// CheckEndpoint says whether a text is a collector's address: http or https, a host, no password, no query. Its errors name
// the reason and nothing of the text, which may be a secret.
func CheckEndpoint(s string) error {
	why := ""
	u, err := url.Parse(s)
	switch {
	case err != nil:
		why = "cannot be read"
	case u.Scheme != "http" && u.Scheme != "https":
		why = "is no http or https address"
	case u.User != nil:
		why = "holds a password"
	case u.RawQuery != "" || u.ForceQuery:
		why = "has a query"
	case u.Fragment != "":
		why = "has a fragment"
	case u.Hostname() == "":
		why = "names no host"
	case !portInRange(u.Port()):
		why = "has a port that is not 1 to 65535"
	default:
		return nil
	}
	return fmt.Errorf("is the address of a collector such as %q, and this one %s", "http://127.0.0.1:4318", why)
}

func portInRange(p string) bool {
	n, err := strconv.ParseUint(p, 10, 16)
	return p == "" || err == nil && n > 0
}

// Place is a collector's address without what may be a secret: scheme, host and port.
func Place(endpoint string) string {
	u, err := url.Parse(endpoint)
	if CheckEndpoint(endpoint) != nil || err != nil {
		return ""
	}
	return u.Scheme + "://" + u.Host
}

// New is an exporter to a collector.
func New(cfg Config) (*Exporter, error) {
	if err := CheckEndpoint(cfg.Endpoint); err != nil {
		return nil, fmt.Errorf("trace.endpoint %w", err)
	}
	return &Exporter{
		cfg: cfg, to: strings.TrimSuffix(cfg.Endpoint, "/") + "/v1/traces", queue: make(chan Span, queueMax), lastFor: lastFor,
		client: http.Client{
			Timeout: answerMax,
			// A collector that points elsewhere is not followed: what leaves goes where the configuration says.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}, nil
}

// Put takes a span, or drops it; it never waits. Without an exporter it does nothing.
func (e *Exporter) Put(s Span) {
	if e == nil {
		return
	}
	select {
	case e.queue <- s:
	default:
		e.dropped.Add(1)
	}
}

// Counts says how many spans a collector took, and how many none will have.
func (e *Exporter) Counts() (sent, dropped uint64) {
	if e == nil {
		return 0, 0
	}
	return e.sent.Load(), e.dropped.Load()
}

// Failing is the collector, as Place says it, that did not take the last spans it was sent, and how many none will have; "" while
// all is well.
func (e *Exporter) Failing() (place string, dropped uint64) {
	if e == nil || !e.failing.Load() {
		return "", 0
	}
	return Place(e.cfg.Endpoint), e.dropped.Load()
}

// Run sends what is put until ctx ends; what waits then has one more try. Without an exporter it only waits.
func (e *Exporter) Run(ctx context.Context) error {
	if e == nil {
		<-ctx.Done()
		return nil
	}
	defer e.client.CloseIdleConnections()
	for ctx.Err() == nil {
		select {
		case s := <-e.queue:
			e.gather(ctx, s)
		case <-ctx.Done():
		}
	}
	for {
		select {
		case s := <-e.queue:
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), e.lastFor)
			ok := e.send(last, e.take([]Span{s}))
			cancel()
			if !ok {
				e.dropped.Add(uint64(len(e.queue)))
				return nil
			}
		default:
			return nil
		}
	}
}

// gather waits a moment for more, so that spans go many at a time.
func (e *Exporter) gather(ctx context.Context, first Span) {
	batch := []Span{first}
	timer := time.NewTimer(gatherFor)
	defer timer.Stop()
	for len(batch) < batchMax {
		select {
		case s := <-e.queue:
			batch = append(batch, s)
			continue
		case <-timer.C:
		case <-ctx.Done():
		}
		break
	}
	if ctx.Err() != nil {
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), e.lastFor)
		defer cancel()
		ctx = last
	}
	e.send(ctx, batch)
}

// take adds what waits already.
func (e *Exporter) take(batch []Span) []Span {
	for len(batch) < batchMax {
		select {
		case s := <-e.queue:
			batch = append(batch, s)
		default:
			return batch
		}
	}
	return batch
}

// send gives a batch to the collector, once: what it does not take is dropped.
func (e *Exporter) send(ctx context.Context, batch []Span) bool {
	err := e.post(ctx, encode(&e.cfg, batch))
	if err == nil {
		e.sent.Add(uint64(len(batch)))
		e.failing.Store(false)
		return true
	}
	e.dropped.Add(uint64(len(batch)))
	e.failing.Store(true)
	if now := time.Now(); e.cfg.Log != nil && now.Sub(e.told) >= tellEvery {
		e.told = now
		e.cfg.Log.Warn("spans dropped: the collector does not take them", "spans", len(batch), "err", err)
	}
	return false
}

func (e *Exporter) post(ctx context.Context, body []byte) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, e.to, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("make request: %w", err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "aster/"+e.cfg.Version)
	res, err := e.client.Do(req)
	if err != nil {
		var told *url.Error // names the whole address
		if errors.As(err, &told) {
			err = told.Err
		}
		return fmt.Errorf("%s: %w", Place(e.cfg.Endpoint), err)
	}
	defer func() { _ = res.Body.Close() }()
	_, _ = io.Copy(io.Discard, io.LimitReader(res.Body, 64<<10)) // so that the connection serves again
	if res.StatusCode/100 != 2 {
		return fmt.Errorf("%s answers %d", Place(e.cfg.Endpoint), res.StatusCode)
	}
	return nil
}
