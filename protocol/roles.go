package protocol

// Role is what an agent may do. Which role may do what is said in package roles.
type Role string

// The roles of the contract (wire 3.4).
const (
	RoleMain     Role = "main"
	RoleLocal    Role = "local"
	RoleUpstream Role = "upstream"
	RoleCollab   Role = "collab"
	RolePeer     Role = "peer"
	RoleBoard    Role = "board"
)

// Inside says whether a member of this role holds all logs and takes part in gossip (DESIGN 2).
func (r Role) Inside() bool { return r == RoleMain || r == RoleLocal }

// Known says whether r is a role of the contract.
func (r Role) Known() bool {
	switch r {
	case RoleMain, RoleLocal, RoleUpstream, RoleCollab, RolePeer, RoleBoard:
		return true
	}
	return false
}
