package node

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/aster-mesh/aster/node/foreign"
	"github.com/aster-mesh/aster/node/link"
	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/api"
	"github.com/aster-mesh/aster/protocol/asterism"
)

// seat is one of our agents at a board that is not ours: it connects, stays, and comes back.
type seat struct {
	// Fixed at creation.
	b      *farBoard
	agent  protocol.AgentID
	round  int
	url    string // with the key: never shown
	as     protocol.AgentID
	cancel context.CancelFunc
	done   chan struct{} // closed when it has ended
	wake   chan struct{} // capacity 1: there may be something to send

	// Owned by run.
	backoff foreign.Backoff

	// Guarded by mu.
	mu      sync.Mutex
	state   api.Seat
	visit   *visit                    // while it is accepted there
	unsent  map[protocol.AgentID]bool // agents there that have mail to be looked at, as they are called here
	greeted protocol.AgentID          // main there that was told who we are
}

// helloAnswer is how long a board may take to accept a HELLO.
const helloAnswer = 20 * time.Second

// newSeat begins one. b.mu is held.
func newSeat(ctx context.Context, b *farBoard, agent protocol.AgentID) *seat {
	s := &seat{b: b, agent: agent, round: b.round, url: withKey(b.conf.URL, b.conf.Key), as: agent, done: make(chan struct{}), wake: make(chan struct{}, 1), unsent: map[protocol.AgentID]bool{}}
	if b.conf.As != "" && !b.conf.All && len(b.conf.Agents) == 1 {
		s.as = b.conf.As
	}
	s.state = api.Seat{Agent: agent, As: s.as, State: api.SeatConnecting, Since: time.Now().UnixMilli()}
	ctx, s.cancel = context.WithCancel(ctx)
	go s.run(ctx)
	return s
}

func (s *seat) run(ctx context.Context) {
	defer close(s.done)
	for ctx.Err() == nil {
		end := s.once(ctx)
		if ctx.Err() != nil {
			return
		}
		next := s.backoff.After(end, rand.Float64())
		s.ended(next)
		if next.Stop {
			<-ctx.Done()
			return
		}
		_ = pause(ctx, next.Wait) // cut short, the loop ends
	}
}

// ended shows why there is no connection now, to whoever asks.
func (s *seat) ended(next foreign.Next) {
	now := time.Now()
	row := api.Seat{Agent: s.agent, As: s.as, State: api.SeatWaiting, Why: next.Why, Since: now.UnixMilli(), Again: now.Add(next.Wait).UnixMilli()}
	if next.Stop {
		row.State, row.Again = api.SeatStopped, 0
	}
	s.mu.Lock()
	if s.state.State == row.State { // since when it goes on so
		row.Since = s.state.Since
	}
	s.state = row
	s.mu.Unlock()
	if next.Stop {
		s.b.n.warnings.set(s.warning(), string(s.agent)+" is not at the board "+s.b.name()+" any more: "+next.Why+". To give it up: aster join-board --leave "+s.b.name())
		s.b.n.log.Warn("board left", "part", "board", "board", s.b.name(), "agent", s.agent, "why", next.Why)
		return
	}
	s.b.n.log.Info("no connection to the board", "part", "board", "board", s.b.name(), "agent", s.agent, "why", next.Why, "again", next.Wait)
}

func (s *seat) warning() string { return s.b.warning() + "/" + string(s.agent) }

func (s *seat) row() api.Seat {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state
}

// joined notes that the board has accepted our agent.
func (s *seat) joined(v *visit, as protocol.AgentID, role string) {
	s.mu.Lock()
	s.visit = v
	s.state = api.Seat{Agent: s.agent, As: as, Role: role, State: api.SeatJoined, Since: time.Now().UnixMilli()}
	s.mu.Unlock()
	s.b.n.warnings.clear(s.warning())
	notify(s.wake)
}

// present is the visit that is under way, or nil.
func (s *seat) present() *visit {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.visit
}

// look notes that an agent there has mail.
func (s *seat) look(agent protocol.AgentID) {
	s.mu.Lock()
	s.unsent[protocol.FoldAgentID(agent)] = true
	s.mu.Unlock()
	notify(s.wake)
}

// looks takes what look has noted.
func (s *seat) looks() map[protocol.AgentID]bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := s.unsent
	s.unsent = map[protocol.AgentID]bool{}
	return out
}

// once connects, stays as long as it can, and says how it ended.
func (s *seat) once(ctx context.Context) foreign.End {
	n := s.b.n
	conn, err := link.Dial(ctx, s.url, nil, link.Options{})
	if err != nil {
		end := foreign.End{Reason: s.hideKey(err.Error())}
		var no *link.RefusedError
		if errors.As(err, &no) {
			end.Status, end.RetryAfter = no.Status, no.RetryAfter
		}
		return end
	}
	conn.Authenticated()
	name := string(s.agent)
	v := &visit{s: s, conn: conn, ctx: ctx, sent: map[protocol.AgentID]uint64{}}
	v.session = foreign.New(foreign.Options{Agent: s.as, Name: name, Client: n.joinMark(), Greeted: s.greeted, Asked: v.asks})
	conn.Send(v.session.Hello(time.Now(), string(newID())))
	silent := time.AfterFunc(helloAnswer, func() {
		if s.present() != v {
			conn.Close(1002, "no answer to the HELLO")
		}
	})
	sending := make(chan struct{})
	go func() {
		defer close(sending)
		v.send(ctx)
	}()
	err = conn.Serve(ctx, v.message)
	silent.Stop()
	s.mu.Lock()
	s.visit = nil
	s.mu.Unlock()
	<-sending
	v.work.Wait()
	_ = n.loop.post(context.WithoutCancel(ctx), func() { n.loop.leftBoard(s.b) })
	return v.end(err)
}

// end is how a visit ended, in words that hold no key.
func (v *visit) end(err error) foreign.End {
	end := foreign.End{Rejected: v.rejected, Accepted: !v.accepted.IsZero(), Reason: "the connection ended"}
	if end.Accepted {
		end.Stayed = time.Since(v.accepted)
	}
	var closed *link.CloseError
	switch {
	case errors.As(err, &closed):
		end.Reason = closed.Reason
		if closed.Remote {
			end.Code = closed.Code
		}
	case errors.Is(err, link.ErrDead):
		end.Reason = "the board has fallen silent"
	case err != nil:
		end.Reason = v.s.hideKey(err.Error())
	}
	return end
}

// hideKey keeps the key out of what is shown and logged.
func (s *seat) hideKey(text string) string {
	s.b.mu.Lock()
	key := s.b.conf.Key
	s.b.mu.Unlock()
	if key != "" {
		text = strings.ReplaceAll(text, key, "KEY")
	}
	return protocol.CutText(text, 300)
}

// decodeForeign reads a frame of a board: text and binary are JSON both, since no subprotocol was asked for.
func decodeForeign(data []byte) (asterism.Frame, *protocol.Refusal) {
	return asterism.Decode(data, protocol.FrameBytesMax)
}
