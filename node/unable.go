package node

import (
	"errors"

	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/asterism"
)

// unable answers a frame with which this node could not do its part. A refusal is told as it stands; of anything else the
// sender hears what was not done, and the log why.
func (s *socket) unable(f *asterism.Frame, err error, code, what string) {
	var no *protocol.Refusal
	if !errors.As(err, &no) {
		s.n.log.Error("frame not served", "name", f.Intent(), "err", err)
		no = protocol.Refuse(code, what, "try again later")
	}
	s.refuse(f, no)
}
