package asterism

import (
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/aster-mesh/aster/protocol"
)

// Event is one message of a channel and when this hub took it, in ms.
type Event struct {
	Env *protocol.Envelope
	At  int64
}

// Channel is one agent's or room's stream; its newest events, oldest first.
type Channel struct {
	Key    string
	Events []Event
	Total  int // events it has in all; less than len(Events) counts as that
}

// Stub stands for a channel whose content is only given on request.
type Stub struct {
	Key    string        `json:"key"`
	Count  int           `json:"count"`
	LastTs int64         `json:"lastTs"`
	Role   protocol.Role `json:"role,omitempty"`
}

// History is what a new connection is shown, already narrowed to what it may see.
type History struct {
	Channels       []Channel
	Cold, Archived []Stub
	Manifests      map[string]json.RawMessage // CommandManifest by agent
	OpsStates      map[string]json.RawMessage
	CapManifests   map[string]json.RawMessage
	CorporateChart json.RawMessage
	RoleStates     map[string]json.RawMessage // by role
	SeatTelemetry  map[string]json.RawMessage // by seat
}

// HistoryPerChannel is how many events of a channel are given without being asked for, also by default when asked.
const HistoryPerChannel = 150

// historyBytesMax keeps a History whole below protocol.HubFrameBytesMax: half of it for events at least.
const (
	historyBytesMax      = protocol.HubFrameBytesMax - 16<<10
	historyDeclaredBytes = historyBytesMax / 2
)

// Empty says that there is nothing to show; the contract then sends no History.
func (h *History) Empty() bool {
	n := len(h.Cold) + len(h.Archived) + len(h.Manifests) + len(h.OpsStates) + len(h.CapManifests) +
		len(h.CorporateChart) + len(h.RoleStates) + len(h.SeatTelemetry)
	for _, c := range h.Channels {
		n += len(c.Events)
	}
	return n == 0
}

type truncated struct {
	Key          string `json:"key"`
	Sent         int    `json:"sent"`
	Total        int    `json:"total"`
	OldestSentTs int64  `json:"oldestSentTs"`
}

// History encodes h as one frame below protocol.HubFrameBytesMax. When not all fits, every channel keeps its newest
// events, by turns; scope.truncated says which channels have more, and a client asks for the rest by channel.
// Declarations and stubs are taken in the order of History's fields; one that does not fit into half of the frame is left
// out whole.
func (e *Encoder) History(at time.Time, h History) []byte {
	sides, declared := h.declarations()
	picked, left, sizes := pick(h.Channels, historyBytesMax-declared-4096)
	b := append(appendText(e.open(at, TypeCustom), "name", "History"), `"value":{"events":[`...)
	b = slices.Grow(b, sizes+declared+4096)
	for _, ev := range picked {
		b = append(append(b, ev.json...), ',')
	}
	b = append(dropComma(b), ']', ',')
	b = append(b, sides...)
	b = appendRaw(b, "scope", protocol.EncodeBody(map[string]any{
		"policy": "active-channels-recent+stubs", "activeEvents": len(picked),
		"coldChannels": len(h.Cold), "archivedChannels": len(h.Archived),
		"perChannelLimit": HistoryPerChannel, "truncated": left,
		"note": "Cold and archived channels, and what stands in truncated, come on RequestChannelHistory; absent here does not mean not recorded.",
	}))
	return append(dropComma(b), '}', '}')
}

// declarations encodes all that is no event, each with a comma after it, within its half of the frame.
func (h *History) declarations() (encoded []byte, size int) {
	put := func(key string, value []byte, empty string) {
		if len(encoded)+len(value) > historyDeclaredBytes {
			value = []byte(empty)
		}
		encoded = appendRaw(encoded, key, value)
	}
	chart := h.CorporateChart
	if len(chart) == 0 {
		chart = json.RawMessage("null")
	}
	put("cold", stubs(h.Cold), "[]")
	put("archived", stubs(h.Archived), "[]")
	put("manifests", object(h.Manifests), "{}")
	put("opsStates", object(h.OpsStates), "{}")
	put("capManifests", object(h.CapManifests), "{}")
	put("corporateChart", chart, "null")
	put("roleStates", object(h.RoleStates), "{}")
	put("seatTelemetry", object(h.SeatTelemetry), "{}")
	return encoded, len(encoded)
}

func stubs(all []Stub) []byte {
	if len(all) == 0 {
		return []byte("[]")
	}
	return protocol.EncodeBody(all)
}

func object(fields map[string]json.RawMessage) []byte {
	b := []byte{'{'}
	for _, k := range slices.Sorted(maps.Keys(fields)) {
		b = append(append(append(AppendString(b, k), ':'), fields[k]...), ',')
	}
	return append(dropComma(b), '}')
}

// encoded is one event on its way into a frame.
type encoded struct {
	at   int64
	json []byte
}

// turnBytes is what a channel may add to a frame at each turn, so that one of large events does not crowd out the others.
const turnBytes = 4 << 10

// queue is a channel of which pick takes the newest event next.
type queue struct {
	Channel
	taken, allowed int
	next           []byte // encoded
	done           bool
}

// turn takes as many events as the turn allows. It returns what is left of bytes.
func (q *queue) turn(out []encoded, bytes int) ([]encoded, int) {
	q.allowed += turnBytes
	for {
		at := len(q.Events) - 1 - q.taken
		if at < 0 || q.taken == HistoryPerChannel {
			q.done = true
			return out, bytes
		}
		if q.next == nil {
			q.next = AppendEvent(nil, q.Events[at].Env, q.Events[at].At)
		}
		cost := len(q.next) + 1
		if cost > bytes {
			q.done = true
			return out, bytes
		}
		if cost > q.allowed {
			return out, bytes
		}
		out = append(out, encoded{q.Events[at].At, q.next})
		q.next, q.taken, q.allowed, bytes = nil, q.taken+1, q.allowed-cost, bytes-cost
	}
}

// pick takes the newest events of each channel by turns until bytes are used up, and returns them by time.
func pick(channels []Channel, bytes int) (out []encoded, left []truncated, size int) {
	queues := make([]queue, len(channels))
	for i, c := range channels {
		queues[i].Channel = c
	}
	rest := bytes
	for busy := true; busy; {
		busy = false
		for i := range queues {
			if q := &queues[i]; !q.done {
				out, rest = q.turn(out, rest)
				busy = busy || !q.done
			}
		}
	}
	slices.Reverse(out) // each channel's oldest first, which the stable sort keeps among equal times
	slices.SortStableFunc(out, func(a, b encoded) int { return int(min(max(a.at-b.at, -1), 1)) })
	left = []truncated{}
	for _, q := range queues {
		total := max(q.Total, len(q.Events))
		if q.taken == total {
			continue
		}
		t := truncated{Key: q.Key, Sent: q.taken, Total: total}
		if q.taken > 0 {
			t.OldestSentTs = q.Events[len(q.Events)-q.taken].At
		}
		left = append(left, t)
	}
	return out, left, bytes - rest
}

// ChannelPage is an answer to RequestChannelHistory: events of one channel, oldest first.
type ChannelPage struct {
	Key     string
	Events  []Event
	Before  bool // the request had beforeTs: the client puts the events before those it has
	Earlier int  // events of the channel before the first of Events
}

// ChannelHistory encodes p as one frame below protocol.HubFrameBytesMax: the newest of its events that fit. It counts the
// others, with Earlier, as remaining, for the client's next beforeTs.
func (e *Encoder) ChannelHistory(at time.Time, p ChannelPage) []byte {
	var kept [][]byte
	size, first := 0, len(p.Events)
	for first > 0 {
		ev := p.Events[first-1]
		j := AppendEvent(nil, ev.Env, ev.At)
		if size+len(j)+1 > historyBytesMax-4096 {
			break
		}
		kept = append(kept, j)
		size += len(j) + 1
		first--
	}
	remaining := p.Earlier + first
	b := append(appendText(e.open(at, TypeCustom), "name", "ChannelHistory"), `"value":{`...)
	b = slices.Grow(b, size+1024)
	b = append(AppendString(appendKey(b, "channelKey"), p.Key), ',')
	b = append(appendKey(b, "events"), '[')
	for i := len(kept) - 1; i >= 0; i-- {
		b = append(append(b, kept[i]...), ',')
	}
	b = append(dropComma(b), ']', ',')
	if p.Before || remaining > 0 {
		b = appendFlag(b, "prepend", p.Before)
		b = append(appendKey(b, "more"), "false,"...)
		if remaining > 0 {
			b = append(b[:len(b)-len("false,")], "true,"...)
		}
		b = appendInt(b, "remaining", int64(remaining))
		if first < len(p.Events) {
			b = appendInt(b, "oldestSentTs", p.Events[first].At)
		}
	}
	return append(dropComma(b), '}', '}')
}
