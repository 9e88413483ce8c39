package node

import (
	"time"

	"github.com/aster-mesh/aster/node/hub"
	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/asterism"
	"github.com/aster-mesh/aster/roles/keys"
)

const (
	// keySeenEvery is how often a key that is used again and again is noted as seen.
	keySeenEvery = time.Hour
	// keySayAgain is how long a record that this node owes of a key is taken to be on its way.
	keySayAgain = 10 * time.Second
)

// keyState is what the loop remembers of keys beside the ring. Owned by the loop.
type keyState struct {
	keysDirty  bool      // a record of a key was folded, or a session of one began or ended
	keysAt     time.Time // when time alone changes something next; zero: never
	keySteps   []keyEvent
	keyUsing   map[keys.Hash]protocol.AgentID // uses of this turn, not yet in the ring
	keyIssuing int                            // keys issued in this turn, not yet in the ring
	keyWarned  map[keys.Hash]time.Time
	keySaid    map[protocol.KeyBody]time.Time // what this node wrote of them by itself
}

func newKeyState() keyState {
	return keyState{keysDirty: true, keyUsing: map[keys.Hash]protocol.AgentID{}, keyWarned: map[keys.Hash]time.Time{}, keySaid: map[protocol.KeyBody]time.Time{}}
}

// keyEvent is a step that the ring has taken, with the key as it was before.
type keyEvent struct {
	body   protocol.KeyBody
	before keys.Key
}

// keyStep notes a key's record just before it is folded.
func (l *loop) keyStep(r *protocol.Record) {
	body, err := protocol.DecodeBody[protocol.KeyBody](r)
	if err != nil || r.Log.Scope != protocol.ScopeInside {
		return
	}
	l.keysDirty = true
	e := keyEvent{body: body}
	for _, k := range l.keys().All() {
		if k.Hash.String() == body.Hash {
			e.before = k
		}
	}
	l.keySteps = append(l.keySteps, e)
}

// settleKeys makes what keys became hold for the sessions here: notices to holders, sessions that end, and the steps that
// this node owes. It runs after a commit; true says that it wrote something, or that sessions ended.
func (l *loop) settleKeys() bool {
	steps := l.keySteps
	l.keySteps = nil
	for i := range steps {
		l.keyNotices(&steps[i])
	}
	if !l.keysDirty && (l.keysAt.IsZero() || l.now.Before(l.keysAt)) {
		return false
	}
	l.keysDirty, l.keysAt = false, time.Time{}
	acted := l.endSessions()
	held := l.holders()
	for _, k := range l.keys().All() {
		acted = l.oweKey(&k, len(held[k.Hash])) || acted
		l.keysDue(k.Next(l.n.home.peer, l.now))
		l.warnOfEnd(&k, held[k.Hash])
	}
	return acted
}

func (l *loop) keysDue(at time.Time) {
	if !at.IsZero() && (l.keysAt.IsZero() || at.Before(l.keysAt)) {
		l.keysAt = at
	}
}

// endSessions closes every socket whose key holds no longer (faults B18, KB5).
func (l *loop) endSessions() (ended bool) {
	for _, s := range l.sockets {
		if !s.keyed {
			continue
		}
		k, ok := l.keys().ByHash(s.key)
		var agent protocol.AgentID
		if s.as != nil {
			agent = l.asBound(&k, s.as.Agent)
		}
		no := k.Holds(agent, l.n.home.peer, l.now)
		if !ok {
			no = protocol.Refuse(protocol.CodeBadKey, "this key is not known here any more", "ask the board's owner for a key")
		}
		if no != nil {
			l.endSession(s, k, no)
			ended = true
		}
	}
	return ended
}

func (l *loop) endSession(s *socket, k keys.Key, no *protocol.Refusal) {
	s.gone = true
	delete(l.sockets, s.id)
	r := keyRejection(k, no)
	r.Surface, r.PriorStateDelivered = "agent", s.seen
	if s.as != nil {
		r.AgentID = string(s.as.Agent)
	}
	l.log.Info("session ended", "code", no.Code, "key", s.key.Fingerprint(), "agent", r.AgentID)
	s.conn.Send(l.enc.ConnectionRejected(l.now, r))
	code, reason := closeReason(no.Code)
	if no.Code == protocol.CodeKeyRevoked && k.Pending > 0 && k.Pending <= l.now.UnixMilli() {
		reason = "key revoke pending grace expired"
	}
	s.conn.Close(code, reason)
	l.core.Step(l.now, hub.Detach{Conn: s.id})
}

// holders are the agents' sockets here by the key that opened them.
func (l *loop) holders() map[keys.Hash][]*socket {
	out := map[keys.Hash][]*socket{}
	for _, s := range l.sockets {
		if s.keyed && s.as != nil {
			out[s.key] = append(out[s.key], s)
		}
	}
	return out
}

// holdersOf counts the sessions of a key: those here, and that of an agent at home elsewhere.
func (l *loop) holdersOf(k *keys.Key) int {
	if n := len(l.holders()[k.Hash]); n > 0 {
		return n
	}
	if a, ok := l.core.Agent(l.core.Now(k.Bound)); ok && k.Used && !a.Here && len(a.Attached) > 0 {
		return 1
	}
	return 0
}

// oweKey writes what this node is the one to say: that the last session of a key has ended which was revoked for that, or
// that an end has passed which this node's clock set. So other nodes need not wait out the doubt about clocks.
func (l *loop) oweKey(k *keys.Key, held int) bool {
	self := l.n.home.peer
	body := protocol.KeyBody{Hash: k.Hash.String()}
	switch {
	case k.Revoked > 0:
		return false
	case k.Pending > 0:
		a, known := l.core.Agent(l.core.Now(k.Bound))
		mine := known && a.Here && held == 0
		over := k.GraceClock(self) && l.now.UnixMilli() >= k.Pending
		if !mine && !over {
			return false
		}
		body.Step = protocol.KeyEnd
	case k.Clock(self) && k.Expired(self, l.now) && k.Lapsed < k.ExpiresAt():
		body.Step, body.Until = protocol.KeyLapse, k.ExpiresAt()
	default:
		return false
	}
	if said, ok := l.keySaid[body]; ok && l.now.Sub(said) < keySayAgain {
		l.keysDue(said.Add(keySayAgain))
		return false
	}
	l.keySaid[body] = l.now
	l.writeKey(body, 0)
	return true
}

// keyNotices tells holders, and main, what a step means for them.
func (l *loop) keyNotices(e *keyEvent) {
	h := keys.Hash{}
	k, ok := keys.Key{}, false
	for _, all := range l.keys().All() {
		if all.Hash.String() == e.body.Hash {
			h, k, ok = all.Hash, all, true
		}
	}
	if !ok {
		return
	}
	delete(l.keySaid, protocol.KeyBody{Step: e.body.Step, Hash: e.body.Hash, Until: e.body.Until})
	holders := l.holders()[h]
	switch e.body.Step {
	case protocol.KeyRevoke:
		if e.body.Until > 0 && k.Revoked == 0 {
			l.tellHolders(holders, "KeyRevokePending", asterism.KeyRevokePending{KeyRef: k.Ref(), Mode: keys.SessionEnd})
		}
	case protocol.KeyEnd:
		if e.before.Revoked == 0 {
			l.toMain("KeyRevoked", asterism.KeyRevoked{KeyRef: k.Ref(), Mode: keys.SessionEnd, Disconnected: 1, Notified: 1})
		}
	case protocol.KeyLabel:
		if e.before.Label != k.Label {
			l.tellHolders(holders, "AgentNameChanged", asterism.KeyLabeled{KeyRef: k.Ref(), OldLabel: e.before.Label, NewLabel: k.Label})
		}
	case protocol.KeyRenew:
		delete(l.keyWarned, h)
		l.tellHolders(holders, "KeyRenewed", asterism.KeyRenewedShort{
			KeyRef: k.Ref(), Label: k.Label, ExpiresAt: k.ExpiresAt(), TTL: k.TTL, WasLapsed: e.before.Expired(l.n.home.peer, l.now)})
	case protocol.KeyLapse:
		if k.Lapsed >= k.ExpiresAt() && e.before.Lapsed < k.Lapsed {
			l.keyExpiry(&k, true)
		}
	}
}

func (l *loop) tellHolders(holders []*socket, name protocol.Intent, value any) {
	for _, s := range holders {
		s.conn.Send(l.enc.Custom(l.now, asterism.Custom{Name: name, To: s.as.Agent, Value: protocol.EncodeBody(value)}))
	}
}

// toMain tells the main agent, where it is attached to this node.
func (l *loop) toMain(name protocol.Intent, value any) {
	main := l.core.Main() // as it is called here
	for _, id := range l.core.Conns(main) {
		if s := l.sockets[id]; s != nil {
			s.conn.Send(l.enc.Custom(l.now, asterism.Custom{Name: name, To: main, Value: protocol.EncodeBody(value)}))
		}
	}
}

// warnOfEnd tells holders, boards and main in good time, and once a day from then on.
func (l *loop) warnOfEnd(k *keys.Key, holders []*socket) {
	from := k.WarnFrom()
	if from.IsZero() || k.Expired(l.n.home.peer, l.now) {
		return
	}
	if said, ok := l.keyWarned[k.Hash]; ok {
		from = said.Add(protocol.KeyWarnAgain)
	}
	if l.now.Before(from) {
		l.keysDue(from)
		return
	}
	l.keyWarned[k.Hash] = l.now
	l.keysDue(l.now.Add(protocol.KeyWarnAgain))
	l.tellHolders(holders, "KeyExpiringSoon", expiringSoon(k, l.now))
	l.keyExpiry(k, false)
}

// warnNewcomer tells who comes after the others were told.
func (l *loop) warnNewcomer(s *socket) {
	k, ok := l.keys().ByHash(s.key)
	if _, told := l.keyWarned[s.key]; !ok || !told || k.WarnFrom().IsZero() || l.now.Before(k.WarnFrom()) {
		return
	}
	l.tellHolders([]*socket{s}, "KeyExpiringSoon", expiringSoon(&k, l.now))
}

func expiringSoon(k *keys.Key, now time.Time) asterism.KeyExpiringSoon {
	return asterism.KeyExpiringSoon{KeyRef: k.Ref(), Label: k.Label, ExpiresAt: k.ExpiresAt(), MsRemaining: max(k.ExpiresAt()-now.UnixMilli(), 0)}
}

// keyExpiry tells who may renew a key. The contract tells everybody; labels are nobody else's business.
func (l *loop) keyExpiry(k *keys.Key, lapsed bool) {
	text := "the key " + k.Label + " ends at " + time.UnixMilli(k.ExpiresAt()).UTC().Format("2006-01-02 15:04 MST")
	if lapsed {
		text = "the key " + k.Label + " has ended"
	}
	value := asterism.KeyExpiry{Kind: "key-expiry", Text: text + ". To go on with it: aster key renew " + k.Ref(), Label: k.Label, KeyKind: string(k.Kind),
		KeyRef: k.Ref(), ExpiresAt: k.ExpiresAt(), Lapsed: lapsed}
	l.toBoards(l.enc.Custom(l.now, asterism.Custom{Name: protocol.ServerNotice, Value: protocol.EncodeBody(value)}), 0)
	l.toMain(protocol.ServerNotice, value)
}
