package member

import (
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/aster-mesh/aster/protocol"
)

// ErrBadAdmission says that bytes are not a message of admission.
var ErrBadAdmission = errors.New("bad admission message")

const (
	joinRequestBytesMax = 8 << 10
	versionBytesMax     = 64
)

// JoinRequest is a stranger's first and only word. The connection proves its key; the invite's role decides the role.
type JoinRequest struct {
	Invite  string   `json:"invite"` // id
	Secret  []byte   `json:"secret"`
	Name    string   `json:"name"`
	Version string   `json:"version"`
	Addrs   []string `json:"addrs,omitempty"` // multiaddrs it listens on
}

// JoinAnswer admits, or refuses. Members are those whom the newcomer may see, the answering node first.
type JoinAnswer struct {
	Chain   []byte            `json:"chain,omitempty"` // EncodeChain
	Members []Introduction    `json:"members,omitempty"`
	Refusal *protocol.Refusal `json:"refusal,omitempty"`
}

// Introduction tells a newcomer of a member. Its chain is checked like any other: an introduction proves nothing.
type Introduction struct {
	Chain []byte   `json:"chain"`
	Addrs []string `json:"addrs,omitempty"`
}

// Encode returns the JSON of a request.
func (q JoinRequest) Encode() []byte { return protocol.EncodeBody(q) }

// Encode returns the JSON of an answer, leaving out the last members if they would exceed MeshFrameBytesMax: the
// newcomer hears of them by the journal.
func (a JoinAnswer) Encode() []byte {
	out := protocol.EncodeBody(a)
	for len(out) > protocol.MeshFrameBytesMax && len(a.Members) > 0 {
		a.Members = a.Members[:len(a.Members)/2]
		out = protocol.EncodeBody(a)
	}
	return out
}

// DecodeJoinRequest reads a request of at most 8 KiB.
func DecodeJoinRequest(text []byte) (JoinRequest, error) {
	var q JoinRequest
	if len(text) > joinRequestBytesMax {
		return q, fmt.Errorf("%w: %d bytes, at most %d", ErrBadAdmission, len(text), joinRequestBytesMax)
	}
	if err := json.Unmarshal(text, &q); err != nil {
		return JoinRequest{}, fmt.Errorf("%w: %w", ErrBadAdmission, err)
	}
	switch {
	case len(q.Invite) != 2*inviteIDBytes || len(q.Secret) != secretBytes:
		return JoinRequest{}, fmt.Errorf("%w: no invite", ErrBadAdmission)
	case len(q.Version) > versionBytesMax || !utf8.ValidString(q.Version):
		return JoinRequest{}, fmt.Errorf("%w: version of %d bytes", ErrBadAdmission, len(q.Version))
	}
	if err := CheckName(q.Name); err != nil {
		return JoinRequest{}, fmt.Errorf("%w: %w", ErrBadAdmission, err)
	}
	if err := checkAddrs(q.Addrs); err != nil {
		return JoinRequest{}, err
	}
	return q, nil
}

// DecodeJoinAnswer reads an answer of at most MeshFrameBytesMax. It holds a chain or a refusal.
func DecodeJoinAnswer(text []byte) (JoinAnswer, error) {
	var a JoinAnswer
	if len(text) > protocol.MeshFrameBytesMax {
		return a, fmt.Errorf("%w: %d bytes, at most %d", ErrBadAdmission, len(text), protocol.MeshFrameBytesMax)
	}
	if err := json.Unmarshal(text, &a); err != nil {
		return JoinAnswer{}, fmt.Errorf("%w: %w", ErrBadAdmission, err)
	}
	if (a.Refusal == nil) == (len(a.Chain) == 0) {
		return JoinAnswer{}, fmt.Errorf("%w: an answer holds a chain or a refusal", ErrBadAdmission)
	}
	if a.Refusal != nil && (a.Refusal.Code == "" || a.Refusal.Reason == "" || len(a.Refusal.Reason)+len(a.Refusal.Hint) > 2*protocol.ShortTextBytesMax) {
		return JoinAnswer{}, fmt.Errorf("%w: a refusal without code or reason, or too long", ErrBadAdmission)
	}
	if len(a.Chain) > chainBytesMax || len(a.Members) > 4*protocol.NodesMax {
		return JoinAnswer{}, fmt.Errorf("%w: %d members", ErrBadAdmission, len(a.Members))
	}
	for _, m := range a.Members {
		if len(m.Chain) > chainBytesMax {
			return JoinAnswer{}, fmt.Errorf("%w: a chain of %d bytes", ErrBadAdmission, len(m.Chain))
		}
		if err := checkAddrs(m.Addrs); err != nil {
			return JoinAnswer{}, err
		}
	}
	return a, nil
}

func checkAddrs(addrs []string) error {
	if len(addrs) > addrsMax {
		return fmt.Errorf("%w: %d addresses, at most %d", ErrBadAdmission, len(addrs), addrsMax)
	}
	for _, a := range addrs {
		if a == "" || len(a) > addrBytesMax || !utf8.ValidString(a) {
			return fmt.Errorf("%w: an address of %d bytes", ErrBadAdmission, len(a))
		}
	}
	return nil
}
