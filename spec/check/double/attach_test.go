package double

import (
	"bytes"

	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/asterism"
)

// part names what somebody gives: who, and the hash of the whole.
type part struct {
	who protocol.AgentID // folded; empty: a person
	sha string
}

// upload is what is here of it.
type upload struct {
	size   int64
	pieces [][]byte
}

func (u *upload) complete() bool { return u != nil && len(u.pieces) == asterism.ChunkCount(u.size) }

// gift is a message that names attachments.
type gift struct {
	env   protocol.Envelope
	holds map[string][]byte // hash → content
}

const uploadsMax = 8

func (c *conn) mine(sha string) part {
	return part{protocol.FoldAgentID(c.session.Sender().ID), sha}
}

// forget drops what an agent has given in part.
func (h *hub) forget(id protocol.AgentID) {
	for p, u := range h.parts {
		if p.who == protocol.FoldAgentID(id) && !u.complete() {
			delete(h.parts, p)
		}
	}
}

// artifact answers the three verbs of attachments.
func (c *conn) artifact(f *asterism.Frame) {
	var no *protocol.Refusal
	switch f.Intent() {
	case asterism.ArtifactOffer:
		no = c.offer(f)
	case asterism.ArtifactPut:
		no = c.put(f)
	case asterism.ArtifactGet:
		no = c.get(f)
	}
	if no != nil {
		c.refuse(f.MsgID, no)
	}
}

func (c *conn) offer(f *asterism.Frame) *protocol.Refusal {
	o, no := asterism.ParseOffer(f.Value)
	if no != nil {
		return no
	}
	h, at := c.h, c.mine(o.Artifact)
	u := h.parts[at]
	if o.Discard {
		delete(h.parts, at)
		c.state(f, o.Artifact, &upload{size: o.Size})
		return nil
	}
	if u == nil {
		open := 0
		for p, other := range h.parts {
			if p.who == at.who && !other.complete() {
				open++
			}
		}
		if open >= uploadsMax {
			return protocol.Refuse(asterism.CodeAttachmentQuota, "%d attachments are not complete", "", open)
		}
		u = &upload{size: o.Size}
		h.parts[at] = u
	}
	c.state(f, o.Artifact, u)
	return nil
}

func (c *conn) state(f *asterism.Frame, sha string, u *upload) {
	c.h.answer(c, asterism.ArtifactState, asterism.StateOfArtifact{Artifact: sha, Size: u.size, Chunk: asterism.ArtifactChunkBytes,
		Count: asterism.ChunkCount(u.size), Have: len(u.pieces), Complete: u.size > 0 && u.complete(), Re: f.MsgID})
}

func (c *conn) put(f *asterism.Frame) *protocol.Refusal {
	p, no := asterism.ParsePut(f.Value)
	if no != nil {
		return no
	}
	at := c.mine(p.Artifact)
	u := c.h.parts[at]
	switch {
	case u == nil:
		return protocol.Refuse(asterism.CodeAttachmentUnknown, "it was not announced", "")
	case p.Index != len(u.pieces) || p.Index >= asterism.ChunkCount(u.size):
		return protocol.Refuse(asterism.CodeChunkOutOfRange, "piece %d is due", "", len(u.pieces))
	case len(p.Data) != asterism.ChunkLength(u.size, p.Index):
		return protocol.Refuse(asterism.CodeWrongLength, "the piece has another length", "")
	}
	u.pieces = append(u.pieces, p.Data)
	if u.complete() && asterism.HashOf(bytes.Join(u.pieces, nil)) != p.Artifact {
		delete(c.h.parts, at)
		return protocol.Refuse(asterism.CodeWrongHash, "the whole is something else", "")
	}
	c.state(f, p.Artifact, u)
	return nil
}

func (c *conn) get(f *asterism.Frame) *protocol.Refusal {
	g, no := asterism.ParseGet(f.Value)
	if no != nil {
		return no
	}
	data, ok := c.given(g.Artifact, g.Of, g.From)
	if !ok {
		return protocol.Refuse(asterism.CodeAttachmentUnknown, "no message gave it to you", "")
	}
	n := asterism.ChunkLength(int64(len(data)), g.Index)
	if n == 0 {
		return protocol.Refuse(asterism.CodeChunkOutOfRange, "there is no such piece", "")
	}
	piece := data[g.Index*asterism.ArtifactChunkBytes:][:n]
	c.h.answer(c, asterism.ArtifactPiece, asterism.PieceOfArtifact{Artifact: g.Artifact, Size: int64(len(data)), Index: g.Index,
		Count: asterism.ChunkCount(int64(len(data))), Encoding: "base64", Data: piece, SHA256: asterism.HashOf(piece), Re: f.MsgID})
	return nil
}

// given finds an attachment in a message that this connection may see.
func (c *conn) given(sha string, of protocol.MsgID, from protocol.AgentID) ([]byte, bool) {
	me := c.session.Sender().ID
	for _, g := range c.h.gifts {
		if g.env.ID == of && (from == "" || from == g.env.From) && g.holds[sha] != nil && (me == "" || g.env.From == me || g.env.To == me) {
			return g.holds[sha], true
		}
	}
	return nil, false
}

// enclose finds the attachments that a message gives: those that its sender has here, was given, or puts into a prompt.
func (c *conn) enclose(env *protocol.Envelope) *protocol.Refusal {
	holds := map[string][]byte{}
	if env.From == "" {
		env.Value, _ = asterism.WithoutInlined(env.Value, func(in asterism.Inlined) (protocol.BlobRef, string, error) {
			sha := asterism.HashOf(in.Data)
			holds[sha] = in.Data
			return protocol.BlobRef{SHA256: sha, Bytes: int64(len(in.Data))}, "/artifacts/" + sha, nil
		})
	}
	named, no := asterism.NamedIn(env.Value)
	if no != nil {
		return no
	}
	for _, n := range named {
		if holds[n.SHA256] != nil {
			continue
		}
		data, ok := []byte(nil), false
		if n.Of != "" {
			data, ok = c.given(n.SHA256, n.Of, n.From)
		} else if u := c.h.parts[c.mine(n.SHA256)]; u.complete() {
			data, ok = bytes.Join(u.pieces, nil), true
		}
		if !ok {
			return protocol.Refuse(asterism.CodeAttachmentUnknown, "it is not here", "")
		}
		holds[n.SHA256] = data
	}
	if len(holds) > 0 {
		c.h.gifts = append(c.h.gifts, gift{env: *env, holds: holds})
	}
	return nil
}

// asked says whether the hub answers a name itself, and does so.
func (c *conn) asked(f *asterism.Frame) bool {
	switch f.Intent() {
	case "KeyIssue", "KeyList", "KeyRevoke", "KeyLabel", "KeyRenew":
		c.keyVerb(f)
	case asterism.ArtifactOffer, asterism.ArtifactPut, asterism.ArtifactGet:
		c.artifact(f)
	case "ArchiveChannel", "DeleteChannelHistory", "CloseChannel":
		c.channelVerb(f)
	case "RoomCreate", "RoomJoin", "RoomLeave", "RoomClose", "RoomArtifactsUpdate", "RequestRoomArtifacts":
		c.roomVerb(f)
	case "SetMain":
		c.setMain(f)
	case "HandoffReady":
		c.ready(f)
	case protocol.AckProcessed:
		c.acked(f)
	case "RequestChannelHistory":
		c.past(f)
	default:
		return false
	}
	return true
}
