package member

import (
	"cmp"
	"crypto/sha256"
	"slices"

	"github.com/aster-mesh/aster/protocol"
)

// cut ends the logs of one revoked peer.
type cut struct {
	at   protocol.HLC // of the newest revocation
	last *write
	logs map[protocol.LogID]uint64 // of two cuts the higher; a log that none names has no record that counts
	// lifted: the peer was let in again; its logs of starts after the revocation count.
	lifted bool
}

// cuts are the ends of all revoked peers' logs, and what no revocation takes back any more.
type cuts struct {
	of      map[protocol.PeerID]*cut
	settled map[protocol.LogID]Settled
}

func (c cuts) bound(log protocol.LogID) uint64 {
	bound := c.revoked(log)
	if s, ok := c.settled[log]; ok && bound < s.Seq {
		return s.Counts
	}
	return bound
}

// revoked is the bound that revocations alone give.
func (c cuts) revoked(log protocol.LogID) uint64 {
	of := c.of[log.Peer]
	if of == nil {
		return NoBound
	}
	if seq, named := of.logs[log]; named {
		return seq
	}
	if of.lifted && log.Start.At > of.at {
		return NoBound
	}
	return 0
}

func (c cuts) counts(w *write) bool { return w.seq <= c.bound(w.log) }

func (c cuts) add(w *write) {
	of := c.of[w.revoke.Peer]
	if of == nil {
		of = &cut{logs: map[protocol.LogID]uint64{}}
		c.of[w.revoke.Peer] = of
	}
	if of.last == nil || w.compare(of.last) > 0 {
		of.at, of.last = w.at, w
	}
	for log, seq := range w.cuts {
		of.logs[log] = max(of.logs[log], seq)
	}
}

// resolve derives the view from all writes. It costs a sort and a few passes over the records of membership, of which
// a mesh of NodesMax makes some hundreds a year, and runs only after one of them arrived.
func (r *Roster) resolve() {
	if !r.stale {
		return
	}
	r.stale, r.restStale = false, true
	var members, revokes []*write
	for _, w := range r.writes {
		switch w.kind {
		case protocol.KindMember:
			members = append(members, w)
		case protocol.KindRevoke:
			revokes = append(revokes, w)
		}
	}
	for _, list := range [][]*write{members, revokes} {
		slices.SortFunc(list, (*write).compare)
	}

	depth := depths(members)
	slices.SortStableFunc(revokes, func(a, b *write) int { return cmp.Compare(depth[a.log.Peer], depth[b.log.Peer]) })

	r.cuts = cuts{map[protocol.PeerID]*cut{}, r.settled}
	counted, issuers := admitted(members, r.cuts)
	for _, w := range revokes {
		if !r.cuts.counts(w) || !issuers[w.log.Peer] && !(w.revoke.Left && w.revoke.Peer == w.log.Peer) {
			continue
		}
		r.cuts.add(w)
		counted, issuers = admitted(members, r.cuts)
	}
	r.issuers = issuers
	r.seat(counted)
}

// resolveRest is resolve for used invites, terms and voters too, which say nothing of whose records count: a record of
// theirs costs nothing until somebody asks.
func (r *Roster) resolveRest() {
	r.resolve()
	if !r.restStale {
		return
	}
	r.restStale = false
	var rest []*write
	for _, w := range r.writes {
		if w.kind != protocol.KindMember && w.kind != protocol.KindRevoke {
			rest = append(rest, w)
		}
	}
	slices.SortFunc(rest, (*write).compare)
	r.settle(rest)
}

// depths gives the length of each peer's shortest chain to the mesh key. It asks for signatures only, so that it does not
// depend on what the revocations decide.
func depths(members []*write) map[protocol.PeerID]int {
	out := map[protocol.PeerID]int{}
	for _, w := range members {
		for i, link := range w.chain {
			n := len(w.chain) - i
			if old, ok := out[link.Cert.Peer]; !ok || n < old {
				out[link.Cert.Peer] = n
			}
		}
	}
	return out
}

// admitted finds the member records that count under given cuts, and all who are issuers by them. Each pass can only
// add, so it ends. It marks the cuts that a certificate lifts.
func admitted(members []*write, c cuts) (counted []*write, issuers map[protocol.PeerID]bool) {
	issuers = map[protocol.PeerID]bool{}
	for _, of := range c.of {
		of.lifted = false
	}
	done := map[*write]bool{}
	for again := true; again; {
		again = false
		for _, w := range members {
			leaf := &w.chain[0].Cert
			if done[w] || !c.counts(w) || !issuers[w.log.Peer] && !provesItself(w, c) {
				continue
			}
			done[w], again = true, true
			if leaf.Can(CapIssue) {
				issuers[leaf.Peer] = true
			}
			if of := c.of[leaf.Peer]; of != nil && leaf.Lifts >= of.at {
				of.lifted = true
			}
		}
	}
	for _, w := range members {
		if done[w] {
			counted = append(counted, w)
		}
	}
	return counted, issuers
}

// provesItself says whether a record makes its own author an issuer: its certificate does, and nobody in the chain was
// revoked, who might have issued it afterwards.
func provesItself(w *write, c cuts) bool {
	leaf := &w.chain[0].Cert
	if w.log.Peer != leaf.Peer || !leaf.Can(CapIssue) {
		return false
	}
	for _, link := range w.chain {
		if c.of[link.Cert.Issuer] != nil {
			return false
		}
	}
	return true
}

// seat makes the members of the records that count, in ascending order.
func (r *Roster) seat(counted []*write) {
	r.members = map[protocol.PeerID]*Member{}
	r.proven = map[[32]byte]bool{}
	for _, w := range counted {
		for _, link := range w.chain {
			r.proven[sha256.Sum256(link.Cert.signed())] = true
		}
		leaf := w.chain[0].Cert
		m := r.members[leaf.Peer]
		if m == nil {
			m = &Member{Peer: leaf.Peer, Since: w.wall, AdmittedBy: leaf.Issuer}
			r.members[leaf.Peer] = m
		}
		if leaf.Lifts >= m.Cert.Lifts {
			m.Name, m.Role, m.Inside, m.Cert, m.Chain, m.Addrs = leaf.Name, leaf.Role, leaf.Inside, leaf, w.member.Chain, w.member.Addrs
		}
	}
	for p, of := range r.cuts.of {
		if m := r.members[p]; m != nil && !of.lifted {
			w := of.last
			m.Revoked, m.Left, m.RevokedBy, m.RevokedAt = true, w.revoke.Left, w.log.Peer, w.wall
			m.Reason = protocol.CutText(w.revoke.Reason, protocol.ShortTextBytesMax)
		}
	}
}

// settle takes the used invites, terms and voters that count, in ascending order.
func (r *Roster) settle(rest []*write) {
	r.invites, r.terms, r.voters, r.inOffice = map[string]*write{}, map[protocol.Term]*term{}, nil, protocol.Term{}
	for _, w := range rest {
		if !r.issuers[w.log.Peer] || !r.cuts.counts(w) {
			continue
		}
		switch w.kind {
		case protocol.KindInviteUsed:
			if r.invites[w.invite.Invite] == nil {
				r.invites[w.invite.Invite] = w
			}
		case protocol.KindTerm:
			r.settleTerm(w)
			if t := w.term.Term(); t.Compare(r.inOffice) > 0 {
				r.inOffice = t
			}
		case protocol.KindVoters:
			if r.voters == nil || w.voters.Stamp.Compare(r.voters.voters.Stamp) > 0 {
				r.voters = w
			}
		}
	}
}
