package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/aster-mesh/aster/node/foreign"
	"github.com/aster-mesh/aster/node/journal"
	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/asterism"
)

// askPatience is how long a board may take to answer one question about an attachment.
const askPatience = 30 * time.Second

// errBoardLeft says that the connection ended before an answer: what was begun goes on at the next.
var errBoardLeft = errors.New("the connection to the board ended")

// boardRefusal is a refusal in a board's words. They are for whoever asked: as an error, which may go into a log, it has our own.
type boardRefusal struct{ no *protocol.Refusal }

func (r boardRefusal) Unwrap() error { return r.no }

func (r boardRefusal) Error() string {
	for _, code := range []string{
		protocol.CodeRate, protocol.CodeDiskFull, protocol.CodeFenced, asterism.CodeAttachmentTooLarge, asterism.CodeAttachmentUnknown, asterism.CodeAttachmentQuota,
		asterism.CodeWrongHash, asterism.CodeWrongLength, asterism.CodeChunkOutOfRange,
	} {
		if r.no.Code == code {
			return "the board refuses it: " + code
		}
	}
	return "the board refuses it"
}

// ask asks the board about an attachment and waits for the answer, which is a refusal or a value. Not for the read loop.
func (v *visit) ask(ctx context.Context, name protocol.Intent, value any) (json.RawMessage, error) {
	id, answered := foreign.AskPrefix+string(newID()), make(chan foreign.Answer, 1)
	v.mu.Lock()
	if v.asked == nil {
		v.asked = map[string]chan<- foreign.Answer{}
	}
	v.asked[id] = answered
	v.mu.Unlock()
	defer func() {
		v.mu.Lock()
		delete(v.asked, id)
		v.mu.Unlock()
	}()
	v.say(foreign.Ask(name, value, id, time.Now()))
	late := time.NewTimer(askPatience)
	defer late.Stop()
	select {
	case a := <-answered:
		if a.Refused != nil {
			return nil, boardRefusal{a.Refused}
		}
		return a.Value, nil
	case <-late.C:
		return nil, fmt.Errorf("no answer to %s within %s", name, askPatience)
	case <-v.conn.Done():
		return nil, errBoardLeft
	case <-ctx.Done():
		return nil, errBoardLeft
	}
}

// asks says whether a question is open.
func (v *visit) asks(id string) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.asked[id] != nil
}

// answered passes an answer on to whoever waits for it. It runs in the read loop.
func (v *visit) answered(a foreign.Answer) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if c := v.asked[a.To]; c != nil {
		c <- a // it has room for one, and there is one
		delete(v.asked, a.To)
	}
}

func answerTo[T any](ctx context.Context, v *visit, name protocol.Intent, value any) (got T, err error) {
	raw, err := v.ask(ctx, name, value)
	if err == nil && json.Unmarshal(raw, &got) != nil {
		err = protocol.Refuse(protocol.CodeWrongType, "the board's answer to %s cannot be read", "", string(name))
	}
	return got, err
}

// give brings content to the board's hub, from where an earlier attempt was cut off. A refusal is about this content.
func (v *visit) give(ctx context.Context, ref protocol.BlobRef) error {
	r, total, err := v.s.b.n.openContent(ref)
	if errors.Is(err, journal.ErrNoBlob) {
		words, hint := v.s.b.n.absence(ref.SHA256)
		return protocol.Refuse(asterism.CodeAttachmentUnknown, "an attachment is not here: %s", hint, words)
	}
	if err != nil {
		return err
	}
	defer r.Close()
	st, err := answerTo[asterism.StateOfArtifact](ctx, v, asterism.ArtifactOffer, asterism.Offer{Artifact: ref.SHA256, Size: total})
	for err == nil && !st.Complete {
		at := st.Have
		data := make([]byte, asterism.ChunkLength(total, at))
		if len(data) == 0 || st.Chunk != asterism.ArtifactChunkBytes {
			return protocol.Refuse(asterism.CodeChunkOutOfRange, "the board wants pieces that there are none of", "")
		}
		if _, err := r.Seek(int64(at)*asterism.ArtifactChunkBytes, io.SeekStart); err != nil {
			return err
		}
		if _, err := io.ReadFull(r, data); err != nil {
			return fmt.Errorf("read content: %w", err)
		}
		st, err = answerTo[asterism.StateOfArtifact](ctx, v, asterism.ArtifactPut, struct {
			asterism.Put
			Data []byte `json:"data"`
		}{asterism.Put{Artifact: ref.SHA256, Index: at, Encoding: "base64", SHA256: asterism.HashOf(data)}, data})
		if err == nil && !st.Complete && st.Have <= at {
			return protocol.Refuse(asterism.CodeChunkOutOfRange, "the board keeps no piece of it", "")
		}
	}
	return err
}

// fetch takes content that a message of the board names, from where an earlier attempt was cut off. That the same content is
// here by another way does not count: for its hash alone nobody is given it.
func (v *visit) fetch(ctx context.Context, a asterism.Named, of protocol.MsgID, from protocol.AgentID) error {
	n := v.s.b.n
	owner := boardQuota(v.s.b.name()) + "/" + giverOf(v.s.agent)
	row, known := n.store.PartOf(owner, a.SHA256)
	if known && row.Whole && row.Bytes == a.Bytes && n.store.KeepBlob(a.SHA256) {
		return nil
	}
	if no := n.full(); no != nil {
		return no
	}
	if !known || row.Bytes != a.Bytes {
		if no := v.s.b.spend(int(min(a.Bytes, protocol.BlobBytesMax))); no != nil {
			return no
		}
	}
	row, err := n.store.BeginPart(owner, a.SHA256, a.Bytes)
	for err == nil && !row.Whole {
		if row.Have == row.Bytes {
			row, err = n.finishUpload(ctx, owner, a.SHA256)
			break
		}
		index := int(row.Have / asterism.ArtifactChunkBytes)
		var p asterism.PieceOfArtifact
		p, err = answerTo[asterism.PieceOfArtifact](ctx, v, asterism.ArtifactGet, asterism.Get{Artifact: a.SHA256, Index: index, Of: of, From: from})
		if err != nil {
			return err
		}
		if p.Artifact != a.SHA256 || p.Size != a.Bytes || p.Index != index || len(p.Data) != asterism.ChunkLength(a.Bytes, index) || asterism.HashOf(p.Data) != p.SHA256 {
			return protocol.Refuse(asterism.CodeWrongHash, "the board gave another piece than was asked for", "")
		}
		row, err = n.store.AddPart(owner, a.SHA256, row.Have, p.Data)
	}
	return uploadError(err)
}

// Bounds of what waits behind the attachments of a message, so that an agent's mail keeps its order.
const queueMessagesMax = 256

// receive takes a message in the order in which it came. One with attachments is fetched whole first, beside the read loop,
// which brings the pieces; what comes meanwhile waits behind it, and what finds no room there is left with the board.
func (v *visit) receive(ctx context.Context, m foreign.Message) {
	var files []asterism.Named
	if v.session.Keeps() && len(m.Acks) > 0 {
		files, _ = asterism.NamedIn(m.Frame.Value) // what cannot be read is delivered as it is
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	switch {
	case len(files) == 0 && !v.taking:
		v.take(&m, nil)
	case len(v.behind) >= queueMessagesMax:
	case len(m.Acks) > 0 && slices.ContainsFunc(v.behind, func(w waiting) bool { return w.from == m.From && w.key == m.Acks[0] }):
		// The board gives it again while it is on its way.
	default:
		w := waiting{Message: m, from: m.From, files: files}
		if len(m.Acks) > 0 {
			w.key = m.Acks[0]
		}
		v.behind = append(v.behind, w)
		if !v.taking {
			v.taking = true
			v.work.Go(func() { v.takeBehind(ctx) })
		}
	}
}

// waiting is a message whose turn has not come.
type waiting struct {
	foreign.Message
	from  protocol.AgentID
	key   protocol.MsgID
	files []asterism.Named
}

// takeBehind takes what waits, until nothing does or the connection ends. The first stays in the queue while it is worked at.
func (v *visit) takeBehind(ctx context.Context) {
	for {
		v.mu.Lock()
		if len(v.behind) == 0 {
			v.taking = false
			v.mu.Unlock()
			return
		}
		w := v.behind[0]
		v.mu.Unlock()
		refs, left := v.fetchAll(ctx, &w)
		v.mu.Lock()
		if left {
			for i := range v.behind {
				if m := &v.behind[i].Message; len(m.Acks) == 0 {
					v.take(m, nil) // it comes no second time
				}
			}
			v.behind, v.taking = nil, false // none of the others is acknowledged: the board gives them again
			v.mu.Unlock()
			return
		}
		v.take(&w.Message, refs)
		v.behind = v.behind[1:]
		v.mu.Unlock()
	}
}

// fetchAll gets what a message names. What cannot be had is named as such in its value: the message is not lost for it. left: the
// connection ended, or there is no answer or no room now.
func (v *visit) fetchAll(ctx context.Context, w *waiting) (refs []protocol.BlobRef, left bool) {
	lost := map[string]string{}
	for _, a := range w.files {
		err := v.fetch(ctx, a, w.key, w.from)
		var no *protocol.Refusal
		switch {
		case err == nil:
			refs = append(refs, a.BlobRef)
		case errors.As(err, &no) && no.Code != protocol.CodeDiskFull && no.Code != protocol.CodeFenced && no.Code != protocol.CodeRate:
			lost[a.SHA256] = no.Code
			v.s.b.n.log.Warn("attachment of another board not to be had", "part", "board", "board", v.s.b.name(), "sha256", a.SHA256, "err", err)
		default:
			v.s.b.n.log.Info("attachment of another board not fetched yet", "part", "board", "board", v.s.b.name(), "sha256", a.SHA256, "err", err)
			return nil, true
		}
	}
	w.Frame.Value = asterism.Unavailable(w.Frame.Value, lost)
	return refs, false
}

// carry makes a message fit for the board: what is attached to it is brought there first, or, to a hub that keeps none, stands
// in the value if it is small. A refusal is about this message; after any other error it is tried again.
func (v *visit) carry(ctx context.Context, env *protocol.Envelope) error {
	var refs []protocol.BlobRef
	total := int64(0)
	for _, b := range env.Blobs {
		if b.Use == "" { // bundles and outputs stay between nodes
			refs = append(refs, b)
			total += b.Bytes
		}
	}
	if len(refs) == 0 {
		return nil
	}
	env.Value = asterism.WithAttachments(env.Value, refs)
	if v.keeps.Load() {
		for _, b := range refs {
			if err := v.give(ctx, b); err != nil {
				return err
			}
		}
		return nil
	}
	if total > asterism.EmbeddedBytesMax {
		return protocol.Refuse(reasonNotCarried, "this board keeps no attachments, and %d bytes are too many to stand in the message", "", total)
	}
	contents := map[string][]byte{}
	for _, b := range refs {
		r, _, err := v.s.b.n.openContent(b)
		if errors.Is(err, journal.ErrNoBlob) {
			return protocol.Refuse(asterism.CodeAttachmentUnknown, "an attachment is not here any more", "")
		}
		if err != nil {
			return err
		}
		data, err := io.ReadAll(io.LimitReader(r, asterism.EmbeddedBytesMax+1))
		if err = errors.Join(err, r.Close()); err != nil {
			return err
		}
		contents[b.SHA256] = data
	}
	env.Value = asterism.Embedded(env.Value, contents)
	return nil
}
