package mesh

import (
	"net"
	"net/netip"
	"slices"
	"testing"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/aster-mesh/aster/protocol"
)

func TestAHintLinksAMemberWhoseAddressNobodyKnows(t *testing.T) {
	r := &roster{}
	a, b := startHost(t, r, nil), startHost(t, r, nil)
	r.set(a.Self(), Inside)
	r.set(b.Self(), Inside)
	a.SetPeers([]Peer{{ID: b.Self()}})
	if !a.missing() || b.missing() {
		t.Fatalf("a misses b: %v; b misses nobody: %v", a.missing(), !b.missing())
	}
	a.sighted(sighting{b.Self(), b.addr}, loopback)
	until(t, "linked", func() bool { return a.linked(b) && b.linked(a) })
	if a.missing() {
		t.Error("a misses whom it is linked with")
	}
}

func TestAHintIsForKnownMembersAndOfTheirOwnPlaceOnly(t *testing.T) {
	r := &roster{}
	a := startHost(t, r, nil)
	member, _ := newKey(t)
	stranger, _ := newKey(t)
	revoked, _ := newKey(t)
	unwanted, _ := newKey(t)
	for p, s := range map[protocol.PeerID]Standing{a.Self(): Inside, member: Inside, revoked: Revoked, unwanted: Inside} {
		r.set(p, s)
	}
	a.SetPeers([]Peer{{ID: member}, {ID: stranger}, {ID: revoked}})
	here := netip.MustParseAddr("10.1.2.3")
	hinted := func(p protocol.PeerID) []string {
		a.mu.Lock()
		defer a.mu.Unlock()
		return a.hints[p].addrs
	}
	for _, p := range []protocol.PeerID{stranger, revoked, unwanted, a.Self()} {
		a.sighted(sighting{p, []string{"/ip4/10.1.2.3/tcp/7"}}, here)
		if got := hinted(p); got != nil {
			t.Errorf("%s: %v", p, got)
		}
	}
	a.sighted(sighting{member, []string{"/ip4/10.9.9.9/tcp/22", "/dns4/example.org/tcp/7", "/ip4/127.0.0.1/tcp/7"}}, here)
	if got := hinted(member); got != nil {
		t.Errorf("addresses of others are taken: %v", got)
	}
	a.sighted(sighting{member, []string{"/ip4/10.1.2.3/tcp/7", "/ip4/10.9.9.9/tcp/22"}}, here)
	if got := hinted(member); !slices.Equal(got, []string{"/ip4/10.1.2.3/tcp/7"}) || !slices.Contains(a.addrsOf(member), got[0]) {
		t.Errorf("hints %v, dialled %v", got, a.addrsOf(member))
	}
}

func TestANodeThatIsNotOpenedToNetworksIsAnnouncedToNone(t *testing.T) {
	a := startHost(t, &roster{}, func(c *Config) {
		c.multicast = func(i *net.Interface) (*net.UDPConn, error) {
			t.Errorf("a socket on %s", i.Name)
			return nil, net.ErrClosed
		}
	})
	if a.followNetworks(nil, nil) {
		t.Error("a loopback node follows networks")
	}
}

func TestAnnouncementsAreReadAsTheyWereMade(t *testing.T) {
	self, _ := newKey(t)
	addrs := []string{"/ip4/10.1.2.3/tcp/7", "/ip4/10.1.2.3/udp/7/quic-v1", "/ip4/10.1.2.3/tcp/7/ws", "/ip6/fd00::1/tcp/7", "/ip4/10.1.2.3/tcp/8"}
	raw, err := mdnsAnnouncement(self, addrs)
	if err != nil || len(raw) > mdnsBytesMax {
		t.Fatalf("%d bytes, %v", len(raw), err)
	}
	asks, seen := readMDNS(raw)
	if asks || len(seen) != 1 || seen[0].peer != self || !slices.Equal(seen[0].addrs, addrs[:mdnsAddrsMax]) {
		t.Errorf("asks %v, seen %+v", asks, seen)
	}
	raw, err = mdnsQuestion()
	if err != nil {
		t.Fatal(err)
	}
	if asks, seen := readMDNS(raw); !asks || seen != nil {
		t.Errorf("a question: asks %v, seen %+v", asks, seen)
	}
}

func FuzzReadMDNS(f *testing.F) {
	self, _ := newKey(f)
	for _, name := range []string{mdnsService, "_http._tcp.local.", string(self) + "." + mdnsService, "x._ASTER._udp.local."} {
		for _, response := range []bool{false, true} {
			n := dnsmessage.MustNewName(name)
			raw, err := (&dnsmessage.Message{
				Header:    dnsmessage.Header{Response: response},
				Questions: []dnsmessage.Question{{Name: n, Type: dnsmessage.TypePTR, Class: dnsmessage.ClassINET}},
				Answers: []dnsmessage.Resource{{
					Header: dnsmessage.ResourceHeader{Name: n, Type: dnsmessage.TypeTXT, Class: dnsmessage.ClassINET},
					Body:   &dnsmessage.TXTResource{TXT: []string{"addr=/ip4/1.2.3.4/tcp/5", "addr=/ip4/1.2.3.4/tcp/5/p2p/x", "other"}},
				}},
			}).Pack()
			if err != nil {
				f.Fatal(err)
			}
			f.Add(raw)
			f.Add(raw[:len(raw)-3])
		}
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		_, seen := readMDNS(raw)
		if len(seen) > mdnsRecordsMax {
			t.Errorf("%d sightings", len(seen))
		}
		for _, s := range seen {
			if _, err := s.peer.PublicKey(); err != nil || len(s.addrs) == 0 || len(s.addrs) > mdnsAddrsMax {
				t.Errorf("sighting %+v, %v", s, err)
			}
			for _, a := range s.addrs {
				if _, err := parseAddr(a); err != nil {
					t.Error(err)
				}
			}
		}
	})
}
