package mesh

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	p2p "github.com/libp2p/go-libp2p/core/protocol"

	"github.com/aster-mesh/aster/protocol"
)

// everybody is a roster for a hostile host: it counts all as members.
func everybody(protocol.PeerID) Standing { return Inside }

func TestStrangerGetsNoByteAndNoStream(t *testing.T) {
	r := &roster{}
	a := startHost(t, r, nil)
	served := make(chan Purpose, 8)
	for _, p := range []Purpose{Blob, Gossip} {
		a.Handle(p, false, func(protocol.PeerID, Stream) { served <- p })
	}
	x := startHost(t, r, func(c *Config) { c.Standing = everybody })
	conn, err := x.dial(t.Context(), a.Self(), a.addr)
	if err != nil {
		t.Fatalf("a stranger is let in to ask for admission: %v", err)
	}
	for _, id := range []p2p.ID{framesID, blobID, gossipID} {
		s, err := openOn(t.Context(), conn, id)
		if err != nil {
			continue // the reset overtook the answer to the negotiation
		}
		_, _ = s.Write([]byte("hello"))
		_ = s.SetReadDeadline(time.Now().Add(30 * time.Second))
		got, err := io.ReadAll(s)
		if len(got) > 0 || !errors.Is(explain(err), ErrNotMember) {
			t.Errorf("%s: a stranger read %d bytes, then %v; want none and %v", id, len(got), err, ErrNotMember)
		}
		_ = s.Reset()
	}
	if s, err := openOn(t.Context(), conn, "/ipfs/id/1.0.0"); err == nil {
		_ = s.Reset()
		t.Error("a stranger may ask who we are")
	}
	select {
	case p := <-served:
		t.Errorf("a stranger's %s stream reached its handler", p)
	default:
	}
	if _, _, err := x.Admit(t.Context(), a.Self(), a.addr, []byte("let me in")); !errors.Is(err, ErrNotMember) {
		t.Errorf("a host without Admit answered: %v", err)
	}
	if len(a.Links()) != 0 {
		t.Error("a stranger has a link")
	}
}

func TestStrangersHoldFewConnections(t *testing.T) {
	r := &roster{}
	a := startHost(t, r, func(c *Config) {
		c.Admit = func(context.Context, AdmitRequest) ([]byte, bool) { return nil, false }
	})
	in := 0
	for range admissionsPerAddr + 3 {
		x := startHost(t, r, func(c *Config) { c.Standing, c.Listen = everybody, nil })
		conn, err := x.dial(t.Context(), a.Self(), a.addr[:1])
		if err != nil {
			continue
		}
		s, err := openOn(t.Context(), conn, admitID)
		if err == nil {
			in++
			defer func() { _ = s.Reset() }()
		}
	}
	if in != admissionsPerAddr {
		t.Errorf("%d strangers of one address are in, want %d", in, admissionsPerAddr)
	}
	// Members of the same address are not kept out by them.
	b := startHost(t, r, nil)
	r.set(a.Self(), Inside)
	r.set(b.Self(), Inside)
	b.SetPeers([]Peer{{ID: a.Self(), Addrs: a.addr}})
	until(t, "a member linked", func() bool { return b.linked(a) })
}

func TestAdmissionWorksForAStrangerAndThenItLinks(t *testing.T) {
	r := &roster{}
	a := startHost(t, r, func(c *Config) {
		c.Admit = func(_ context.Context, q AdmitRequest) ([]byte, bool) {
			if !bytes.Equal(q.Body, []byte("secret")) || protocol.PeerIDOf(q.Pub) != q.Peer {
				return []byte("no"), false
			}
			r.set(q.Peer, Inside)
			return []byte("yes"), true
		}
	})
	mine := &roster{} // the newcomer knows nobody at first
	b := startHost(t, mine, nil)
	answer, _, err := b.Admit(t.Context(), a.Self(), a.addr, []byte("guess"))
	if err != nil || string(answer) != "no" {
		t.Fatalf("a wrong secret: %q, %v, want no", answer, err)
	}
	answer, addr, err := b.Admit(t.Context(), a.Self(), a.addr, []byte("secret"))
	if err != nil || string(answer) != "yes" || addr != a.addr[0] {
		t.Fatalf("the right secret: %q from %q, %v, want yes from %q", answer, addr, err, a.addr[0])
	}
	r.set(a.Self(), Inside)
	mine.set(a.Self(), Inside)
	b.SetPeers([]Peer{{ID: a.Self(), Addrs: a.addr}})
	until(t, "linked", func() bool { return a.linked(b) && b.linked(a) })
	if _, _, err := b.Admit(t.Context(), a.Self(), a.addr, make([]byte, admitRequestMax+1)); !errors.Is(err, ErrTooLarge) {
		t.Errorf("an oversized request: %v, want %v", err, ErrTooLarge)
	}
	other, _ := newKey(t)
	if _, _, err := b.Admit(t.Context(), other, a.addr, []byte("secret")); err == nil {
		t.Error("somebody else's address answered for the inviter")
	}
}

func TestAnotherMeshIsRefusedByName(t *testing.T) {
	r := &roster{}
	a := startHost(t, r, nil)
	b := startHost(t, r, func(c *Config) { c.MeshID = "mesh-2" })
	r.set(a.Self(), Inside)
	r.set(b.Self(), Inside)
	b.SetPeers([]Peer{{ID: a.Self(), Addrs: a.addr}})
	until(t, "b told", func() bool { b.mu.Lock(); defer b.mu.Unlock(); return len(b.refuse) == 1 })
	if err := b.refuse[0]; !errors.Is(err, ErrWrongMesh) {
		t.Errorf("b was told %v, want %v", err, ErrWrongMesh)
	}
}

// greet opens a link by hand, as a member would, and returns its stream.
func greet(t *testing.T, x *testHost, to *testHost) network.Stream {
	t.Helper()
	conn, err := x.dial(t.Context(), to.Self(), to.addr)
	if err != nil {
		t.Fatal(err)
	}
	s, err := openOn(t.Context(), conn, framesID)
	if err != nil {
		t.Fatal(err)
	}
	if err := writeHello(s, hello{Version: helloVersion, Mesh: "mesh-1", Start: 1, Link: randomID()}); err != nil {
		t.Fatal(err)
	}
	if _, err := readHello(s); err != nil {
		t.Fatal(err)
	}
	return s
}

func TestBadFramesEndTheLinkWithTheReason(t *testing.T) {
	huge := binary.BigEndian.AppendUint32(nil, protocol.MeshFrameBytesMax+2)
	for _, c := range []struct {
		name  string
		bytes []byte
		want  error
	}{
		{"oversized", append(huge, kindData), ErrTooLarge},
		{"far oversized", []byte{0xff, 0xff, 0xff, 0xff, kindData}, ErrTooLarge},
		{"empty", make([]byte, frameHead), ErrBadFrame},
		{"unknown kind", []byte{0, 0, 0, 2, 9, 0}, ErrBadFrame},
		{"long ping", []byte{0, 0, 0, 11, kindPing}, ErrBadFrame},
		{"refused by the caller", []byte{0, 0, 0, 4, kindData, 'b', 'a', 'd'}, ErrFrame},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := &roster{}
			a := startHost(t, r, func(cfg *Config) {
				cfg.OnFrame = func(protocol.PeerID, []byte) error { return errors.New("not to my taste") }
			})
			x := startHost(t, r, nil)
			r.set(a.Self(), Inside)
			r.set(x.Self(), Inside)
			s := greet(t, x, a)
			if _, err := s.Write(c.bytes); err != nil {
				t.Fatal(err)
			}
			_ = s.SetReadDeadline(time.Now().Add(30 * time.Second))
			if _, err := io.ReadAll(s); !errors.Is(explain(err), c.want) {
				t.Errorf("the sender heard %v, want %v", explain(err), c.want)
			}
			until(t, "link down", func() bool { a.mu.Lock(); defer a.mu.Unlock(); return len(a.downs) == 1 })
			if !errors.Is(a.downs[0], c.want) {
				t.Errorf("the link ended with %v, want %v", a.downs[0], c.want)
			}
		})
	}
}

func TestLargestFrameFits(t *testing.T) {
	a, b := pair(t, &roster{}, nil)
	if !a.Send(b.Self(), bytes.Repeat([]byte{'x'}, protocol.MeshFrameBytesMax)) {
		t.Fatal("the largest frame was not taken")
	}
	if a.Send(b.Self(), make([]byte, protocol.MeshFrameBytesMax+1)) {
		t.Error("a larger one was taken")
	}
	until(t, "the frame", func() bool { return len(b.got()) == 1 })
}

// blackHole relays TCP until it is closed to traffic; connections stay open then and nothing passes, as when a cable is
// pulled.
type blackHole struct {
	l    net.Listener
	to   string
	mu   sync.Mutex
	shut bool
	all  []net.Conn
	wg   sync.WaitGroup
}

func startBlackHole(t *testing.T, to string) *blackHole {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	h := &blackHole{l: l, to: to}
	h.wg.Go(h.accept)
	t.Cleanup(func() {
		_ = l.Close()
		h.mu.Lock()
		for _, c := range h.all {
			_ = c.Close()
		}
		h.mu.Unlock()
		h.wg.Wait()
	})
	return h
}

func (h *blackHole) accept() {
	for {
		in, err := h.l.Accept()
		if err != nil {
			return
		}
		out, err := net.Dial("tcp4", h.to)
		if err != nil {
			_ = in.Close()
			continue
		}
		h.mu.Lock()
		h.all = append(h.all, in, out)
		h.mu.Unlock()
		h.wg.Go(func() { h.copy(in, out) })
		h.wg.Go(func() { h.copy(out, in) })
	}
}

func (h *blackHole) copy(to, from net.Conn) {
	buf := make([]byte, 4096)
	for {
		n, err := from.Read(buf)
		h.mu.Lock()
		shut := h.shut
		h.mu.Unlock()
		if shut {
			swallow(from)
			return
		}
		if err != nil {
			_ = to.Close()
			return
		}
		if _, err := to.Write(buf[:n]); err != nil {
			return
		}
	}
}

// swallow drops what comes until the connection ends.
func swallow(from net.Conn) { _, _ = io.Copy(io.Discard, from) }

// holed is two linked hosts with a relay between them that can be shut.
func holed(t *testing.T, change func(*Config)) (a, b *testHost, shut func()) {
	t.Helper()
	r := &roster{}
	a, b = startHost(t, r, change), startHost(t, r, change)
	r.set(a.Self(), Inside)
	r.set(b.Self(), Inside)
	hole := startBlackHole(t, "127.0.0.1:"+strconv.Itoa(b.Port()))
	_, port, err := net.SplitHostPort(hole.l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	a.SetPeers([]Peer{{ID: b.Self(), Addrs: []string{"/ip4/127.0.0.1/tcp/" + port}}})
	until(t, "linked through the relay", func() bool { return a.linked(b) && b.linked(a) })
	return a, b, func() {
		hole.mu.Lock()
		defer hole.mu.Unlock()
		hole.shut = true
	}
}

func wantDead(t *testing.T, hosts ...*testHost) {
	t.Helper()
	for _, h := range hosts {
		until(t, "the dead link noticed", func() bool { h.mu.Lock(); defer h.mu.Unlock(); return len(h.downs) > 0 })
		h.mu.Lock()
		if !errors.Is(h.downs[0], ErrDead) {
			t.Errorf("the link ended with %v, want %v", h.downs[0], ErrDead)
		}
		h.mu.Unlock()
	}
}

func TestBlackHoledLinkIsDeadWithinItsTime(t *testing.T) {
	a, b, shut := holed(t, func(c *Config) { c.pace = pace{100 * time.Millisecond, 400 * time.Millisecond, 10 * time.Second} })
	until(t, "a round trip measured", func() bool { l := a.Links(); return len(l) == 1 && l[0].RTT > 0 })
	shut()
	wantDead(t, a, b)
	until(t, "linked again, by the address that b named itself", func() bool { return a.linked(b) })
}

func TestKickProvesALinkThatMayHaveDiedInASleep(t *testing.T) {
	t.Parallel()
	a, b, shut := holed(t, nil)
	a.Kick()
	b.note(func() { b.frames = nil })
	shut()
	began := time.Now()
	a.Kick()
	wantDead(t, a)
	until(t, "linked again", func() bool { return a.linked(b) })
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("linked again %v after the kick, want at most 5 s", took)
	}
}

func TestStreamsAreForMembersAndTheirPurpose(t *testing.T) {
	r := &roster{}
	a, b := pair(t, r, nil)
	echo := func(_ protocol.PeerID, s Stream) { _, _ = io.Copy(s, s) }
	a.Handle(Blob, false, echo)
	a.Handle(Gossip, true, echo)
	for _, p := range []Purpose{Blob, Gossip} {
		s, err := b.OpenStream(t.Context(), a.Self(), p)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = s.Write([]byte("echo"))
		_ = s.CloseWrite()
		if got, err := io.ReadAll(s); err != nil || string(got) != "echo" {
			t.Errorf("%s: %q, %v", p, got, err)
		}
		_ = s.Close()
	}
	r.set(b.Self(), Outside)
	s, err := openOn(t.Context(), b.link(a.Self()).stream.Conn(), gossipID)
	if err == nil {
		_, err = io.ReadAll(s)
		_ = s.Reset()
	}
	if !errors.Is(explain(err), ErrNotMember) {
		t.Errorf("an outside member's gossip ended with %v, want %v", explain(err), ErrNotMember)
	}
	if _, err := a.OpenStream(t.Context(), b.Self(), Gossip); !errors.Is(err, ErrNotMember) {
		t.Errorf("gossip to an outside member: %v, want %v", err, ErrNotMember)
	}
	// Many streams one after another: none is left behind by its handler.
	for range 3 * streamsPerPeer {
		s, err := b.OpenStream(t.Context(), a.Self(), Blob)
		if err != nil {
			t.Fatal(err)
		}
		_ = s.Close()
	}
}

func TestOnlyEd25519KeysAreTaken(t *testing.T) {
	if _, err := New(Config{Key: ed25519.PrivateKey("short"), Standing: everybody}); err == nil {
		t.Error("a key that is none was taken")
	}
}

func FuzzHello(f *testing.F) {
	f.Add([]byte(`{"v":1,"mesh":"m","start":1,"link":2,"gone":[3],"addrs":["/ip4/127.0.0.1/tcp/1","/unix/x"]}`))
	f.Add([]byte(`{}`))
	f.Add([]byte(`[[[[`))
	f.Fuzz(func(t *testing.T, body []byte) {
		h, err := decodeHello(body)
		if err != nil {
			return
		}
		var out bytes.Buffer
		if err := writeHello(&out, h); err != nil {
			t.Fatalf("a greeting that was read cannot be written: %v", err)
		}
	})
}

func TestStrangersConnectionEndsAfterItsTime(t *testing.T) {
	a := startHost(t, &roster{}, nil)
	a.gate.mu.Lock()
	a.gate.patience = 100 * time.Millisecond
	a.gate.mu.Unlock()
	x := startHost(t, &roster{}, func(c *Config) { c.Standing = everybody })
	conn, err := x.dial(t.Context(), a.Self(), a.addr[:1])
	if err != nil {
		t.Fatal(err)
	}
	until(t, "the connection closed", conn.IsClosed)
	until(t, "its place free", func() bool { a.gate.mu.Lock(); defer a.gate.mu.Unlock(); return len(a.gate.places) == 0 })
}

func TestStrangersWhoKnockTooOftenAreRefusedAndMembersAreNot(t *testing.T) {
	r := &roster{}
	a := startHost(t, r, nil)
	x := startHost(t, &roster{}, func(c *Config) { c.Standing = everybody })
	in, began := 0, time.Now()
	for range 3 * strangersBurst {
		conn, err := x.dial(t.Context(), a.Self(), a.addr[:1])
		if err != nil {
			continue
		}
		if s, err := openOn(t.Context(), conn, framesID); err == nil || errors.Is(explain(err), ErrNotMember) {
			in++
			if s != nil {
				_ = s.Reset()
			}
		}
		_ = conn.Close()
	}
	if most := strangersBurst + 5 + int(time.Since(began).Seconds()*strangersPerSec); in > most {
		t.Errorf("a stranger came in %d times, want about %d", in, most)
	}
	b := startHost(t, r, nil)
	r.set(a.Self(), Inside)
	r.set(b.Self(), Inside)
	b.SetPeers([]Peer{{ID: a.Self(), Addrs: a.addr}})
	until(t, "a member linked", func() bool { return b.linked(a) })
}
