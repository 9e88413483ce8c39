package sim

import (
	"github.com/aster-mesh/aster/node/journal"
	"github.com/aster-mesh/aster/protocol"
)

// Store is what a node asks of its journal. *journal.Journal is one, and Disk is the model of it: Contract says what
// both owe.
type Store interface {
	Commit(journal.Batch) (first uint64, err error)
	Heads() ([]journal.Head, error)
	Digest() (string, error)
	Range(log protocol.LogID, from uint64, maxBytes int) ([]protocol.Record, error)
	At(log protocol.LogID, seq uint64) (journal.Stored, bool, error)
	Since(pos uint64, limit int) ([]journal.Stored, error)
	Position() uint64
	Leave(bases []journal.Base, snapshot []byte) error
	Begin(bases []journal.Base, snapshot []byte) error
	Sweep(max int) (more bool, err error)
	Bases() []journal.Base
	Base(protocol.LogID) (journal.Base, bool)
	Snapshot() (snapshot []byte, found bool, err error)
	Identity(protocol.Digest) (journal.IdentityRow, bool, error)
	Tiers(log protocol.LogID, seq uint64) ([]journal.TierPut, error)
	Message(log protocol.LogID, seq uint64) (journal.Message, bool, error)
	MessageByID(from protocol.AgentID, id protocol.MsgID) (journal.Message, bool, error)
	Inbox(protocol.AgentID, journal.InboxQuery) ([]journal.InboxRow, error)
	Outbox(from protocol.AgentID, dead bool, limit int) ([]journal.Message, error)
	Value(key string) ([]byte, bool, error)
	ValuesWithPrefix(prefix string) (map[string][]byte, error)
	SaveCheckpoint(name string, pos uint64, data []byte) error
	Checkpoint(name string) (pos uint64, data []byte, ok bool, err error)
}

var _ Store = (*journal.Journal)(nil)
