package node

import (
	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/asterism"
)

// subprotocols are what a client may ask for; what else it asks for is ignored, and without one it speaks JSON.
var subprotocols = []string{asterism.SubprotocolMsgpack}

var recodings = map[string]func([]byte) []byte{asterism.SubprotocolMsgpack: asMsgpack}

// asMsgpack gives a frame of ours its other form.
func asMsgpack(frame []byte) []byte {
	packed, ok := asterism.AppendMsgpack(make([]byte, 0, len(frame)), frame)
	if !ok {
		return frame // ours are JSON; one that is not would reach every other client as it is, too
	}
	return packed
}

// decode reads a frame in the form in which it came: with the subprotocol a binary message is msgpack. Without it that is
// JSON, as text always is.
func (s *socket) decode(data []byte, binary bool) (asterism.Frame, *protocol.Refusal) {
	if binary && s.conn.Subprotocol() == asterism.SubprotocolMsgpack {
		var no *protocol.Refusal
		if data, no = asterism.FromMsgpack(data, protocol.FrameBytesMax); no != nil {
			return asterism.Frame{}, no
		}
	}
	return asterism.Decode(data, protocol.FrameBytesMax)
}
