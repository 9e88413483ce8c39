package bench

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aster-mesh/aster/node/mesh"
	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/meshwire"
)

// target is whom an attacker attacks, and by what; it stands in one line of its stdin.
type target struct {
	Kind  string          `json:"kind"`
	Home  string          `json:"home"` // of the member that it is; its key says so
	Mesh  string          `json:"mesh"`
	Peer  protocol.PeerID `json:"peer"`
	Addrs []string        `json:"addrs"`
	URL   string          `json:"url"`  // of /ws, with a key if it has one
	Sink  bool            `json:"sink"` // a member attacks a sink of its own instead
}

// attacks are what a hostile member, a member outside, a client, or a holder of a key does. Each is done as fast as it goes, until the
// context ends.
var attacks = []struct {
	kind string
	do   func(*attacker, context.Context) error
}{
	{"member: flood of valid records", func(a *attacker, ctx context.Context) error { return a.flood(ctx, (*attacker).words) }},
	{"member: garbage, again and again", (*attacker).garbage},
	{"member: false signatures", (*attacker).forgery},
	{"member: asks for all and never reads", func(a *attacker, ctx context.Context) error { return a.asks(ctx, time.Hour) }},
	{"member: asks for all and reads slowly", func(a *attacker, ctx context.Context) error { return a.asks(ctx, 100*time.Millisecond) }},
	{"member: streams without end", (*attacker).streams},
	{"outside: flood of records to one agent", func(a *attacker, ctx context.Context) error { return a.flood(ctx, (*attacker).words) }},
	{"outside: agents without end", func(a *attacker, ctx context.Context) error { return a.flood(ctx, (*attacker).crowd) }},
	{"outside: garbage, again and again", (*attacker).garbage},
	{"outside: asks for all and never reads", func(a *attacker, ctx context.Context) error { return a.asks(ctx, time.Hour) }},
	{"client: flood of 2 KB", func(a *attacker, ctx context.Context) error { return a.client(ctx, 2<<10, true) }},
	{"client: flood of 20 KB", func(a *attacker, ctx context.Context) error { return a.client(ctx, 20<<10, true) }},
	{"client: garbage", func(a *attacker, ctx context.Context) error { return a.client(ctx, 200, false) }},
	{"client: boards that never read", (*attacker).deaf},
	{"client: agents without end", (*attacker).joins},
	{"key: flood of 2 KB", func(a *attacker, ctx context.Context) error { return a.client(ctx, 2<<10, true) }},
	{"key: agents without end", (*attacker).joins},
}

// attackOf finds one; nil: there is none of that name.
func attackOf(kind string) func(*attacker, context.Context) error {
	for _, a := range attacks {
		if a.kind == kind {
			return a.do
		}
	}
	return nil
}

// victim is the agent inside that floods from outside are for.
const victim = "victim"

// streamers are how many open streams at once.
const streamers = 16

type attacker struct {
	target
	key    ed25519.PrivateKey
	forged bool // its signatures are

	links atomic.Int64 // that it had
	sent  atomic.Int64 // bytes
	got   atomic.Int64 // bytes
}

// tally is what an attacker says when it ends.
type tally struct {
	Links int64 `json:"links"`
	Sent  int64 `json:"sent"` // bytes
	Got   int64 `json:"got"`  // bytes, of records and answers
}

func (t *tally) add(o tally) { t.Links, t.Sent, t.Got = t.Links+o.Links, t.Sent+o.Sent, t.Got+o.Got }

// ServeAttack is the attacker's process: it reads whom to attack from in, says that it begins, and goes on until in ends, for
// which it waits also if ctx ends or the attack fails before.
func ServeAttack(ctx context.Context, in io.Reader, out io.Writer) error {
	d := json.NewDecoder(in)
	var t target
	if err := d.Decode(&t); err != nil {
		return fmt.Errorf("read the target: %w", err)
	}
	attack := attackOf(t.Kind)
	if attack == nil {
		return fmt.Errorf("there is no attack %q", t.Kind)
	}
	key, err := homeKey(t.Home)
	if err != nil {
		return err
	}
	a := &attacker{target: t, key: key}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if t.Sink {
		end, err := a.openSink(ctx)
		if err != nil {
			return err
		}
		defer end()
		defer cancel()
	}
	var reading sync.WaitGroup
	reading.Go(func() {
		defer cancel()
		_, _ = io.Copy(io.Discard, in)
	})
	defer reading.Wait()
	fmt.Fprintln(out, "begun")
	err = attack(a, ctx)
	if ctx.Err() != nil {
		err = nil
	}
	return errors.Join(err, json.NewEncoder(out).Encode(tally{a.links.Load(), a.sent.Load(), a.got.Load()}))
}

// linked is the attacker as a node that has a link, until that, or f, ends. read is called with each frame.
func (a *attacker) linked(ctx context.Context, read func(), f func(context.Context, *mesh.Mesh) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	up := make(chan struct{}, 1)
	m, err := mesh.New(mesh.Config{Key: a.key, MeshID: a.Mesh, Standing: func(protocol.PeerID) mesh.Standing { return mesh.Inside },
		OnLink: func(mesh.LinkInfo) { up <- struct{}{} },
		OnFrame: func(_ protocol.PeerID, raw []byte) error {
			a.got.Add(int64(len(raw)))
			read()
			return nil
		},
		OnLinkDown: func(protocol.PeerID, error) { cancel() },
	})
	if err != nil {
		return err
	}
	var run sync.WaitGroup
	run.Go(func() { _ = m.Run(ctx) })
	defer run.Wait()
	defer m.Close()
	defer cancel()
	m.SetPeers([]mesh.Peer{{ID: a.Peer, Addrs: a.Addrs}})
	select {
	case <-up:
		a.links.Add(1)
		return f(ctx, m)
	case <-ctx.Done():
	case <-time.After(5 * time.Second): // the gate has had enough of it
	}
	return nil
}

// put sends a frame once little waits.
func (a *attacker) put(ctx context.Context, m *mesh.Mesh, raw []byte) bool {
	for m.Queued(a.Peer) > 1<<20 {
		select {
		case <-ctx.Done():
			return false
		case <-time.After(time.Millisecond):
		}
	}
	a.sent.Add(int64(len(raw)))
	return m.Send(a.Peer, raw)
}

// again does something with one link after the other.
func (a *attacker) again(ctx context.Context, read func(context.Context) func(), f func(context.Context, *mesh.Mesh) error) error {
	for ctx.Err() == nil {
		if err := a.linked(ctx, read(ctx), f); err != nil {
			return err
		}
	}
	return nil
}

func reads(context.Context) func() { return func() {} }

// flood writes a log as fast as it is taken.
func (a *attacker) flood(ctx context.Context, next func(*attacker, *author) protocol.Record) error {
	log := a.author()
	return a.again(ctx, reads, func(ctx context.Context, m *mesh.Mesh) error {
		for ctx.Err() == nil {
			raw, err := a.commit(log, next)
			if err != nil {
				return err
			}
			if !a.put(ctx, m, raw) {
				return nil
			}
		}
		return nil
	})
}

// author is the attacker's log, in the scope that is its own.
func (a *attacker) author() *author {
	log := newAuthor(a.key)
	if a.outside() {
		log.log.Scope = protocol.ScopeOutside(log.log.Peer)
	}
	return log
}

func (a *attacker) outside() bool { return strings.HasPrefix(a.Kind, "outside") }

// words are between its own agents, or, of a member outside, to one inside.
func (a *attacker) words(log *author) protocol.Record {
	if a.outside() {
		return log.messageAs(protocol.RoleCollab, "flooder", victim).Record
	}
	return log.message("flooder", "flooder").Record
}

// crowd names one agent after the other.
func (a *attacker) crowd(log *author) protocol.Record {
	return a.bind(log, protocol.AgentID(fmt.Sprint("crowd-", log.seq)))
}

func (a *attacker) bind(log *author, agent protocol.AgentID) protocol.Record {
	role := protocol.RoleLocal
	if a.outside() {
		role = protocol.RoleCollab
	}
	return log.entry(protocol.KindBind, protocol.BindBody{Agent: agent, Home: log.log.Peer, Since: log.clock.Next(time.Now()), Role: role, Client: "ws"}, nil).Record
}

// commit is the next range of a log, a hundred records.
func (a *attacker) commit(log *author, next func(*attacker, *author) protocol.Record) ([]byte, error) {
	var recs []protocol.Record
	if log.seq == 0 {
		recs = append(recs, a.bind(log, "flooder"))
	}
	for range 100 {
		recs = append(recs, next(a, log))
	}
	recs[len(recs)-1].Sign(a.key)
	if a.forged {
		recs[len(recs)-1].Sig[5] ^= 1
	}
	parts, err := meshwire.SplitRecords(recs)
	if err != nil {
		return nil, err
	}
	raw, err := meshwire.Encode(parts[0])
	return raw[4:], err
}

// garbage sends what is no frame over one link after the other.
func (a *attacker) garbage(ctx context.Context) error {
	raw := make([]byte, 256<<10)
	_, _ = rand.Read(raw)
	raw[0] = 2
	return a.again(ctx, reads, func(ctx context.Context, m *mesh.Mesh) error {
		for a.put(ctx, m, raw) {
		}
		return nil
	})
}

// forgery sends ranges whose every byte must be read before it shows that they are false.
func (a *attacker) forgery(ctx context.Context) error {
	a.forged = true
	raw, err := a.commit(a.author(), (*attacker).words)
	if err != nil {
		return err
	}
	return a.again(ctx, reads, func(ctx context.Context, m *mesh.Mesh) error {
		for a.put(ctx, m, raw) {
		}
		return nil
	})
}

// asks has no record of anything, says so, and takes what it is sent at its own pace.
func (a *attacker) asks(ctx context.Context, every time.Duration) error {
	raw, err := meshwire.Encode(meshwire.Vector{})
	if err != nil {
		return err
	}
	slow := func(ctx context.Context) func() {
		return func() {
			select {
			case <-ctx.Done():
			case <-time.After(every):
			}
		}
	}
	return a.again(ctx, slow, func(ctx context.Context, m *mesh.Mesh) error {
		for a.put(ctx, m, raw[4:]) {
			select {
			case <-ctx.Done():
				return nil
			case <-time.After(10 * time.Millisecond):
			}
		}
		return nil
	})
}

// streams opens one stream after the other, several at once, and lets go of each.
func (a *attacker) streams(ctx context.Context) error {
	return a.again(ctx, reads, func(ctx context.Context, m *mesh.Mesh) error {
		var all sync.WaitGroup
		for w := range streamers {
			all.Go(func() {
				for i := w; ctx.Err() == nil; i++ {
					once, cancel := context.WithTimeout(ctx, time.Second)
					if s, err := m.OpenStream(once, a.Peer, []mesh.Purpose{mesh.Blob, mesh.Gossip, mesh.Tail}[i%3]); err == nil {
						sent, _ := s.Write(make([]byte, 1<<10))
						a.sent.Add(int64(sent))
						_ = s.Reset()
					} else if errors.Is(err, mesh.ErrNotLinked) {
						cancel()
						return // another link
					}
					cancel()
				}
			})
		}
		all.Wait()
		return nil
	})
}
