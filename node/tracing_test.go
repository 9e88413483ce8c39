package node

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/api"
)

// seenSpan is a span as a collector reads it.
type seenSpan struct {
	TraceID      string `json:"traceId"`
	SpanID       string `json:"spanId"`
	ParentSpanID string `json:"parentSpanId"`
	Name         string `json:"name"`
	Start        string `json:"startTimeUnixNano"`
	End          string `json:"endTimeUnixNano"`
	node         string
}

// fakeCollector takes spans by OTLP/HTTP.
type fakeCollector struct {
	url   string
	spans chan seenSpan
	byKey map[string]seenSpan // name and trace
}

func collect(t *testing.T) *fakeCollector {
	t.Helper()
	c := &fakeCollector{spans: make(chan seenSpan, 1024), byKey: map[string]seenSpan{}}
	srv := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var body struct {
			ResourceSpans []struct {
				Resource struct {
					Attributes []struct {
						Key   string
						Value struct{ StringValue string }
					}
				}
				ScopeSpans []struct{ Spans []seenSpan }
			}
		}
		raw, err := io.ReadAll(r.Body)
		if err != nil {
			return // who sent it gave up in the middle
		}
		if err := json.Unmarshal(raw, &body); err != nil {
			t.Errorf("%v: %s", err, raw)
		}
		for _, rs := range body.ResourceSpans {
			node := ""
			for _, a := range rs.Resource.Attributes {
				if a.Key == "host.name" {
					node = a.Value.StringValue
				}
			}
			for _, ss := range rs.ScopeSpans {
				for _, s := range ss.Spans {
					s.node = node
					c.spans <- s
				}
			}
		}
	}))
	t.Cleanup(srv.Close)
	c.url = srv.URL
	return c
}

// span waits for one of a name within a trace.
func (c *fakeCollector) span(t *testing.T, trace, name string) seenSpan {
	t.Helper()
	deadline := time.After(30 * time.Second)
	for {
		if s, ok := c.byKey[trace+" "+name]; ok {
			return s
		}
		select {
		case s := <-c.spans:
			c.byKey[s.TraceID+" "+s.Name] = s
		case <-deadline:
			t.Fatalf("no span %q in trace %s within 30 s; there are %v", name, trace, c.byKey)
		}
	}
}

// TestAMessageIsOneTraceFromNodeToNode: a Delegate that an agent sends as a part of its own trace is logged and replicated on its
// node, persisted and processed on the worker's, the report follows from it, and every span has the parent that it came of.
func TestAMessageIsOneTraceFromNodeToNode(t *testing.T) {
	c := collect(t)
	var na *Node
	a := start(t, func(cfg *Config) {
		cfg.Name, cfg.Trace.Endpoint = "devbox", c.url
		cfg.probe = func(n *Node) { na = n }
	})
	inv, err := na.Invite(t.Context(), api.InviteRequest{Role: protocol.RoleLocal})
	if err != nil {
		t.Fatal(err)
	}
	b := start(t, func(cfg *Config) { cfg.Name, cfg.Join, cfg.Trace.Endpoint = "mac-mini", inv.Token, c.url })
	worker, main := b.attach(t, "worker"), a.attach(t, "main-agent")
	eventually(t, "both agents are known", func() bool { all, err := na.Agents(t.Context()); return err == nil && len(all) == 2 })

	const of, root = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
	main.send(t, map[string]any{"type": "CUSTOM", "name": "Delegate", "targetAgentId": "worker", "msgId": "d-1", "traceparent": "00-" + of + "-" + root + "-01",
		"value": map[string]any{"task": "count"}})
	got := worker.next(t, "Delegate")
	worker.send(t, map[string]any{"type": "CUSTOM", "name": "AckProcessed", "targetAgentId": "main-agent", "value": map[string]any{"ackFor": "d-1"}})
	worker.send(t, map[string]any{"type": "CUSTOM", "name": "WorkerReport", "targetAgentId": "main-agent", "msgId": "r-1",
		"value": map[string]any{"re_msgId": "d-1", "status": "done", "outcome": "done", "summary": "three"}})
	report := main.next(t, "WorkerReport")

	logged := c.span(t, of, "logged Delegate")
	if p, ok := protocol.ParseTraceParent(got.TraceParent); !ok || got.TraceParent != "00-"+of+"-"+logged.SpanID+"-01" {
		t.Errorf("the worker was given %q, %v", got.TraceParent, p)
	}
	persisted := c.span(t, of, "persisted Delegate")
	reported := c.span(t, of, "logged WorkerReport")
	for _, want := range []struct{ name, parent, node string }{
		{"logged Delegate", root, "devbox"},
		{"replicated Delegate", logged.SpanID, "devbox"},
		{"persisted Delegate", logged.SpanID, "mac-mini"},
		{"processed Delegate", persisted.SpanID, "mac-mini"},
		{"logged WorkerReport", logged.SpanID, "mac-mini"},
		{"replicated WorkerReport", reported.SpanID, "mac-mini"},
		{"persisted WorkerReport", reported.SpanID, "devbox"},
	} {
		s := c.span(t, of, want.name)
		if s.ParentSpanID != want.parent || s.node != want.node || s.Start > s.End || len(s.Start) != len(s.End) {
			t.Errorf("%s of %s below %s, from %s to %s; want one of %s below %s", s.Name, s.node, s.ParentSpanID, s.Start, s.End, want.node, want.parent)
		}
	}
	if report.TraceParent != "00-"+of+"-"+reported.SpanID+"-01" {
		t.Errorf("the report came with %q", report.TraceParent)
	}

	// What nobody traced begins a trace of its own; what is no traceparent is not passed on.
	main.send(t, map[string]any{"type": "CUSTOM", "name": "Inform", "targetAgentId": "worker", "msgId": "i-1", "traceparent": "00-nonsense", "value": map[string]any{}})
	own, ok := protocol.ParseTraceParent(worker.next(t, "Inform").TraceParent)
	if !ok || !own.Sampled {
		t.Fatalf("a message without a trace has %+v", own)
	}
	if s := c.span(t, own.String()[3:35], "logged Inform"); s.ParentSpanID != "" {
		t.Errorf("the first span of a trace is below %s", s.ParentSpanID)
	}
}

// TestWithoutAnEndpointTracesOnlyPassThrough: nothing begins a trace, nothing is sent, and what others began goes on.
func TestWithoutAnEndpointTracesOnlyPassThrough(t *testing.T) {
	var n *Node
	r := start(t, func(c *Config) { c.probe = func(o *Node) { n = o } })
	main, worker := r.attach(t, "main-agent"), r.attach(t, "worker")
	const given = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00"
	for id, trace := range map[string]string{"plain": "", "traced": given} {
		main.send(t, map[string]any{"type": "CUSTOM", "name": "Delegate", "targetAgentId": "worker", "msgId": id, "traceparent": trace, "value": map[string]any{"task": "x"}})
		if got := worker.next(t, "Delegate"); got.MsgID != id || got.TraceParent != trace {
			t.Errorf("%s came as %s with %q, want %q", id, got.MsgID, got.TraceParent, trace)
		}
		worker.send(t, map[string]any{"type": "CUSTOM", "name": "WorkerReport", "targetAgentId": "main-agent", "msgId": "r-" + id, "value": map[string]any{"re_msgId": id, "status": "done"}})
		if got := main.next(t, "WorkerReport"); got.TraceParent != trace {
			t.Errorf("the report on %s has %q, want %q", id, got.TraceParent, trace)
		}
	}
	if n.traces != nil {
		t.Error("there is an exporter")
	}
}

// TestARunnerIsToldItsTrace, and a command that it starts sends as a part of it.
func TestARunnerIsToldItsTrace(t *testing.T) {
	const given = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	if env := traceEnv(&protocol.Envelope{Trace: given}); env["TRACEPARENT"] != given {
		t.Errorf("got %v", env)
	}
	if env := traceEnv(&protocol.Envelope{}); env != nil {
		t.Errorf("without a trace: %v", env)
	}
	var n *Node
	r := start(t, func(c *Config) { c.probe = func(o *Node) { n = o } })
	worker := r.attach(t, "worker")
	if _, err := n.Send(t.Context(), api.SendRequest{From: "main-agent", To: "worker", Intent: "Inform", Value: json.RawMessage(`{}`), Trace: given}); err != nil {
		t.Fatal(err)
	}
	if got := worker.next(t, "Inform"); got.TraceParent != given {
		t.Errorf("it came with %q", got.TraceParent)
	}
}
