package sim

import (
	"slices"

	"github.com/aster-mesh/aster/node/hub"
	"github.com/aster-mesh/aster/node/journal"
	"github.com/aster-mesh/aster/node/replica"
	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/meshwire"
)

// ledger is the judge's book: what was acknowledged to whom, beside everything that the nodes keep themselves.
type ledger struct {
	w     *World
	ids   uint64
	said  []uttered
	rooms []protocol.RoomID
	moved map[protocol.AgentID]bool     // folded: names that were given up or taken over
	acks  map[protocol.Digest]bool      // identities that some client has vouched for
	known map[protocol.Digest]*promised // by identity
	order []*promised
}

// promised is a message whose sender was told that it is logged.
type promised struct {
	env    protocol.Envelope
	places []hub.Ref
	by     []*node
}

func (l *ledger) init(w *World) {
	*l = ledger{w: w, moved: map[protocol.AgentID]bool{}, acks: map[protocol.Digest]bool{}, known: map[protocol.Digest]*promised{}}
}

// answered notes what the sender of a message was told.
func (l *ledger) answered(n *node, as protocol.AgentID, env protocol.Envelope, t hub.Told) {
	if t.Refusal != nil {
		l.w.Stats.Refused++
		return
	}
	if l.w.lean {
		l.w.Stats.Logged++
		return
	}
	if t.Repeat {
		l.w.Stats.Repeats++
	}
	if t.Ref.Seq == 0 {
		return // about a room: no message
	}
	env.From = as
	if t.To != "" {
		env.To = t.To
	}
	id := env.Identity()
	e := l.known[id]
	if e == nil {
		e = &promised{env: env}
		l.known[id] = e
		l.order = append(l.order, e)
		l.w.Stats.Logged++
	}
	if !slices.Contains(e.places, t.Ref) {
		e.places, e.by = append(e.places, t.Ref), append(e.by, n)
	}
	if n.disk.Durable(t.Ref.Log) < t.Ref.Seq {
		l.w.fail("nothing is promised before its sync", "node %d said logged of %s/%d", n.i, l.w.logName(t.Ref.Log), t.Ref.Seq)
	}
}

// restored forgets promises about what only a disk held that is gone.
func (l *ledger) restored(n *node) {
	for _, e := range l.order {
		for i := 0; i < len(e.places); i++ {
			if held := slices.ContainsFunc(l.w.nodes, func(o *node) bool { return o.disk.Durable(e.places[i].Log) >= e.places[i].Seq }); !held {
				e.places, e.by = slices.Delete(e.places, i, i+1), slices.Delete(e.by, i, i+1)
				i--
			}
		}
	}
	for _, c := range l.w.clients {
		if c.at == n {
			clear(c.given)
		}
	}
}

// delivered judges what a client is given.
func (l *ledger) delivered(n *node, c *client, ref hub.Ref, env *protocol.Envelope) {
	id := env.Identity()
	if before, ok := c.given[id]; ok && before != ref {
		l.w.fail("an inbox holds a message once", "%s was given %s as %s/%d and %s/%d", c.id, env.ID, l.w.logName(before.Log), before.Seq, l.w.logName(ref.Log), ref.Seq)
	}
	l.inOrder(n, c, ref, env)
	c.given[id] = ref
	if n.disk.Durable(ref.Log) < ref.Seq {
		l.w.fail("nothing is delivered before its sync", "node %d gave %s/%d", n.i, l.w.logName(ref.Log), ref.Seq)
	}
	for _, row := range n.disk.inbox[protocol.FoldAgentID(c.id)] {
		if row.state == processed && row.rec.Record.Log == ref.Log && row.rec.Record.Seq == ref.Seq && n.vouchedFor(ref) {
			l.w.fail("what is acknowledged is not given again", "node %d gave %s/%d to %s", n.i, l.w.logName(ref.Log), ref.Seq, c.id)
		}
	}
}

// vouchedFor says whether an agent of this home has acknowledged a message. What another of the same name said of it, before
// the two were told apart, is nothing that this one said.
func (n *node) vouchedFor(ref hub.Ref) bool {
	tiers, _ := n.disk.Tiers(ref.Log, ref.Seq)
	return slices.ContainsFunc(tiers, func(t journal.TierPut) bool { return t.Tier == protocol.Processed && t.By == n.peer })
}

// underOwnName judges as whose words a client is shown a message: under a name that somebody bears it is that agent's own.
func (l *ledger) underOwnName(p *proc, ref hub.Ref, shown *protocol.Envelope) {
	k, ok := p.core.Agent(shown.From)
	if ok && k.Home != ref.Log.Peer && !l.moved[protocol.FoldAgentID(shown.From)] {
		l.w.fail("nobody's words are another's", "node %d gave %s/%d as from %s, which lives at %s", p.n.i, l.w.logName(ref.Log), ref.Seq, shown.From, l.w.byPeer[k.Home].name)
	}
}

// tier judges what a node says of a message.
func (l *ledger) tier(n *node, o hub.TierReached) {
	if o.Delivered || o.Kept || l.w.lean {
		return
	}
	w := l.w
	rec := n.disk.record(o.Ref.Log, o.Ref.Seq)
	switch o.Tier {
	case protocol.Logged:
		if n.disk.Durable(o.Ref.Log) < o.Ref.Seq {
			w.fail("nothing is promised before its sync", "node %d said logged of %s/%d", n.i, w.logName(o.Ref.Log), o.Ref.Seq)
		}
	case protocol.Replicated:
		if rec == nil || !slices.ContainsFunc(w.nodes, func(m *node) bool { return m != n && m.role.Inside() && m.holds(rec) }) {
			w.fail("replicated means another disk", "node %d said it of %s/%d", n.i, w.logName(o.Ref.Log), o.Ref.Seq)
		}
	case protocol.Persisted:
		if rec == nil || rec.env == nil || w.Stats.Restores+w.Stats.Wipes > 0 || w.aged > 0 {
			return
		}
		id := rec.env.Identity()
		if !slices.ContainsFunc(w.nodes, func(m *node) bool { return m.disk.inboxed(id) }) {
			w.fail("persisted means an inbox", "node %d said it of %s/%d", n.i, w.logName(o.Ref.Log), o.Ref.Seq)
		}
	case protocol.Refused:
		author := w.byPeer[o.Ref.Log.Peer]
		switch o.Reason {
		case protocol.CodeInboxFull, protocol.CodeExpired, protocol.CodeMsgIDReused, protocol.CodeUnknownAgent:
		default:
			if author.role.Inside() {
				w.fail("rights are decided once", "node %d hears that %s/%d was refused: %s", n.i, w.logName(o.Ref.Log), o.Ref.Seq, o.Reason)
			}
		}
	case protocol.Processed:
		if rec != nil && rec.env != nil && !l.acks[rec.env.Identity()] {
			w.fail("only an agent says processed", "node %d said it of %s/%d", n.i, w.logName(o.Ref.Log), o.Ref.Seq)
		}
	}
}

// holds says whether a record is on this machine's disk for good, or was before that was replaced.
func (n *node) holds(rec *diskRecord) bool {
	for _, d := range append(n.past[:len(n.past):len(n.past)], n.disk) {
		mine := d.record(rec.Record.Log, rec.Record.Seq)
		if mine != nil && mine.Hash == rec.Hash && d.Durable(rec.Record.Log) >= rec.Record.Seq {
			return true
		}
	}
	return false
}

// inboxed says whether some inbox here has a message.
func (d *Disk) inboxed(id protocol.Digest) bool {
	for _, rows := range d.inbox {
		for _, row := range rows {
			if row.rec.env != nil && row.rec.env.Identity() == id {
				return true
			}
		}
	}
	return false
}

// statesOnlyDurable judges what a node says that it holds.
func (w *World) statesOnlyDurable(n *node, marks []replica.Mark) {
	for _, m := range marks {
		if n.disk.Durable(m.Log) < m.Seq {
			w.fail("only what is durable is stated", "node %d states %s/%d", n.i, w.logName(m.Log), m.Seq)
		}
	}
}

// outsiderSees judges what goes to a member outside: the rule of scopes, written a second time.
func (w *World) outsiderSees(from, to *node, f meshwire.Frame) {
	if to.role.Inside() {
		return
	}
	sees := func(log protocol.LogID) {
		if out, ok := log.Scope.Outsider(); !ok || out != to.peer {
			w.fail("outsiders see their own alone", "node %d sends frame %d of %s to node %d", from.i, f.Type(), w.logName(log), to.i)
		}
	}
	switch f := f.(type) {
	case meshwire.Records:
		sees(f.Log)
	case meshwire.Need:
		sees(f.Log)
	case meshwire.Have:
		for _, m := range f.Marks {
			sees(m.Log)
		}
	case meshwire.Vector:
		for _, m := range f.Marks {
			sees(m.Log)
		}
	case meshwire.Presence, meshwire.Office, meshwire.Claims, meshwire.Base:
		w.fail("outsiders see their own alone", "node %d sends frame %d to node %d", from.i, f.Type(), to.i)
	case meshwire.Roster:
		for _, a := range f.Agents {
			if a.Role != protocol.RoleMain {
				w.fail("outsiders see their own alone", "node %d shows agent %s to node %d", from.i, a.ID, to.i)
			}
		}
	}
}

// logName is a log in words that are alike in every run.
func (w *World) logName(log protocol.LogID) string {
	at := "?"
	if n := w.byPeer[log.Peer]; n != nil {
		at = n.name
	}
	scope := string(log.Scope)
	if out, ok := log.Scope.Outsider(); ok && w.byPeer[out] != nil {
		scope = "out:" + w.byPeer[out].name
	}
	return at + "/" + log.Start.String()[4:14] + "/" + scope
}
