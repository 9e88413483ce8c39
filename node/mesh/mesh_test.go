package mesh

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/aster-mesh/aster/protocol"
)

var loopback = netip.MustParseAddr("127.0.0.1")

// roster is who is what, shared by the hosts of one test.
type roster struct {
	mu sync.Mutex
	of map[protocol.PeerID]Standing
}

func (r *roster) standing(p protocol.PeerID) Standing {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.of[p]
}

func (r *roster) set(p protocol.PeerID, s Standing) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.of == nil {
		r.of = map[protocol.PeerID]Standing{}
	}
	r.of[p] = s
}

// testHost is a Mesh with what its callbacks told.
type testHost struct {
	*Mesh
	key  ed25519.PrivateKey
	addr []string
	stop func()

	mu     sync.Mutex
	frames []string
	ups    []LinkInfo
	downs  []error
	refuse []error
	rooms  int
	block  chan struct{} // OnFrame waits for it when set
}

func newKey(t testing.TB) (protocol.PeerID, ed25519.PrivateKey) {
	t.Helper()
	pub, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	return protocol.PeerIDOf(pub), key
}

func startHost(t testing.TB, r *roster, change func(*Config)) *testHost {
	t.Helper()
	port, err := PickPort(0)
	if err != nil {
		t.Fatal(err)
	}
	h := &testHost{}
	_, h.key = newKey(t)
	cfg := Config{
		Key: h.key, Listen: ListenOn(loopback, port), MeshID: "mesh-1", Standing: r.standing,
		OnLink: func(i LinkInfo) { h.note(func() { h.ups = append(h.ups, i) }) },
		OnFrame: func(from protocol.PeerID, f []byte) error {
			h.mu.Lock()
			block := h.block
			h.mu.Unlock()
			if block != nil {
				<-block
			}
			h.note(func() { h.frames = append(h.frames, from.Short()+" "+string(f[:min(len(f), 40)])) })
			return nil
		},
		OnLinkDown: func(_ protocol.PeerID, err error) { h.note(func() { h.downs = append(h.downs, err) }) },
		OnRefused:  func(_ protocol.PeerID, err error) { h.note(func() { h.refuse = append(h.refuse, err) }) },
		OnRoom:     func(protocol.PeerID) { h.note(func() { h.rooms++ }) },
		multicast: func(*net.Interface) (*net.UDPConn, error) {
			return nil, errors.New("tests send nothing to this machine's networks")
		},
	}
	if testing.Verbose() && os.Getenv("MESH_LOG") != "" {
		cfg.Log = slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug}))
	}
	if change != nil {
		change(&cfg)
	}
	h.key = cfg.Key
	if h.Mesh, err = New(cfg); err != nil {
		t.Fatal(err)
	}
	h.addr = h.Addrs()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := h.Run(ctx); err != nil {
			t.Errorf("Run: %v", err)
		}
	}()
	h.stop = sync.OnceFunc(func() {
		began := time.Now()
		if err := h.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
		cancel()
		<-done
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("shutdown took %v, want at most 10 s", took)
		}
	})
	t.Cleanup(h.stop)
	until(t, "running", func() bool { h.Mesh.mu.Lock(); defer h.Mesh.mu.Unlock(); return h.running })
	return h
}

func (h *testHost) note(f func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	f()
}

func (h *testHost) got() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.frames)
}

func (h *testHost) linked(to *testHost) bool {
	return slices.ContainsFunc(h.Links(), func(l LinkInfo) bool { return l.Peer == to.Self() })
}

func until(t testing.TB, what string, cond func() bool) {
	t.Helper()
	deadline := time.Now().Add(10 * time.Second)
	for !cond() {
		if time.Now().After(deadline) {
			t.Fatalf("not within 10 s: %s", what)
		}
		time.Sleep(2 * time.Millisecond) // real sockets: there is no bubble to wait in
	}
}

// pair is two inside members that know each other.
func pair(t testing.TB, r *roster, change func(*Config)) (a, b *testHost) {
	t.Helper()
	a, b = startHost(t, r, change), startHost(t, r, change)
	r.set(a.Self(), Inside)
	r.set(b.Self(), Inside)
	a.SetPeers([]Peer{{ID: b.Self(), Addrs: b.addr}})
	b.SetPeers([]Peer{{ID: a.Self(), Addrs: a.addr}})
	until(t, "both linked", func() bool { return a.linked(b) && b.linked(a) })
	return a, b
}

func TestFramesArriveInOrderBothWays(t *testing.T) {
	a, b := pair(t, &roster{}, nil)
	const n = 2000
	for i := range n {
		if !a.Send(b.Self(), fmt.Appendf(nil, "%d", i)) || !b.Send(a.Self(), fmt.Appendf(nil, "%d", i)) {
			t.Fatalf("frame %d was not taken", i)
		}
	}
	until(t, "all frames", func() bool { return len(a.got()) == n && len(b.got()) == n })
	for i := range n {
		if want := fmt.Sprintf("%s %d", a.Self().Short(), i); b.got()[i] != want {
			t.Fatalf("frame %d: got %q, want %q", i, b.got()[i], want)
		}
	}
	if tr := a.Bytes(b.Self()); tr.DataOut == 0 || tr.DataOut != b.Bytes(a.Self()).DataIn {
		t.Errorf("a counts %+v, b counts %+v: what one sent the other got", tr, b.Bytes(a.Self()))
	}
}

func TestEveryTransportLinks(t *testing.T) {
	for i, name := range []string{"tcp", "quic", "ws"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := &roster{}
			a, b := startHost(t, r, nil), startHost(t, r, nil)
			r.set(a.Self(), Inside)
			r.set(b.Self(), Outside)
			a.SetPeers([]Peer{{ID: b.Self(), Addrs: b.addr[i : i+1]}})
			until(t, "linked", func() bool { return a.linked(b) && b.linked(a) })
			if got := a.Links()[0].Transport; got != name {
				t.Errorf("linked over %s, want %s (%s)", got, name, b.addr[i])
			}
			if !b.Send(a.Self(), []byte("hello")) {
				t.Error("frame was not taken")
			}
			until(t, "frame", func() bool { return len(a.got()) == 1 })
		})
	}
}

func TestPortTakenIsNamed(t *testing.T) {
	a := startHost(t, &roster{}, nil)
	_, key := newKey(t)
	m, err := New(Config{Key: key, Listen: a.addr, Standing: func(protocol.PeerID) Standing { return Unknown }})
	if !errors.Is(err, ErrPortTaken) || m != nil {
		t.Fatalf("New on a taken port: %v, %v, want ErrPortTaken", m, err)
	}
	port, err := PickPort(a.Port())
	if err != nil || port == a.Port() {
		t.Errorf("PickPort(%d) = %d, %v: want another port", a.Port(), port, err)
	}
}

func TestThreeHostsLinkAndAKillIsNoticed(t *testing.T) {
	r := &roster{}
	hosts := []*testHost{startHost(t, r, nil), startHost(t, r, nil), startHost(t, r, nil)}
	var peers []Peer
	for _, h := range hosts {
		r.set(h.Self(), Inside)
		peers = append(peers, Peer{ID: h.Self(), Addrs: h.addr})
	}
	for _, h := range hosts {
		h.SetPeers(peers)
	}
	until(t, "a full mesh", func() bool {
		return len(hosts[0].Links()) == 2 && len(hosts[1].Links()) == 2 && len(hosts[2].Links()) == 2
	})
	for _, h := range hosts {
		until(t, "two links told", func() bool { h.mu.Lock(); defer h.mu.Unlock(); return len(h.ups)-len(h.downs) == 2 })
	}
	hosts[2].stop()
	until(t, "the killed one gone", func() bool { return len(hosts[0].Links()) == 1 && len(hosts[1].Links()) == 1 })
}

func TestSimultaneousDialsLeaveOneLink(t *testing.T) {
	for range 5 {
		r := &roster{}
		a, b := startHost(t, r, nil), startHost(t, r, nil)
		r.set(a.Self(), Inside)
		r.set(b.Self(), Inside)
		// Both open at once, without the delay that the keepers give the larger id.
		a.SetPeers([]Peer{{ID: b.Self(), Addrs: b.addr}})
		b.SetPeers([]Peer{{ID: a.Self(), Addrs: a.addr}})
		var wg sync.WaitGroup
		wg.Go(func() { _ = a.open(t.Context(), b.Self()) })
		wg.Go(func() { _ = b.open(t.Context(), a.Self()) })
		wg.Wait()
		until(t, "both linked", func() bool { return a.linked(b) && b.linked(a) })
		la, lb := a.link(b.Self()), b.link(a.Self())
		if la == nil || lb == nil || la.id != lb.id {
			t.Fatal("the two sides hold different links")
		}
		for i := range 100 {
			if !a.Send(b.Self(), fmt.Appendf(nil, "%d", i)) {
				t.Fatalf("frame %d was not taken", i)
			}
		}
		until(t, "all frames", func() bool { return len(b.got()) == 100 })
		a.stop()
		b.stop()
		for _, h := range []*testHost{a, b} {
			if len(h.ups) != len(h.downs) {
				t.Errorf("%d links came up and %d went down", len(h.ups), len(h.downs))
			}
			if len(h.ups) != 1 {
				t.Errorf("%d links came up, want one", len(h.ups))
			}
		}
	}
}

func TestRestartOnAnotherPortIsFound(t *testing.T) {
	r := &roster{}
	a, b := pair(t, r, nil)
	b.stop()
	until(t, "link down", func() bool { return len(a.Links()) == 0 })
	// b comes back elsewhere and knows where a is; a learns the new place from the link itself.
	again := startHost(t, r, func(c *Config) { c.Key = b.key })
	again.SetPeers([]Peer{{ID: a.Self(), Addrs: a.addr}})
	until(t, "linked again", func() bool { return a.linked(again) && again.linked(a) })
	if got := a.Links()[0].Listens; !slices.Equal(got, again.addr) {
		t.Errorf("a heard of %v, want %v", got, again.addr)
	}
	again.stop()
	// And the other way: a is told the new addresses and dials.
	third := startHost(t, r, func(c *Config) { c.Key = b.key })
	a.SetPeers([]Peer{{ID: third.Self(), Addrs: third.addr}})
	until(t, "linked a third time", func() bool { return a.linked(third) && third.linked(a) })
}

// A peer that restarts may be linked again before the end of its former link was told: the end is told first all the same.
func TestTheEndOfALinkIsToldBeforeTheNextOneIsUp(t *testing.T) {
	r, told, ending, end := &roster{}, make(chan string, 8), make(chan struct{}), make(chan struct{})
	var first sync.Once
	a := startHost(t, r, func(c *Config) {
		c.OnLink = func(LinkInfo) { told <- "up" }
		c.OnLinkDown = func(protocol.PeerID, error) {
			first.Do(func() { close(ending); <-end })
			told <- "down"
		}
	})
	b := startHost(t, r, nil)
	r.set(a.Self(), Inside)
	r.set(b.Self(), Inside)
	b.SetPeers([]Peer{{ID: a.Self(), Addrs: a.addr}})
	until(t, "linked", func() bool { return a.linked(b) && b.linked(a) })
	go b.stop()
	<-ending
	again := startHost(t, r, func(c *Config) { c.Key = b.key })
	again.SetPeers([]Peer{{ID: a.Self(), Addrs: a.addr}})
	until(t, "linked anew, as the peer sees it", func() bool { return again.linked(a) })
	close(end)
	for _, want := range []string{"up", "down", "up"} {
		if got := <-told; got != want {
			t.Errorf("told %s, want %s", got, want)
		}
	}
	b.stop()
}

func TestRevokedPeerIsClosedAtOnceAndStaysOut(t *testing.T) {
	r := &roster{}
	a, b := pair(t, r, nil)
	began := time.Now()
	r.set(b.Self(), Revoked)
	a.CloseRevoked(b.Self())
	until(t, "b without a link", func() bool { return len(b.Links()) == 0 })
	if took := time.Since(began); took > 5*time.Second { // a second is promised; the acceptance tests hold it on a machine of their own
		t.Errorf("closing took %v", took)
	}
	until(t, "b told that it is refused", func() bool { b.mu.Lock(); defer b.mu.Unlock(); return len(b.refuse) > 0 })
	if b.refuse[0] == nil || !forGood(b.refuse[0]) {
		t.Errorf("b was told %v", b.refuse[0])
	}
	if a.linked(b) {
		t.Error("the revoked peer is back")
	}
}

func TestSlowReaderLosesItsLinkAtTheBoundAndComesBack(t *testing.T) {
	r := &roster{}
	a, b := pair(t, r, nil)
	gate := make(chan struct{})
	b.note(func() { b.block = gate })
	frame := make([]byte, protocol.MeshFrameBytesMax)
	most := 0
	for a.Send(b.Self(), frame) {
		most = max(most, a.Queued(b.Self()))
	}
	if most > protocol.LinkQueueBytesMax {
		t.Errorf("%d bytes were queued, the bound is %d", most, protocol.LinkQueueBytesMax)
	}
	until(t, "link down for slowness", func() bool {
		a.mu.Lock()
		defer a.mu.Unlock()
		return len(a.downs) > 0 && errors.Is(a.downs[0], ErrTooSlow)
	})
	b.note(func() { b.block = nil })
	close(gate)
	until(t, "linked again", func() bool { return a.linked(b) && b.linked(a) })
	before := len(b.got())
	if !a.Send(b.Self(), []byte("after")) {
		t.Fatal("frame was not taken on the new link")
	}
	until(t, "a frame on the new link", func() bool { return len(b.got()) > before })
}

func TestRoomIsToldWhenAQueueEmpties(t *testing.T) {
	a, b := pair(t, &roster{}, nil)
	gate := make(chan struct{})
	b.note(func() { b.block = gate })
	frame := make([]byte, 512<<10)
	for a.Queued(b.Self()) <= protocol.LinkQueueBytesMax*3/4 {
		if !a.Send(b.Self(), frame) {
			t.Fatal("queue closed below its bound")
		}
	}
	b.note(func() { b.block = nil })
	close(gate)
	until(t, "room", func() bool { a.mu.Lock(); defer a.mu.Unlock(); return a.rooms == 1 && a.Queued(b.Self()) == 0 })
}

func TestWaitingFrameEndsALinkAfterItsTime(t *testing.T) {
	a, b := pair(t, &roster{}, func(c *Config) { c.pace = pace{time.Second, 5 * time.Second, 300 * time.Millisecond} })
	gate := make(chan struct{})
	defer close(gate)
	b.note(func() { b.block = gate })
	for range 7 { // below the bound in bytes, above what the transport swallows
		a.Send(b.Self(), make([]byte, protocol.MeshFrameBytesMax))
	}
	until(t, "link down for slowness", func() bool {
		a.mu.Lock()
		defer a.mu.Unlock()
		return len(a.downs) > 0 && errors.Is(a.downs[0], ErrTooSlow)
	})
	b.note(func() { b.block = nil })
}
