package node

import (
	"time"

	"github.com/aster-mesh/aster/node/hub"
	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/api"
)

// recentMax and recentBytesMax are how many messages are remembered with their tiers, so that a receipt a moment later
// needs no read: a few seconds at full speed.
const (
	recentMax      = 4096
	recentBytesMax = 8 << 20 // of values
)

// recentMessages is a ring of the last messages by place. Owned by the loop.
type recentMessages struct {
	byRef  map[hub.Ref]*recentMessage
	ring   []hub.Ref
	next   int // where the next goes
	oldest int // the first that is still held; equal to next: none, or all
	bytes  int
}

type recentMessage struct {
	pos   uint64
	ref   hub.Ref
	wall  int64
	env   *protocol.Envelope
	tiers []api.TierAt
	conn  hub.ConnID // the socket it came through, if any
	text  string     // the headline of a large value, once it was read
	came  time.Time  // when this node took it, and when it had it on disk for its recipient; of traced ones
	kept  time.Time
}

func (m *recentMessages) put(ref hub.Ref, pos uint64, rec *protocol.Record, env *protocol.Envelope) {
	if m.byRef == nil {
		m.byRef = make(map[hub.Ref]*recentMessage, recentMax)
		m.ring = make([]hub.Ref, recentMax)
	}
	if m.byRef[ref] != nil {
		return // a record is made durable once
	}
	for len(m.byRef) == recentMax || len(m.byRef) > 0 && m.bytes+len(env.Value) > recentBytesMax {
		m.drop()
	}
	m.ring[m.next] = ref
	m.next = (m.next + 1) % recentMax
	m.bytes += len(env.Value)
	m.byRef[ref] = &recentMessage{pos: pos, ref: ref, wall: rec.Wall, env: env}
}

// drop forgets the oldest.
func (m *recentMessages) drop() {
	ref := m.ring[m.oldest]
	m.bytes -= len(m.byRef[ref].env.Value)
	delete(m.byRef, ref)
	m.oldest = (m.oldest + 1) % recentMax
}

func (m *recentMessages) get(ref hub.Ref) *recentMessage { return m.byRef[ref] }

// addTier keeps the first word on each tier of each agent.
func addTier(tiers []api.TierAt, t api.TierAt) []api.TierAt {
	for _, o := range tiers {
		if o.Tier == t.Tier && o.Agent == t.Agent {
			return tiers
		}
	}
	return append(tiers, t)
}
