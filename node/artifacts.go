package node

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"

	"github.com/aster-mesh/aster/node/journal"
	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/api"
	"github.com/aster-mesh/aster/protocol/asterism"
	"github.com/aster-mesh/aster/roles"
)

// artifactVerbs are what clients ask about attachments that lie here, with the name of the answer. They run in the
// socket's read loop: who asks for much waits for each.
var artifactVerbs = map[protocol.Intent]func(*socket, *asterism.Frame) (protocol.Intent, any, error){
	asterism.ArtifactOffer: (*socket).offered,
	asterism.ArtifactPut:   (*socket).put,
	asterism.ArtifactGet:   (*socket).fetched,
}

// artifact answers whoever asked. It waits until the answer is on its way, so that a flood of questions stays outside.
func (s *socket) artifact(f *asterism.Frame, name protocol.Intent) {
	reply, value, err := artifactVerbs[name](s, f)
	if err != nil {
		s.unable(f, err, protocol.CodeDiskFull, "the attachment could not be kept or read")
		return
	}
	to, body, l := s.session.Sender().ID, protocol.EncodeBody(value), s.n.loop
	_ = l.call(s.n.ctx, func() {
		if !s.gone {
			s.conn.Send(l.enc.Custom(l.now, asterism.Custom{Name: reply, To: to, Value: body}))
		}
	})
}

func (s *socket) offered(f *asterism.Frame) (protocol.Intent, any, error) {
	o, no := asterism.ParseOffer(f.Value)
	if no != nil {
		return "", nil, no
	}
	owner := giverOf(s.session.Sender().ID)
	if o.Discard {
		err := s.n.store.DropPart(owner, o.Artifact)
		return asterism.ArtifactState, stateOf(journal.Part{SHA256: o.Artifact, Bytes: o.Size}, f), err
	}
	row, err := s.n.beginUpload(owner, o.Artifact, o.Size)
	return asterism.ArtifactState, stateOf(row, f), err
}

func stateOf(p journal.Part, f *asterism.Frame) asterism.StateOfArtifact {
	out := asterism.StateOfArtifact{
		Artifact: p.SHA256, Size: p.Bytes, Chunk: asterism.ArtifactChunkBytes, Count: asterism.ChunkCount(p.Bytes),
		Have: int(p.Have / asterism.ArtifactChunkBytes), Complete: p.Whole, Re: f.MsgID,
	}
	if p.Whole {
		out.Have = out.Count
	}
	return out
}

func (s *socket) put(f *asterism.Frame) (protocol.Intent, any, error) {
	p, no := asterism.ParsePut(f.Value)
	if no != nil {
		return "", nil, no
	}
	owner := giverOf(s.session.Sender().ID)
	row, ok := s.n.store.PartOf(owner, p.Artifact)
	if !ok {
		return "", nil, uploadError(journal.ErrNoBlob)
	}
	have := int(row.Have / asterism.ArtifactChunkBytes)
	switch want := asterism.ChunkLength(row.Bytes, p.Index); {
	case want == 0 || !row.Whole && p.Index > have:
		return "", nil, protocol.Refuse(asterism.CodeChunkOutOfRange, "chunk %d does not follow what is here", fmt.Sprintf("go on with chunk %d of %d", have, asterism.ChunkCount(row.Bytes)), p.Index)
	case want != len(p.Data):
		return "", nil, protocol.Refuse(asterism.CodeWrongLength, "chunk %d has %d bytes; it should have %d", "", p.Index, len(p.Data), want)
	}
	if !row.Whole && p.Index == have {
		if no := s.spend(len(p.Data)); no != nil {
			return "", nil, no
		}
	}
	row, err := s.n.addUpload(s.n.ctx, owner, p.Artifact, int64(p.Index)*asterism.ArtifactChunkBytes, p.Data)
	return asterism.ArtifactState, stateOf(row, f), err
}

func (s *socket) fetched(f *asterism.Frame) (protocol.Intent, any, error) {
	g, no := asterism.ParseGet(f.Value)
	if no != nil {
		return "", nil, no
	}
	if may, err := s.mayFetch(g.Of, g.From, g.Artifact); err != nil || !may {
		return "", nil, errors.Join(err, unknownAttachment(g.Artifact))
	}
	r, total, err := s.n.store.OpenBlob(g.Artifact)
	if errors.Is(err, journal.ErrNoBlob) {
		words, hint := s.n.absence(g.Artifact)
		return "", nil, protocol.Refuse(asterism.CodeAttachmentUnknown, "the message names it, but it is not here: %s", hint, words)
	}
	if err != nil {
		return "", nil, err
	}
	defer r.Close()
	data := make([]byte, asterism.ChunkLength(total, g.Index))
	if len(data) == 0 && (g.Index > 0 || total > 0) {
		return "", nil, protocol.Refuse(asterism.CodeChunkOutOfRange, "it has %d chunks; there is none of index %d", "", asterism.ChunkCount(total), g.Index)
	}
	if _, err := r.Seek(int64(g.Index)*asterism.ArtifactChunkBytes, io.SeekStart); err != nil {
		return "", nil, err
	}
	if _, err := io.ReadFull(r, data); err != nil {
		return "", nil, fmt.Errorf("read content: %w", err)
	}
	return asterism.ArtifactPiece, asterism.PieceOfArtifact{
		Artifact: g.Artifact, Size: total, Index: g.Index, Count: asterism.ChunkCount(total), Encoding: "base64",
		Data: data, SHA256: asterism.HashOf(data), Re: f.MsgID,
	}, nil
}

// unknownAttachment is the answer also to whoever may not have it: that it is here is told to nobody else.
func unknownAttachment(sha string) *protocol.Refusal {
	return protocol.Refuse(asterism.CodeAttachmentUnknown, "no message that you sent or were given names attachment %s", "value.of is that message's msgId", protocol.CutText(sha, 64))
}

// mayFetch says whether whoever speaks here sent or was given a message of an id that names the content: nobody has it for
// its hash alone.
func (s *socket) mayFetch(of protocol.MsgID, from protocol.AgentID, sha string) (bool, error) {
	found, err := s.n.store.Resolve(string(of))
	if err != nil || len(found) == 0 {
		return false, err
	}
	me := s.session.Sender().ID
	names := []protocol.AgentID{me}
	gone, outside := false, false
	if err := s.n.loop.call(s.n.ctx, func() {
		names = append(names, s.n.loop.core.Formerly(me)...)
		gone, outside = s.gone, s.outside
	}); err != nil || gone {
		return false, err
	}
	for i := range found {
		m := &found[i]
		if m.Envelope.ID != of || from != "" && !s.n.saidBy(m, from) || !namesBlob(&m.Envelope, sha) {
			continue
		}
		if me == "" || party(&m.Envelope, names) && (!outside || m.Envelope.Room != "" || seenBy(m, me)) {
			return true, nil
		}
	}
	return false, nil
}

func namesBlob(env *protocol.Envelope, sha string) bool {
	return slices.ContainsFunc(env.AllBlobs(), func(b protocol.BlobRef) bool { return b.SHA256 == sha })
}

// party says whether an agent of one of these names sent the message or was given it.
func party(env *protocol.Envelope, names []protocol.AgentID) bool {
	for _, name := range names {
		me := protocol.FoldAgentID(name)
		if protocol.FoldAgentID(env.From) == me || protocol.FoldAgentID(env.To) == me ||
			slices.ContainsFunc(env.Rcpt, func(a protocol.AgentID) bool { return protocol.FoldAgentID(a) == me }) {
			return true
		}
	}
	return false
}

// seenBy is roles' word on a client of an outside role.
func seenBy(m *journal.Message, me protocol.AgentID) bool {
	rec := protocol.Record{Log: m.Log, Seq: m.Seq, Kind: protocol.KindMessage}
	return roles.MaySeeRecord(roles.Viewer{Agent: me}, &rec, &m.Envelope)
}

// prepare puts on the disk what a message needs there before it reaches the loop. If it is refused after that, what no
// other record names is swept.
func (s *socket) prepare(env *protocol.Envelope) error {
	if err := s.bind(env); err != nil {
		return err
	}
	return s.n.spill(s.n.ctx, env)
}

// given notes that a message was taken: what it names does not count against its giver any more.
func (l *loop) given(owner string, env *protocol.Envelope) {
	if len(env.Blobs) > 0 {
		l.savers.Go(func() { l.n.sent(owner, env) })
	}
}

func (n *Node) sent(owner string, env *protocol.Envelope) {
	for _, b := range env.Blobs {
		if err := n.store.SentPart(owner, b.SHA256); err != nil {
			n.log.Warn("attachment not marked as sent", "sha256", b.SHA256, "err", err)
		}
	}
}

// bind makes of what a value names as lying here (source "hub") the attachments of its message. Its sender must have given
// them, or name the message by which it has them: a hash alone gives nothing away.
func (s *socket) bind(env *protocol.Envelope) error {
	owner := giverOf(s.session.Sender().ID)
	if owner == ownerPerson {
		if err := s.n.unline(s.n.ctx, env); err != nil {
			return err
		}
	}
	named, no := asterism.NamedIn(env.Value)
	if no != nil {
		return no
	}
	for _, a := range named {
		if namesBlob(env, a.SHA256) {
			continue
		}
		row, given := s.n.store.PartOf(owner, a.SHA256)
		if !given || !row.Whole {
			may, err := false, error(nil)
			if a.Of != "" {
				may, err = s.mayFetch(a.Of, a.From, a.SHA256)
			}
			if err != nil || !may {
				return errors.Join(err, protocol.Refuse(asterism.CodeAttachmentUnknown, "attachment %s did not come from you", "ArtifactOffer and ArtifactPut give it; of names the message by which you have it", a.SHA256))
			}
		}
		if err := s.n.keepNamed(&a.BlobRef); err != nil {
			return err
		}
		env.Blobs = append(env.Blobs, a.BlobRef)
	}
	return nil
}

// keepNamed sees to it that content stays until the record that names it is written, and that its size is told as it is.
func (n *Node) keepNamed(ref *protocol.BlobRef) error {
	if !n.store.KeepBlob(ref.SHA256) {
		return protocol.Refuse(asterism.CodeAttachmentUnknown, "attachment %s is not here any more", "give it again", ref.SHA256)
	}
	r, total, err := n.store.OpenBlob(ref.SHA256)
	if err != nil {
		return err
	}
	defer r.Close()
	if ref.Bytes != total {
		return protocol.Refuse(asterism.CodeWrongLength, "attachment %s has %d bytes, not %d", "", ref.SHA256, total, ref.Bytes)
	}
	return nil
}

// attachmentPath is where the node's owner finds an attachment of a message.
func attachmentPath(id protocol.MsgID, sha string) string {
	return api.Prefix + "/messages/" + url.PathEscape(string(id)) + "/attachments/" + sha
}

// unline keeps what stands in a person's prompt as data URLs beside it (wire 6.7).
func (n *Node) unline(ctx context.Context, env *protocol.Envelope) error {
	value, err := asterism.WithoutInlined(env.Value, func(in asterism.Inlined) (protocol.BlobRef, string, error) {
		ref, err := n.PutBlob(ctx, bytes.NewReader(in.Data), "")
		if err == nil {
			ref.Name, ref.Mime = in.Name, in.Mime
			env.Blobs = append(env.Blobs, ref)
		}
		return ref, attachmentPath(env.ID, ref.SHA256), err
	})
	if err == nil {
		env.Value = value
	}
	return err
}
