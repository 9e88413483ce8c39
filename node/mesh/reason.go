package mesh

import (
	"errors"
	"fmt"

	"github.com/libp2p/go-libp2p/core/network"
)

// Why a link was not made, or ended. A peer learns it as the code with which the stream is reset.
var (
	ErrClosed    = errors.New("mesh is closed")
	ErrNotLinked = errors.New("no link to that peer")
	ErrPortTaken = errors.New("port is taken")
	ErrDuplicate = errors.New("another link to that peer holds")
	ErrReplaced  = errors.New("a newer link took its place")
	ErrNotMember = errors.New("not a member here")
	ErrRevoked   = errors.New("membership is revoked")
	ErrWrongMesh = errors.New("another mesh")
	ErrNotReady  = errors.New("not running yet")
	ErrTooSlow   = errors.New("peer reads too slowly: queue over its bound")
	ErrDead      = errors.New("nothing heard within the ping's bound")
	ErrTooLarge  = errors.New("frame is larger than the bound")
	ErrBadFrame  = errors.New("malformed frame or greeting")
	ErrFrame     = errors.New("frame was not taken")
	// ErrOlderStart: a newer start of the dialler's own node holds the link. Its home was copied, and both run.
	ErrOlderStart = errors.New("a newer start of this node is linked there")
	// ErrOffends: it went on doing what it was refused.
	ErrOffends    = errors.New("cut off for a while: it did not keep the rules")
	ErrPeerClosed = errors.New("peer closed the link")
	// ErrGate: the peer proved its id and then closed the connection, which is what a gate does to those it refuses.
	ErrGate = errors.New("refused at the peer's gate")
)

// codeBase keeps our codes apart from libp2p's own (below 0x2000).
const codeBase = 0xa57e00

var codes = []error{
	ErrClosed, ErrDuplicate, ErrReplaced, ErrNotMember, ErrRevoked, ErrWrongMesh, ErrNotReady, ErrTooSlow, ErrDead,
	ErrTooLarge, ErrBadFrame, ErrFrame, ErrOlderStart, ErrOffends,
}

func codeOf(why error) network.StreamErrorCode {
	for i, e := range codes {
		if errors.Is(why, e) {
			return network.StreamErrorCode(codeBase + i)
		}
	}
	return network.StreamNoError
}

// RemoteError is an end that the peer gave a reason for.
type RemoteError struct{ Reason error }

func (e *RemoteError) Error() string { return fmt.Sprintf("peer said: %v", e.Reason) }
func (e *RemoteError) Unwrap() error { return e.Reason }

// explain turns a stream's error into the reason that the other side gave, where it gave one.
func explain(err error) error {
	var reset *network.StreamError
	if errors.As(err, &reset) && reset.Remote {
		if i := int64(reset.ErrorCode) - codeBase; i >= 0 && i < int64(len(codes)) {
			return &RemoteError{codes[i]}
		}
	}
	return err
}

// forGood says whether a refusal will stand until a person or a record changes it.
func forGood(err error) bool {
	var said *RemoteError
	return errors.Is(err, ErrGate) || errors.As(err, &said) &&
		(errors.Is(err, ErrNotMember) || errors.Is(err, ErrRevoked) || errors.Is(err, ErrWrongMesh))
}
