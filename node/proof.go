package node

import (
	"context"
	"fmt"
	"slices"

	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/api"
)

// Proof implements web.Page: the record of a message with the signature that covers it, checked now.
func (n *Node) Proof(_ context.Context, id string) (out api.Proof, err error) {
	m, err := n.resolve(id)
	if err != nil {
		return out, err
	}
	// A commit weighs less than a frame, so its signature lies within one.
	recs, err := n.store.Range(m.Log, m.Seq, protocol.MeshFrameBytesMax)
	if err != nil {
		return out, fmt.Errorf("read record: %w", err)
	}
	if len(recs) == 0 {
		return out, protocol.Refuse(protocol.CodeUnknownID, "the record of %s is damaged here", "aster doctor", protocol.ShortID(m.Envelope.ID))
	}
	rec := &recs[0]
	out = api.Proof{
		Log: rec.Log.String(), Seq: rec.Seq, Node: rec.Log.Peer, NodeName: n.nameOf(rec.Log.Peer), At: rec.At.String(), Wall: rec.Wall,
		Hash: rec.Hash().String(), Prev: rec.Prev.String(), Bytes: len(rec.Body), Receipts: n.message(&m).Tiers,
	}
	if i := slices.IndexFunc(recs, func(r protocol.Record) bool { return len(r.Sig) > 0 }); i >= 0 {
		out.SignedBy, out.Sig = recs[i].Seq, recs[i].Sig
		_, err := protocol.VerifyCommits(recs[:i+1], rec.Prev)
		out.Holds = err == nil
	}
	return out, nil
}
