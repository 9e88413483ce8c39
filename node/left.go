package node

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/aster-mesh/aster/node/journal"
	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/asterism"
	"github.com/aster-mesh/aster/roles/worker"
)

// absence says of content that is not here what became of it.
func (n *Node) absence(sha string) (words, hint string) {
	if at, left := n.store.LeftAt(sha); left {
		return "it was kept here until " + at.Format(time.DateOnly), "ask whoever sent it; [retention] age in config.toml says how long such things stay"
	}
	return "its content was lost on the way here", "ask whoever sent it for it again"
}

// openContent opens content for somebody who looks at it. What left this disk is fetched again from a linked node that
// still has it, and then stays as long as anything new.
func (n *Node) openContent(ref protocol.BlobRef) (io.ReadSeekCloser, int64, error) {
	r, total, err := n.store.OpenBlob(ref.SHA256)
	if !errors.Is(err, journal.ErrNoBlob) {
		return r, total, err
	}
	if _, left := n.store.LeftAt(ref.SHA256); left && n.full() == nil && n.blobs.fetchOnce(n.ctx, "", ref) == nil {
		return n.store.OpenBlob(ref.SHA256)
	}
	return nil, 0, err
}

// openForTask opens what was attached to a task. Before the task is accepted that is here, see runner.bring; by the time of its
// slot it may have left this disk, and is fetched again. Without it the task is not begun.
func (n *Node) openForTask(ctx context.Context, f worker.File, accepting bool) (io.ReadCloser, error) {
	ref := protocol.BlobRef{Name: f.Name, SHA256: f.SHA256, Bytes: f.Bytes}
	r, _, err := n.store.OpenBlob(ref.SHA256)
	if !errors.Is(err, journal.ErrNoBlob) || accepting {
		return r, err
	}
	if err = n.fetchForTask(ctx, ref); err == nil {
		r, _, err = n.store.OpenBlob(ref.SHA256)
	}
	return r, err
}

// fetchForTask fetches what a task needs from whoever has it. A refusal says that nobody does; any other error may pass.
func (n *Node) fetchForTask(ctx context.Context, ref protocol.BlobRef) error {
	if no := n.full(); no != nil {
		return fmt.Errorf("fetch attachment: %s", no.Error()) // until there is room again
	}
	err := n.blobs.fetchOnce(ctx, "", ref)
	if errors.Is(err, errNowhere) {
		words, hint := n.absence(ref.SHA256)
		return protocol.Refuse(asterism.CodeAttachmentUnknown, "attachment %q is not here: %s", hint, protocol.CutText(ref.Name, 100), words)
	}
	return err
}

// fillToShow is fill for those who look: in the place of a value that is not here it says why.
func (n *Node) fillToShow(e *protocol.Envelope) error {
	err := n.fill(e)
	if !errors.Is(err, journal.ErrNoBlob) {
		return err
	}
	words, _ := n.absence(e.ValueBlob.SHA256)
	e.Value = protocol.EncodeBody(map[string]string{"text": fmt.Sprintf("(%s)", words)})
	return nil
}
