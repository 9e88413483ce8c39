package bench

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/aster-mesh/aster/node/link"
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
	URL   string          `json:"url"`  // of /ws
	Sink  bool            `json:"sink"` // a member attacks a sink of its own instead
}

// attacks are what a hostile member, or a hostile client, does. Each is done as fast as it goes, until the context ends.
var attacks = map[string]func(*attacker, context.Context) error{
	"member: flood of valid records":        (*attacker).flood,
	"member: garbage, again and again":      (*attacker).garbage,
	"member: false signatures":              (*attacker).forgery,
	"member: asks for all and never reads":  func(a *attacker, ctx context.Context) error { return a.asks(ctx, time.Hour) },
	"member: asks for all and reads slowly": func(a *attacker, ctx context.Context) error { return a.asks(ctx, 100*time.Millisecond) },
	"member: streams without end":           (*attacker).streams,
	"client: flood of 2 KB":                 func(a *attacker, ctx context.Context) error { return a.client(ctx, 2<<10, true) },
	"client: flood of 20 KB":                func(a *attacker, ctx context.Context) error { return a.client(ctx, 20<<10, true) },
	"client: garbage":                       func(a *attacker, ctx context.Context) error { return a.client(ctx, 200, false) },
}

// attackNames is the order in which they are measured.
var attackNames = []string{
	"member: flood of valid records", "member: garbage, again and again", "member: false signatures", "member: asks for all and never reads",
	"member: asks for all and reads slowly", "member: streams without end", "client: flood of 2 KB", "client: flood of 20 KB", "client: garbage",
}

type attacker struct {
	target
	key   ed25519.PrivateKey
	links int // that it had
	sent  int // bytes
}

// ServeAttack is the attacker's process: it reads whom to attack from in, says that it begins, and goes on until in ends, for
// which it waits also if ctx ends or the attack fails before.
func ServeAttack(ctx context.Context, in io.Reader, out io.Writer) error {
	d := json.NewDecoder(in)
	var t target
	if err := d.Decode(&t); err != nil {
		return fmt.Errorf("read the target: %w", err)
	}
	attack := attacks[t.Kind]
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
	return errors.Join(err, json.NewEncoder(out).Encode(map[string]int{"links": a.links, "bytes": a.sent}))
}

// linked is the attacker as a node that has a link, until that, or f, ends. read is called with each frame.
func (a *attacker) linked(ctx context.Context, read func(), f func(context.Context, *mesh.Mesh) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	up := make(chan struct{}, 1)
	m, err := mesh.New(mesh.Config{Key: a.key, MeshID: a.Mesh, Standing: func(protocol.PeerID) mesh.Standing { return mesh.Inside },
		OnLink:     func(mesh.LinkInfo) { up <- struct{}{} },
		OnFrame:    func(protocol.PeerID, []byte) error { read(); return nil },
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
		a.links++
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
	a.sent += len(raw)
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

// flood writes a log as fast as it is taken: messages between its own agents.
func (a *attacker) flood(ctx context.Context) error {
	log := newAuthor(a.key)
	return a.again(ctx, reads, func(ctx context.Context, m *mesh.Mesh) error {
		for ctx.Err() == nil {
			raw, err := a.commit(log, false)
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

// commit is the next range of a log, a hundred records.
func (a *attacker) commit(log *author, forged bool) ([]byte, error) {
	var recs []protocol.Record
	if log.seq == 0 {
		recs = append(recs, log.entry(protocol.KindBind, protocol.BindBody{Agent: "flooder", Home: log.log.Peer, Since: log.clock.Next(time.Now()), Role: protocol.RoleLocal, Client: "ws"}, nil).Record)
	}
	for range 100 {
		recs = append(recs, log.message("flooder", "flooder").Record)
	}
	recs[len(recs)-1].Sign(a.key)
	if forged {
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
	raw, err := a.commit(newAuthor(a.key), true)
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

// streams opens one stream after the other and lets them lie.
func (a *attacker) streams(ctx context.Context) error {
	return a.again(ctx, reads, func(ctx context.Context, m *mesh.Mesh) error {
		for i := 0; ctx.Err() == nil; i++ {
			purpose := []mesh.Purpose{mesh.Blob, mesh.Gossip, mesh.Tail}[i%3]
			once, cancel := context.WithTimeout(ctx, time.Second)
			if s, err := m.OpenStream(once, a.Peer, purpose); err == nil {
				a.links++
				n, _ := s.Write(make([]byte, 1<<10))
				a.sent += n
			}
			cancel()
		}
		return nil
	})
}

// client says hello and then one frame after the other, anew whenever it is cut off.
func (a *attacker) client(ctx context.Context, bytes int, valid bool) error {
	words := make([]byte, bytes)
	for i := range words {
		words[i] = 'x'
	}
	for ctx.Err() == nil {
		conn, err := link.Dial(ctx, a.URL, nil, link.Options{QueueBytes: 8 << 20})
		if err != nil {
			time.Sleep(10 * time.Millisecond)
			continue
		}
		a.links++
		conn.Authenticated()
		once, cancel := context.WithCancel(ctx)
		var serve sync.WaitGroup
		serve.Go(func() { defer cancel(); _ = conn.Serve(once, func([]byte, bool) {}) })
		conn.Send([]byte(`{"type":"HELLO","agentId":"flooder"}`))
		for once.Err() == nil {
			frame := `{"type":"CUSTOM","name":"Status","msgId":"` + uuid.NewString() + `","value":{"text":"` + string(words) + `"}}`
			if !valid {
				frame = frame[:len(frame)-1] + "]"
			}
			for conn.Waiting() > 1<<20 && once.Err() == nil {
				time.Sleep(time.Millisecond)
			}
			if !conn.Send([]byte(frame)) {
				break
			}
			a.sent += len(frame)
		}
		cancel()
		serve.Wait()
	}
	return nil
}

// openSink has the attack go to a node within this process that takes everything and does nothing with it, or refuses what the real
// one refuses: what the attacker costs the machine without its target.
func (a *attacker) openSink(ctx context.Context) (func(), error) {
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	port, err := mesh.PickPort(0)
	if err != nil {
		return nil, err
	}
	m, err := mesh.New(mesh.Config{Key: key, Listen: mesh.ListenOn(netip.AddrFrom4([4]byte{127, 0, 0, 1}), port), MeshID: a.Mesh,
		Standing: func(protocol.PeerID) mesh.Standing { return mesh.Inside },
		OnFrame: func(protocol.PeerID, []byte) error {
			if refusedAtOnce[a.Kind] {
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

var refusedAtOnce = map[string]bool{"member: garbage, again and again": true, "member: false signatures": true}
