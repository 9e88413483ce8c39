package meshwire

import (
	"fmt"

	"github.com/aster-mesh/aster/protocol"
)

// Office is what nodes inside say to one another about who is main; roles/election says what its fields mean.
type Office struct {
	Kind     uint8
	Term     protocol.Term
	Seen     uint64
	Seq      uint64
	Strong   bool
	Resigned bool
	OK       bool
	Pre      bool
	Number   uint64
	Stamp    protocol.Stamp
	Voters   []protocol.PeerID
}

// Claims is what a node and main say to one another about claims; roles/claim says what its fields mean.
type Claims struct {
	Kind   uint8
	Token  uint64
	Term   protocol.Term
	OK     bool
	Code   string // of a refusal
	Reason string
	Items  []ClaimItem
}

// ClaimItem is one claim, or the wish for one.
type ClaimItem struct {
	ID      string
	Agent   protocol.AgentID
	Session string
	Scopes  []string
	Why     string
	Millis  int64 // of its lease
	Term    protocol.Term
}

func (Office) Type() byte { return TypeOffice }
func (Claims) Type() byte { return TypeClaims }

const (
	votersMax     = 4 * protocol.NodesMax
	claimItemsMax = protocol.ClaimsPerNodeMax
)

type wTerm struct {
	Number uint64 `msgpack:"n"`
	Peer   []byte `msgpack:"p"`
}

func fromTerm(c *ids, t protocol.Term) (w wTerm, err error) {
	if t.Number == 0 {
		return wTerm{}, nil
	}
	key, err := c.keyOf(t.Peer)
	return wTerm{t.Number, append([]byte(nil), key...)}, err
}

func (w *wTerm) term(c *ids) (t protocol.Term, err error) {
	if w.Number == 0 && len(w.Peer) == 0 {
		return t, nil
	}
	if err := checkSeq("term", w.Number, 1); err != nil {
		return t, err
	}
	t.Number = w.Number
	t.Peer, err = c.peerOf(w.Peer)
	return t, err
}

type wOffice struct {
	Kind     uint8    `msgpack:"k"`
	Term     wTerm    `msgpack:"t"`
	Seen     uint64   `msgpack:"e"`
	Seq      uint64   `msgpack:"q"`
	Strong   bool     `msgpack:"s"`
	Resigned bool     `msgpack:"r"`
	OK       bool     `msgpack:"o"`
	Pre      bool     `msgpack:"b"`
	Number   uint64   `msgpack:"n"`
	Stamp    wTerm    `msgpack:"v"`
	StampNo  uint64   `msgpack:"w"`
	Voters   [][]byte `msgpack:"p"`
}

func fromOffice(f Office) (*wOffice, error) {
	var c ids
	w := &wOffice{Kind: f.Kind, Seen: f.Seen, Seq: f.Seq, Strong: f.Strong, Resigned: f.Resigned, OK: f.OK, Pre: f.Pre, Number: f.Number, StampNo: f.Stamp.Number}
	var err error
	if w.Term, err = fromTerm(&c, f.Term); err != nil {
		return nil, err
	}
	if w.Stamp, err = fromTerm(&c, f.Stamp.Term); err != nil {
		return nil, err
	}
	for _, p := range f.Voters {
		key, err := c.keyOf(p)
		if err != nil {
			return nil, err
		}
		w.Voters = append(w.Voters, append([]byte(nil), key...))
	}
	return w, nil
}

func (w *wOffice) frame() (Frame, error) {
	var c ids
	f := Office{Kind: w.Kind, Seen: w.Seen, Seq: w.Seq, Strong: w.Strong, Resigned: w.Resigned, OK: w.OK, Pre: w.Pre, Number: w.Number}
	var err error
	if f.Term, err = w.Term.term(&c); err != nil {
		return nil, err
	}
	if f.Stamp.Term, err = w.Stamp.term(&c); err != nil {
		return nil, err
	}
	f.Stamp.Number = w.StampNo
	for name, n := range map[string]uint64{"seen": w.Seen, "seq": w.Seq, "number": w.Number, "stamp": w.StampNo} {
		if err := checkSeq(name, n, 0); err != nil {
			return nil, err
		}
	}
	if len(w.Voters) > votersMax {
		return nil, fmt.Errorf("%w: %d voters, at most %d", ErrBadFrame, len(w.Voters), votersMax)
	}
	for _, key := range w.Voters {
		p, err := c.peerOf(key)
		if err != nil {
			return nil, err
		}
		f.Voters = append(f.Voters, p)
	}
	return f, nil
}

type wClaims struct {
	Kind   uint8    `msgpack:"k"`
	Token  uint64   `msgpack:"i"`
	Term   wTerm    `msgpack:"t"`
	OK     bool     `msgpack:"o"`
	Code   string   `msgpack:"c"`
	Reason string   `msgpack:"r"`
	Items  []wClaim `msgpack:"m"`
}

type wClaim struct {
	ID      string   `msgpack:"i"`
	Agent   string   `msgpack:"a"`
	Session string   `msgpack:"s"`
	Scopes  []string `msgpack:"p"`
	Why     string   `msgpack:"w"`
	Millis  int64    `msgpack:"l"`
	Term    wTerm    `msgpack:"t"`
}

func fromClaims(f Claims) (*wClaims, error) {
	var c ids
	w := &wClaims{Kind: f.Kind, Token: f.Token, OK: f.OK, Code: f.Code, Reason: f.Reason}
	var err error
	if w.Term, err = fromTerm(&c, f.Term); err != nil {
		return nil, err
	}
	for _, it := range f.Items {
		t, err := fromTerm(&c, it.Term)
		if err != nil {
			return nil, err
		}
		w.Items = append(w.Items, wClaim{it.ID, string(it.Agent), it.Session, it.Scopes, it.Why, it.Millis, t})
	}
	return w, nil
}

func (w *wClaims) frame() (Frame, error) {
	var c ids
	f := Claims{Kind: w.Kind, Token: w.Token, OK: w.OK, Code: w.Code, Reason: w.Reason}
	var err error
	if f.Term, err = w.Term.term(&c); err != nil {
		return nil, err
	}
	if err := checkTexts(field{"code", w.Code, 64}, field{"reason", w.Reason, protocol.ShortTextBytesMax}); err != nil {
		return nil, err
	}
	if len(w.Items) > claimItemsMax {
		return nil, fmt.Errorf("%w: %d claims, at most %d", ErrBadFrame, len(w.Items), claimItemsMax)
	}
	for i := range w.Items {
		it, err := w.Items[i].item(&c)
		if err != nil {
			return nil, err
		}
		f.Items = append(f.Items, it)
	}
	return f, nil
}

func (w *wClaim) item(c *ids) (ClaimItem, error) {
	it := ClaimItem{ID: w.ID, Agent: protocol.AgentID(w.Agent), Session: w.Session, Scopes: w.Scopes, Why: w.Why, Millis: w.Millis}
	var err error
	if it.Term, err = w.Term.term(c); err != nil {
		return it, err
	}
	if w.Agent != "" {
		if err := protocol.CheckAgentID(it.Agent); err != nil {
			return it, fmt.Errorf("%w: %w", ErrBadFrame, err)
		}
	}
	if err := checkTexts(field{"claim", w.ID, 64}, field{"session", w.Session, protocol.SessionBytesMax}, field{"why", w.Why, protocol.ShortTextBytesMax}); err != nil {
		return it, err
	}
	if len(w.Scopes) > protocol.ClaimScopesMax {
		return it, fmt.Errorf("%w: %d scopes, at most %d", ErrBadFrame, len(w.Scopes), protocol.ClaimScopesMax)
	}
	for _, s := range w.Scopes {
		if err := checkTexts(field{"scope", s, protocol.ClaimScopeBytesMax}); err != nil {
			return it, err
		}
	}
	return it, checkRange("lease", w.Millis, 0, protocol.ClaimLease.Milliseconds())
}
