package node

import (
	"fmt"
	"slices"
	"time"

	"github.com/aster-mesh/aster/node/mesh"
	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/roles/member"
)

// Half a member is one whose admission stands in no record: who let it in has lost that before anybody else had it. Its certificate
// holds, so it is linked, and what it writes is kept and shown. But no board lists it as a member, and nobody else writes the record again: several
// that did so apart would each have another. A person lets it in anew, which counts for all that it wrote.

// halfAfter is how long a record may take that is on its way.
const halfAfter = time.Minute

// halfWarnings say which of the members that this node meets are half ones, itself among them, and what mends it.
func (l *loop) halfWarnings() (out []string) {
	if !l.inside() || l.n.fenced.Load() != nil || len(l.rep.Lacking(l.now)) > 0 {
		return nil
	}
	known := l.known()
	var halves []protocol.PeerID
	for p, m := range known {
		if _, recorded := l.roster().Member(p); !recorded && m.Valid {
			halves = append(halves, p)
		}
	}
	slices.Sort(halves)
	for _, p := range halves {
		m := known[p]
		why, anew := l.n.nameOf(m.AdmittedBy)+", which let it in, has lost that", "Let it in anew: "
		if !l.met(m.AdmittedBy) {
			why, anew = l.n.nameOf(m.AdmittedBy)+", which let it in, is not linked", "If that node has lost it too, let it in anew: "
		}
		switch {
		case p != l.n.home.peer && l.met(p):
			out = append(out, fmt.Sprintf("no record says that %s is a member: %s. %saster invite, then on %[1]s: aster down, then aster up --join -. What it wrote stays", m.Name, why, anew))
		case p == l.n.home.peer && l.n.home.mesh.Inviter != "" && l.meetsInside():
			out = append(out, fmt.Sprintf("no record says that this node is a member, so others do not list it, and it can let nobody in: %s. %s"+
				"aster invite on another node, then here: aster down, then aster up --join -. What it wrote stays", why, anew))
		}
	}
	return out
}

// met says whether a member has been linked for so long that what it holds is here.
func (l *loop) met(p protocol.PeerID) bool {
	ps := l.peers[p]
	return ps != nil && ps.compared && l.now.Sub(ps.since) >= l.n.cfg.halfAfter
}

func (l *loop) meetsInside() bool {
	for p := range l.peers {
		if l.n.standingOf(p) == mesh.Inside && l.met(p) {
			return true
		}
	}
	return false
}

// mayIssue says why this node can let nobody in and revoke nobody.
func (l *loop) mayIssue(verb, command string) *protocol.Refusal {
	switch {
	case l.roster().Issuer(l.n.home.peer):
		return nil
	case l.inside():
		return protocol.Refuse(protocol.CodeWrongRole, "no record says that this node is a member, so it cannot %s", "aster status says what mends it", verb)
	}
	return protocol.Refuse(protocol.CodeWrongRole, "this node is an outside member and cannot %s", "ask a member inside: "+command, verb)
}

// halfMember looks into the home's own journal whether this node is half a member of its mesh.
func (n *Node) halfMember() (bool, error) {
	chain, err := member.ParseChain(n.home.mesh.Chain)
	if n.home.mesh.Inviter == "" || err != nil || len(chain) == 0 || !chain[0].Cert.Inside {
		return false, nil
	}
	st, err := n.homeBoard()
	if err != nil {
		return false, err
	}
	_, recorded := st.Roster().Member(n.home.peer)
	return !recorded, nil
}
