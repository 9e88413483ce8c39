package member

import (
	"cmp"
	"crypto/sha256"
	"slices"
	"strings"
	"time"

	"github.com/aster-mesh/aster/protocol"
)

// Member is what the roster knows of one node.
type Member struct {
	Peer   protocol.PeerID `json:"peer"`
	Name   string          `json:"name"`
	Role   protocol.Role   `json:"role"` // local, upstream, collab or peer
	Inside bool            `json:"inside"`
	Cert   Cert            `json:"cert"`
	Chain  []byte          `json:"chain"`
	Addrs  []string        `json:"addrs,omitempty"`
	Since  int64           `json:"since"` // author's wall clock at its first admission, ms
	// AdmittedBy issued its first certificate; empty: the mesh key.
	AdmittedBy protocol.PeerID `json:"admittedBy,omitempty"`

	Revoked   bool            `json:"revoked,omitempty"`
	Left      bool            `json:"left,omitempty"` // revoked, by its own word
	RevokedBy protocol.PeerID `json:"revokedBy,omitempty"`
	RevokedAt int64           `json:"revokedAt,omitempty"` // wall clock of who revoked it, ms
	Reason    string          `json:"reason,omitempty"`
}

// Roster is the fold of the records of membership: who is a member, who was revoked and where their logs end, which
// invites are used, who is main. It is a function of the set of records that it was given, in whatever order.
//
// What counts. A member record counts if its chain leads to the mesh key and its author is an issuer: an inside member
// by another record that counts, or by this very one, if no issuer in that chain was ever revoked. Records of
// revocation, used invites, terms and voters count if their author is an issuer; a node may always end its own membership.
// Nothing counts that lies beyond its author's cut. Of two members who revoke one another the one with the shorter
// chain prevails, since nobody can make that up; at equal length the earlier record, by (hybrid time, log, seq). So
// a revoked member that dates its revenge back loses to whoever admitted it. A revocation stands until a certificate lifts it by
// name (Cert.Lifts). Records that do not count are kept, since a record still to come may make them count.
type Roster struct {
	mesh   MeshID
	writes map[place]*write
	left   map[protocol.PeerID]place // of a node's own farewells in its outside scope: the greatest alone is kept

	settled map[protocol.LogID]Settled // see Settle; replaced, never changed

	// Derived, when stale is false; invites, terms, voters and inOffice when restStale is false as well.
	stale     bool
	restStale bool
	members   map[protocol.PeerID]*Member
	cuts      cuts
	issuers   map[protocol.PeerID]bool
	proven    map[[32]byte]bool // certificates in chains that count
	invites   map[string]*write
	terms     map[protocol.Term]*term
	voters    *write

	inOffice protocol.Term // the greatest
}

// place is where a record lies.
type place struct {
	log protocol.LogID
	seq uint64
}

// write is one record of membership.
type write struct {
	place
	at   protocol.HLC
	wall int64
	kind protocol.Kind
	body []byte

	member protocol.MemberBody
	chain  Chain
	revoke protocol.RevokeBody
	cuts   map[protocol.LogID]uint64
	invite protocol.InviteUsedBody
	term   protocol.TermBody
	voters protocol.VotersBody
}

func (w *write) compare(o *write) int {
	return cmp.Or(cmp.Compare(w.at, o.at), compareLogs(w.log, o.log), cmp.Compare(w.seq, o.seq))
}

func compareLogs(a, b protocol.LogID) int {
	return cmp.Or(strings.Compare(string(a.Peer), string(b.Peer)), cmp.Compare(a.Start.At, b.Start.At),
		cmp.Compare(a.Start.Rand, b.Start.Rand), strings.Compare(string(a.Scope), string(b.Scope)))
}

// NewRoster is the roster of a mesh without records.
func NewRoster(mesh MeshID) *Roster {
	return &Roster{mesh: mesh, writes: map[place]*write{}, left: map[protocol.PeerID]place{}, stale: true, restStale: true}
}

// Mesh is the mesh that the roster is of.
func (r *Roster) Mesh() MeshID { return r.mesh }

// Apply takes one record and says whether it is of a kind and shape that the roster keeps. It may come again, and in
// any order. Records whose body does not decode, or whose chain leads elsewhere, are left out for good.
func (r *Roster) Apply(rec *protocol.Record) bool {
	at := place{rec.Log, rec.Seq}
	if r.writes[at] != nil {
		return true
	}
	w := &write{place: at, at: rec.At, wall: rec.Wall, kind: rec.Kind, body: rec.Body}
	if !w.decode(r.mesh, rec) {
		return false
	}
	outsider, out := rec.Log.Scope.Outsider()
	_, _, room := rec.Log.Scope.Room()
	switch {
	case room:
		return false // whoever is in a room may write there; membership is no business of rooms
	case out && outsider == rec.Log.Peer:
		if rec.Kind != protocol.KindRevoke || !w.revoke.Left || w.revoke.Peer != outsider {
			return false // a node outside decides nothing but its own leaving
		}
		if old := r.writes[r.left[outsider]]; old != nil {
			if w.compare(old) <= 0 {
				return true
			}
			delete(r.writes, old.place)
		}
		r.left[outsider] = at
	}
	r.writes[at] = w
	switch rec.Kind {
	case protocol.KindMember, protocol.KindRevoke:
		r.stale = true
	}
	r.restStale = true
	return true
}

func (w *write) decode(mesh MeshID, rec *protocol.Record) bool {
	var err error
	switch rec.Kind {
	case protocol.KindMember:
		if w.member, err = protocol.DecodeBody[protocol.MemberBody](rec); err != nil || checkAddrs(w.member.Addrs) != nil {
			return false
		}
		if w.chain, err = ParseChain(w.member.Chain); err != nil || verifyChain(mesh, w.chain) != nil {
			return false
		}
		leaf := &w.chain[0].Cert
		return leaf.Peer == w.member.Peer && leaf.Name == w.member.Name && leaf.Role == w.member.Role
	case protocol.KindRevoke:
		if w.revoke, err = protocol.DecodeBody[protocol.RevokeBody](rec); err != nil || w.revoke.Peer == "" {
			return false
		}
		w.cuts = map[protocol.LogID]uint64{}
		for text, seq := range w.revoke.Cuts {
			if log, err := protocol.ParseLogID(text); err == nil && log.Peer == w.revoke.Peer {
				w.cuts[log] = seq
			}
		}
		return true
	case protocol.KindInviteUsed:
		w.invite, err = protocol.DecodeBody[protocol.InviteUsedBody](rec)
		return err == nil && len(w.invite.Invite) == 2*inviteIDBytes
	case protocol.KindTerm:
		return w.decodeTerm(rec)
	case protocol.KindVoters:
		return w.decodeVoters(rec)
	}
	return false
}

// Member is what is known of a peer; false: it was never admitted.
func (r *Roster) Member(p protocol.PeerID) (Member, bool) {
	r.resolve()
	if m := r.members[p]; m != nil {
		return *m, true
	}
	return Member{}, false
}

// Members lists all who were ever admitted, revoked ones too, by peer id.
func (r *Roster) Members() []Member {
	r.resolve()
	out := make([]Member, 0, len(r.members))
	for _, m := range r.members {
		out = append(out, *m)
	}
	slices.SortFunc(out, func(a, b Member) int { return strings.Compare(string(a.Peer), string(b.Peer)) })
	return out
}

// Standing says why a peer is no member at now, or nil: never admitted, revoked, left, or its certificate has ended.
func (r *Roster) Standing(p protocol.PeerID, now time.Time) *protocol.Refusal {
	m, ok := r.Member(p)
	switch {
	case !ok:
		return protocol.Refuse(protocol.CodeNotMember, "%s is no member of this mesh", newInvite, p.Short())
	case m.Left:
		return protocol.Refuse(protocol.CodeRevoked, "%s has left this mesh", newInvite, m.Name)
	case m.Revoked:
		return protocol.Refuse(protocol.CodeRevoked, "%s was revoked%s", newInvite, m.Name, because(m.Reason))
	}
	return m.Cert.validAt(now)
}

func because(reason string) string {
	if reason == "" {
		return ""
	}
	return ": " + protocol.CutText(reason, 200)
}

// RevokedAt is the hybrid time of the newest revocation of p that counts; 0: none. An admission that is to end it
// carries it as Admit.Lifts.
func (r *Roster) RevokedAt(p protocol.PeerID) protocol.HLC {
	r.resolve()
	if c := r.cuts.of[p]; c != nil {
		return c.at
	}
	return 0
}

// MayAdmit says whether an invite made at made lets p in: a revoked node comes back only by an invite that somebody
// made after the revocation, knowing of it.
func (r *Roster) MayAdmit(p protocol.PeerID, made protocol.HLC) *protocol.Refusal {
	if at := r.RevokedAt(p); at > 0 && made <= at {
		return protocol.Refuse(protocol.CodeRevoked, "this node was revoked after the invite was made", newInvite)
	}
	return nil
}

// Issuer says whether p is in office as an issuer: inside, and neither revoked nor gone. Its certificate's dates are
// Standing's.
func (r *Roster) Issuer(p protocol.PeerID) bool {
	m, ok := r.Member(p)
	return ok && !m.Revoked && m.Cert.Can(CapIssue)
}

// Withdrawn is the predicate that Verify asks: the issuer is revoked, and the certificate is in no record that counts.
func (r *Roster) Withdrawn(issuer protocol.PeerID, issued Cert) bool {
	r.resolve()
	return r.cuts.of[issuer] != nil && !r.cuts.of[issuer].lifted && !r.proven[sha256.Sum256(issued.signed())]
}

// Review lists the members in office whom a revoked member admitted: they stay until a person has looked.
func (r *Roster) Review() []Member {
	var out []Member
	for _, m := range r.Members() {
		if by := r.members[m.AdmittedBy]; by != nil && by.Revoked && !by.Left && !m.Revoked {
			out = append(out, m)
		}
	}
	return out
}

// InviteUsed says who used an invite; of two uses the earlier holds.
func (r *Roster) InviteUsed(id string) (protocol.PeerID, bool) {
	r.resolveRest()
	if w := r.invites[id]; w != nil {
		return w.invite.Peer, true
	}
	return "", false
}

// Bound is the last seq of a log that counts; NoBound unless its author was revoked. What its author writes after it
// is let in again counts in logs of later starts alone, so a node that is let in again opens new logs.
func (r *Roster) Bound(log protocol.LogID) uint64 {
	r.resolve()
	return r.cuts.bound(log)
}

// Settled says how much of a log is settled: of its first Seq records those up to Counts count, whatever is revoked later.
type Settled struct{ Seq, Counts uint64 }

// Settle says what of each log no revocation takes back and no admission gives back any more: records below a base may be
// gone, so all must go on from the same fold of them. What was settled before, and further, stays. A revocation that cuts a log
// lower takes back what lies above Seq.
func (r *Roster) Settle(logs map[protocol.LogID]Settled) {
	all := make(map[protocol.LogID]Settled, len(logs))
	for log, s := range r.settled {
		all[log] = s
	}
	for log, s := range logs {
		if old, ok := all[log]; !ok || old.Seq < s.Seq {
			all[log] = s
		}
	}
	r.settled, r.stale, r.restStale = all, true, true
}

// SettledOf is what is settled of a log.
func (r *Roster) SettledOf(log protocol.LogID) Settled { return r.settled[log] }

// Below is the roster that the records up to marks make, and no other: alike wherever they are all known.
func (r *Roster) Below(marks map[protocol.LogID]uint64) *Roster {
	out := NewRoster(r.mesh)
	for at, w := range r.writes {
		if at.seq <= marks[at.log] {
			out.writes[at] = w
		}
	}
	return out
}

// NoBound says that all of a log counts.
const NoBound = ^uint64(0)
