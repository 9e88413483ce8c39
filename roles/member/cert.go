package member

import (
	"bytes"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/aster-mesh/aster/protocol"
)

// Cap is something that a certificate lets its holder do.
type Cap string

// CapIssue lets a member invite, renew and revoke. Every inside member has it, so that no single disk matters.
const CapIssue Cap = "issue"

const (
	nameBytesMax  = 64
	capsMax       = 8
	certBytesMax  = 1 << 10
	chainBytesMax = protocol.CertChainMax * 2 * certBytesMax
)

// ErrBadCert says that bytes are not a chain of certificates in our one encoding.
var ErrBadCert = errors.New("bad certificate chain")

// Cert admits one node to one mesh. Its JSON, in the order of the fields, is what the issuer signs.
type Cert struct {
	Mesh   MeshID          `json:"mesh"`
	Peer   protocol.PeerID `json:"peer"`
	Name   string          `json:"name"`
	Role   protocol.Role   `json:"role"` // local, upstream, collab or peer; main is a term, never a certificate
	Inside bool            `json:"inside"`
	Caps   []Cap           `json:"caps"`             // sorted, each once
	Issuer protocol.PeerID `json:"issuer,omitempty"` // empty: the mesh key itself
	// NotBefore and NotAfter are ms since 1970 by the issuer's clock, NotAfter at most CertLife later.
	NotBefore int64 `json:"notBefore"`
	NotAfter  int64 `json:"notAfter"`
	// Lifts is the hybrid time of the newest revocation of Peer that the issuer knew and meant to end by this
	// admission; 0 for none. A renewal repeats it, so that a renewal never undoes a revocation it had not seen.
	Lifts protocol.HLC `json:"lifts,omitempty"`
}

// Link is one signed certificate of a chain.
type Link struct {
	Cert Cert   `json:"cert"`
	Sig  []byte `json:"sig"` // Ed25519 by Issuer, or by the mesh key
}

// Chain leads from a member's own certificate to one that the mesh key signed.
type Chain []Link

const certTag = "aster.cert.1\x00"

func (c *Cert) signed() []byte {
	text, err := json.Marshal(c)
	if err != nil {
		panic(fmt.Sprintf("member: a certificate that does not encode: %v", err))
	}
	return append([]byte(certTag), text...)
}

// Can says whether the certificate carries a capability.
func (c *Cert) Can(what Cap) bool { return slices.Contains(c.Caps, what) }

// Until is the end of the certificate.
func (c *Cert) Until() time.Time { return time.UnixMilli(c.NotAfter) }

// Renewable says whether now lies in the part of the certificate's life in which any issuer renews it, and beyond.
func (c *Cert) Renewable(now time.Time) bool {
	return !now.Before(time.UnixMilli(c.NotBefore).Add(protocol.CertRenewFrom))
}

// CheckName says why a text cannot name a node: empty, longer than 64 bytes, not UTF-8, or with spaces at its ends or
// characters that a terminal or a page could take for something else.
func CheckName(name string) error {
	switch {
	case name == "" || len(name) > nameBytesMax:
		return fmt.Errorf("a node's name has 1 to %d bytes, not %d", nameBytesMax, len(name))
	case !utf8.ValidString(name):
		return errors.New("a node's name is UTF-8")
	case strings.TrimSpace(name) != name:
		return fmt.Errorf("a node's name does not begin or end with a space: %q", name)
	}
	for _, r := range name {
		if unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || r == '/' || r == '\\' {
			return fmt.Errorf("a node's name does not hold %U", r)
		}
	}
	return nil
}

// check says what is impossible about c alone.
func (c *Cert) check() error {
	if _, err := c.Mesh.PublicKey(); err != nil {
		return err
	}
	if _, err := c.Peer.PublicKey(); err != nil {
		return err
	}
	if err := CheckName(c.Name); err != nil {
		return err
	}
	switch c.Role {
	case protocol.RoleLocal, protocol.RoleUpstream, protocol.RoleCollab, protocol.RolePeer:
	default:
		return fmt.Errorf("a certificate has role local, upstream, collab or peer, not %q", c.Role)
	}
	switch {
	case c.Inside != c.Role.Inside():
		return fmt.Errorf("role %s and inside %v contradict one another", c.Role, c.Inside)
	case !c.Inside && len(c.Caps) > 0:
		return fmt.Errorf("role %s is outside and has no capabilities", c.Role)
	case len(c.Caps) > capsMax || !slices.IsSorted(c.Caps) || len(slices.Compact(slices.Clone(c.Caps))) != len(c.Caps):
		return fmt.Errorf("capabilities are at most %d, sorted, each once", capsMax)
	case c.Issuer == c.Peer:
		return errors.New("nobody certifies itself")
	case c.NotBefore <= 0 || c.NotAfter <= c.NotBefore || c.NotAfter-c.NotBefore > protocol.CertLife.Milliseconds():
		return fmt.Errorf("a certificate lives at most %d days", int(protocol.CertLife.Hours()/24))
	}
	if text := c.signed(); len(text) > certBytesMax || !utf8.Valid(text) {
		return fmt.Errorf("a certificate has at most %d bytes", certBytesMax)
	}
	return nil
}

func sign(c Cert, key ed25519.PrivateKey) Link { return Link{c, ed25519.Sign(key, c.signed())} }

// EncodeChain returns the one encoding of a chain: JSON without space, fields in order.
func EncodeChain(chain Chain) []byte {
	text, err := json.Marshal(chain)
	if err != nil {
		panic(fmt.Sprintf("member: a chain that does not encode: %v", err))
	}
	return text
}

// ParseChain reads what EncodeChain wrote and nothing else: another spelling of the same chain, an unknown or repeated
// field is ErrBadCert, so that a chain has one hash. It checks the shape of each certificate, not who signed it.
func ParseChain(text []byte) (Chain, error) {
	if len(text) > chainBytesMax {
		return nil, fmt.Errorf("%w: %d bytes, at most %d", ErrBadCert, len(text), chainBytesMax)
	}
	var chain Chain
	if err := json.Unmarshal(text, &chain); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrBadCert, err)
	}
	if len(chain) == 0 || len(chain) > protocol.CertChainMax {
		return nil, fmt.Errorf("%w: %d certificates, at most %d", ErrBadCert, len(chain), protocol.CertChainMax)
	}
	if !bytes.Equal(EncodeChain(chain), text) {
		return nil, fmt.Errorf("%w: not in its one encoding", ErrBadCert)
	}
	for i := range chain {
		if err := chain[i].Cert.check(); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrBadCert, err)
		}
	}
	return chain, nil
}
