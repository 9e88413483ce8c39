package bench

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"sync"
	"time"

	"github.com/aster-mesh/aster/node/mesh"
	"github.com/aster-mesh/aster/protocol"
)

// echo is an open libp2p stream between two hosts, at whose far end bytes come back.
type echo struct {
	stream mesh.Stream
	close  func() error
	out    []byte
	in     []byte
}

// openEcho makes two hosts on loopback with one stream between them.
func openEcho(ctx context.Context) (e *echo, err error) {
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	var hosts [2]*mesh.Mesh
	end := func() error {
		cancel()
		var err error
		for _, h := range hosts {
			if h != nil {
				err = errors.Join(err, h.Close())
			}
		}
		wg.Wait()
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("measure a libp2p stream: %w", err), end())
		}
	}()
	for i := range hosts {
		if hosts[i], err = loopbackHost(mesh.Config{MeshID: "bench"}); err != nil { // the stream carries nothing
			return nil, err
		}
	}
	hosts[1].Handle(mesh.Gossip, true, func(_ protocol.PeerID, s mesh.Stream) { _, _ = io.Copy(s, s) })
	for _, h := range hosts {
		wg.Go(func() { _ = h.Run(ctx) }) // it ends with Close
	}
	hosts[0].SetPeers([]mesh.Peer{{ID: hosts[1].Self(), Addrs: hosts[1].Addrs()}})
	var s mesh.Stream
	if err := until(ctx, "the two hosts are not linked", func() (bool, error) {
		if len(hosts[0].Links()) == 0 {
			return false, nil
		}
		s, err = hosts[0].OpenStream(ctx, hosts[1].Self(), mesh.Gossip)
		return err == nil, err
	}); err != nil {
		return nil, err
	}
	return &echo{stream: s, close: end, out: make([]byte, bodyBytes), in: make([]byte, bodyBytes)}, nil
}

// loopbackHost is a host with a key of its own that takes everybody for a member: only this machine reaches it.
func loopbackHost(cfg mesh.Config) (*mesh.Mesh, error) {
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	port, err := mesh.PickPort(0)
	if err != nil {
		return nil, err
	}
	cfg.Key, cfg.Listen = key, mesh.ListenOn(netip.AddrFrom4([4]byte{127, 0, 0, 1}), port)
	cfg.Standing = func(protocol.PeerID) mesh.Standing { return mesh.Inside }
	return mesh.New(cfg)
}

// once is one round trip.
func (e *echo) once() (time.Duration, error) {
	began := time.Now()
	_, err := e.stream.Write(e.out)
	if err == nil {
		_, err = io.ReadFull(e.stream, e.in)
	}
	if err != nil {
		return 0, fmt.Errorf("measure a libp2p stream: %w", err)
	}
	return time.Since(began), nil
}
