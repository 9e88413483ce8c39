package turn

import (
	"maps"
	"time"

	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/meshwire"
	"github.com/aster-mesh/aster/roles/member"
)

// The kinds of meshwire.Claims: questions to main's node, and their answers. The numbers travel.
const (
	askHandOver uint8 = 1
	askAnswer   uint8 = 2
	askAcquire  uint8 = 3
	askRenew    uint8 = 4
	askRelease  uint8 = 5
	claimQuery  uint8 = 6 // main to a member: what do your agents hold?
	claimHeld   uint8 = 7
	claimLost   uint8 = 8 // main to a member: these are another's
)

// asks are the questions to main's node that were not answered yet.
type asks struct {
	asking map[uint64]asked
	last   uint64
}

type asked struct {
	at     time.Time
	answer func(meshwire.Claims)
}

// askLife is how long an answer is waited for: an answer that was lost must not be waited for for ever.
const askLife = time.Minute

func (o *Office) roster() *member.Roster {
	_, st, _ := o.do.Cores()
	return st.Roster()
}

// ask sends a question to main's node; answer runs in the loop, once, or never if the answer is lost. forget gives it up.
func (o *Office) ask(f meshwire.Claims, answer func(meshwire.Claims)) (forget func(), no *protocol.Refusal) {
	main := o.main()
	if main == "" || !o.do.Linked(main) {
		name := o.do.Name(main)
		if name == "" {
			name = "-"
		}
		return func() {}, protocol.Refuse(protocol.CodeNotAllowed, "main's node, %s, is not linked", "aster main show says who is main; aster peers, who is linked", name)
	}
	if o.asking == nil {
		o.asking = map[uint64]asked{}
	}
	now := o.do.Now()
	maps.DeleteFunc(o.asking, func(_ uint64, a asked) bool { return now.Sub(a.at) > askLife })
	o.last++
	token := o.last
	f.Token = token
	o.asking[token] = asked{now, answer}
	o.do.Send(main, f)
	return func() { delete(o.asking, token) }, nil
}

// Asked takes a question of another node, or the answer to one of ours.
func (o *Office) Asked(from protocol.PeerID, f *meshwire.Claims) {
	if !o.do.Inside(from) {
		return
	}
	switch f.Kind {
	case askAnswer:
		if a, ok := o.asking[f.Token]; ok {
			delete(o.asking, f.Token)
			a.answer(*f)
		}
	case askHandOver:
		if len(f.Items) == 1 {
			o.answer(from, f.Token, o.HandOver(f.Items[0].Agent, f.Items[0].Why))
		}
	default:
		o.claimFrom(from, f)
	}
}

func (o *Office) answer(to protocol.PeerID, token uint64, no *protocol.Refusal) {
	f := meshwire.Claims{Kind: askAnswer, Token: token, OK: no == nil}
	if no != nil {
		f.Code, f.Reason = no.Code, protocol.CutText(no.Reason, protocol.ShortTextBytesMax)
	}
	o.later(func() { o.do.Send(to, f) })
}

// later runs f when this turn is durable; if it is not, never.
func (o *Office) later(f func()) {
	o.do.Durable(func(err error) {
		if err == nil {
			f()
		}
	})
}

// AskHandOver asks main, wherever that is, to hand over; answer runs once it has agreed or refused, or never.
func (o *Office) AskHandOver(to protocol.AgentID, reason string, answer func(*protocol.Refusal)) {
	if o.main() == o.self {
		answer(o.HandOver(to, reason))
		return
	}
	_, no := o.ask(meshwire.Claims{Kind: askHandOver, Items: []meshwire.ClaimItem{{Agent: to, Why: protocol.CutText(reason, protocol.ShortTextBytesMax)}}},
		func(f meshwire.Claims) { answer(refusalOf(&f)) })
	if no != nil {
		answer(no)
	}
}

// refusalOf is what an answer says, nil for yes.
func refusalOf(f *meshwire.Claims) *protocol.Refusal {
	if f.OK {
		return nil
	}
	return protocol.Refuse(f.Code, "%s", "", f.Reason)
}
