package mesh

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"

	ma "github.com/multiformats/go-multiaddr"
)

// ListenOn lists the multiaddrs of one address and port: TCP, QUIC, and WebSocket on TCP's port.
func ListenOn(ip netip.Addr, port int) []string {
	family := "ip4"
	if ip.Unmap().Is6() {
		family = "ip6"
	}
	tcp := fmt.Sprintf("/%s/%s/tcp/%d", family, ip.Unmap(), port)
	return []string{tcp, fmt.Sprintf("/%s/%s/udp/%d/quic-v1", family, ip.Unmap(), port), tcp + "/ws"}
}

// PickPort returns preferred if it is free on loopback for TCP and UDP, else another that is. Preferred 0 means any.
func PickPort(preferred int) (int, error) {
	var err error
	for range 20 {
		var port int
		if port, err = tryPort(preferred); err == nil {
			return port, nil
		}
		preferred = 0
	}
	return 0, fmt.Errorf("pick a port: %w", err)
}

func tryPort(port int) (int, error) {
	l, err := net.ListenTCP("tcp4", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: port})
	if err != nil {
		return 0, err
	}
	defer func() { _ = l.Close() }()
	port = l.Addr().(*net.TCPAddr).Port
	u, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1), Port: port})
	if err != nil {
		return 0, err
	}
	return port, u.Close()
}

// Listen adds listeners while the Mesh runs. An address that is listened on already is passed over. On ErrPortTaken the
// others may be open.
func (m *Mesh) Listen(addrs []string) error {
	var errs []error
	for _, a := range addrs {
		parsed, err := parseAddr(a)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if slices.ContainsFunc(m.host.swarm.ListenAddresses(), parsed.Equal) {
			continue
		}
		if err := m.host.swarm.AddListenAddr(parsed); err != nil {
			if inUse(err) {
				err = fmt.Errorf("%w: %w", ErrPortTaken, err)
			}
			errs = append(errs, fmt.Errorf("listen on %s: %w", a, err))
		}
	}
	return errors.Join(errs...)
}

// inUse says whether an address is taken. Windows has a number of its own for it, to which Go's name does not map.
func inUse(err error) bool {
	var number syscall.Errno
	return errors.Is(err, syscall.EADDRINUSE) || runtime.GOOS == "windows" && errors.As(err, &number) && number == 10048
}

// OpenLAN listens also on this machine's usable addresses, with the port of the first listener, or with another where
// that is taken; from then on it follows changes of address, and members on these networks find each other by multicast. It returns the error of the addresses that did not open.
func (m *Mesh) OpenLAN() error {
	m.mu.Lock()
	m.lan = true
	m.mu.Unlock()
	defer func() {
		select {
		case m.lanOpened <- struct{}{}:
		default:
		}
	}()
	return m.listenLAN()
}

func (m *Mesh) listenLAN() error { return m.listenAt(usableIPs()) }

// listenAt listens on these addresses of this machine as far as nothing listens there yet, at whichever port: the QUIC
// transport panics where one socket is listened on twice, and asking for any port may find it the socket that it has.
func (m *Mesh) listenAt(ips []netip.Addr) error {
	port := m.Port()
	var errs []error
	for _, ip := range ips {
		missing := func(addrs []string) []string {
			return slices.DeleteFunc(addrs, func(a string) bool { return m.listensAt(ip, a) })
		}
		err := m.Listen(missing(ListenOn(ip, port)))
		if errors.Is(err, ErrPortTaken) {
			// Each transport then gets a port of its own; they are announced with it.
			err = m.Listen(missing(ListenOn(ip, 0)[:2]))
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// listensAt says whether a listener with the transport of like takes what comes to ip.
func (m *Mesh) listensAt(ip netip.Addr, like string) bool {
	parsed, err := parseAddr(like)
	if err != nil {
		return false
	}
	return slices.ContainsFunc(m.host.swarm.ListenAddresses(), func(a ma.Multiaddr) bool {
		at := ipOf(a)
		return transportOf(a) == transportOf(parsed) && (at == ip || at.IsUnspecified() && at.Is4() == ip.Is4())
	})
}

// Port is the TCP port of the first listener of Config.Listen, 0 without one. Listeners that came later may have others.
func (m *Mesh) Port() int {
	for _, first := range m.cfg.Listen {
		parsed, err := parseAddr(first)
		if err != nil {
			continue
		}
		want, at := tcpPort(parsed), ipOf(parsed)
		if want > 0 {
			return want
		}
		for _, a := range m.host.swarm.ListenAddresses() {
			if port := tcpPort(a); port > 0 && want == 0 && ipOf(a) == at {
				return port
			}
		}
	}
	return 0
}

// tcpPort is -1 for an address without TCP.
func tcpPort(a ma.Multiaddr) int {
	v, err := a.ValueForProtocol(ma.P_TCP)
	if err != nil {
		return -1
	}
	port, err := strconv.Atoi(v)
	if err != nil {
		return -1
	}
	return port
}

// Addrs lists the multiaddrs at which others may reach this node now, TCP first, without /p2p: a listener's address that
// this machine had on a former network is left out. Loopback is left out when there is anything else.
func (m *Mesh) Addrs() []string {
	var here []netip.Addr
	for _, a := range machineAddrs() {
		if p, err := netip.ParsePrefix(a); err == nil {
			here = append(here, p.Addr().Unmap())
		}
	}
	return announced(m.host.swarm.ListenAddresses(), usableIPs(), here)
}

// announced is Addrs for these listeners on a machine with these addresses, here (empty: unknown) and usable by others.
func announced(listeners []ma.Multiaddr, usable, here []netip.Addr) []string {
	var loop, rest []ma.Multiaddr
	for _, a := range listeners {
		switch addr := ipOf(a); {
		case !addr.IsValid():
		case addr.IsUnspecified():
			for _, u := range usable {
				if u.Is4() == addr.Is4() {
					rest = append(rest, replaceIP(a, u))
				}
			}
		case addr.IsLoopback():
			loop = append(loop, a)
		case len(here) == 0 || slices.Contains(here, addr):
			rest = append(rest, a)
		}
	}
	if len(rest) == 0 {
		rest = loop
	}
	slices.SortStableFunc(rest, func(a, b ma.Multiaddr) int {
		order := map[string]int{"tcp": 0, "quic": 1, "ws": 2}
		return order[transportOf(a)] - order[transportOf(b)]
	})
	out := make([]string, 0, len(rest))
	for _, a := range rest {
		if s := a.String(); !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}

func replaceIP(a ma.Multiaddr, ip netip.Addr) ma.Multiaddr {
	_, tail := ma.SplitFirst(a)
	family := "ip4"
	if ip.Is6() {
		family = "ip6"
	}
	head, err := ma.NewComponent(family, ip.String())
	if err != nil {
		return a
	}
	return head.Encapsulate(tail)
}

// virtual are the names of interfaces that lead to containers, virtual machines or tunnels: nobody else reaches this
// node by them.
var virtual = []string{
	"docker", "veth", "br-", "virbr", "vmnet", "vboxnet", "podman", "cni", "flannel", "cali", "lxc", "lxd", "tun", "tap",
	"utun", "wg", "zt", "tailscale", "ipsec", "ppp", "awdl", "llw", "gif", "stf", "bridge", "dummy",
}

func isVirtual(name string) bool {
	return slices.ContainsFunc(virtual, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
}

// usableIP is an address of this machine with the interface that has it.
type usableIP struct {
	iface net.Interface
	ip    netip.Addr
}

// usableIPs lists the addresses of usable.
func usableIPs() []netip.Addr {
	var out []netip.Addr
	for _, u := range usable() {
		out = append(out, u.ip)
	}
	return out
}

// usable lists this machine's addresses that others may reach: of interfaces that are up and real, without loopback and
// link-local ones.
func usable() []usableIP {
	interfaces, err := net.Interfaces()
	if err != nil {
		return nil
	}
	var out []usableIP
	for _, i := range interfaces {
		if i.Flags&net.FlagUp == 0 || i.Flags&(net.FlagLoopback|net.FlagPointToPoint) != 0 || isVirtual(i.Name) {
			continue
		}
		addrs, err := i.Addrs()
		if err != nil {
			continue
		}
		for _, a := range addrs {
			if n, ok := a.(*net.IPNet); ok {
				ip, _ := netip.AddrFromSlice(n.IP)
				if ip = ip.Unmap(); ip.IsValid() && ip.IsGlobalUnicast() && len(out) < 8 {
					out = append(out, usableIP{i, ip})
				}
			}
		}
	}
	return out
}

// parseAddr reads a multiaddr of a transport that we have; a /p2p suffix is cut off.
func parseAddr(s string) (ma.Multiaddr, error) {
	if len(s) > addrBytesMax {
		return nil, fmt.Errorf("multiaddr of %d bytes, at most %d", len(s), addrBytesMax)
	}
	a, err := ma.NewMultiaddr(s)
	if err != nil {
		return nil, fmt.Errorf("multiaddr %q: %w", s, err)
	}
	a, _ = ma.SplitFunc(a, func(c ma.Component) bool { return c.Protocol().Code == ma.P_P2P })
	codes := []int{}
	for _, c := range a {
		codes = append(codes, c.Protocol().Code)
	}
	if len(codes) >= 2 && slices.Contains([]int{ma.P_IP4, ma.P_IP6, ma.P_DNS, ma.P_DNS4, ma.P_DNS6}, codes[0]) {
		switch rest := codes[1:]; {
		case slices.Equal(rest, []int{ma.P_TCP}), slices.Equal(rest, []int{ma.P_TCP, ma.P_WS}),
			slices.Equal(rest, []int{ma.P_UDP, ma.P_QUIC_V1}):
			return a, nil
		}
	}
	return nil, fmt.Errorf("multiaddr %q: want /ip4|ip6|dns/…/tcp/PORT, …/udp/PORT/quic-v1 or …/tcp/PORT/ws", s)
}
