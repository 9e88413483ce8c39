package gossip

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aster-mesh/aster/protocol"
)

// world is an in-memory network inside one bubble: pipes, a delay, lost packets, and nodes that can be cut off.
type world struct {
	mu     sync.Mutex
	dice   *rand.Rand
	loss   float64
	nodes  map[protocol.PeerID]*node
	cut    map[protocol.PeerID]bool
	inside map[protocol.PeerID]bool
	wg     sync.WaitGroup
}

type node struct {
	*Gossip
	w    *world
	stop func()

	mu      sync.Mutex
	changes int
}

func newWorld() *world {
	return &world{
		dice: rand.New(rand.NewPCG(1, 2)), nodes: map[protocol.PeerID]*node{}, cut: map[protocol.PeerID]bool{},
		inside: map[protocol.PeerID]bool{},
	}
}

func (w *world) isInside(p protocol.PeerID) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.inside[p]
}

func (w *world) apart(a, b protocol.PeerID) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.cut[a] || w.cut[b]
}

func (w *world) setCut(p protocol.PeerID, cut bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cut[p] = cut
}

func (w *world) lost() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.dice.Float64() < w.loss
}

// start makes a node; inside overrides whom it counts in.
func (w *world) start(t *testing.T, name string, inside func(protocol.PeerID) bool) *node {
	t.Helper()
	p := protocol.PeerID(name)
	n := &node{w: w}
	if inside == nil {
		inside = w.isInside
	}
	g, err := New(Config{
		Self: p, Streams: opener{w, p}, Inside: inside, Meta: []byte("meta of " + name),
		OnChange: func([]Member) { n.mu.Lock(); n.changes++; n.mu.Unlock() },
	})
	if err != nil {
		t.Fatal(err)
	}
	n.Gossip = g
	w.mu.Lock()
	w.nodes[p] = n
	w.mu.Unlock()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := g.Run(ctx); err != nil {
			t.Errorf("Run: %v", err)
		}
	}()
	n.stop = sync.OnceFunc(func() { cancel(); <-done })
	return n
}

func (w *world) stop() {
	for _, n := range w.nodes {
		n.stop()
	}
	w.wg.Wait()
	time.Sleep(time.Minute) // memberlist does not wait for a probe under way; the bubble's clock stops with the test
}

type opener struct {
	w    *world
	from protocol.PeerID
}

func (o opener) Open(ctx context.Context, to protocol.PeerID) (Stream, error) {
	time.Sleep(time.Millisecond) // in the bubble
	if o.w.apart(o.from, to) {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	o.w.mu.Lock()
	n := o.w.nodes[to]
	o.w.mu.Unlock()
	if n == nil {
		return nil, errors.New("no such node")
	}
	mine, theirs := net.Pipe()
	o.w.wg.Go(func() {
		n.Serve(o.from, &pipe{Conn: theirs, w: o.w, a: o.from, b: to})
		_ = theirs.Close()
	})
	return &pipe{Conn: mine, w: o.w, a: o.from, b: to}, nil
}

// pipe loses what is written while its ends are apart, and whole packets by chance.
type pipe struct {
	net.Conn
	w       *world
	a, b    protocol.PeerID
	packets bool
}

func (p *pipe) Write(b []byte) (int, error) {
	if p.w.apart(p.a, p.b) || p.packets && p.w.lost() {
		return len(b), nil
	}
	p.packets = p.packets || len(b) == 1 && b[0] == carriesPackets
	return p.Conn.Write(b)
}

func (n *node) state(of string) State {
	for _, m := range n.Members() {
		if m.Peer == protocol.PeerID(of) {
			return m.State
		}
	}
	return ""
}

// within waits in bubble time.
func within(t *testing.T, d time.Duration, what string, cond func() bool) time.Duration {
	t.Helper()
	began := time.Now()
	for !cond() {
		if time.Since(began) > d {
			t.Fatalf("not within %v: %s", d, what)
		}
		time.Sleep(50 * time.Millisecond)
	}
	return time.Since(began)
}

// mesh starts n inside nodes that have joined.
func mesh(t *testing.T, w *world, n int) []*node {
	t.Helper()
	var all []*node
	for i := range n {
		name := fmt.Sprintf("node-%d", i)
		w.mu.Lock()
		w.inside[protocol.PeerID(name)] = true
		w.mu.Unlock()
		all = append(all, w.start(t, name, nil))
	}
	for _, m := range all[1:] {
		m.Join(all[0].cfg.Self)
	}
	within(t, 2*pushPullInterval+time.Second, "everybody sees everybody", func() bool {
		return !slices.ContainsFunc(all, func(m *node) bool { return alive(m) != n-1 })
	})
	return all
}

func alive(n *node) (count int) {
	for _, m := range n.Members() {
		if m.State == Alive {
			count++
		}
	}
	return count
}

func TestNodesFindEachOtherThroughOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		defer w.stop()
		w.loss = 0.01
		all := mesh(t, w, 8)
		for _, m := range all[3].Members() {
			if want := "meta of " + string(m.Peer); string(m.Meta) != want {
				t.Errorf("%s says %q, want %q", m.Peer, m.Meta, want)
			}
		}
		all[3].mu.Lock()
		defer all[3].mu.Unlock()
		if all[3].changes == 0 {
			t.Error("OnChange never came")
		}
	})
}

func TestCutOffNodeIsSuspectedThenDeadThenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		defer w.stop()
		all := mesh(t, w, 5)
		w.setCut("node-4", true)
		suspected := false
		took := within(t, 15*time.Second, "the others call it dead", func() bool {
			dead := 0
			for _, m := range all[:4] {
				suspected = suspected || m.state("node-4") == Suspect
				if m.state("node-4") == Dead {
					dead++
				}
			}
			return dead == 4
		})
		if !suspected {
			t.Error("nobody suspected it before: does memberlist word it differently now?")
		}
		t.Logf("dead for all after %v", took)
		time.Sleep(2 * time.Minute) // longer than the dead are gossiped to
		for _, m := range all[:4] {
			if n := alive(m); n != 3 {
				t.Errorf("%s sees %d alive, want the other 3", m.cfg.Self, n)
			}
		}
		w.setCut("node-4", false)
		all[4].Join(all[0].cfg.Self) // as the node does when a link comes up
		within(t, 15*time.Second, "it is back for all", func() bool {
			return !slices.ContainsFunc(all, func(m *node) bool { return alive(m) != 4 })
		})
	})
}

func TestLiveNodesAreNotCalledDeadUnderLoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		defer w.stop()
		all := mesh(t, w, 5)
		w.mu.Lock()
		w.loss = 0.05
		w.mu.Unlock()
		for range 600 {
			time.Sleep(time.Second)
			for _, m := range all {
				for _, o := range m.Members() {
					if o.State == Dead {
						t.Fatalf("%s calls %s dead", m.cfg.Self, o.Peer)
					}
				}
			}
		}
	})
}

func TestWhoIsNotInsideIsNotListed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		defer w.stop()
		everybody := func(protocol.PeerID) bool { return true }
		all := mesh(t, w, 3)
		// node-3 counts the stranger in, so its word reaches the others.
		w.mu.Lock()
		w.inside["node-3"] = true
		w.mu.Unlock()
		lax := w.start(t, "node-3", everybody)
		stranger := w.start(t, "stranger", everybody)
		lax.Join("node-0", "stranger")
		stranger.Join("node-0", "node-1", "node-3")
		within(t, 10*time.Second, "node-3 is in", func() bool {
			return all[0].state("node-3") == Alive && all[2].state("node-3") == Alive && lax.state("stranger") == Alive
		})
		time.Sleep(time.Minute)
		for _, m := range all {
			if s := m.state("stranger"); s != "" {
				t.Errorf("%s lists the stranger as %s", m.cfg.Self, s)
			}
			if n := alive(m); n != 3 {
				t.Errorf("%s sees %d alive, want 3", m.cfg.Self, n)
			}
		}
	})
}

func TestRevokedNodeIsNotListedAnyMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		defer w.stop()
		all := mesh(t, w, 3)
		w.mu.Lock()
		w.inside["node-2"] = false
		w.mu.Unlock()
		if s := all[0].state("node-2"); s != "" {
			t.Errorf("a revoked node is listed as %s", s)
		}
		within(t, time.Minute, "the others drop what it sends", func() bool { return alive(all[0]) == 1 && alive(all[1]) == 1 })
	})
}

func TestMetaReachesAllAndLeavingIsSaid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		defer w.stop()
		w.loss = 0.01
		all := mesh(t, w, 5)
		if err := all[1].SetMeta([]byte("new")); err != nil {
			t.Fatal(err)
		}
		took := within(t, pushPullInterval+2*time.Second, "the new meta is known", func() bool {
			return !slices.ContainsFunc([]*node{all[0], all[2], all[3], all[4]}, func(n *node) bool {
				return !slices.ContainsFunc(n.Members(), func(m Member) bool { return m.Peer == "node-1" && string(m.Meta) == "new" })
			})
		})
		t.Logf("meta known after %v", took)
		if err := all[1].SetMeta(make([]byte, MetaBytesMax+1)); err == nil {
			t.Error("an oversized meta was taken")
		}
		if err := all[1].Leave(2 * time.Second); err != nil {
			t.Fatal(err)
		}
		all[1].stop()
		within(t, pushPullInterval+2*time.Second, "it is shown as left", func() bool {
			return all[0].state("node-1") == Left && all[4].state("node-1") == Left
		})
	})
}

func TestRestartedNodeIsAliveAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		defer w.stop()
		all := mesh(t, w, 3)
		all[2].stop()
		within(t, 15*time.Second, "dead", func() bool { return all[0].state("node-2") == Dead })
		again := w.start(t, "node-2", nil)
		again.Join("node-0")
		within(t, 5*time.Second, "alive again", func() bool {
			return all[0].state("node-2") == Alive && all[1].state("node-2") == Alive && alive(again) == 2
		})
	})
}

func TestDiagnosticsKeepLevelAndBound(t *testing.T) {
	var out bytes.Buffer
	var suspect protocol.PeerID
	d := newDiagnostics(slog.New(slog.NewTextHandler(&out, nil)), func(p protocol.PeerID) { suspect = p })
	for range 10 * linesBurst {
		fmt.Fprintf(d, "[WARN] memberlist: something odd\n")
	}
	fmt.Fprintf(d, "[DEBUG] memberlist: chatter\n")
	fmt.Fprintf(d, "[INFO] memberlist: Suspect abc has failed, no acks received\n")
	if n := strings.Count(out.String(), "level=WARN"); n < linesBurst || n > linesBurst+2 {
		t.Errorf("%d lines, want about %d", n, linesBurst)
	}
	if strings.Contains(out.String(), "chatter") {
		t.Error("a debug line was not kept back")
	}
	if suspect != "abc" {
		t.Errorf("suspect %q, want abc", suspect)
	}
}

func FuzzPacket(f *testing.F) {
	f.Add([]byte{0, 1, 'x'})
	f.Add([]byte{0xff, 0xff})
	f.Fuzz(func(t *testing.T, in []byte) {
		p, err := readPacket(bytes.NewReader(in))
		if err == nil && (len(p) == 0 || len(p) > protocol.GossipPacketBytesMax) {
			t.Fatalf("packet of %d bytes", len(p))
		}
		if err != nil && errors.Is(err, io.EOF) && len(in) >= 2 && in[0] == 0 && in[1] == 1 && len(in) > 2 {
			t.Fatalf("whole packet, %v", err)
		}
	})
}
