package node

import (
	"context"
	"crypto/rand"
	"fmt"

	"github.com/aster-mesh/aster/node/hub"
	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/roles/keys"
)

// keyName says which key is meant: by its string, its keyRef, or for commands a label that only one key has.
type keyName struct {
	secret, ref string
	kind        keys.Kind // of a legacy verb: of this kind alone
	labels      bool      // ref may be a label
}

func (l *loop) keyNamed(name keyName) (keys.Key, *protocol.Refusal) {
	k, no := l.keys().Named(name.secret, name.ref, l.n.home.peer, l.now)
	if no != nil && name.labels {
		k, no = l.keyLabelled(name.ref, no)
	}
	if no == nil && name.kind != "" && k.Kind != name.kind {
		return keys.Key{}, protocol.Refuse(keys.CodeNotFound, "there is no such key of kind %s", "", string(name.kind))
	}
	return k, no
}

// keyLabelled finds the one key that goes by a label; of several the one that is still valid.
func (l *loop) keyLabelled(label string, no *protocol.Refusal) (keys.Key, *protocol.Refusal) {
	var found, valid []keys.Key
	for _, k := range l.keys().All() {
		if k.Label == label && k.State(l.n.home.peer, l.now) != keys.Deleted {
			found = append(found, k)
			if k.Valid(l.n.home.peer, l.now) == nil {
				valid = append(valid, k)
			}
		}
	}
	if len(valid) == 1 {
		found = valid
	}
	switch len(found) {
	case 0:
		return keys.Key{}, no
	case 1:
		return found[0], nil
	}
	return keys.Key{}, protocol.Refuse(protocol.CodeAmbiguousID, "%d keys are called %q", "say its kr-… instead: aster key list", len(found), label)
}

// changeKey asks in the loop what to write of a key, and returns the key as it is once that is durable.
func (n *Node) changeKey(ctx context.Context, name keyName, may func() *protocol.Refusal, change func(*keys.Key) (protocol.KeyBody, *protocol.Refusal)) (keys.Key, error) {
	var h keys.Hash
	_, err := n.loop.askOr(ctx, func(t hub.Token) (hub.Input, error) {
		if no := may(); no != nil {
			return nil, no
		}
		k, no := n.loop.keyNamed(name)
		if no != nil {
			return nil, no
		}
		body, no := change(&k)
		if no != nil {
			return nil, no
		}
		h = k.Hash
		return keyRecord(body, t), nil
	})
	if err != nil {
		return keys.Key{}, err
	}
	return n.keyNow(ctx, h)
}

func (n *Node) keyNow(ctx context.Context, h keys.Hash) (k keys.Key, err error) {
	err = n.loop.call(ctx, func() { k, _ = n.loop.keys().ByHash(h) })
	return k, err
}

// issueKey makes a key. Its string is returned once and kept nowhere; a local key's lies in its file only, so that none
// travels on a wire.
func (n *Node) issueKey(ctx context.Context, in keys.Issue, may func() *protocol.Refusal) (keys.Key, string, error) {
	var random [keys.SecretBytes]byte
	_, _ = rand.Read(random[:]) // crypto/rand never fails
	if in.Kind == "" {
		in.Kind = keys.Upstream
	}
	secret := keys.Secret(in.Kind, random)
	h := keys.HashOf(secret)
	inFile, err := n.localKeyInFile(in)
	if err != nil {
		return keys.Key{}, "", err
	}
	l := n.loop
	_, err = l.askOr(ctx, func(t hub.Token) (hub.Input, error) {
		if no := may(); no != nil {
			return nil, no
		}
		if k, ok := l.keys().ByHash(inFile); ok && k.Valid(n.home.peer, l.now) == nil {
			return nil, protocol.Refuse(keys.CodeFile, "the file of this label holds another key that is valid", "choose another label, or revoke that key first: aster key revoke "+k.Ref())
		}
		body, no := l.keys().Issue(in, h, l.keyIssuing, n.home.peer, l.now)
		if no != nil {
			return nil, no
		}
		l.keyIssuing++
		l.after = append(l.after, func(error) { l.keyIssuing-- })
		return keyRecord(body, t), nil
	})
	if err != nil {
		return keys.Key{}, "", err
	}
	k, err := n.keyNow(ctx, h)
	if err != nil || in.Kind != keys.Local {
		return k, secret, err
	}
	if err := n.writeLocalKey(k.Label, secret); err != nil {
		n.log.Error("local key not written", "err", err)
		_, _, _ = n.revokeKey(ctx, keyName{ref: k.Ref()}, keys.Immediate, owner)
		return k, "", protocol.Refuse(keys.CodeFile, "the key's file could not be written, so the key was revoked", "aster logs says why")
	}
	return k, "", nil
}

// owner is the right of whoever holds the node's token: the command line, and the node itself.
func owner() *protocol.Refusal { return nil }

// revokeKey ends a key and says how many sessions end with it.
func (n *Node) revokeKey(ctx context.Context, name keyName, mode string, may func() *protocol.Refusal) (k keys.Key, sessions int, err error) {
	k, err = n.changeKey(ctx, name, may, func(k *keys.Key) (protocol.KeyBody, *protocol.Refusal) {
		sessions = n.loop.holdersOf(k)
		return k.Revoke(mode, sessions > 0, n.loop.now)
	})
	return k, sessions, err
}

// labelKey gives a key another label and says the old one. A local key's file goes with its label where it lies here.
func (n *Node) labelKey(ctx context.Context, name keyName, label string, may func() *protocol.Refusal) (k keys.Key, old string, err error) {
	taken := n.localKeyHash(label)
	k, err = n.changeKey(ctx, name, may, func(k *keys.Key) (protocol.KeyBody, *protocol.Refusal) {
		old = k.Label
		if other, ok := n.loop.keys().ByHash(taken); ok && k.Kind == keys.Local && other.Hash != k.Hash && other.Valid(n.home.peer, n.loop.now) == nil {
			return protocol.KeyBody{}, protocol.Refuse(keys.CodeFile, "the file of this label holds another key that is valid", "choose another label")
		}
		return k.Relabel(label)
	})
	if err == nil && k.Kind == keys.Local && n.localKeyHash(old) == k.Hash {
		if err := n.moveLocalKey(old, label); err != nil {
			return k, old, fmt.Errorf("rename the key's file: %w", err)
		}
	}
	return k, old, err
}

// renewKey gives a key another life and says whether it had ended.
func (n *Node) renewKey(ctx context.Context, name keyName, ttl *int64, may func() *protocol.Refusal) (k keys.Key, lapsed bool, err error) {
	k, err = n.changeKey(ctx, name, may, func(k *keys.Key) (protocol.KeyBody, *protocol.Refusal) {
		lapsed = k.Expired(n.home.peer, n.loop.now)
		return k.Renew(ttl)
	})
	return k, lapsed, err
}
