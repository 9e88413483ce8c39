package member

import (
	"bytes"
	"crypto/ed25519"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/aster-mesh/aster/protocol"
)

var day0 = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

const day = 24 * time.Hour

// party is a node or a mesh of the tests: its key is its number.
type party struct {
	key   ed25519.PrivateKey
	peer  protocol.PeerID
	name  string
	chain Chain
}

func newParty(n byte, name string) *party {
	key, err := NewKey(bytes.NewReader(bytes.Repeat([]byte{n}, 32)))
	if err != nil {
		panic(err)
	}
	return &party{key: key, peer: protocol.PeerIDOf(key.Public().(ed25519.PublicKey)), name: name}
}

var (
	meshParty = newParty(200, "mesh")
	mesh      = MeshIDOf(meshParty.key.Public().(ed25519.PublicKey))
)

func founder(t testing.TB) *party {
	t.Helper()
	p := newParty(1, "devbox")
	var r *protocol.Refusal
	if p.chain, r = Found(meshParty.key, Admit{Peer: p.peer, Name: p.name, Role: protocol.RoleMain}, day0); r != nil {
		t.Fatalf("found: %v", r)
	}
	return p
}

func (p *party) admits(t testing.TB, q *party, role protocol.Role, lifts protocol.HLC, now time.Time) *party {
	t.Helper()
	var r *protocol.Refusal
	if q.chain, r = Issue(p.key, p.chain, Admit{Peer: q.peer, Name: q.name, Role: role, Lifts: lifts}, now); r != nil {
		t.Fatalf("%s admits %s: %v", p.name, q.name, r)
	}
	return q
}

// pen writes the records of one log.
type pen struct {
	log protocol.LogID
	seq uint64
}

func (p *party) pen(start uint64) *pen {
	return &pen{log: protocol.LogID{Peer: p.peer, Start: protocol.Start{At: protocol.HLC(start), Rand: start}, Scope: protocol.ScopeInside}}
}

func (p *pen) write(at uint64, kind protocol.Kind, body any) *protocol.Record {
	p.seq++
	r := &protocol.Record{Log: p.log, Seq: p.seq, At: protocol.HLC(at), Wall: int64(at), Kind: kind, Body: protocol.EncodeBody(body)}
	if p.seq > 1 {
		r.Prev[0] = 1
	}
	return r
}

func (p *pen) admits(at uint64, q *party) *protocol.Record {
	c := q.chain[0].Cert
	return p.write(at, protocol.KindMember, protocol.MemberBody{Peer: q.peer, Name: c.Name, Role: c.Role, Chain: EncodeChain(q.chain), Addrs: []string{"/ip4/127.0.0.1/tcp/1"}})
}

func (p *pen) revokes(at uint64, q *party, cuts map[protocol.LogID]uint64) *protocol.Record {
	body := protocol.RevokeBody{Peer: q.peer, Cuts: map[string]uint64{}, Reason: "laptop lost"}
	for log, seq := range cuts {
		body.Cuts[log.String()] = seq
	}
	return p.write(at, protocol.KindRevoke, body)
}

func shuffled(records []*protocol.Record, seed uint64) []*protocol.Record {
	out := append([]*protocol.Record(nil), records...)
	rand.New(rand.NewPCG(seed, 1)).Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
	return out
}

func rosterOf(records ...*protocol.Record) *Roster {
	r := NewRoster(mesh)
	for _, rec := range records {
		r.Apply(rec)
	}
	return r
}

func code(r *protocol.Refusal) string {
	if r == nil {
		return ""
	}
	return r.Code
}
