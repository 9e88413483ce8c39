package node

import (
	"errors"
	"slices"

	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/asterism"
	"github.com/aster-mesh/aster/roles/keys"
)

// keyAsk is one key verb that a socket said. Its methods run in the socket's read loop.
type keyAsk struct {
	n     *Node
	s     *socket
	frame *asterism.Frame
}

// keyVerbs are the verbs of wire 3.8 with their replies; a verb without a reply has no name.
var keyVerbs = map[protocol.Intent]func(keyAsk) (protocol.Intent, any, error){
	"KeyIssue":            keyAsk.issue,
	"KeyList":             keyAsk.list,
	"KeyRevoke":           keyAsk.revoke,
	"KeyLabel":            keyAsk.label,
	"KeyRenew":            keyAsk.renew,
	"RegisterUpstreamKey": keyAsk.registerUpstream,
	"RegisterCollabKey":   keyAsk.registerCollab,
	"RevokeUpstreamKey":   keyAsk.revokeUpstream,
	"RevokeCollabKey":     keyAsk.revokeCollab,
}

// keyVerb carries out a verb and answers whoever said it, and nobody else (fault KB11).
func (s *socket) keyVerb(f *asterism.Frame, name protocol.Intent) {
	a := keyAsk{s.n, s, f}
	reply, value, err := keyVerbs[name](a)
	var no *protocol.Refusal
	switch {
	case errors.As(err, &no):
		reply, value = "KeyError", asterism.KeyError{Code: no.Code, Message: no.Error(), Re: f.MsgID}
	case err != nil:
		s.n.log.Error("key verb failed", "verb", name, "err", err)
		return
	case reply == "":
		return
	}
	to := s.session.Sender().ID
	l := s.n.loop
	_ = l.post(s.n.ctx, func() {
		s.conn.Send(l.enc.Custom(l.now, asterism.Custom{Name: reply, To: to, Value: protocol.EncodeBody(value)}))
	})
}

// mayManageKeys is asked in the loop for each message: main's agent at home here, or a board of the node's owner, and only
// while it is that. Keys are written in the inside's log, so an outside node has none to give.
func (l *loop) mayManageKeys(s *socket) *protocol.Refusal {
	switch {
	case s.gone || !l.inside():
	case s.as == nil && s.board:
		return nil
	case s.as != nil:
		if k, ok := l.core.Agent(s.as.Agent); ok && k.Role == protocol.RoleMain && slices.Contains(l.core.Conns(s.as.Agent), s.id) {
			return nil
		}
	}
	return protocol.Refuse(keys.CodePermission, "only main and the node's owner manage keys", "")
}

func (a keyAsk) may() *protocol.Refusal { return a.n.loop.mayManageKeys(a.s) }

// first asks whether the sender may at all, so that who may not learns nothing by mistakes in a value.
func (a keyAsk) first() error {
	var no *protocol.Refusal
	if err := a.n.loop.call(a.n.ctx, func() { no = a.may() }); err != nil {
		return err
	}
	if no != nil {
		return no
	}
	return nil
}

func (a keyAsk) issue() (protocol.Intent, any, error) {
	if err := a.first(); err != nil {
		return "", nil, err
	}
	in, no := keys.ParseIssue(a.frame.Value)
	if no != nil {
		return "", nil, no
	}
	k, secret, err := a.n.issueKey(a.n.ctx, in, a.may)
	if err != nil {
		return "", nil, err
	}
	out := asterism.KeyIssued{
		Label: k.Label, Kind: string(k.Kind), Note: k.Note, Bound: orNil(k.Bound), TTL: k.TTL, IssuedAt: k.Issued, KeyRef: k.Ref(),
		ExpiresAt: orNil(k.ExpiresAt()), Re: a.frame.MsgID,
	}
	if k.Kind == keys.Local {
		out.JoinFile = localKeyFile(k.Label)
		out.JoinScript = a.n.boardURL + "/join/local?label=" + k.Label
		out.JoinHint = "the key lies in " + out.JoinFile + " of the node's home on this machine; joinScript tells how to join with it"
		return "KeyIssued", out, nil
	}
	out.Key = secret
	out.Bind, out.Exposed, out.JoinURLs = a.n.joinURLs("ws", "/ws?"+k.Kind.Param()+"="+secret)
	out.JoinURL = out.JoinURLs[0].URL
	return "KeyIssued", out, nil
}

func (a keyAsk) registerUpstream() (protocol.Intent, any, error) {
	return a.register(keys.Upstream, "UpstreamKeyIssued")
}

func (a keyAsk) registerCollab() (protocol.Intent, any, error) {
	return a.register(keys.Collab, "CollabKeyIssued")
}

// register is the legacy way to a key; its number is bounded as by KeyIssue (fault KB23).
func (a keyAsk) register(kind keys.Kind, reply protocol.Intent) (protocol.Intent, any, error) {
	if err := a.first(); err != nil {
		return "", nil, err
	}
	f, no := keys.ParseFields(a.frame.Value)
	if no != nil {
		return "", nil, no
	}
	label, no := f.Label(kind)
	if no != nil {
		return "", nil, no
	}
	k, secret, err := a.n.issueKey(a.n.ctx, keys.Issue{Kind: kind, Label: label}, a.may)
	if err != nil {
		return "", nil, err
	}
	out := asterism.LegacyKeyIssued{Key: secret, KeyRef: k.Ref(), Label: k.Label, Re: a.frame.MsgID}
	out.Bind, out.Exposed, out.JoinURLs = a.n.joinURLs("http", "/join/"+string(kind)+"?key="+secret)
	out.JoinURL = out.JoinURLs[0].URL
	return reply, out, nil
}

func (a keyAsk) list() (protocol.Intent, any, error) {
	if err := a.first(); err != nil {
		return "", nil, err
	}
	f, no := keys.ParseFields(a.frame.Value)
	if no != nil {
		return "", nil, no
	}
	revoked, ok := f.Flag("includeRevoked")
	deleted, ok2 := f.Flag("includeDeleted")
	if !ok || !ok2 {
		return "", nil, protocol.Refuse(keys.CodeFields, "includeRevoked and includeDeleted are true or false", "")
	}
	rows := []asterism.KeyRow{}
	err := a.n.loop.call(a.n.ctx, func() {
		l := a.n.loop
		for _, k := range l.keys().All() {
			state := k.State(a.n.home.peer, l.now)
			if state == keys.Revoked && !revoked || state == keys.Deleted && !deleted {
				continue
			}
			rows = append(rows, asterism.KeyRow{
				KeyRef: k.Ref(), ExpiresAt: orNil(k.ExpiresAt()), RenewedAt: orNil(k.Renewed), RenewCount: k.RenewCount,
				RevokedAt: orNil(k.Revoked), Lapsed: !k.Final() && k.Expired(a.n.home.peer, l.now), Label: k.Label, Kind: string(k.Kind), Note: k.Note,
				LastAgent: orNil(k.LastAgent), LastSeenAt: orNil(k.LastSeen), Connection: l.keyConnection(&k), TTL: k.TTL, IssuedAt: k.Issued,
				State: string(state), Bound: orNil(k.Bound),
			})
		}
	})
	return "KeyListResult", asterism.KeyListResult{Keys: rows, Re: a.frame.MsgID}, err
}

// orNil makes the contract's null of nothing.
func orNil[T comparable](v T) *T {
	var none T
	if v == none {
		return nil
	}
	return &v
}

// named reads which key a verb means. A key string in it is the sender's own and is not said again.
func (a keyAsk) named() (keys.Fields, keyName, error) {
	if err := a.first(); err != nil {
		return nil, keyName{}, err
	}
	f, no := keys.ParseFields(a.frame.Value)
	if no != nil {
		return nil, keyName{}, no
	}
	secret, ref, no := f.Named()
	if no != nil {
		return nil, keyName{}, no
	}
	return f, keyName{secret: secret, ref: ref}, nil
}

func (a keyAsk) revoke() (protocol.Intent, any, error) {
	f, name, err := a.named()
	if err != nil {
		return "", nil, err
	}
	mode, _ := f.Text("mode")
	k, sessions, err := a.n.revokeKey(a.n.ctx, name, mode, a.may)
	out := asterism.KeyRevoked{KeyRef: k.Ref(), Mode: mode, Notified: sessions, Re: a.frame.MsgID}
	if mode == keys.Immediate {
		out.Disconnected = sessions
	}
	return "KeyRevoked", out, err
}

func (a keyAsk) revokeUpstream() (protocol.Intent, any, error) { return a.unregister(keys.Upstream) }
func (a keyAsk) revokeCollab() (protocol.Intent, any, error)   { return a.unregister(keys.Collab) }

// unregister is the legacy end of a key, which has no reply.
func (a keyAsk) unregister(kind keys.Kind) (protocol.Intent, any, error) {
	_, name, err := a.named()
	if err != nil {
		return "", nil, err
	}
	name.kind = kind
	_, _, err = a.n.revokeKey(a.n.ctx, name, keys.Immediate, a.may)
	return "", nil, err
}

func (a keyAsk) label() (protocol.Intent, any, error) {
	f, name, err := a.named()
	if err != nil {
		return "", nil, err
	}
	label, _ := f.Text("newLabel") // of another type: no label at all, and refused as that
	k, old, err := a.n.labelKey(a.n.ctx, name, label, a.may)
	return "KeyLabeled", asterism.KeyLabeled{KeyRef: k.Ref(), OldLabel: old, NewLabel: k.Label, Re: a.frame.MsgID}, err
}

func (a keyAsk) renew() (protocol.Intent, any, error) {
	f, name, err := a.named()
	if err != nil {
		return "", nil, err
	}
	ttl, no := f.TTL()
	if no != nil {
		return "", nil, no
	}
	k, lapsed, err := a.n.renewKey(a.n.ctx, name, ttl, a.may)
	return "KeyRenewed", asterism.KeyRenewed{
		KeyRef: k.Ref(), Label: k.Label, Kind: string(k.Kind), TTL: k.TTL, IssuedAt: k.Issued, RenewedAt: k.Renewed, ExpiresAt: k.ExpiresAt(),
		WasLapsed: lapsed, RenewCount: k.RenewCount, Re: a.frame.MsgID}, err
}

// keyConnection is the contract's word for whether somebody is here with the key.
func (l *loop) keyConnection(k *keys.Key) string {
	switch {
	case l.holdersOf(k) > 0:
		return "connected"
	case k.Used:
		return "disconnected"
	}
	return "never"
}
