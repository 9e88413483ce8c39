package hub

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aster-mesh/aster/protocol"
)

// A member outside may have said something of a message before that is here: its author's disk was replaced by an older
// copy, and the message is on its way back. Its word is kept until the message comes; more than earlyMax of one member, or
// one of more than earlyBytesMax, is not, since such words cost their author nothing.
const (
	earlyMax      = 256
	earlyBytesMax = 4 << 10
	// EarlyPrefix begins the names of the values under which such words are kept.
	EarlyPrefix = "early/"
)

// early is one record of receipts, as it is kept.
type early struct {
	By   protocol.PeerID       `json:"by"`
	At   protocol.HLC          `json:"at"`
	Wall int64                 `json:"wall"`
	Body protocol.ReceiptsBody `json:"body"`

	key string
}

// await keeps what a record says of messages that are not here yet; held is how far each log is.
func (c *Core) await(rec *protocol.Record, body protocol.ReceiptsBody, held func(protocol.LogID) uint64) {
	e := &early{By: rec.Log.Peer, At: rec.At, Wall: rec.Wall, Body: body, key: fmt.Sprintf("%s%s/%d", EarlyPrefix, rec.Log, rec.Seq)}
	if _, ok := c.early[e.key]; ok {
		return
	}
	of := 0
	for _, o := range c.early {
		if o.By == e.By {
			of++
		}
	}
	raw := protocol.EncodeBody(e)
	if of >= earlyMax || len(raw) > earlyBytesMax {
		return
	}
	c.early[e.key] = e
	for _, lr := range body.Of {
		if log, err := protocol.ParseLogID(lr.Log); err == nil {
			c.heldEarly[lr.Log] = held(log)
		}
	}
	c.keep(map[string][]byte{e.key: raw})
}

// spokenOf counts what was said of a record before it was here. Logs are held without a gap, so a word that speaks of no
// later one is done with.
func (c *Core) spokenOf(now time.Time, ref Ref) {
	log := ref.Log.String()
	c.heldEarly[log] = ref.Seq
	for _, key := range c.earlyKeys() {
		e := c.early[key]
		if covers(e.Body.Of, log, ref.Seq) {
			c.receiptOf(now, TierPut{Ref: ref, Tier: e.Body.Tier, Agent: e.Body.Agent, At: e.At, Wall: e.Wall, By: e.By, Reason: e.Body.Reason})
		}
		if !slices.ContainsFunc(e.Body.Of, func(lr protocol.LogRange) bool { return lastOf(lr) > c.heldEarly[lr.Log] }) {
			delete(c.early, key)
			c.keep(map[string][]byte{key: nil})
		}
	}
	if len(c.early) == 0 {
		clear(c.heldEarly)
	}
}

func (c *Core) earlyKeys() []string {
	keys := make([]string, 0, len(c.early))
	for key := range c.early {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

func covers(of []protocol.LogRange, log string, seq uint64) bool {
	for _, lr := range of {
		for i := 0; lr.Log == log && i+1 < len(lr.Ranges); i += 2 {
			if lr.Ranges[i] <= seq && seq <= lr.Ranges[i+1] {
				return true
			}
		}
	}
	return false
}

func lastOf(lr protocol.LogRange) (last uint64) {
	for _, seq := range lr.Ranges {
		last = max(last, seq)
	}
	return last
}

// bootEarly reads what was kept when the process ended. held is how far each log is held.
func (c *Core) bootEarly(values map[string][]byte, held map[protocol.LogID]uint64) {
	for key, raw := range values {
		e := &early{key: key}
		if strings.HasPrefix(key, EarlyPrefix) && json.Unmarshal(raw, e) == nil {
			c.early[key] = e
		}
	}
	if len(c.early) > 0 {
		for log, seq := range held {
			c.heldEarly[log.String()] = seq
		}
	}
}
