package member

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/aster-mesh/aster/protocol"
)

const (
	tokenPrefix    = "aster1-"
	tokenBytesMax  = 4 << 10
	addrsMax       = 16
	addrBytesMax   = 255
	inviteIDBytes  = 8
	secretBytes    = 16
	checksumBytes  = 4
	secretTag      = "aster.invite.secret.1\x00"
	checksumTag    = "aster.invite.sum.1\x00"
	notAnInvite    = "copy the whole line that aster invite printed; it begins with " + tokenPrefix
	refusedInvites = "invite refused: "
)

// Invite is what a token says.
type Invite struct {
	Mesh    MeshID
	Inviter protocol.PeerID // the one node that takes it
	Addrs   []string        // multiaddrs of the inviter
	ID      string          // public, 16 hex digits
	Secret  []byte          // 16 bytes; never logged, never stored
}

// InviteRecord is what the inviting node keeps of an invite: not its secret.
type InviteRecord struct {
	ID   string        `json:"id"`
	Hash []byte        `json:"hash"` // SHA-256 of the secret
	Role protocol.Role `json:"role"`
	// Made is the hybrid time of its making: a revocation after it is not lifted by it.
	Made    protocol.HLC `json:"made"`
	Expires int64        `json:"expires"` // ms, by this node's clock

	UsedBy   protocol.PeerID `json:"usedBy,omitempty"`
	UsedName string          `json:"usedName,omitempty"`
	UsedAt   int64           `json:"usedAt,omitempty"` // ms
	Chain    []byte          `json:"chain,omitempty"`  // the answer that its user got, to be given again
}

// NewInvite makes an invite. It takes 24 bytes of random. addrs are at most 16 multiaddrs of 255 bytes; more are left
// out. The token is for one person's eyes; the record is to be on disk before the token is shown.
func NewInvite(random io.Reader, mesh MeshID, inviter protocol.PeerID, addrs []string, role protocol.Role, made protocol.HLC, expires time.Time) (string, InviteRecord, error) {
	meshKey, err := mesh.PublicKey()
	if err != nil {
		return "", InviteRecord{}, err
	}
	peerKey, err := inviter.PublicKey()
	if err != nil {
		return "", InviteRecord{}, err
	}
	if role == protocol.RoleMain {
		role = protocol.RoleLocal
	}
	if !role.Known() || role == protocol.RoleBoard {
		return "", InviteRecord{}, fmt.Errorf("an invite is for role local, upstream, collab or peer, not %q", role)
	}
	dice := make([]byte, inviteIDBytes+secretBytes)
	if _, err := io.ReadFull(random, dice); err != nil {
		return "", InviteRecord{}, fmt.Errorf("make an invite: %w", err)
	}
	var body bytes.Buffer
	body.Write(meshKey)
	body.Write(peerKey)
	body.Write(dice)
	for i, a := range addrs {
		if i < addrsMax && a != "" && len(a) <= addrBytesMax && utf8.ValidString(a) {
			body.WriteByte(byte(len(a)))
			body.WriteString(a)
		}
	}
	body.Write(checksum(body.Bytes()))
	return tokenPrefix + base64.RawURLEncoding.EncodeToString(body.Bytes()), InviteRecord{
		ID: hex.EncodeToString(dice[:inviteIDBytes]), Hash: hashSecret(dice[inviteIDBytes:]), Role: role, Made: made, Expires: expires.UnixMilli(),
	}, nil
}

func checksum(body []byte) []byte {
	sum := sha256.Sum256(append([]byte(checksumTag), body...))
	return sum[:checksumBytes]
}

func hashSecret(secret []byte) []byte {
	sum := sha256.Sum256(append([]byte(secretTag), secret...))
	return sum[:]
}

// ParseInvite reads a token, with space or line breaks round it or in it as terminals and mail programs put them. The
// refusal tells a text that never was an invite from one that lost a part on the way.
func ParseInvite(text string) (Invite, *protocol.Refusal) {
	if len(text) > 2*tokenBytesMax {
		return Invite{}, protocol.Refuse(protocol.CodeInviteBad, "this is not an invite: it is too long", notAnInvite)
	}
	text = strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) {
			return -1
		}
		return r
	}, text)
	rest, ok := strings.CutPrefix(text, tokenPrefix)
	if !ok {
		return Invite{}, protocol.Refuse(protocol.CodeInviteBad, "this is not an invite", notAnInvite)
	}
	cut := protocol.Refuse(protocol.CodeInviteBad, "the invite is cut off or mistyped", notAnInvite)
	body, err := base64.RawURLEncoding.Strict().DecodeString(rest)
	const fixed = 2*ed25519.PublicKeySize + inviteIDBytes + secretBytes
	if err != nil || len(body) < fixed+checksumBytes {
		return Invite{}, cut
	}
	body, sum := body[:len(body)-checksumBytes], body[len(body)-checksumBytes:]
	if !bytes.Equal(sum, checksum(body)) {
		return Invite{}, cut
	}
	inv := Invite{
		Mesh:    MeshIDOf(body[:32]),
		Inviter: protocol.PeerIDOf(body[32:64]),
		ID:      hex.EncodeToString(body[64 : 64+inviteIDBytes]),
		Secret:  bytes.Clone(body[64+inviteIDBytes : fixed]),
	}
	for rest := body[fixed:]; len(rest) > 0; {
		n := int(rest[0])
		if n == 0 || n >= len(rest) || len(inv.Addrs) == addrsMax || !utf8.Valid(rest[1:1+n]) {
			return Invite{}, cut
		}
		inv.Addrs = append(inv.Addrs, string(rest[1:1+n]))
		rest = rest[1+n:]
	}
	return inv, nil
}

// Redeem says whether a node may use an invite at now; stored is nil for an id that this node never issued. It works
// once; the node that used it may ask again, since an answer can be lost, and gets stored.Chain. Secrets are compared
// in constant time, and first: who does not know the secret learns nothing of the invite.
func Redeem(stored *InviteRecord, secret []byte, peer protocol.PeerID, now time.Time) *protocol.Refusal {
	hash := hashSecret(secret)
	want := make([]byte, sha256.Size)
	if stored != nil && len(stored.Hash) == len(want) {
		copy(want, stored.Hash)
	}
	if subtle.ConstantTimeCompare(hash, want) != 1 || stored == nil {
		return protocol.Refuse(protocol.CodeInviteUnknown, refusedInvites+"this node did not issue it, or has withdrawn it", newInvite)
	}
	if stored.UsedBy != "" {
		if stored.UsedBy == peer {
			return nil
		}
		return protocol.Refuse(protocol.CodeInviteUsed, refusedInvites+"used %s ago by %s", newInvite, ago(now.Sub(time.UnixMilli(stored.UsedAt))), nameOr(stored.UsedName, stored.UsedBy))
	}
	if late := now.Sub(time.UnixMilli(stored.Expires)); late >= 0 {
		return protocol.Refuse(protocol.CodeInviteExpired, refusedInvites+"it ended %s ago", newInvite, ago(late))
	}
	return nil
}

// Used is the record once the invite's single use is made; it is on disk before its user is answered.
func (r InviteRecord) Used(by protocol.PeerID, name string, chain Chain, now time.Time) InviteRecord {
	if r.UsedBy == "" {
		r.UsedBy, r.UsedName, r.UsedAt, r.Chain = by, name, now.UnixMilli(), EncodeChain(chain)
	}
	return r
}

func nameOr(name string, p protocol.PeerID) string {
	if name == "" {
		return p.Short()
	}
	return name
}

// ago is a duration in the words of the board: "12 s", "3 min", "5 h", "2 d".
func ago(d time.Duration) string {
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%d s", int(max(d, 0).Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%d min", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h", int(d.Hours()))
	}
	return fmt.Sprintf("%d d", int(d.Hours()/24))
}
