package member

import (
	"crypto/ed25519"
	"time"

	"github.com/aster-mesh/aster/protocol"
)

// Withdrawn says whether a certificate counts no longer because its issuer was revoked. Roster.Withdrawn is one.
type Withdrawn func(issuer protocol.PeerID, issued Cert) bool

// Verify says whose certificate a chain is, or what is wrong with it: another mesh's, signed by nobody who could, longer
// than allowed, expired at now (with ClockGrace both ways), or from a revoked issuer (withdrawn; nil asks nobody). Who
// holds the certificate's key must still be proven, by the connection. An issuer's own certificate needs to have been
// valid when it issued, not now: otherwise its renewal would end everybody it admitted.
func Verify(mesh MeshID, chain Chain, now time.Time, withdrawn Withdrawn) (Cert, *protocol.Refusal) {
	if r := verifyChain(mesh, chain); r != nil {
		return Cert{}, r
	}
	leaf := chain[0].Cert
	if r := leaf.validAt(now); r != nil {
		return Cert{}, r
	}
	for _, link := range chain {
		if c := link.Cert; withdrawn != nil && c.Issuer != "" && withdrawn(c.Issuer, c) {
			return Cert{}, protocol.Refuse(protocol.CodeRevoked, "the certificate of %s was issued by %s, which is revoked", newInvite, c.Name, c.Issuer.Short())
		}
	}
	return leaf, nil
}

func (c *Cert) validAt(now time.Time) *protocol.Refusal {
	if now.Before(time.UnixMilli(c.NotBefore).Add(-protocol.ClockGrace)) {
		return protocol.Refuse(protocol.CodeCertExpired, "the certificate of %s begins %s, which is later than this node's clock", "set the clock of one of the two machines", c.Name, date(c.NotBefore))
	}
	if now.After(time.UnixMilli(c.NotAfter).Add(protocol.ClockGrace)) {
		return protocol.Refuse(protocol.CodeCertExpired, "the certificate of %s ended %s", "on a member's node: aster member renew "+c.Name, c.Name, date(c.NotAfter))
	}
	return nil
}

func date(ms int64) string { return time.UnixMilli(ms).UTC().Format("2 Jan 2006 15:04 MST") }

// verifyChain checks all of a chain that time does not change, so that nodes with different clocks judge a record of
// membership alike.
func verifyChain(mesh MeshID, chain Chain) *protocol.Refusal {
	if len(chain) == 0 || len(chain) > protocol.CertChainMax {
		return protocol.Refuse(protocol.CodeCertBad, "a chain has 1 to %d certificates, not %d", fullHint, protocol.CertChainMax, len(chain))
	}
	root, err := mesh.PublicKey()
	if err != nil {
		return protocol.Refuse(protocol.CodeCertBad, err.Error(), "")
	}
	for i := range chain {
		c := &chain[i].Cert
		if err := c.check(); err != nil {
			return protocol.Refuse(protocol.CodeCertBad, "certificate: %v", "", err)
		}
		if c.Mesh != mesh {
			return protocol.Refuse(protocol.CodeNotMember, "the certificate of %s is of mesh %s, not of this one (%s)", newInvite, c.Name, c.Mesh.Short(), mesh.Short())
		}
		key := root
		if i+1 < len(chain) {
			above := &chain[i+1].Cert
			if r := mayIssue(above, c); r != nil {
				return r
			}
			if key, err = above.Peer.PublicKey(); err != nil {
				return protocol.Refuse(protocol.CodeCertBad, err.Error(), "")
			}
		} else if c.Issuer != "" {
			return protocol.Refuse(protocol.CodeCertBad, "the chain of %s does not lead to the mesh key", "", chain[0].Cert.Name)
		}
		if !ed25519.Verify(key, c.signed(), chain[i].Sig) {
			return protocol.Refuse(protocol.CodeCertBad, "the certificate of %s is not signed by its issuer", "", c.Name)
		}
	}
	return nil
}

// mayIssue says whether the holder of above may have issued c.
func mayIssue(above, c *Cert) *protocol.Refusal {
	switch {
	case c.Issuer != above.Peer:
		return protocol.Refuse(protocol.CodeCertBad, "the chain of %s is broken: its issuer is not the next in it", "", c.Name)
	case !above.Inside || !above.Can(CapIssue):
		return protocol.Refuse(protocol.CodeWrongRole, "%s is %s and may not admit others", "an inside member invites: aster invite", above.Name, above.Role)
	}
	for _, what := range c.Caps {
		if !above.Can(what) {
			return protocol.Refuse(protocol.CodeWrongRole, "%s gave %s more than it has: %s", "", above.Name, c.Name, what)
		}
	}
	grace := protocol.ClockGrace.Milliseconds()
	if c.NotBefore < above.NotBefore-grace || c.NotBefore > above.NotAfter+grace {
		return protocol.Refuse(protocol.CodeCertExpired, "%s issued the certificate of %s outside the life of its own", newInvite, above.Name, c.Name)
	}
	return nil
}
