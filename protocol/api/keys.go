package api

import "github.com/aster-mesh/aster/protocol"

// Key is one key of the contract. GET /keys. Its string is nowhere: only a hash is kept.
type Key struct {
	Ref        string           `json:"ref"` // kr-…
	Kind       string           `json:"kind"`
	Label      string           `json:"label"`
	Note       string           `json:"note,omitempty"`
	State      string           `json:"state"` // ISSUED, ACTIVE, REVOKED_PENDING, REVOKED, DELETED
	Lapsed     bool             `json:"lapsed,omitempty"`
	Bound      protocol.AgentID `json:"bound,omitempty"` // the only agent that may use it
	Issued     int64            `json:"issued"`
	Expires    int64            `json:"expires,omitempty"` // 0: it does not end by itself
	Renewed    int64            `json:"renewed,omitempty"`
	RenewCount int              `json:"renewCount,omitempty"`
	Revoked    int64            `json:"revoked,omitempty"`
	LastAgent  protocol.AgentID `json:"lastAgent,omitempty"`
	LastSeen   int64            `json:"lastSeen,omitempty"`
	Connection string           `json:"connection"` // connected, disconnected, never
}

// KeyRequest is POST /keys.
type KeyRequest struct {
	Kind      string           `json:"kind"`
	Label     string           `json:"label,omitempty"` // default: the kind
	Note      string           `json:"note,omitempty"`
	TTLMillis *int64           `json:"ttlMillis,omitempty"` // 0: it does not end by itself; absent: fourteen days
	Agent     protocol.AgentID `json:"agent,omitempty"`     // the only agent that may use it; absent: whoever uses it first
}

// KeyIssued holds the key's string: it is shown once and kept nowhere. A local key's lies in File, on the node's machine.
type KeyIssued struct {
	Key     Key    `json:"key"`
	Secret  string `json:"secret,omitempty"`
	File    string `json:"file,omitempty"`
	JoinURL string `json:"joinUrl,omitempty"`
	Page    string `json:"page,omitempty"` // what to hand to whoever joins
}

// KeyRenewRequest is POST /keys/REF/renew.
type KeyRenewRequest struct {
	TTLMillis *int64 `json:"ttlMillis,omitempty"` // absent: as long as its last life
}

// KeyLabelRequest is POST /keys/REF/label.
type KeyLabelRequest struct {
	Label string `json:"label"`
}

// KeyRevokeRequest is POST /keys/REF/revoke.
type KeyRevokeRequest struct {
	Mode string `json:"mode"` // immediate or sessionEnd
}

// KeyRevoked answers it.
type KeyRevoked struct {
	Key      Key `json:"key"`
	Sessions int `json:"sessions"` // that ended, or will
}
