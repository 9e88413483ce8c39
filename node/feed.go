package node

import (
	"bytes"
	"encoding/json"
	"io"

	"github.com/aster-mesh/aster/node/hub"
	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/asterism"
)

// readingMax is how many large values are read at once: each is held whole, some megabytes.
const readingMax = 4

// feed keeps a socket's deliveries in order while a large one is read beside the loop. Owned by the loop.
type feed struct {
	reading bool
	behind  []hub.Deliver // the hub's window bounds it
}

// large delivers a message whose value is content: it is read and made into a frame in a goroutine of its own, so that other
// sockets do not wait for the disk. Later deliveries to the same socket wait behind it.
func (l *loop) large(s *socket, o hub.Deliver, env *protocol.Envelope, wall int64) {
	s.feed.reading = true
	l.savers.Go(func() {
		var frame []byte
		select {
		case l.n.blobs.reading <- struct{}{}:
			whole := *env
			err := l.n.fill(&whole)
			if err == nil {
				frame = asterism.AppendDelivery(make([]byte, 0, len(whole.Value)+384), &whole, wall)
			} else {
				l.log.Error("value not readable", "err", err)
			}
			<-l.n.blobs.reading
		case <-l.n.done:
			return
		}
		_ = l.post(l.n.ctx, func() {
			if l.sockets[s.id] != s {
				return
			}
			if frame != nil {
				l.deliverFrame(s, o, env, frame)
			}
			behind := s.feed.behind
			s.feed = feed{}
			for _, o := range behind {
				l.deliver(o)
			}
		})
	})
}

// deliverFrame queues a delivery and notes its place, so that the pong behind it tells that it was read.
func (l *loop) deliverFrame(s *socket, o hub.Deliver, env *protocol.Envelope, frame []byte) {
	seq, ok := s.conn.SendCounted(frame)
	if !ok {
		return
	}
	s.sent = append(s.sent, sentFrame{seq, o.Ref})
	if o.Try > 1 {
		l.n.health.redelivered()
	}
	s.conn.Probe()
	l.meet(s, env.From)
}

// onRead notes that the peer has read what was delivered up to seq. It runs in the read loop.
func (s *socket) onRead(seq uint64) {
	s.read.Store(seq)
	if s.told.CompareAndSwap(false, true) {
		_ = s.n.loop.post(s.n.ctx, func() { s.n.loop.taken(s) })
	}
}

func (l *loop) taken(s *socket) {
	s.told.Store(false)
	upto := s.read.Load()
	var refs []hub.Ref
	for len(s.sent) > 0 && s.sent[0].seq <= upto {
		refs = append(refs, s.sent[0].ref)
		s.sent = s.sent[1:]
	}
	if len(refs) > 0 {
		l.core.Step(l.now, hub.Taken{Conn: s.id, Refs: refs})
	}
}

// headlineBytes is how much of a large value is looked at for its headline.
const headlineBytes = 64 << 10

// headline is the first thing that a person reads of a large value, from its beginning alone.
func headline(r io.Reader) string {
	raw, err := io.ReadAll(io.LimitReader(r, headlineBytes))
	if err != nil {
		return ""
	}
	raw = bytes.TrimLeft(raw, " \t\r\n")
	if len(raw) > 0 && raw[0] == '"' {
		return (&protocol.Envelope{Value: openText(raw)}).Text(protocol.ShortTextBytesMax)
	}
	fields := map[string]json.RawMessage{}
	dec := json.NewDecoder(bytes.NewReader(raw))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return ""
	}
	for dec.More() {
		key, err := dec.Token()
		name, isName := key.(string)
		if err != nil || !isName {
			break
		}
		from := dec.InputOffset()
		var v json.RawMessage
		if dec.Decode(&v) != nil { // it goes on behind what was read
			if rest := bytes.TrimLeft(raw[from:], ": \t\r\n"); len(rest) > 0 && rest[0] == '"' {
				fields[name] = openText(rest)
			}
			break
		}
		if v[0] == '"' {
			fields[name] = v
		}
	}
	return (&protocol.Envelope{Value: protocol.EncodeBody(fields)}).Text(protocol.ShortTextBytesMax)
}

// openText is the beginning of a JSON string as a whole one. What it is cut from need not end.
func openText(raw []byte) json.RawMessage {
	raw = raw[:min(len(raw), 4*protocol.ShortTextBytesMax)]
	var s string
	if dec := json.NewDecoder(bytes.NewReader(raw)); dec.Decode(&s) == nil {
		return protocol.EncodeBody(s)
	}
	for cut := len(raw); cut > max(len(raw)-16, 0); cut-- { // an escape or a character may be cut in two
		if json.Unmarshal(append(bytes.Clone(raw[:cut]), '"'), &s) == nil {
			return protocol.EncodeBody(s)
		}
	}
	return json.RawMessage(`""`)
}
