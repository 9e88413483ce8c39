package node

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/api"
	"github.com/aster-mesh/aster/roles/member"
	"github.com/aster-mesh/aster/roles/room"
)

// Rooms implements web.Page: the open rooms, newest first.
func (n *Node) Rooms(ctx context.Context) (out []api.Room, err error) {
	var rooms map[protocol.RoomID]*room.Room
	var failed error
	if err := n.loop.call(ctx, func() { rooms, failed = n.loop.board.Rooms() }); err != nil || failed != nil {
		return nil, cmp.Or(err, failed)
	}
	for id, r := range rooms {
		if !r.Open() {
			continue
		}
		row := api.Room{ID: id, Topic: r.Created.Body.Topic, By: r.Created.Body.By, At: r.Created.Wall, Participants: r.Participants(), Lines: len(r.Lines)}
		if log, _, ok := r.Created.Pos.Record(); ok {
			row.NodeName = n.nameOf(log.Peer)
		}
		out = append(out, row)
	}
	slices.SortFunc(out, func(a, b api.Room) int { return cmp.Or(cmp.Compare(b.At, a.At), cmp.Compare(a.ID, b.ID)) })
	return out, nil
}

// Invites implements web.Page: newest first.
func (n *Node) Invites(context.Context) (out []api.InviteRow, err error) {
	saved, err := n.store.ValuesWithPrefix(keyInvite)
	if err != nil {
		return nil, fmt.Errorf("read invites: %w", err)
	}
	for _, raw := range saved {
		var r member.InviteRecord
		if json.Unmarshal(raw, &r) != nil {
			continue
		}
		out = append(out, api.InviteRow{ID: r.ID, Role: r.Role, Made: r.Made.Time().UnixMilli(), Expires: r.Expires, UsedBy: r.UsedBy, UsedName: r.UsedName, UsedAt: r.UsedAt})
	}
	slices.SortFunc(out, func(a, b api.InviteRow) int { return cmp.Or(cmp.Compare(b.Made, a.Made), cmp.Compare(a.ID, b.ID)) })
	return out, nil
}

// WithdrawInvite implements web.Page: the invite is over as if its time had run out.
func (n *Node) WithdrawInvite(ctx context.Context, id string) error {
	var failed error
	done := make(chan struct{})
	err := n.loop.post(ctx, func() {
		rec, err := n.loop.invite(id)
		switch {
		case err != nil:
			failed = err
		case rec == nil:
			failed = protocol.Refuse(protocol.CodeUnknownID, "this node made no invite %s", "", protocol.CutText(id, 40))
		case rec.UsedBy != "":
			failed = protocol.Refuse(protocol.CodeInviteUsed, "%s has used it already", "aster member revoke "+rec.UsedName, rec.UsedName)
		default:
			rec.Expires = min(rec.Expires, n.loop.now.UnixMilli())
			n.loop.value(keyInvite+rec.ID, protocol.EncodeBody(rec))
			n.loop.after = append(n.loop.after, func(err error) { failed = err; close(done) })
			return
		}
		close(done)
	})
	if err != nil {
		return err
	}
	select {
	case <-done:
		return failed
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-n.done:
		return errStopping
	}
}
