package web

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/api"
)

// stream is an answer that goes on. Each write has its own deadline, so that a reader that stopped reading ends.
type stream struct {
	w      http.ResponseWriter
	conn   *http.ResponseController
	within time.Duration
}

func (s *Server) startStream(w http.ResponseWriter, kind string) *stream {
	w.Header().Set("Content-Type", kind)
	w.Header().Set("X-Accel-Buffering", "no")
	w.Header().Set("Connection", "close") // write deadlines outlive the answer: nothing else may use this connection
	w.WriteHeader(http.StatusOK)
	out := &stream{w, http.NewResponseController(w), s.writeWithin}
	_ = out.conn.Flush()
	return out
}

// end gives what is still buffered its own time.
func (o *stream) end() { _ = o.conn.SetWriteDeadline(time.Now().Add(o.within)) }

func (o *stream) write(text string) error {
	_ = o.conn.SetWriteDeadline(time.Now().Add(o.within)) // a recorder in tests has none
	if _, err := io.WriteString(o.w, text); err != nil {
		return fmt.Errorf("write to stream: %w", err)
	}
	if err := o.conn.Flush(); err != nil {
		return fmt.Errorf("flush stream: %w", err)
	}
	return nil
}

// event writes one server-sent event; JSON has no raw line breaks, so one data line holds it.
func (o *stream) event(name string, pos uint64, body any) error {
	data, err := json.Marshal(body)
	if err != nil {
		return fmt.Errorf("encode event: %w", err)
	}
	var b strings.Builder
	if pos > 0 {
		fmt.Fprintf(&b, "id: %d\n", pos)
	}
	fmt.Fprintf(&b, "event: %s\ndata: %s\n\n", name, data)
	return o.write(b.String())
}

func (o *stream) line(body any) error {
	data, err := json.Marshal(body)
	if err != nil {
		return fmt.Errorf("encode line: %w", err)
	}
	return o.write(string(data) + "\n")
}

// events is the page's stream. It ends when the reader is too slow: who comes back names the last id it saw.
func (s *Server) events(w http.ResponseWriter, r *http.Request, _ Standing) {
	p := params{r: r}
	since := p.number("since")
	if last := r.Header.Get("Last-Event-ID"); last != "" {
		n, err := strconv.ParseUint(last, 10, 63)
		if err != nil {
			p.refuse("Last-Event-ID is the number of an event")
		}
		since = n
	} else if p.text("since") == "" {
		since = SinceNow
	}
	if p.err != nil {
		s.fail(w, r, p.err)
		return
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	incoming := s.backend.Subscribe(ctx, since)
	out := s.startStream(w, "text/event-stream")
	defer out.end()
	if out.write("retry: 500\n\n") != nil || s.beat(ctx, out) != nil {
		return
	}
	beats := time.NewTicker(s.beatEvery)
	defer beats.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case e, ok := <-incoming:
			if !ok || out.event(e.Type, e.Pos, e) != nil {
				return
			}
		case <-beats.C:
			if s.beat(ctx, out) != nil {
				return
			}
		}
	}
}

// beat says how the node is. When the node itself does not answer, nothing is said, and the page shows the silence.
func (s *Server) beat(ctx context.Context, out *stream) error {
	ctx, cancel := context.WithTimeout(ctx, s.beatEvery)
	defer cancel()
	status, err := s.backend.Status(ctx)
	if err != nil {
		return out.write(": the node does not answer\n\n")
	}
	return out.event("status", 0, api.Event{Type: "status", Status: &status})
}

// tail gives what was said, then what is being said, with the tiers of what it has given.
func (s *Server) tail(w http.ResponseWriter, r *http.Request, _ Standing) {
	q, err := messageQuery(r)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	p := params{r: r}
	follow := p.text("follow") == "" || p.flag("follow")
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	var incoming <-chan api.Event
	if follow { // before the past is read, so that nothing falls between
		incoming = s.backend.Subscribe(ctx, SinceNow)
	}
	t := tailing{query: q, shown: map[shownKey]bool{}}
	if q.After == 0 && q.Since == 0 {
		t.query.Before, t.skipPast = 0, follow // nothing of the past was asked for
	}
	page, err := t.next(ctx, s.backend)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	out := s.startStream(w, "application/x-ndjson")
	defer out.end()
	for len(page) > 0 {
		for i := range page {
			if out.line(api.Event{Type: "message", Pos: page[i].Pos, Message: &page[i]}) != nil {
				return
			}
		}
		if page, err = t.next(ctx, s.backend); err != nil {
			return
		}
	}
	for follow {
		select {
		case <-ctx.Done():
			return
		case e, ok := <-incoming:
			if !ok || t.wants(e) && out.line(e) != nil {
				return
			}
		}
	}
}

// tailing remembers what one tail has given: the last position, and the latest messages whose tiers still matter.
type tailing struct {
	query    MessageQuery
	skipPast bool
	last     uint64
	shown    map[shownKey]bool
	order    []shownKey
}

// shownKey is a message's identity: ids are unique for one sender only.
type shownKey struct {
	from protocol.AgentID
	id   protocol.MsgID
}

// shownMax bounds the memory of one tail; the tiers of older messages are no longer told.
const shownMax = 4096

func (t *tailing) next(ctx context.Context, from Viewer) ([]api.Message, error) {
	if t.skipPast {
		return nil, nil
	}
	q := t.query
	q.Limit = MessagesMax / 2
	if t.last > 0 {
		q.After, q.Since = t.last, 0
	} else if q.After == 0 && q.Since == 0 {
		q.Limit = t.query.Limit
		t.skipPast = true // one page of the newest, not everything after it
	}
	page, err := from.Messages(ctx, q)
	if err != nil {
		return nil, fmt.Errorf("read messages: %w", err)
	}
	for i := range page {
		t.note(&page[i])
	}
	return page, nil
}

func (t *tailing) note(m *api.Message) {
	t.last = max(t.last, m.Pos)
	key := shownKey{m.Envelope.From, m.Envelope.ID}
	if t.shown[key] {
		return
	}
	if len(t.order) >= shownMax {
		delete(t.shown, t.order[0])
		t.order = t.order[1:]
	}
	t.shown[key], t.order = true, append(t.order, key)
}

func (t *tailing) wants(e api.Event) bool {
	switch e.Type {
	case "message":
		if e.Message == nil || e.Message.Pos <= t.last {
			return false
		}
		env := &e.Message.Envelope
		if t.query.Agent != "" && env.From != t.query.Agent && env.To != t.query.Agent ||
			t.query.Intent != "" && env.Intent != t.query.Intent {
			return false
		}
		t.note(e.Message)
		return true
	case "tiers":
		return t.shown[shownKey{e.From, e.MsgID}]
	}
	return false
}

// inbox lists what waits; with follow it goes on with what comes. An item is told once a stream.
func (s *Server) inbox(w http.ResponseWriter, r *http.Request, _ Standing) {
	p := params{r: r}
	q := InboxQuery{Agent: protocol.AgentID(p.text("agent")), All: p.flag("all"), Dead: p.flag("dead"), After: p.number("after"), Limit: int(min(p.number("limit"), MessagesMax))}
	follow := p.flag("follow")
	if p.err != nil {
		s.fail(w, r, p.err)
		return
	}
	if !follow {
		items, err := s.backend.Inbox(r.Context(), q)
		s.answer(w, r, map[string]any{"items": list(items)}, err)
		return
	}
	s.followInbox(w, r, q)
}

func (s *Server) followInbox(w http.ResponseWriter, r *http.Request, q InboxQuery) {
	q.Limit = MessagesMax
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	incoming := s.backend.Subscribe(ctx, SinceNow)
	items, err := s.backend.Inbox(ctx, q)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	out := s.startStream(w, "application/x-ndjson")
	defer out.end()
	for {
		for _, item := range items {
			if out.line(item) != nil {
				return
			}
			q.After = max(q.After, item.Pos)
		}
		if len(items) < q.Limit && !nextOf(ctx, incoming, "message", "agents", "tiers") {
			return
		}
		if items, err = s.backend.Inbox(ctx, q); err != nil {
			return
		}
	}
}

// nextOf waits for an event of one of the kinds and takes with it what is already there: one look serves them all.
func nextOf(ctx context.Context, incoming <-chan api.Event, kinds ...string) bool {
	found := false
	for {
		if found {
			select {
			case _, ok := <-incoming:
				if !ok {
					return false
				}
				continue
			default:
				return true
			}
		}
		select {
		case <-ctx.Done():
			return false
		case e, ok := <-incoming:
			if !ok {
				return false
			}
			for _, k := range kinds {
				found = found || e.Type == k
			}
		}
	}
}
