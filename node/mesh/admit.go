package mesh

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/libp2p/go-libp2p/core/network"

	"github.com/aster-mesh/aster/protocol"
)

const (
	admitRequestMax = 64 << 10
	admitAnswerMax  = 1 << 20
)

// Admit asks inviter for admission at these multiaddrs: one request of at most 64 KiB, one answer of at most 1 MiB,
// within 10 s once connected. Only the holder of the key in inviter can answer. It works before Run and while neither
// side counts the other as a member. addr is where the answer came from.
func (m *Mesh) Admit(ctx context.Context, inviter protocol.PeerID, addrs []string, request []byte) (answer []byte, addr string, err error) {
	if len(request) > admitRequestMax {
		return nil, "", fmt.Errorf("ask for admission: request of %d bytes: %w", len(request), ErrTooLarge)
	}
	id, err := peerID(inviter)
	if err != nil {
		return nil, "", fmt.Errorf("ask for admission: %w", err)
	}
	defer m.gate.ask(id)()
	ctx, cancel := context.WithTimeoutCause(ctx, dialTimeout+admissionTime, errors.New("admission took too long"))
	defer cancel()
	conn, err := m.dial(ctx, inviter, addrs)
	if err != nil {
		return nil, "", fmt.Errorf("ask for admission: %w", err)
	}
	// The connection was let in for this alone, and the other side will end it; links dial their own.
	defer m.closeUnlinked(conn)
	s, err := openOn(ctx, conn, admitID)
	if err != nil {
		return nil, "", fmt.Errorf("ask for admission: %w", m.blame(conn, err))
	}
	defer func() { _ = s.Reset() }()
	defer context.AfterFunc(ctx, func() { _ = s.Reset() })()
	_ = s.SetDeadline(time.Now().Add(admissionTime))
	if err := writeSized(s, request); err != nil {
		return nil, "", fmt.Errorf("ask for admission: %w", explain(err))
	}
	_ = s.CloseWrite()
	if answer, err = readSized(s, admitAnswerMax); err != nil {
		return nil, "", fmt.Errorf("read admission: %w", explain(err))
	}
	return answer, conn.RemoteMultiaddr().String(), nil
}

// serveAdmission answers one request. ended: the stream was closed in order.
func (m *Mesh) serveAdmission(s network.Stream) (ended bool) {
	if m.cfg.Admit == nil {
		refuseStream(s, ErrNotMember)
		return false
	}
	ctx, cancel := context.WithTimeoutCause(m.ctx, admissionTime, errors.New("admission took too long"))
	defer cancel()
	_ = s.SetDeadline(time.Now().Add(admissionTime))
	body, err := readSized(s, admitRequestMax)
	if err != nil {
		refuseStream(s, ErrBadFrame)
		return false
	}
	from, pub, _ := remote(s.Conn().RemotePeer())
	answer, admitted := m.cfg.Admit(ctx, AdmitRequest{Peer: from, Pub: pub, Addr: s.Conn().RemoteMultiaddr().String(), Body: body})
	m.log.Info("admission asked", "peer", from, "addr", s.Conn().RemoteMultiaddr().String(), "admitted", admitted)
	if len(answer) > admitAnswerMax {
		m.log.Error("admission answer over its bound", "peer", from, "bytes", len(answer))
		return false
	}
	if err := writeSized(s, answer); err != nil {
		return false
	}
	return s.Close() == nil
}

func writeSized(w io.Writer, body []byte) error {
	_, err := w.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), body...))
	return err
}

// readSized reads a length of four bytes and that many bytes, and allocates as they come.
func readSized(r io.Reader, most int) ([]byte, error) {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint32(head[:])
	if uint64(n) > uint64(most) {
		return nil, fmt.Errorf("%d bytes: %w", n, ErrTooLarge)
	}
	body, err := io.ReadAll(io.LimitReader(r, int64(n)))
	if err == nil && len(body) < int(n) {
		err = io.ErrUnexpectedEOF
	}
	return body, err
}
