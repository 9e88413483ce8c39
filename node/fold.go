package node

import (
	"github.com/aster-mesh/aster/node/journal"
	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/api"
)

// foldsLater says whether the views may see what was committed once it is on its way: messages and receipts, which decide
// nothing about who may be sent what, when no page looks that wants to hear of things in their order.
func (l *loop) foldsLater(entries []journal.Entry) bool {
	if l.n.pages.watched() {
		return false
	}
	for i := range entries {
		switch env := entries[i].Envelope; entries[i].Record.Kind {
		case protocol.KindReceipts:
		case protocol.KindMessage:
			if env != nil && protocol.Lookup(env.Intent).Class == protocol.ClassDeclaration {
				return false
			}
		default:
			return false
		}
	}
	return true
}

// foldDue lets the views see what this turn made durable.
func (l *loop) foldDue() {
	for i := range l.unfolded {
		l.fold(&l.unfolded[i].Record, l.unfolded[i].Envelope)
	}
	l.unfolded = nil
}

// fold lets the views see a record that is durable.
func (l *loop) fold(r *protocol.Record, env *protocol.Envelope) {
	if r.Kind == protocol.KindKey {
		l.keyStep(r)
	}
	if err := l.board.Apply(r, env); err != nil {
		l.log.Error("record not folded", "log", r.Log.String(), "seq", r.Seq, "err", err)
	}
	switch r.Kind {
	case protocol.KindMember, protocol.KindRevoke, protocol.KindInviteUsed, protocol.KindTerm, protocol.KindVoters:
		l.membersDirty = true
		l.declarations = nil // who is main decides whose word on a seat is shown
	case protocol.KindFence:
		l.fenceFolded(r)
	case protocol.KindFork:
		l.peersChanged()
	case protocol.KindCut:
		l.cutFolded()
	case protocol.KindState:
		l.showState()
		l.n.pages.publish(api.Event{Type: "document"})
		l.asksChanged()
	case protocol.KindChannel:
		l.channelStepped(r)
	case protocol.KindKey:
		l.asksChanged()
	case protocol.KindMessage:
		if env != nil {
			l.askSaid(env)
		}
		if env != nil && protocol.Lookup(env.Intent).Class == protocol.ClassDeclaration {
			l.declarations = nil
		}
	}
	l.taskChanged(r, env)
}
