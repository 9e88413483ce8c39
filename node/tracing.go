package node

import (
	"cmp"
	"fmt"
	"time"

	"github.com/aster-mesh/aster/node/hub"
	"github.com/aster-mesh/aster/node/journal"
	"github.com/aster-mesh/aster/node/trace"
	"github.com/aster-mesh/aster/protocol"
)

// TraceConfig is [trace]. Without an endpoint no message begins a trace and nothing is sent.
type TraceConfig struct {
	Endpoint string `toml:"endpoint"` // of an OTLP/HTTP collector, such as http://127.0.0.1:4318
}

// tracing is what the loop knows of spans. Owned by the loop.
type tracing struct {
	out *trace.Exporter // nil: off
	// parents are of messages said since the last commit: the span that each one's own span is a child of.
	parents map[[8]byte][8]byte
}

// parentsMax bounds what was said and not written: refused, mostly.
const parentsMax = 4096

// TracePlace is a collector's address without what may be a secret.
func TracePlace(endpoint string) string { return trace.Place(endpoint) }

// traceWarnings says that the collector does not take this node's spans.
func (n *Node) traceWarnings() []string {
	place, dropped := n.traces.Failing()
	if place == "" {
		return nil
	}
	return []string{fmt.Sprintf("spans do not reach %s: %d dropped. Start the collector there, or change endpoint of [trace] in config.toml and start the node again", place, dropped)}
}

// CheckTraceEndpoint says whether a text is a collector's address.
func CheckTraceEndpoint(s string) error { return trace.CheckEndpoint(s) }

// traceVariable is where programs look for the trace that they are a part of.
const traceVariable = "TRACEPARENT"

// traceEnv is what a runner of a Delegate is told of its trace.
func traceEnv(env *protocol.Envelope) map[string]string {
	if env.Trace == "" {
		return nil
	}
	return map[string]string{traceVariable: env.Trace}
}

// openTraces makes the exporter, if the configuration names a collector.
func (n *Node) openTraces() error {
	if n.cfg.Trace.Endpoint == "" {
		return nil
	}
	out, err := trace.New(trace.Config{
		Endpoint: n.cfg.Trace.Endpoint, Node: n.home.mesh.Name, Instance: string(n.home.peer), Version: n.cfg.Version, Log: n.log,
	})
	if err != nil {
		return err
	}
	n.traces, n.loop.tracing = out, tracing{out, map[[8]byte][8]byte{}}
	return nil
}

// traced gives a message its span: below the one that its sender names, else below that of the message it answers, else the
// first of a trace. Without a collector a trace that others began goes on as it came.
func (l *loop) traced(in *hub.Say) {
	parent, continues := protocol.ParseTraceParent(in.Env.Trace)
	if !continues {
		parent, continues = protocol.ParseTraceParent(l.traceAnswered(in))
	}
	in.Env.Trace = ""
	switch {
	case l.tracing.out == nil && continues:
		in.Env.Trace = parent.String()
	case l.tracing.out != nil && in.Seen == nil:
		own := trace.Begin(parent, continues)
		if len(l.tracing.parents) >= parentsMax {
			clear(l.tracing.parents)
		}
		l.tracing.parents[own.Span] = parent.Span
		in.Env.Trace = own.String()
	}
}

// traceAnswered is the span of the message that another answers. Without a collector only that of a Delegate is looked for, which
// is at hand.
func (l *loop) traceAnswered(in *hub.Say) string {
	if in.Parent != nil {
		return in.Parent.Trace
	}
	if l.tracing.out == nil || in.Env.Re == "" {
		return ""
	}
	m, ok, err := l.store.MessageByID("", in.Env.Re)
	if err != nil || !ok {
		return ""
	}
	return m.Envelope.Trace
}

// spans tells the collector what a commit brought about.
func (l *loop) spans(entries []journal.Entry) {
	if l.tracing.out == nil {
		return
	}
	for i := range entries {
		switch e := &entries[i]; {
		case e.Envelope != nil && e.Envelope.Trace != "":
			l.loggedSpan(e)
		case e.Record.Kind == protocol.KindReceipts && e.Record.Log.Peer == l.n.home.peer && e.Record.Log.Start == l.n.startID:
			l.receiptSpans(&e.Record)
		}
	}
	clear(l.tracing.parents)
}

// loggedSpan is the message's own: from when its node took it until it was on disk there.
func (l *loop) loggedSpan(e *journal.Entry) {
	m := l.recent.get(hub.Ref{Log: e.Record.Log, Seq: e.Record.Seq})
	if m != nil {
		m.came = l.now
	}
	p, ok := protocol.ParseTraceParent(e.Envelope.Trace)
	if !ok || e.Envelope.Copy || e.Record.Log.Peer != l.n.home.peer || e.Record.Log.Start != l.n.startID {
		return
	}
	l.span(p, trace.Span{ID: p.Span, Parent: l.tracing.parents[p.Span], Start: l.now}, protocol.Logged, e.Envelope, e.Envelope.To)
}

// replicatedSpan ends when another node has told that the message is on its disk.
func (l *loop) replicatedSpan(o hub.TierReached, m *recentMessage) {
	if l.tracing.out == nil || o.Tier != protocol.Replicated || o.Delivered || o.Kept || o.Ref.Log.Peer != l.n.home.peer {
		return
	}
	if p, ok := protocol.ParseTraceParent(m.env.Trace); ok {
		l.span(p, trace.Span{ID: trace.StepID(p, m.env.ID, o.Tier, ""), Parent: p.Span, Start: time.UnixMilli(m.wall)}, o.Tier, m.env, m.env.To)
	}
}

// receiptSpans are those of messages that a receipt of this node's tells about.
func (l *loop) receiptSpans(r *protocol.Record) {
	body, err := protocol.DecodeBody[protocol.ReceiptsBody](r)
	if err != nil {
		return
	}
	refs, _ := hub.Refs(body.Of)
	for _, ref := range refs {
		l.receiptSpan(&body, ref)
	}
}

func (l *loop) receiptSpan(body *protocol.ReceiptsBody, ref hub.Ref) {
	m := l.recent.get(ref)
	if m == nil {
		stored, ok, err := l.store.Message(ref.Log, ref.Seq)
		if err != nil || !ok {
			return
		}
		m = &recentMessage{env: &stored.Envelope}
		for _, t := range stored.Tiers {
			if t.Tier == protocol.Persisted {
				m.kept = t.At.Time()
			}
		}
	}
	p, ok := protocol.ParseTraceParent(m.env.Trace)
	if !ok {
		return
	}
	agent := cmp.Or(body.Agent, m.env.To)
	s := trace.Span{ID: trace.StepID(p, m.env.ID, body.Tier, agent), Parent: p.Span, Start: m.came}
	if body.Tier == protocol.Persisted {
		m.kept = l.now
	} else if !m.kept.IsZero() {
		s.Start, s.Parent = m.kept, trace.StepID(p, m.env.ID, protocol.Persisted, agent)
	}
	if body.Tier == protocol.Refused {
		s.Failed = cmp.Or(body.Reason, "refused")
	}
	l.span(p, s, body.Tier, m.env, agent)
}

// span ends a span now and puts it on its way. It carries names and ids, none of the words.
func (l *loop) span(p protocol.TraceParent, s trace.Span, tier protocol.Tier, env *protocol.Envelope, to protocol.AgentID) {
	if !p.Sampled {
		return
	}
	s.Trace, s.Name, s.End = p.Trace, string(tier)+" "+string(env.Intent), time.Now()
	if s.Start.IsZero() {
		s.Start = l.now
	}
	if s.Start.After(s.End) {
		s.Start = s.End
	}
	s.Tags = []trace.Tag{
		{Key: "messaging.system", Value: "aster"}, {Key: "messaging.message.id", Value: string(env.ID)}, {Key: "aster.intent", Value: string(env.Intent)},
		{Key: "aster.tier", Value: string(tier)}, {Key: "aster.from", Value: string(env.From)}, {Key: "aster.to", Value: string(to)},
		{Key: "aster.room", Value: string(env.Room)}, {Key: "aster.re", Value: string(env.Re)},
	}
	l.tracing.out.Put(s)
}
