package node

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/aster-mesh/aster/node/journal"
	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/api"
	"github.com/aster-mesh/aster/protocol/asterism"
)

// What attachments may take here before a message names them.
const (
	uploadsMax     = 8         // halves of one agent
	uploadBytesMax = 512 << 20 // of one agent: announced, or whole and not sent yet
	uploadOwnMax   = 256       // of one agent: halves, wholes, and what it has sent lately
	uploadsAllMax  = 256       // halves of all
	uploadRowsMax  = 4096      // halves and wholes of all
	// uploadLife is how long a half or a whole is kept that nothing happens to, and how long content that no record names.
	uploadLife = 24 * time.Hour
	// uploadRest is how long a half must have rested to give way to another when there are too many.
	uploadRest = 10 * time.Minute
	sweepEvery = time.Hour
)

// Owners of parts (journal.Part): an agent, the person of this node, or the node itself for what it fetches from others.
const (
	ownerPerson = "person"
	ownerMesh   = "mesh"
)

func giverOf(agent protocol.AgentID) string {
	if agent == "" {
		return ownerPerson
	}
	return "agent/" + string(protocol.FoldAgentID(agent))
}

// beginUpload lets an owner give content, or says why not. A half that is known is gone on with.
func (n *Node) beginUpload(owner, sha string, bytes int64) (journal.Part, error) {
	if no := n.full(); no != nil {
		return journal.Part{}, no
	}
	n.uploads.Lock() // between the look and the entry
	defer n.uploads.Unlock()
	if row, ok := n.store.PartOf(owner, sha); !ok || row.Bytes != bytes {
		if no, err := n.mayBegin(owner, bytes); err != nil || no != nil {
			return journal.Part{}, errors.Join(err, asError(no))
		}
	}
	row, err := n.store.BeginPart(owner, sha, bytes)
	if err == nil && !row.Whole && row.Have == row.Bytes {
		row, err = n.finishUpload(n.ctx, owner, sha) // it has no bytes, or the process ended before it was complete
	}
	return row, uploadError(err)
}

func asError(no *protocol.Refusal) error {
	if no == nil {
		return nil
	}
	return no
}

func (n *Node) mayBegin(owner string, bytes int64) (*protocol.Refusal, error) {
	halves, unsent, held := 0, 0, bytes
	mine := n.store.Parts(owner)
	for _, p := range mine {
		if !p.Whole {
			halves++
		}
		if !p.Sent {
			unsent++
			held += p.Bytes
		}
	}
	switch {
	case unsent >= uploadOwnMax:
		return protocol.Refuse(asterism.CodeAttachmentQuota, "%d attachments of yours are named by no message yet, at most that many", "send what names them, or discard them", unsent), nil
	case halves >= uploadsMax:
		return protocol.Refuse(asterism.CodeAttachmentQuota, "%d attachments of yours are not complete, at most that many", "complete one, or discard it", halves), nil
	case held > uploadBytesMax:
		return protocol.Refuse(asterism.CodeAttachmentQuota, "attachments of yours that no message names yet take %d bytes, at most %d", "send what names them, or discard them", held, uploadBytesMax), nil
	}
	if len(mine) >= uploadOwnMax {
		if _, err := n.store.YieldSent(owner); err != nil {
			return nil, err
		}
	}
	all, open := n.store.Parts(""), 0
	for i := range all {
		if !all[i].Whole {
			open++
		}
	}
	if open < uploadsAllMax && len(all) < uploadRowsMax {
		return nil, nil
	}
	if open < uploadsAllMax {
		if gave, err := n.store.YieldSent(""); gave || err != nil {
			return nil, err
		}
	}
	if gave, err := n.store.YieldPart(time.Now().Add(-uploadRest)); gave || err != nil {
		return nil, err
	}
	return protocol.Refuse(asterism.CodeAttachmentQuota, "%d attachments are on their way to this hub or wait to be named, %d of them not complete: it takes no more now", "try again in some minutes", len(all), open), nil
}

// addUpload takes a piece and completes the whole with the last one.
func (n *Node) addUpload(ctx context.Context, owner, sha string, offset int64, data []byte) (journal.Part, error) {
	row, err := n.store.AddPart(owner, sha, offset, data)
	if err == nil && !row.Whole && row.Have == row.Bytes {
		row, err = n.finishUpload(ctx, owner, sha)
	}
	return row, uploadError(err)
}

// finishUpload checks the whole. Few do so at once: it reads all of it.
func (n *Node) finishUpload(ctx context.Context, owner, sha string) (journal.Part, error) {
	select {
	case n.blobs.reading <- struct{}{}:
		defer func() { <-n.blobs.reading }()
	case <-ctx.Done():
		return journal.Part{}, context.Cause(ctx)
	}
	return n.store.FinishPart(ctx, owner, sha)
}

// uploadError names what a client can do something about.
func uploadError(err error) error {
	switch {
	case errors.Is(err, journal.ErrHash):
		return protocol.Refuse(asterism.CodeWrongHash, "the whole has another hash than it was announced with; nothing of it was kept", "begin anew")
	case errors.Is(err, journal.ErrTooLarge):
		return protocol.Refuse(asterism.CodeAttachmentTooLarge, "an attachment has at most %d bytes", "say where it is instead: a path, an address, a commit", protocol.BlobBytesMax)
	case errors.Is(err, journal.ErrFull):
		return protocol.Refuse(protocol.CodeDiskFull, "there is no room for it here. Nothing is lost", "Free space or raise store.bytes_max, and send it again")
	case errors.Is(err, journal.ErrNoBlob):
		return protocol.Refuse(asterism.CodeAttachmentUnknown, "nothing of this attachment was announced here", "ArtifactOffer comes first")
	case errors.Is(err, journal.ErrPlace):
		return protocol.Refuse(asterism.CodeChunkOutOfRange, "the piece does not continue what is here", "ArtifactOffer says where to go on")
	}
	return err
}

// PutPart implements web.Blobs: the node's owner gives content in pieces of any length.
func (n *Node) PutPart(ctx context.Context, sha string, offset, total int64, r io.Reader) (api.Upload, error) {
	row, err := n.beginUpload(ownerPerson, sha, total)
	piece := make([]byte, protocol.BlobChunkBytes)
	for err == nil && !row.Whole && offset >= 0 {
		k, readErr := io.ReadFull(r, piece)
		if k > 0 {
			row, err = n.addUpload(ctx, ownerPerson, sha, offset, piece[:k])
			offset += int64(k)
		}
		if readErr != nil {
			if err == nil && !errors.Is(readErr, io.EOF) && !errors.Is(readErr, io.ErrUnexpectedEOF) {
				err = readErr
			}
			break
		}
	}
	return api.Upload{SHA256: sha, Bytes: total, Have: row.Have, Complete: row.Whole}, err
}

// sweep forgets what rests: halves, wholes that were never sent, and content that no record names.
func (n *Node) sweep(ctx context.Context, now time.Time) {
	before := now.Add(-uploadLife)
	parts, err := n.store.SweepParts(before)
	if len(n.store.Recovery().SetAside) > 0 {
		return // records that name content may still come back from other nodes
	}
	removed, bytes, blobErr := n.store.SweepBlobs(ctx, before)
	if err = errors.Join(err, blobErr); err != nil && ctx.Err() == nil {
		n.log.Warn("attachments not swept", "err", err)
	}
	if parts+removed > 0 {
		n.log.Info("attachments swept", "unfinished", parts, "unnamed", removed, "bytes", bytes)
	}
}

func (n *Node) sweeping(ctx context.Context) error {
	t := time.NewTicker(sweepEvery)
	defer t.Stop()
	for {
		select {
		case <-t.C:
			n.sweep(ctx, time.Now())
		case <-ctx.Done():
			return nil
		}
	}
}
