package bench

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"strings"
	"sync"
	"time"

	"github.com/aster-mesh/aster/node/mesh"
	"github.com/aster-mesh/aster/protocol"
)

// echo is an open libp2p stream to a host in a process of its own, as nodes have between them; what is sent comes back.
type echo struct {
	stream mesh.Stream
	close  func() error
	out    []byte
	in     []byte
}

// echoAddr is the first line that an echo's far end prints.
type echoAddr struct {
	ID    protocol.PeerID `json:"id"`
	Addrs []string        `json:"addrs"`
}

// ServeEcho runs a libp2p host that sends back what comes on streams, until ctx ends or stdin does, and prints where it is.
func ServeEcho(ctx context.Context, stdin io.Reader, stdout io.Writer) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	h, err := loopbackHost(mesh.Config{MeshID: "bench"}) // the stream carries nothing
	if err != nil {
		return fmt.Errorf("echo: %w", err)
	}
	h.Handle(mesh.Gossip, true, func(_ protocol.PeerID, s mesh.Stream) { _, _ = io.Copy(s, s) })
	go func() {
		_, _ = io.Copy(io.Discard, stdin) // its end is the sign
		cancel()
	}()
	if err := json.NewEncoder(stdout).Encode(echoAddr{ID: h.Self(), Addrs: h.Addrs()}); err != nil {
		return errors.Join(fmt.Errorf("echo: %w", err), h.Close())
	}
	if err := h.Run(ctx); ctx.Err() == nil {
		return errors.Join(fmt.Errorf("echo: %w", err), h.Close())
	}
	return h.Close()
}

// openEcho starts the far end and opens one stream to it.
func (b *Bench) openEcho(ctx context.Context) (e *echo, err error) {
	p, line, err := b.spawn(ctx, "", "bench", "echo")
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	var near *mesh.Mesh
	end := func() error {
		cancel()
		var err error
		if near != nil {
			err = near.Close()
		}
		wg.Wait()
		return errors.Join(err, p.end())
	}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("measure a libp2p stream: %w", err), end())
		}
	}()
	var far echoAddr
	if err := json.Unmarshal(line, &far); err != nil {
		return nil, fmt.Errorf("its far end said %q", strings.TrimSpace(string(line)))
	}
	if near, err = loopbackHost(mesh.Config{MeshID: "bench"}); err != nil {
		return nil, err
	}
	wg.Go(func() { _ = near.Run(ctx) }) // it ends with Close
	near.SetPeers([]mesh.Peer{{ID: far.ID, Addrs: far.Addrs}})
	var s mesh.Stream
	if err := until(ctx, "the two hosts are not linked", func() (bool, error) {
		if len(near.Links()) == 0 {
			return false, nil
		}
		s, err = near.OpenStream(ctx, far.ID, mesh.Gossip)
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
