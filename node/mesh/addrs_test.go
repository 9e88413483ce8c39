package mesh

import (
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"

	ma "github.com/multiformats/go-multiaddr"
)

func TestAddressesOfOurTransportsAreTaken(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"/ip4/10.0.0.1/tcp/4001", "/ip4/10.0.0.1/tcp/4001"},
		{"/ip6/fd00::1/udp/4001/quic-v1", "/ip6/fd00::1/udp/4001/quic-v1"},
		{"/dns4/example.org/tcp/443/ws", "/dns4/example.org/tcp/443/ws"},
		{"/ip4/10.0.0.1/tcp/4001/p2p/12D3KooWGC6TvWhfajpgX6wvJHMYvKpDMXPb3ZnCZ6dMoaMtimQ5", "/ip4/10.0.0.1/tcp/4001"},
		{"/ip4/10.0.0.1/udp/4001/quic-v1/webtransport", ""},
		{"/ip4/10.0.0.1/udp/4001/webrtc-direct", ""},
		{"/ip4/10.0.0.1/udp/4001", ""},
		{"/unix/tmp/socket", ""},
		{"10.0.0.1:4001", ""},
		{"", ""},
		{"/ip4/10.0.0.1/tcp/4001" + strings.Repeat("/tcp/1", 100), ""},
	} {
		got, err := parseAddr(c.in)
		if c.want == "" && err == nil || c.want != "" && (err != nil || got.String() != c.want) {
			t.Errorf("parseAddr(%q) = %v, %v, want %q", c.in, got, err, c.want)
		}
	}
}

func TestInterfacesOfContainersAndTunnelsAreVirtual(t *testing.T) {
	for name, want := range map[string]bool{"docker0": true, "veth12ab": true, "br-1f": true, "utun3": true, "wg0": true,
		"eth0": false, "en0": false, "wlan0": false, "Wi-Fi": false} {
		if got := isVirtual(name); got != want {
			t.Errorf("isVirtual(%q) = %v, want %v", name, got, want)
		}
	}
}

func TestLoopbackIsAnnouncedOnlyWhileNothingElseIsOpen(t *testing.T) {
	a := startHost(t, &roster{}, nil)
	isLoop := func(s string) bool { return strings.HasPrefix(s, "/ip4/127.") || strings.HasPrefix(s, "/ip6/::1/") }
	if len(a.addr) != 3 || slices.ContainsFunc(a.addr, func(s string) bool { return !isLoop(s) }) {
		t.Fatalf("a loopback node announces %v, want its three loopback addresses", a.addr)
	}
	if testing.Short() || len(usableIPs()) == 0 {
		t.Skip("opens this machine's interfaces")
	}
	if err := a.OpenLAN(); err != nil {
		t.Fatal(err)
	}
	if open := a.Addrs(); len(open) < 2 || slices.ContainsFunc(open, isLoop) {
		t.Errorf("an open node announces %v, want no loopback", open)
	}
	if err := a.OpenLAN(); err != nil {
		t.Errorf("a second OpenLAN: %v", err)
	}
}

// A laptop that was on many networks announces where it is, and its listeners there come back with the network.
func TestFormerNetworksAreNotAnnounced(t *testing.T) {
	var listeners []ma.Multiaddr
	for _, a := range []string{"/ip4/127.0.0.1/tcp/7", "/ip4/10.0.0.1/tcp/7", "/ip4/10.0.0.1/udp/7/quic-v1", "/ip4/10.0.1.1/tcp/7", "/ip6/fd00::1/tcp/7"} {
		parsed, err := ma.NewMultiaddr(a)
		if err != nil {
			t.Fatal(err)
		}
		listeners = append(listeners, parsed)
	}
	at := func(ips ...string) (out []netip.Addr) {
		for _, ip := range ips {
			out = append(out, netip.MustParseAddr(ip))
		}
		return out
	}
	for _, c := range []struct {
		here []netip.Addr
		want []string
	}{
		{at("127.0.0.1", "10.0.1.1"), []string{"/ip4/10.0.1.1/tcp/7"}},
		{at("127.0.0.1", "10.0.0.1", "fd00::1"), []string{"/ip4/10.0.0.1/tcp/7", "/ip6/fd00::1/tcp/7", "/ip4/10.0.0.1/udp/7/quic-v1"}},
		{at("127.0.0.1", "192.168.0.1"), []string{"/ip4/127.0.0.1/tcp/7"}},
		{nil, []string{"/ip4/10.0.0.1/tcp/7", "/ip4/10.0.1.1/tcp/7", "/ip6/fd00::1/tcp/7", "/ip4/10.0.0.1/udp/7/quic-v1"}},
	} {
		if got := announced(listeners, nil, c.here); !slices.Equal(got, c.want) {
			t.Errorf("at %v it announces %v, want %v", c.here, got, c.want)
		}
	}
}

// A machine whose port is taken on some network, and that looks at its networks again: nothing is opened twice, which the
// QUIC transport would answer with a panic.
func TestNetworksAreOpenedOnceWherePortsAreTaken(t *testing.T) {
	a := startHost(t, &roster{}, nil)
	other := netip.MustParseAddr("127.0.0.2")
	at := netip.AddrPortFrom(other, uint16(a.Port()))
	tcp, err := net.ListenTCP("tcp4", net.TCPAddrFromAddrPort(at))
	if err != nil {
		t.Skip("a machine without 127.0.0.2: ", err)
	}
	defer tcp.Close()
	udp, err := net.ListenUDP("udp4", net.UDPAddrFromAddrPort(at))
	if err != nil {
		t.Fatal(err)
	}
	defer udp.Close()
	var opened []string
	for range 3 {
		if err := a.listenAt([]netip.Addr{other}); err != nil {
			t.Fatal(err)
		}
		now := a.addrsAt(other)
		if opened == nil {
			opened = now
		}
		if len(now) != 2 || !slices.Equal(now, opened) {
			t.Fatalf("it listens on %q, and at first on %q", now, opened)
		}
	}
}

func TestUnspecifiedListenersAreAnnouncedByInterface(t *testing.T) {
	a, err := ma.NewMultiaddr("/ip4/0.0.0.0/tcp/7/ws")
	if err != nil {
		t.Fatal(err)
	}
	if got, want := replaceIP(a, netip.MustParseAddr("10.1.2.3")).String(), "/ip4/10.1.2.3/tcp/7/ws"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestPeersNameOnlyAddressesThatMayBeTheirs(t *testing.T) {
	r := &roster{}
	a := startHost(t, r, nil)
	in, _ := newKey(t)
	out, _ := newKey(t)
	r.set(in, Inside)
	r.set(out, Outside)
	seen, err := ma.NewMultiaddr("/ip4/10.0.0.7/tcp/5555")
	if err != nil {
		t.Fatal(err)
	}
	named := []string{"/ip4/10.0.0.7/tcp/1", "/ip4/10.0.0.8/tcp/22", "/ip4/127.0.0.1/tcp/6379", "/ip4/0.0.0.0/tcp/1", "nonsense"}
	if got, want := a.plausible(in, named, seen), named[:2]; !slices.Equal(got, want) {
		t.Errorf("of an inside member: %v, want %v", got, want)
	}
	if got, want := a.plausible(out, named, seen), named[:1]; !slices.Equal(got, want) {
		t.Errorf("of an outside member: %v, want %v", got, want)
	}
}

func TestTCPIsDialledBeforeQUICBeforeWebSocket(t *testing.T) {
	a := startHost(t, &roster{}, nil)
	var addrs []ma.Multiaddr
	for _, s := range []string{"/ip4/10.0.0.1/tcp/1/ws", "/ip4/10.0.0.1/udp/1/quic-v1", "/ip4/10.0.0.1/tcp/1"} {
		p, err := parseAddr(s)
		if err != nil {
			t.Fatal(err)
		}
		addrs = append(addrs, p)
	}
	order := func() (out []string) {
		for _, d := range a.rank(addrs) {
			out = append(out, transportOf(d.Addr))
		}
		return out
	}
	if got, want := order(), []string{"tcp", "quic", "ws"}; !slices.Equal(got, want) {
		t.Errorf("order %v, want %v", got, want)
	}
	p, _ := newKey(t)
	a.remember(p, addrs[1].String())
	if got, want := order(), []string{"quic", "tcp", "ws"}; !slices.Equal(got, want) {
		t.Errorf("order with a good address %v, want %v", got, want)
	}
}
