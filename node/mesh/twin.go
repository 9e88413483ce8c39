package mesh

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/peerstore"
	ma "github.com/multiformats/go-multiaddr"

	"github.com/aster-mesh/aster/protocol"
)

// AskTwin asks whoever answers at these multiaddrs with this node's own key: another start of it. No host dials itself, so
// the question comes from a key made up for it, as a stranger's request for admission; that the answer is of the same key
// the handshake proves. Within 10 s once connected.
func (m *Mesh) AskTwin(ctx context.Context, addrs []string, request []byte) ([]byte, error) {
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("ask another start: %w", err)
	}
	id, err := peerID(m.self)
	if err != nil {
		return nil, fmt.Errorf("ask another start: %w", err)
	}
	g := newGate(func(protocol.PeerID) Standing { return Unknown })
	defer g.close()
	defer g.ask(id)()
	h, err := newHost(key, g, m.rank, func(peer.ID) {})
	if err != nil {
		return nil, fmt.Errorf("ask another start: %w", err)
	}
	defer func() { _ = h.close() }()
	var parsed []ma.Multiaddr
	for _, a := range addrs {
		if p, err := parseAddr(a); err == nil && len(parsed) < dialAddrsMax {
			parsed = append(parsed, p)
		}
	}
	h.book.AddAddrs(id, parsed, peerstore.TempAddrTTL)
	ctx, cancel := context.WithTimeoutCause(ctx, dialTimeout+admissionTime, errors.New("asking took too long"))
	defer cancel()
	conn, err := h.swarm.DialPeer(ctx, id)
	if err != nil {
		return nil, fmt.Errorf("ask another start: %w", err)
	}
	s, err := openOn(ctx, conn, admitID)
	if err != nil {
		return nil, fmt.Errorf("ask another start: %w", err)
	}
	defer func() { _ = s.Reset() }()
	defer context.AfterFunc(ctx, func() { _ = s.Reset() })()
	_ = s.SetDeadline(time.Now().Add(admissionTime))
	if err := writeSized(s, request); err != nil {
		return nil, fmt.Errorf("ask another start: %w", err)
	}
	_ = s.CloseWrite()
	answer, err := readSized(s, admitRequestMax)
	if err != nil {
		return nil, fmt.Errorf("ask another start: %w", explain(err))
	}
	return answer, nil
}

// twinSighted takes the hint that this node's own id is announced from elsewhere.
func (m *Mesh) twinSighted(addrs []string) {
	ours := map[string]bool{}
	for _, a := range m.Addrs() {
		ours[a] = true
	}
	for _, a := range addrs {
		if !ours[a] && m.cfg.OnTwin != nil {
			m.cfg.OnTwin(addrs)
			return
		}
	}
}
