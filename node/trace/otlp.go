package trace

import (
	"encoding/hex"
	"encoding/json"
	"strconv"
	"time"
)

// The JSON form of OTLP's ExportTraceServiceRequest, as far as it is used here. Ids are hexadecimal, times are nanoseconds
// since 1970 as texts.
type (
	export struct {
		ResourceSpans []resourceSpans `json:"resourceSpans"`
	}
	resourceSpans struct {
		Resource   resource     `json:"resource"`
		ScopeSpans []scopeSpans `json:"scopeSpans"`
	}
	resource struct {
		Attributes []attribute `json:"attributes"`
	}
	scopeSpans struct {
		Scope scope  `json:"scope"`
		Spans []span `json:"spans"`
	}
	scope struct {
		Name    string `json:"name"`
		Version string `json:"version,omitempty"`
	}
	span struct {
		TraceID    string      `json:"traceId"`
		SpanID     string      `json:"spanId"`
		ParentID   string      `json:"parentSpanId,omitempty"`
		Name       string      `json:"name"`
		Kind       int         `json:"kind"` // 1: internal
		Start      string      `json:"startTimeUnixNano"`
		End        string      `json:"endTimeUnixNano"`
		Attributes []attribute `json:"attributes,omitempty"`
		Status     *status     `json:"status,omitempty"`
	}
	attribute struct {
		Key   string `json:"key"`
		Value text   `json:"value"`
	}
	text struct {
		String string `json:"stringValue"`
	}
	status struct {
		Message string `json:"message,omitempty"`
		Code    int    `json:"code"` // 2: an error
	}
)

func encode(cfg *Config, batch []Span) []byte {
	spans := make([]span, len(batch))
	for i, s := range batch {
		o := span{
			TraceID: hex.EncodeToString(s.Trace[:]), SpanID: hex.EncodeToString(s.ID[:]), Name: s.Name, Kind: 1,
			Start: nanos(s.Start), End: nanos(s.End), Attributes: attributes(s.Tags),
		}
		if s.Parent != [8]byte{} {
			o.ParentID = hex.EncodeToString(s.Parent[:])
		}
		if s.Failed != "" {
			o.Status = &status{Message: s.Failed, Code: 2}
		}
		spans[i] = o
	}
	raw, err := json.Marshal(export{[]resourceSpans{{
		Resource: resource{attributes([]Tag{
			{"service.name", "aster"}, {"service.version", cfg.Version}, {"service.instance.id", cfg.Instance}, {"host.name", cfg.Node},
		})},
		ScopeSpans: []scopeSpans{{scope{"aster", cfg.Version}, spans}},
	}}})
	if err != nil {
		panic("trace: " + err.Error()) // texts and numbers alone
	}
	return raw
}

func attributes(tags []Tag) (out []attribute) {
	for _, t := range tags {
		if t.Value != "" {
			out = append(out, attribute{t.Key, text{t.Value}})
		}
	}
	return out
}

func nanos(t time.Time) string { return strconv.FormatInt(t.UnixNano(), 10) }
