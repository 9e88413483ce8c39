package mesh_test

import (
	"context"
	"crypto/ed25519"
	"fmt"
	"net/netip"
	"sync"

	"github.com/aster-mesh/aster/node/mesh"
	"github.com/aster-mesh/aster/protocol"
)

// Two nodes that hold each other for inside members link up and exchange a frame.
func Example() {
	var wg sync.WaitGroup
	defer wg.Wait()
	got := make(chan string, 1)
	start := func(onLink func(mesh.LinkInfo)) *mesh.Mesh {
		_, key, err := ed25519.GenerateKey(nil)
		if err != nil {
			panic(err)
		}
		port, err := mesh.PickPort(0)
		if err != nil {
			panic(err)
		}
		m, err := mesh.New(mesh.Config{
			Key:      key,
			Listen:   mesh.ListenOn(netip.MustParseAddr("127.0.0.1"), port),
			MeshID:   "example",
			Standing: func(protocol.PeerID) mesh.Standing { return mesh.Inside },
			OnLink:   onLink,
			OnFrame: func(_ protocol.PeerID, frame []byte) error {
				got <- string(frame)
				return nil
			},
		})
		if err != nil {
			panic(err)
		}
		wg.Go(func() { _ = m.Run(context.Background()) })
		return m
	}
	a := start(nil)
	defer func() { _ = a.Close() }()
	up := make(chan protocol.PeerID, 1)
	b := start(func(l mesh.LinkInfo) { up <- l.Peer })
	defer func() { _ = b.Close() }()

	b.SetPeers([]mesh.Peer{{ID: a.Self(), Addrs: a.Addrs()}})
	fmt.Println(b.Send(<-up, []byte("hello")))
	fmt.Println(<-got)
	// Output:
	// true
	// hello
}
