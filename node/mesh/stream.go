package mesh

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	p2p "github.com/libp2p/go-libp2p/core/protocol"
	mstream "github.com/multiformats/go-multistream"

	"github.com/aster-mesh/aster/protocol"
)

// Purpose is what a short stream is for.
type Purpose string

// The purposes that the resource limits know.
const (
	Blob   Purpose = blobID
	Gossip Purpose = gossipID
	// Figures are what a node measured of itself, for inside members.
	Figures Purpose = figuresID
	Tail    Purpose = tailID // what a start wrote that peers link no more; see OnOlder
	Base    Purpose = baseID // the snapshot at which a node's logs begin, for inside members
)

const (
	framesID = "/aster/frames/1"
	admitID  = "/aster/admit/1"
	blobID   = "/aster/blob/1"
	gossipID = "/aster/gossip/1"
	tailID   = "/aster/tail/1"

	figuresID = "/aster/figures/1"
	baseID    = "/aster/base/1"
)

// blobIdle ends a blob or tail stream on which nothing moved for so long.
const blobIdle = 30 * time.Second

// negotiateTime bounds the opening of any stream, and a link's greeting.
const negotiateTime = 5 * time.Second

// inside says whether a purpose is for inside members alone, over the link that is there.
func (p Purpose) inside() bool { return p == Gossip || p == Figures || p == Base }

// Stream is a byte stream to one peer.
type Stream interface {
	io.ReadWriteCloser
	CloseWrite() error
	Reset() error
	SetDeadline(time.Time) error
	SetReadDeadline(time.Time) error
	SetWriteDeadline(time.Time) error
}

type handler struct {
	inside bool
	serve  func(protocol.PeerID, Stream)
}

// Handle serves streams that peers open for a purpose: members' only, with inside only inside members'. The stream is
// closed when serve returns, and reset at Close and when the peer is revoked. A blob or tail stream ends by itself when
// nothing moved for 30 s; a gossip stream has no such bound.
func (m *Mesh) Handle(purpose Purpose, inside bool, serve func(protocol.PeerID, Stream)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.handlers[purpose] = handler{inside: inside, serve: serve}
}

// OpenStream opens a stream to a member. It goes over the link's connection; without a link Blob and Tail dial the
// peer's known addresses, and the others return ErrNotLinked. The caller closes the stream.
func (m *Mesh) OpenStream(ctx context.Context, to protocol.PeerID, purpose Purpose) (Stream, error) {
	if standing := m.cfg.Standing(to); !standing.Member() || purpose.inside() && standing != Inside {
		return nil, fmt.Errorf("open %s to %s: %w", purpose, to.Short(), ErrNotMember)
	}
	m.mu.Lock()
	closed, l := m.closed, m.links[to]
	m.mu.Unlock()
	if closed {
		return nil, ErrClosed
	}
	var conn network.Conn
	switch {
	case l != nil:
		conn = l.stream.Conn()
	case purpose.inside():
		return nil, fmt.Errorf("open %s to %s: %w", purpose, to.Short(), ErrNotLinked)
	default:
		var err error
		if conn, err = m.dial(ctx, to, m.addrsOf(to)); err != nil {
			return nil, fmt.Errorf("open %s to %s: %w", purpose, to.Short(), err)
		}
	}
	s, err := openOn(ctx, conn, p2p.ID(purpose))
	if err != nil {
		return nil, fmt.Errorf("open %s to %s: %w", purpose, to.Short(), explain(err))
	}
	if purpose != Gossip {
		return idleStream{s}, nil
	}
	return s, nil
}

// openOn opens a stream and agrees on its protocol. The stream has no deadline when it is returned.
func openOn(ctx context.Context, conn network.Conn, id p2p.ID) (network.Stream, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, negotiateTime, errors.New("opening a stream took too long"))
	defer cancel()
	s, err := conn.NewStream(ctx)
	if err != nil {
		return nil, err
	}
	if err := s.SetProtocol(id); err != nil {
		_ = s.Reset()
		return nil, err
	}
	deadline, _ := ctx.Deadline()
	_ = s.SetDeadline(deadline)
	stop := context.AfterFunc(ctx, func() { _ = s.Reset() })
	_, err = mstream.SelectOneOf([]p2p.ID{id}, s)
	if !stop() || err != nil {
		_ = s.Reset()
		return nil, errors.Join(err, ctx.Err())
	}
	_ = s.SetDeadline(time.Time{})
	return s, nil
}

// serve runs one inbound stream to its end. libp2p calls it in a goroutine of the stream's own.
func (m *Mesh) serve(s network.Stream) {
	ended := false // in order; a reset after that would take back what is not yet delivered
	defer func() {
		if !ended {
			_ = s.Reset()
		}
	}()
	if !m.enter() {
		refuseStream(s, ErrNotReady)
		return
	}
	defer m.wg.Done()
	from, _, ok := remote(s.Conn().RemotePeer())
	if !ok {
		refuseStream(s, ErrNotMember)
		return
	}
	if m.cfg.Standing(from).Member() && !m.opens.wait(m.ctx, from) {
		return
	}
	_ = s.SetDeadline(time.Now().Add(negotiateTime))
	id, err := negotiate(s)
	if err != nil {
		return
	}
	if err := s.SetProtocol(id); err != nil {
		_ = s.ResetWithError(network.StreamResourceLimitExceeded)
		return
	}
	// The right is looked at again here: the connection may be older than the revocation, or an admission's, and the stream
	// may have waited.
	standing := m.cfg.Standing(from)
	switch {
	case id == admitID:
		ended = m.serveAdmission(s)
	case standing == Revoked:
		refuseStream(s, ErrRevoked)
	case !standing.Member():
		refuseStream(s, ErrNotMember)
	case id == framesID:
		m.acceptLink(s, from)
	default:
		ended = m.serveStream(s, from, Purpose(id), standing)
	}
}

func (m *Mesh) serveStream(s network.Stream, from protocol.PeerID, purpose Purpose, standing Standing) (ended bool) {
	m.mu.Lock()
	h, ok := m.handlers[purpose]
	m.mu.Unlock()
	if !ok || h.inside && standing != Inside {
		refuseStream(s, ErrNotMember)
		return false
	}
	_ = s.SetDeadline(time.Time{})
	if purpose != Gossip {
		h.serve(from, idleStream{s})
	} else {
		h.serve(from, s)
	}
	return s.Close() == nil
}

var ours = func() *mstream.MultistreamMuxer[p2p.ID] {
	mux := mstream.NewMultistreamMuxer[p2p.ID]()
	for _, id := range []p2p.ID{framesID, admitID, blobID, gossipID, tailID, figuresID, baseID} {
		mux.AddHandler(id, nil)
	}
	return mux
}()

func negotiate(s network.Stream) (p2p.ID, error) {
	id, _, err := ours.Negotiate(s)
	return id, err
}

// idleStream moves the deadline on with each read and write.
type idleStream struct{ network.Stream }

func (s idleStream) Read(p []byte) (int, error) {
	_ = s.SetReadDeadline(time.Now().Add(blobIdle))
	return s.Stream.Read(p)
}

func (s idleStream) Write(p []byte) (int, error) {
	_ = s.SetWriteDeadline(time.Now().Add(blobIdle))
	return s.Stream.Write(p)
}

// peerID is libp2p's form of an id.
func peerID(p protocol.PeerID) (peer.ID, error) {
	if _, err := p.PublicKey(); err != nil {
		return "", err
	}
	return peer.Decode(string(p))
}
