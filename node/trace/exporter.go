package trace

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"
)

const (
	queueMax  = 4096 // spans that wait
	batchMax  = 512  // spans of one request
	gatherFor = time.Second
	answerMax = 5 * time.Second
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
	client  http.Client
	told    time.Time // owned by Run
}

// CheckEndpoint says whether a text is a collector's address: http or https, a host, no password, no query.
func CheckEndpoint(s string) error {
	u, err := url.Parse(s)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return fmt.Errorf("is the address of a collector such as %q", "http://127.0.0.1:4318")
	}
	return nil
}

// New is an exporter to a collector.
func New(cfg Config) (*Exporter, error) {
	if err := CheckEndpoint(cfg.Endpoint); err != nil {
		return nil, fmt.Errorf("trace.endpoint %w", err)
	}
	return &Exporter{
		cfg: cfg, to: strings.TrimSuffix(cfg.Endpoint, "/") + "/v1/traces", queue: make(chan Span, queueMax),
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
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
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
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
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
		return true
	}
	e.dropped.Add(uint64(len(batch)))
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
		return err
	}
	defer func() { _ = res.Body.Close() }()
	_, _ = io.Copy(io.Discard, io.LimitReader(res.Body, 64<<10)) // so that the connection serves again
	if res.StatusCode/100 != 2 {
		return fmt.Errorf("the collector answers %s", res.Status)
	}
	return nil
}
