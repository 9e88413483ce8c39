package node

import (
	"context"
	"os"

	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/api"
	"github.com/aster-mesh/aster/roles/keys"
)

// insideOnly is the right of the node's owner: keys are written in the inside's log, so an outside node has none to give.
func (n *Node) insideOnly() *protocol.Refusal {
	if n.loop.inside() {
		return nil
	}
	return protocol.Refuse(keys.CodePermission, "this node is outside: keys are given by nodes of the inside", "")
}

// Keys implements web.Keys.
func (n *Node) Keys(ctx context.Context, all bool) (out []api.Key, err error) {
	err = n.loop.call(ctx, func() {
		for _, k := range n.loop.keys().All() {
			switch k.State(n.home.peer, n.loop.now) {
			case keys.Revoked, keys.Deleted:
				if !all {
					continue
				}
			}
			out = append(out, n.loop.keyRow(&k))
		}
	})
	return out, err
}

func (l *loop) keyRow(k *keys.Key) api.Key {
	self := l.n.home.peer
	return api.Key{
		Ref: k.Ref(), Kind: string(k.Kind), Label: k.Label, Note: k.Note, State: string(k.State(self, l.now)),
		Lapsed: !k.Final() && k.Expired(self, l.now), Bound: k.Bound, Issued: k.Issued, Expires: k.ExpiresAt(), Renewed: k.Renewed,
		RenewCount: k.RenewCount, Revoked: k.Revoked, LastAgent: k.LastAgent, LastSeen: k.LastSeen, Connection: l.keyConnection(k),
	}
}

func (n *Node) keyRowOf(ctx context.Context, k *keys.Key) (row api.Key, err error) {
	err = n.loop.call(ctx, func() { row = n.loop.keyRow(k) })
	return row, err
}

// IssueKey implements web.Keys.
func (n *Node) IssueKey(ctx context.Context, req api.KeyRequest) (out api.KeyIssued, err error) {
	k, secret, err := n.issueKey(ctx, keys.Issue{Kind: keys.Kind(req.Kind), Label: req.Label, Note: req.Note, TTL: req.TTLMillis, Bound: req.Agent}, n.insideOnly)
	if err != nil {
		return out, err
	}
	if k.Kind == keys.Local {
		out.File, out.Page = n.localKeyPath(k.Label), n.boardURL+"/join/local?label="+k.Label
	} else {
		_, _, ws := n.joinURLs("ws", "/ws?"+k.Kind.Param()+"="+secret)
		_, _, pages := n.joinURLs("http", "/join/"+string(k.Kind)+"?key="+secret)
		out.Secret, out.JoinURL, out.Page = secret, ws[0].URL, pages[0].URL
	}
	out.Key, err = n.keyRowOf(ctx, &k)
	return out, err
}

// RenewKey implements web.Keys.
func (n *Node) RenewKey(ctx context.Context, ref string, ttl *int64) (api.Key, error) {
	k, _, err := n.renewKey(ctx, keyName{ref: ref, labels: true}, ttl, n.insideOnly)
	if err != nil {
		return api.Key{}, err
	}
	return n.keyRowOf(ctx, &k)
}

// LabelKey implements web.Keys.
func (n *Node) LabelKey(ctx context.Context, ref, label string) (api.Key, error) {
	k, _, err := n.labelKey(ctx, keyName{ref: ref, labels: true}, label, n.insideOnly)
	if err != nil {
		return api.Key{}, err
	}
	return n.keyRowOf(ctx, &k)
}

// RevokeKey implements web.Keys.
func (n *Node) RevokeKey(ctx context.Context, ref, mode string) (out api.KeyRevoked, err error) {
	k, sessions, err := n.revokeKey(ctx, keyName{ref: ref, labels: true}, mode, n.insideOnly)
	if err != nil {
		return out, err
	}
	out.Sessions = sessions
	out.Key, err = n.keyRowOf(ctx, &k)
	return out, err
}

// JoinKey implements web.Keys: the key of a join page, if it may be used.
func (n *Node) JoinKey(ctx context.Context, secret string) (row api.Key, err error) {
	var no *protocol.Refusal
	err = n.loop.call(ctx, func() {
		k, ok := n.loop.keys().Find(secret)
		if !ok {
			no = protocol.Refuse(protocol.CodeBadKey, "this key is not known here", "ask the board's owner for a key")
		} else if no = k.Valid(n.home.peer, n.loop.now); no == nil {
			row = n.loop.keyRow(&k)
		}
	})
	if no != nil {
		return row, no
	}
	return row, err
}

// JoinLocal implements web.Keys: the valid local key of a label whose file lies in this home, with that file's path.
func (n *Node) JoinLocal(ctx context.Context, label string) (row api.Key, file string, err error) {
	if !keys.LabelOK(keys.Local, label) {
		return row, "", protocol.Refuse(protocol.CodeBadFrame, "label is 1 to 64 letters, digits, dashes or underscores", "")
	}
	h := n.localKeyHash(label)
	no := protocol.Refuse(protocol.CodeUnknownID, "there is no valid local key of this label here", "aster key issue --kind local --label LABEL makes one")
	err = n.loop.call(ctx, func() {
		if k, ok := n.loop.keys().ByHash(h); ok && k.Kind == keys.Local && k.Valid(n.home.peer, n.loop.now) == nil {
			row, no = n.loop.keyRow(&k), nil
		}
	})
	if err == nil && no != nil {
		err = no
	}
	file = n.localKeyPath(label)
	if _, e := os.Stat(file); e != nil && err == nil {
		err = e
	}
	return row, file, err
}
