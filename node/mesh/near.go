package mesh

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	ma "github.com/multiformats/go-multiaddr"
	manet "github.com/multiformats/go-multiaddr/net"

	"github.com/aster-mesh/aster/protocol"
)

// Members on one network find each other by multicast DNS once OpenLAN was called. An answer is no more than a hint where a
// known member may be: strangers are passed over, and who answers at the address proves its key as ever.
const (
	nearLook     = 2 * time.Second  // interfaces are looked at, and whether anybody is missing
	nearAskMax   = time.Minute      // between two questions while somebody is missing
	nearSayEvery = time.Second      // answers on one network are at least so far apart
	nearPoke     = 2 * time.Second  // a hint that is not new makes us dial at most so often
	nearRenew    = 10 * time.Minute // who misses nobody says so seldom where it is

	nearErrorsMax = 16 // reading errors in a row after which a socket is given up
)

var mdnsGroup = &net.UDPAddr{IP: net.IPv4(224, 0, 0, 251), Port: 5353}

// nearby is one network that this node is announced to.
type nearby struct {
	name  string // of the interface
	ip    netip.Addr
	conn  *net.UDPConn
	addrs func() []string // of this node on this network
	dead  atomic.Bool

	mu   sync.Mutex
	said time.Time
}

// near keeps a socket on every usable network while the node is open to them.
func (m *Mesh) near(ctx context.Context) {
	open := map[netip.Addr]*nearby{}
	var readers sync.WaitGroup
	defer readers.Wait()
	defer func() {
		for _, n := range open {
			_ = n.conn.Close() // nothing waits for it
		}
	}()
	tick := time.NewTicker(nearLook)
	defer tick.Stop()
	pause, asked, said := nearLook, time.Time{}, time.Time{}
	for {
		if m.followNetworks(open, &readers) {
			pause, asked, said = nearLook, time.Time{}, time.Time{}
		}
		now := time.Now()
		if missing := m.missing(); missing && now.Sub(asked) >= pause {
			asked = now
			pause = min(2*pause, nearAskMax)
			each(open, (*nearby).ask)
		} else if !missing {
			pause = nearLook
		}
		if now.Sub(said) >= nearRenew {
			said = now
			each(open, func(n *nearby) error { return n.say(m.self) })
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-m.lanOpened:
		}
	}
}

func each(open map[netip.Addr]*nearby, f func(*nearby) error) {
	for _, n := range open {
		_ = f(n) // a network that went is noticed at the next look
	}
}

// followNetworks opens and closes sockets as networks come and go; true: there is a new one.
func (m *Mesh) followNetworks(open map[netip.Addr]*nearby, readers *sync.WaitGroup) (fresh bool) {
	m.mu.Lock()
	lan := m.lan
	m.mu.Unlock()
	if !lan {
		return false
	}
	now := usable()
	for ip, n := range open {
		if n.dead.Load() || !slices.ContainsFunc(now, func(u usableIP) bool { return u.ip == ip && u.iface.Name == n.name }) {
			_ = n.conn.Close()
			delete(open, ip)
		}
	}
	for _, u := range now {
		if open[u.ip] != nil || !u.ip.Is4() || u.iface.Flags&net.FlagMulticast == 0 {
			continue
		}
		conn, err := m.cfg.multicast(&u.iface)
		if err != nil {
			m.log.Debug("network not announced to", "interface", u.iface.Name, "err", err)
			continue
		}
		n := &nearby{name: u.iface.Name, ip: u.ip, conn: conn, addrs: func() []string { return m.addrsAt(u.ip) }}
		open[u.ip], fresh = n, true
		m.log.Info("announced to members on this network", "interface", n.name, "ip", n.ip)
		readers.Go(func() { m.listenNear(n) })
	}
	return fresh
}

// addrsAt are this node's addresses with one IP.
func (m *Mesh) addrsAt(ip netip.Addr) []string {
	return slices.DeleteFunc(m.Addrs(), func(a string) bool {
		parsed, err := parseAddr(a)
		return err != nil || ipOf(parsed) != ip
	})
}

func ipOf(a ma.Multiaddr) netip.Addr {
	ip, err := manet.ToIP(a)
	if err != nil {
		return netip.Addr{}
	}
	addr, _ := netip.AddrFromSlice(ip)
	return addr.Unmap()
}

// missing says whether a member that is to be linked is not.
func (m *Mesh) missing() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	for id := range m.wanted {
		if m.links[id] == nil {
			return true
		}
	}
	return false
}

func (n *nearby) ask() error {
	raw, err := mdnsQuestion()
	if err != nil {
		return err
	}
	_, err = n.conn.WriteToUDP(raw, mdnsGroup)
	return err
}

// say announces this node, at most every nearSayEvery.
func (n *nearby) say(self protocol.PeerID) error {
	n.mu.Lock()
	early := time.Since(n.said) < nearSayEvery
	if !early {
		n.said = time.Now()
	}
	n.mu.Unlock()
	if early {
		return nil
	}
	raw, err := mdnsAnnouncement(self, n.addrs())
	if err != nil {
		return err
	}
	_, err = n.conn.WriteToUDP(raw, mdnsGroup)
	return err
}

// listenNear reads what others say on a network until its socket is closed.
func (m *Mesh) listenNear(n *nearby) {
	buf := make([]byte, 9000) // the most that RFC 6762 allows
	for bad := 0; bad < nearErrorsMax; {
		size, from, err := n.conn.ReadFromUDPAddrPort(buf)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // such as a packet that is too long, on Windows
			bad++
			continue
		}
		bad = 0
		at := from.Addr().Unmap()
		if at == n.ip {
			continue
		}
		asks, seen := readMDNS(buf[:size])
		if asks {
			if err := n.say(m.self); err != nil {
				m.log.Debug("network not announced to", "interface", n.name, "err", err)
			}
		}
		for _, s := range seen {
			m.sighted(s, at)
		}
	}
	n.dead.Store(true) // the next look opens it again
}

// sighted takes the hint where a member may be, and tries there if it has no link.
func (m *Mesh) sighted(s sighting, from netip.Addr) {
	addrs := s.at(from)
	if s.peer == m.self && len(addrs) > 0 {
		m.twinSighted(addrs)
		return
	}
	if len(addrs) == 0 || !m.cfg.Standing(s.peer).Member() {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, ok := m.wanted[s.peer]; !ok {
		return
	}
	old := m.hints[s.peer]
	fresh := !slices.Equal(old.addrs, addrs)
	if !fresh && time.Since(old.at) < nearPoke {
		return
	}
	m.hints[s.peer] = hint{addrs, time.Now()}
	if k := m.keepers[s.peer]; k != nil && m.links[s.peer] == nil {
		k.poke()
	}
}

// hint is where a member was last heard of on a network here.
type hint struct {
	addrs []string
	at    time.Time
}
