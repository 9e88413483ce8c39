package protocol

// Tier says what is known about one envelope. Tiers are facts, not a ladder (DESIGN 4 Receipts): a lone node never
// reaches Replicated, and a message may be processed while its replication is still under way.
type Tier string

const (
	// Logged: durable in the log of the sender's node.
	Logged Tier = "logged"
	// Replicated: durable on at least one other inside node.
	Replicated Tier = "replicated"
	// Persisted: durable in the recipient's inbox, at its home.
	Persisted Tier = "persisted"
	// Processed: the agent itself says so. Nothing of ours may claim it.
	Processed Tier = "processed"
	// Refused: the recipient's home did not take it (inbox full, expired); the message is dead.
	Refused Tier = "refused"
)

// Handed is no tier but a node's note to itself: another board has the message, so its inbox row here is done, and nobody is
// said to have processed it.
const Handed Tier = "handed"

// TierOrder is the order in which tiers are printed.
var TierOrder = []Tier{Logged, Replicated, Persisted, Processed}

// KnownTier says whether a text names a tier that one can wait for.
func KnownTier(t Tier) bool {
	switch t {
	case Logged, Replicated, Persisted, Processed:
		return true
	}
	return false
}
