package node

import (
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/aster-mesh/aster/protocol/api"
)

// figure is one row of what /metrics says of a node. Labels are layers and the version alone: no name, id or text of
// anybody, so their number is bounded.
type figure struct {
	desc *prometheus.Desc
	kind prometheus.ValueType
	of   func(*reading) float64
}

// reading is what the figures are made of, taken once a scrape and without the loop.
type reading struct {
	n       *Node
	counts  counts
	records uint64
	used    int64
	free    int64
	links   int
	queued  int
	left    api.Retention
}

func gauge(name, help string, of func(*reading) float64) figure {
	return figure{prometheus.NewDesc("aster_"+name, help, nil, nil), prometheus.GaugeValue, of}
}

func counter(name, help string, of func(*reading) float64) figure {
	return figure{prometheus.NewDesc("aster_"+name+"_total", help, nil, nil), prometheus.CounterValue, of}
}

// figures is the list that docs/watching.md explains; a test compares the two.
var figures = []figure{
	gauge("uptime_seconds", "Since this start.", func(r *reading) float64 { return time.Since(r.n.began).Seconds() }),
	counter("messages", "Messages that this node saw become durable, its own and others'.", func(r *reading) float64 { return float64(r.counts.messages) }),
	counter("redelivered", "Deliveries to an agent that were not the first.", func(r *reading) float64 { return float64(r.counts.redelivered) }),
	counter("receipts", "Persisted receipts of messages written here.", func(r *reading) float64 { return float64(r.counts.receipts) }),
	counter("receipt_delay_seconds", "Sum of the times from logged to persisted of these receipts.", func(r *reading) float64 { return float64(r.counts.delayMillis) / 1000 }),
	gauge("records", "Records in this node's journal.", func(r *reading) float64 { return float64(r.records) }),
	gauge("loop_inputs_waiting", "Inputs that wait for the loop.", func(r *reading) float64 { return float64(len(r.n.loop.jobs)) }),
	gauge("links", "Nodes linked now.", func(r *reading) float64 { return float64(r.links) }),
	gauge("links_queued_bytes", "Bytes that wait to be sent to other nodes.", func(r *reading) float64 { return float64(r.queued) }),
	gauge("store_bytes", "Bytes that the store uses.", func(r *reading) float64 { return float64(r.used) }),
	gauge("store_free_bytes", "Bytes that the store may still use.", func(r *reading) float64 { return float64(r.free) }),
	counter("contents_left", "Attachments and large values that left the store because they were over, since this start.", func(r *reading) float64 { return float64(r.left.Left) }),
	counter("contents_left_bytes", "Their bytes.", func(r *reading) float64 { return float64(r.left.LeftBytes) }),
	counter("spans_sent", "Spans that the collector took.", func(r *reading) float64 { sent, _ := r.n.traces.Counts(); return float64(sent) }),
	counter("spans_dropped", "Spans that it did not take, or that found no room on the way.", func(r *reading) float64 { _, dropped := r.n.traces.Counts(); return float64(dropped) }),
	gauge("boards_differ", "Nodes whose boards differ, as the last comparison found.", func(r *reading) float64 { return float64(r.n.differ.Load()) }),
	gauge("fenced", "1 if a newer start of this node runs elsewhere and this one writes nothing.", func(r *reading) float64 { return number(r.n.fenced.Load() != nil) }),
}

var (
	layerDesc = prometheus.NewDesc("aster_layer_ok", "1 if the layer answers and is well.", []string{"layer"}, nil)
	buildDesc = prometheus.NewDesc("aster_build_info", "1; the label says which version runs.", []string{"version"}, nil)
)

func number(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// measurer is the node as a prometheus.Collector.
type measurer struct{ n *Node }

func (m measurer) Describe(out chan<- *prometheus.Desc) {
	for _, f := range figures {
		out <- f.desc
	}
	out <- layerDesc
	out <- buildDesc
}

func (m measurer) Collect(out chan<- prometheus.Metric) {
	r := &reading{n: m.n, counts: m.n.health.total(), records: m.n.store.Records(), left: m.n.retentionNow()}
	r.used, r.free = m.n.store.Size()
	for _, l := range m.n.mesh.Links() {
		r.links++
		r.queued += l.Queued
	}
	for _, f := range figures {
		out <- prometheus.MustNewConstMetric(f.desc, f.kind, f.of(r))
	}
	for _, l := range m.n.Layers(m.n.ctx) {
		out <- prometheus.MustNewConstMetric(layerDesc, prometheus.GaugeValue, number(l.OK), l.Name)
	}
	out <- prometheus.MustNewConstMetric(buildDesc, prometheus.GaugeValue, 1, m.n.cfg.Version)
}

// metricsHandler serves what this node measures, and what Go's own collectors say of the process.
func (n *Node) metricsHandler() http.Handler {
	reg := prometheus.NewRegistry()
	reg.MustRegister(measurer{n}, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return promhttp.HandlerFor(reg, promhttp.HandlerOpts{MaxRequestsInFlight: 4, Timeout: 5 * time.Second})
}

// ServeMetrics implements web.Watched.
func (n *Node) ServeMetrics(w http.ResponseWriter, r *http.Request) { n.metrics.ServeHTTP(w, r) }
