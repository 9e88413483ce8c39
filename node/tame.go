package node

import "github.com/aster-mesh/aster/protocol"

// tame is e as the API shows it: a journal may hold numbers that not every reader of its answers holds.
func tame(e protocol.Envelope) protocol.Envelope {
	e.Value, e.Floor = protocol.TameNumbers(e.Value), protocol.TameNumbers(e.Floor)
	return e
}
