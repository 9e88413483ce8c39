package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/aster-mesh/aster/node/link"
	"github.com/aster-mesh/aster/node/mesh"
	"github.com/aster-mesh/aster/protocol"
)

// client says hello and then one frame after the other, anew whenever it is cut off.
func (a *attacker) client(ctx context.Context, bytes int, valid bool) error {
	name, to := "Status", ""
	if strings.HasPrefix(a.Kind, "key") {
		name, to = "Request", victim
	}
	words := make([]byte, bytes)
	for i := range words {
		words[i] = 'x'
	}
	for ctx.Err() == nil {
		conn, err := link.Dial(ctx, a.URL, nil, link.Options{QueueBytes: 8 << 20})
		if err != nil {
			_ = pause(ctx, 10*time.Millisecond)
			continue
		}
		a.links.Add(1)
		conn.Authenticated()
		once, cancel := context.WithCancel(ctx)
		var serve sync.WaitGroup
		serve.Go(func() {
			defer cancel()
			_ = conn.Serve(once, func(said []byte, _ bool) { a.got.Add(int64(len(said))) })
		})
		conn.Send([]byte(`{"type":"HELLO","agentId":"flooder"}`))
		for once.Err() == nil {
			frame := `{"type":"CUSTOM","name":"` + name + `","msgId":"` + uuid.NewString() + `","targetAgentId":"` + to + `","value":{"text":"` + string(words) + `"}}`
			if !valid {
				frame = frame[:len(frame)-1] + "]"
			}
			for conn.Waiting() > 1<<20 && once.Err() == nil {
				_ = pause(once, time.Millisecond)
			}
			if !conn.Send([]byte(frame)) {
				break
			}
			a.sent.Add(int64(len(frame)))
		}
		cancel()
		serve.Wait()
	}
	return nil
}

// deafBoards are how many boards look at once and read nothing.
const deafBoards = 8

// deaf are boards that never read what they are shown, anew whenever they are cut off.
func (a *attacker) deaf(ctx context.Context) error {
	var all sync.WaitGroup
	for range deafBoards {
		all.Go(func() {
			for ctx.Err() == nil {
				conn, err := link.Dial(ctx, a.URL, nil, link.Options{})
				if err != nil {
					_ = pause(ctx, 10*time.Millisecond)
					continue
				}
				a.links.Add(1)
				conn.Authenticated()
				_ = conn.Serve(ctx, func(said []byte, _ bool) {
					a.got.Add(int64(len(said)))
					<-ctx.Done()
				})
			}
		})
	}
	all.Wait()
	return nil
}

// joins says hello as one agent after the other and leaves again.
func (a *attacker) joins(ctx context.Context) error {
	for i := 0; ctx.Err() == nil; i++ {
		conn, err := link.Dial(ctx, a.URL, nil, link.Options{})
		if err != nil {
			_ = pause(ctx, 10*time.Millisecond)
			continue
		}
		a.links.Add(1)
		conn.Authenticated()
		once, cancel := context.WithTimeout(ctx, time.Second)
		conn.Send(fmt.Appendf(nil, `{"type":"HELLO","agentId":"crowd-%s"}`, uuid.NewString()))
		_ = conn.Serve(once, func([]byte, bool) { cancel() }) // the answer, or a refusal
		cancel()
	}
	return nil
}

// openSink has the attack go to a node within this process that takes everything and does nothing with it, or refuses what the real
// one refuses: what the attacker costs the machine without its target.
func (a *attacker) openSink(ctx context.Context) (func(), error) {
	m, err := loopbackHost(mesh.Config{MeshID: a.Mesh, OnFrame: func(protocol.PeerID, []byte) error {
		if strings.HasSuffix(a.Kind, "garbage, again and again") || strings.HasSuffix(a.Kind, "false signatures") {
			return errors.New("refused")
		}
		return nil
	}})
	if err != nil {
		return nil, err
	}
	for _, p := range []mesh.Purpose{mesh.Blob, mesh.Gossip, mesh.Tail} {
		m.Handle(p, false, func(_ protocol.PeerID, s mesh.Stream) { _, _ = io.Copy(io.Discard, s) })
	}
	a.Peer, a.Addrs = m.Self(), m.Addrs()
	var run sync.WaitGroup
	run.Go(func() { _ = m.Run(ctx) })
	return func() { _ = m.Close(); run.Wait() }, nil
}
