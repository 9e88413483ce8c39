package node

import (
	"errors"

	"github.com/aster-mesh/aster/node/hub"
	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/asterism"
)

// kept takes a message that is to be logged. What it needs on disk is there before it reaches the loop.
func (s *socket) kept(f *asterism.Frame, sender asterism.Sender) {
	env, no := f.Envelope(sender, newID())
	if no == nil {
		no = s.n.full()
	}
	if no != nil {
		s.refuse(f, no)
		return
	}
	err := s.bind(&env)
	if err == nil {
		err = s.n.spill(s.n.ctx, &env)
	}
	if errors.As(err, &no) {
		s.refuse(f, no)
		return
	} else if err != nil {
		s.n.log.Error("large value not kept", "err", err)
		s.refuse(f, protocol.Refuse(protocol.CodeDiskFull, "the value could not be stored", "send it again later"))
		return
	}
	l := s.n.loop
	_ = l.post(s.n.ctx, func() {
		if s.gone {
			return
		}
		token := l.expect(func(t hub.Told) {
			if t.Repeat {
				l.repeatAck(s, t)
			}
			if t.Refusal != nil {
				return // content that it would have named is swept
			}
			l.meet(s, env.To)
			for _, b := range env.Blobs {
				l.store.SentPart(giverOf(sender.ID), b.SHA256)
			}
		})
		l.core.Step(l.now, l.said(hub.Say{Conn: s.id, As: sender.ID, Env: env, Token: token}))
	})
}
