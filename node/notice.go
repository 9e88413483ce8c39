package node

import (
	"encoding/json"

	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/asterism"
)

// labelled makes a notice of an agent say whose it is, whatever it claims (fault B30).
func labelled(f *asterism.Frame, sender asterism.Sender) {
	var value map[string]json.RawMessage
	if json.Unmarshal(f.Value, &value) != nil || value == nil {
		return
	}
	value["agentId"], value["senderRole"] = protocol.EncodeBody(sender.ID), protocol.EncodeBody(sender.Role)
	f.Value = protocol.EncodeBody(value)
}
