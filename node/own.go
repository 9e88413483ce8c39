package node

import (
	"github.com/aster-mesh/aster/node/hub"
	"github.com/aster-mesh/aster/protocol"
)

// ownMessages knows which records of this start's own logs are messages, a bit each: peers confirm every record of ours, and
// for a receipt or a binding nobody waits, so none needs to be looked up. Owned by the loop.
type ownMessages struct {
	bits map[protocol.LogID][]uint64
}

func (o *ownMessages) note(ref hub.Ref) {
	if o.bits == nil {
		o.bits = map[protocol.LogID][]uint64{}
	}
	bits := o.bits[ref.Log]
	for uint64(len(bits)) <= ref.Seq>>6 {
		bits = append(bits, 0)
	}
	bits[ref.Seq>>6] |= 1 << (ref.Seq & 63)
	o.bits[ref.Log] = bits
}

func (o *ownMessages) has(ref hub.Ref) bool {
	bits := o.bits[ref.Log]
	return ref.Seq>>6 < uint64(len(bits)) && bits[ref.Seq>>6]&(1<<(ref.Seq&63)) != 0
}

func (l *loop) startedHere(log protocol.LogID) bool {
	return log.Peer == l.n.home.peer && log.Start == l.n.startID
}

// noteOurs notes a record that is durable.
func (l *loop) noteOurs(r *protocol.Record) {
	if r.Kind == protocol.KindMessage && l.startedHere(r.Log) {
		l.ours.note(hub.Ref{Log: r.Log, Seq: r.Seq})
	}
}
