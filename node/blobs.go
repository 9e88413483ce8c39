package node

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/aster-mesh/aster/node/mesh"
	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/meshwire"
)

const (
	// blobWaitersMax is how many ranges of one peer may wait for attachments; more are dropped and asked for again.
	blobWaitersMax = 64
	// blobTries is after how many vain rounds through all linked peers a record is taken without its attachment, so that
	// one lost file cannot hold up a log for ever; the message then says that its attachment is missing.
	blobTries = 5
	// blobTime bounds the fetching of one attachment: 64 MiB over a slow network.
	blobTime = 10 * time.Minute
)

// blobs fetches what records need before they are taken, in order for each peer, beside the link so that pings and mail
// of others go on.
type blobs struct {
	n *Node

	mu     sync.Mutex
	queues map[protocol.PeerID][]blobWaiter
	failed map[string]int
	shown  map[protocol.PeerID]map[string]bool // what outside members were sent the names of
	coming map[string]chan struct{}            // what is being fetched; closed at its end

	reading chan struct{} // capacity readingMax: a token for each large value that is read whole
}

type blobWaiter struct {
	refs []protocol.BlobRef
	take func() error
}

func newBlobs(n *Node) *blobs {
	return &blobs{n: n, queues: map[protocol.PeerID][]blobWaiter{}, failed: map[string]int{}, shown: map[protocol.PeerID]map[string]bool{},
		coming: map[string]chan struct{}{}, reading: make(chan struct{}, readingMax)}
}

// before runs take once all of refs are here, behind what came from the same peer before.
func (b *blobs) before(from protocol.PeerID, refs []protocol.BlobRef, take func() error) error {
	b.mu.Lock()
	queue, busy := b.queues[from]
	if !busy && len(refs) == 0 {
		b.mu.Unlock()
		return take()
	}
	defer b.mu.Unlock()
	if len(queue) >= blobWaitersMax {
		return nil // the replica asks for it again
	}
	b.queues[from] = append(queue, blobWaiter{refs, take})
	if !busy {
		b.n.wait.Add(1)
		go b.run(from)
	}
	return nil
}

func (b *blobs) run(from protocol.PeerID) {
	defer b.n.wait.Done()
	for {
		b.mu.Lock()
		queue := b.queues[from]
		if len(queue) == 0 || b.n.ctx.Err() != nil {
			delete(b.queues, from)
			b.mu.Unlock()
			return
		}
		w := queue[0]
		b.queues[from] = queue[1:]
		b.mu.Unlock()
		if b.fetchAll(from, w.refs) {
			_ = w.take()
		}
	}
}

// fetchAll gets what is not here; false: the range is dropped for now.
func (b *blobs) fetchAll(from protocol.PeerID, refs []protocol.BlobRef) bool {
	for _, ref := range refs {
		if b.n.store.KeepBlob(ref.SHA256) {
			continue
		}
		err := b.fetchOnce(b.n.ctx, from, ref)
		if err == nil {
			continue
		}
		if errors.Is(err, errLeftDisk) && b.n.store.MarkLeft(ref.SHA256) == nil {
			continue // nobody will have it again
		}
		b.mu.Lock()
		b.failed[ref.SHA256]++
		lost := b.failed[ref.SHA256] >= blobTries
		b.mu.Unlock()
		b.n.log.Warn("attachment not fetched", "peer", from, "sha256", ref.SHA256, "lost", lost, "err", err)
		if !lost {
			return false
		}
	}
	return true
}

// fetchOnce fetches content, or waits while another queue fetches the same.
func (b *blobs) fetchOnce(ctx context.Context, from protocol.PeerID, ref protocol.BlobRef) error {
	for {
		b.mu.Lock()
		coming := b.coming[ref.SHA256]
		if coming == nil {
			b.coming[ref.SHA256] = make(chan struct{})
		}
		b.mu.Unlock()
		if coming == nil {
			break
		}
		select {
		case <-coming:
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-b.n.done:
			return errStopping
		}
		if b.n.store.KeepBlob(ref.SHA256) {
			return nil
		}
	}
	defer func() {
		b.mu.Lock()
		close(b.coming[ref.SHA256])
		delete(b.coming, ref.SHA256)
		b.mu.Unlock()
	}()
	return b.fetch(ctx, from, ref)
}

var (
	// errLeftDisk says that content was over and left the disks of all who were asked.
	errLeftDisk = errors.New("it was over and has left")
	// errNowhere says that all members of the inside were asked, and nobody has it.
	errNowhere = errors.New("nobody has it")
)

// fetch asks the peer that sent the record, if any, then the others. It returns errLeftDisk when all of them answered, and
// one of the inside that it had it and let it go.
func (b *blobs) fetch(ctx context.Context, from protocol.PeerID, ref protocol.BlobRef) error {
	var peers []protocol.PeerID
	if from != "" {
		peers = append(peers, from)
	}
	for _, l := range b.n.mesh.Links() {
		if l.Peer != from {
			peers = append(peers, l.Peer)
		}
	}
	var errs []error
	left, silent := false, false
	for _, p := range peers {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		one, cancel := context.WithTimeout(ctx, blobTime)
		err := b.fetchFrom(one, p, ref)
		cancel()
		if err == nil {
			return nil
		}
		left = left || errors.Is(err, errLeftDisk) && b.n.standingOf(p) == mesh.Inside
		silent = silent || !errors.Is(err, errLeftDisk) && !errors.Is(err, errNotThere)
		errs = append(errs, fmt.Errorf("from %s: %w", b.n.nameOf(p), err))
	}
	var nowhere error
	if !silent && b.n.allInside(peers) {
		nowhere = errNowhere
	}
	if left && !silent {
		return errors.Join(errLeftDisk, nowhere)
	}
	for i, err := range errs { // who was silent may still have it
		if errors.Is(err, errLeftDisk) {
			errs[i] = errNotThere
		}
	}
	if len(peers) == 0 {
		errs = append(errs, errors.New("nobody is linked"))
	}
	return errors.Join(append(errs, nowhere)...)
}

// allInside says that no other member of the inside is lacking among peers.
func (n *Node) allInside(peers []protocol.PeerID) bool {
	if s := n.standings.Load(); s != nil {
		for p, standing := range *s {
			if standing == mesh.Inside && p != n.home.peer && !slices.Contains(peers, p) {
				return false
			}
		}
	}
	return true
}

// errNotThere says that a peer has no such content, or does not show it to us.
var errNotThere = errors.New("it is not there")

// fetchFrom goes on where an earlier attempt ended, whoever gave that, so that a link cut costs no more than a piece.
func (b *blobs) fetchFrom(ctx context.Context, p protocol.PeerID, ref protocol.BlobRef) error {
	s, err := b.n.mesh.OpenStream(ctx, p, mesh.Blob)
	if err != nil {
		return err
	}
	defer s.Close()
	stop := context.AfterFunc(ctx, func() { _ = s.Reset() })
	defer stop()
	row, _ := b.n.store.PartOf(ownerMesh, ref.SHA256)
	in := bufio.NewReader(s)
	for total := int64(-1); ; {
		piece, err := askPiece(s, in, ref.SHA256, row.Have)
		if err != nil {
			return err
		}
		if total < 0 {
			if total = piece.Total; total > ref.Bytes {
				return fmt.Errorf("it has %d bytes, and its record says %d", total, ref.Bytes) // which were booked
			}
			begun, err := b.n.store.BeginPart(ownerMesh, ref.SHA256, total)
			if err != nil {
				return err
			}
			if begun.Have != row.Have { // it was of another size before
				row = begun
				continue
			}
		}
		if piece.Total != total || len(piece.Data) == 0 && row.Have < total {
			return errors.New("it is not there")
		}
		if row, err = b.n.store.AddPart(ownerMesh, ref.SHA256, row.Have, piece.Data); err != nil {
			return err
		}
		if row.Have == total {
			return b.complete(ctx, ref.SHA256)
		}
	}
}

// complete makes the fetched content that of its hash. The node needs no mark of having fetched it.
func (b *blobs) complete(ctx context.Context, sha string) error {
	if _, err := b.n.store.FinishPart(ctx, ownerMesh, sha); err != nil {
		return err
	}
	return b.n.store.DropPart(ownerMesh, sha)
}

// askPiece asks a peer for the next piece.
func askPiece(out io.Writer, in *bufio.Reader, sha string, at int64) (meshwire.BlobData, error) {
	var none meshwire.BlobData
	ask, err := meshwire.Encode(meshwire.BlobGet{SHA256: sha, Offset: at, Length: protocol.BlobChunkBytes})
	if err != nil {
		return none, err
	}
	if _, err := out.Write(ask); err != nil {
		return none, err
	}
	f, _, err := meshwire.ReadFrame(in, protocol.MeshFrameBytesMax)
	if err != nil {
		return none, err
	}
	data, ok := f.(meshwire.BlobData)
	if !ok || data.SHA256 != sha || data.Offset != at {
		return none, errors.New("the answer is about something else")
	}
	if data.Left {
		return none, errLeftDisk
	}
	if data.Missing {
		return none, errNotThere
	}
	return data, nil
}

// serve answers a peer's questions for blobs until it ends the stream.
func (b *blobs) serve(peer protocol.PeerID, s mesh.Stream) {
	in := bufio.NewReader(s)
	for {
		f, _, err := meshwire.ReadFrame(in, 64<<10)
		if err != nil {
			return
		}
		get, ok := f.(meshwire.BlobGet)
		if !ok {
			return
		}
		raw, err := meshwire.Encode(b.answer(peer, get))
		if err != nil {
			return
		}
		if _, err := s.Write(raw); err != nil {
			return
		}
	}
}

func (b *blobs) answer(peer protocol.PeerID, get meshwire.BlobGet) meshwire.BlobData {
	missing := meshwire.BlobData{SHA256: get.SHA256, Offset: get.Offset, Missing: true}
	if !b.mayHave(peer, get.SHA256) {
		return missing
	}
	if !b.n.store.HasBlob(get.SHA256) {
		_, missing.Left = b.n.store.LeftAt(get.SHA256)
		return missing
	}
	r, total, err := b.n.store.OpenBlob(get.SHA256)
	if err != nil {
		return missing
	}
	defer r.Close()
	if _, err := r.Seek(get.Offset, io.SeekStart); err != nil || get.Offset > total {
		return missing
	}
	data := make([]byte, min(get.Length, protocol.BlobChunkBytes, total-get.Offset))
	if _, err := io.ReadFull(r, data); err != nil {
		return missing
	}
	return meshwire.BlobData{SHA256: get.SHA256, Offset: get.Offset, Total: total, Data: data}
}

// mayHave: the inside may have all; an outside member what records that it was sent name, never for a hash alone.
func (b *blobs) mayHave(peer protocol.PeerID, sha string) bool {
	if b.n.standingOf(peer) == mesh.Inside {
		return true
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.shown[peer][sha]
}

// show notes what records name to an outside member, before they are sent.
func (b *blobs) show(peer protocol.PeerID, recs []protocol.Record) {
	if b.n.standingOf(peer) == mesh.Inside {
		return
	}
	for i := range recs {
		if recs[i].Kind != protocol.KindMessage {
			continue
		}
		env, err := protocol.DecodeBody[protocol.Envelope](&recs[i])
		if err != nil {
			continue
		}
		for _, ref := range env.AllBlobs() {
			b.mu.Lock()
			if b.shown[peer] == nil {
				b.shown[peer] = map[string]bool{}
			}
			b.shown[peer][ref.SHA256] = true
			b.mu.Unlock()
		}
	}
}
