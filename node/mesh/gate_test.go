package mesh

import (
	"crypto/rand"
	"strconv"
	"testing"

	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	ma "github.com/multiformats/go-multiaddr"

	"github.com/aster-mesh/aster/protocol"
)

// gatedConn is a connection of which the gate sees who it is from.
type gatedConn struct {
	network.Conn
	id   peer.ID
	addr ma.Multiaddr
}

func (c gatedConn) RemotePeer() peer.ID           { return c.id }
func (c gatedConn) RemoteMultiaddr() ma.Multiaddr { return c.addr }
func (c gatedConn) Stat() network.ConnStats {
	return network.ConnStats{Stats: network.Stats{Direction: network.DirInbound}}
}

func knockFrom(t *testing.T, port int) gatedConn {
	t.Helper()
	key, _, err := crypto.GenerateEd25519Key(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	id, err := peer.IDFromPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	addr, err := ma.NewMultiaddr("/ip4/127.0.0.1/tcp/" + strconv.Itoa(port))
	if err != nil {
		t.Fatal(err)
	}
	return gatedConn{id: id, addr: addr}
}

// Members that come before the roster is read are strangers at first: they keep no place from then on.
func TestMembersKeepNoPlaceOfStrangers(t *testing.T) {
	standing := Unknown
	g := newGate(func(protocol.PeerID) Standing { return standing })
	defer g.close()
	for i := range admissionsPerAddr {
		c := knockFrom(t, 1000+i)
		if !g.InterceptSecured(network.DirInbound, c.id, c) {
			t.Fatal("a stranger finds no place though there is one")
		}
		g.Connected(nil, c)
	}
	newcomer := knockFrom(t, 2000)
	if g.InterceptSecured(network.DirInbound, newcomer.id, newcomer) {
		t.Fatal("a stranger more than there are places for is let in")
	}
	standing = Inside
	g.mu.Lock()
	in, held := g.reserve(newcomer), len(g.places)
	g.mu.Unlock()
	if !in {
		t.Error("those who are members now keep a newcomer out")
	}
	if held != 1 {
		t.Errorf("%d places are held, want the newcomer's alone", held)
	}
}
