package node

import (
	"crypto/ed25519"
	"crypto/rand"
	"testing"

	"github.com/aster-mesh/aster/protocol/meshwire"
)

// A node whose clock was set back and whose address changed is found at the new one: its members hold on to the latest list.
func TestNewAddressesAreLaterThanFormerOnes(t *testing.T) {
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	first, fresh := followingAddrs(key, meshwire.Addrs{}, []string{"/ip4/10.0.0.1/tcp/7"}, 1_000_000)
	if !fresh || first.Verify() != nil || first.At != 1_000_000 {
		t.Fatalf("%+v, %v", first, fresh)
	}
	if again, fresh := followingAddrs(key, first, []string{"/ip4/10.0.0.1/tcp/7"}, 2_000_000); fresh || again.At <= first.At {
		t.Errorf("the same addresses are called new: %+v", again)
	}
	moved, fresh := followingAddrs(key, first, []string{"/ip4/10.0.0.2/tcp/7"}, 400_000)
	if !fresh || moved.At <= first.At || moved.Verify() != nil {
		t.Errorf("with the clock set back: %+v, %v", moved, fresh)
	}
	if empty, fresh := followingAddrs(key, meshwire.Addrs{}, nil, 1); !fresh || empty.Verify() != nil {
		t.Errorf("a node that listens nowhere: %+v", empty)
	}
}
