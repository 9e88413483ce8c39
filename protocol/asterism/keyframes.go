package asterism

import "github.com/aster-mesh/aster/protocol"

// The values of the key verbs' replies and notices (wire 3.8). Where the contract has the key string and a node no longer
// knows it, Key is null; KeyRef names the key everywhere.

// JoinURL is one address under which a key can be used.
type JoinURL struct {
	Host      string `json:"host"`
	Scope     string `json:"scope"` // loopback, lan, lan6
	Iface     string `json:"iface"`
	URL       string `json:"url"`
	Reachable bool   `json:"reachable"`
}

// KeyIssued answers KeyIssue: the only frame that ever holds a key string, and only to whoever asked. A local key has
// its file instead.
type KeyIssued struct {
	Key        string            `json:"key,omitempty"`
	JoinURL    string            `json:"joinUrl,omitempty"`
	JoinURLs   []JoinURL         `json:"joinUrls,omitempty"`
	JoinFile   string            `json:"joinFile,omitempty"`
	JoinScript string            `json:"joinScript,omitempty"`
	JoinHint   string            `json:"joinHint,omitempty"`
	Bind       string            `json:"bind,omitempty"`
	Exposed    bool              `json:"exposed"`
	Label      string            `json:"label"`
	Kind       string            `json:"kind"`
	Note       string            `json:"roleDescription"`
	Bound      *protocol.AgentID `json:"boundAgent"`
	TTL        int64             `json:"ttl"`
	IssuedAt   int64             `json:"issuedAt"`
	KeyRef     string            `json:"keyRef"`
	ExpiresAt  *int64            `json:"expiresAt"`
	Re         string            `json:"re_msgId,omitempty"`
}

// LegacyKeyIssued answers RegisterUpstreamKey and RegisterCollabKey.
type LegacyKeyIssued struct {
	Key      string    `json:"key"`
	KeyRef   string    `json:"keyRef"`
	Label    string    `json:"label"`
	JoinURL  string    `json:"joinUrl"`
	JoinURLs []JoinURL `json:"joinUrls"`
	Bind     string    `json:"bind"`
	Exposed  bool      `json:"exposed"`
	Re       string    `json:"re_msgId,omitempty"`
}

// KeyRow is one key of KeyListResult.
type KeyRow struct {
	Key        *string           `json:"key"` // always null: only a hash is kept
	KeyRef     string            `json:"keyRef"`
	ExpiresAt  *int64            `json:"expiresAt"`
	RenewedAt  *int64            `json:"renewedAt"`
	RenewCount int               `json:"renewCount"`
	RevokedAt  *int64            `json:"revokedAt"`
	Lapsed     bool              `json:"lapsed"`
	Label      string            `json:"label"`
	Kind       string            `json:"kind"`
	Note       string            `json:"roleDescription"`
	LastAgent  *protocol.AgentID `json:"lastAgent"`
	LastSeenAt *int64            `json:"lastSeenAt"`
	Connection string            `json:"connectionStatus"` // connected, disconnected or never
	TTL        int64             `json:"ttl"`
	IssuedAt   int64             `json:"issuedAt"`
	State      string            `json:"state"`
	Adopted    bool              `json:"adoptedFromLegacy"`
	Bound      *protocol.AgentID `json:"boundAgent"`
}

// KeyListResult answers KeyList.
type KeyListResult struct {
	Keys []KeyRow `json:"keys"`
	Re   string   `json:"re_msgId,omitempty"`
}

// KeyRevoked answers KeyRevoke, and tells main when the last session of a key has ended that was revoked for that.
type KeyRevoked struct {
	Key          *string `json:"key"`
	KeyRef       string  `json:"keyRef"`
	Mode         string  `json:"mode"`
	Disconnected int     `json:"agentsDisconnected"`
	Notified     int     `json:"agentsNotified"`
	Re           string  `json:"re_msgId,omitempty"`
}

// KeyRevokePending tells a holder that its key ends with its session.
type KeyRevokePending struct {
	Key    *string `json:"key"`
	KeyRef string  `json:"keyRef"`
	Mode   string  `json:"mode"`
}

// KeyLabeled answers KeyLabel, and as AgentNameChanged tells the holders.
type KeyLabeled struct {
	Key      *string `json:"key"`
	KeyRef   string  `json:"keyRef"`
	OldLabel string  `json:"oldLabel"`
	NewLabel string  `json:"newLabel"`
	Re       string  `json:"re_msgId,omitempty"`
}

// KeyRenewed answers KeyRenew.
type KeyRenewed struct {
	Key        *string `json:"key"`
	KeyRef     string  `json:"keyRef"`
	Label      string  `json:"label"`
	Kind       string  `json:"kind"`
	TTL        int64   `json:"ttl"`
	IssuedAt   int64   `json:"issuedAt"`
	RenewedAt  int64   `json:"renewedAt"`
	ExpiresAt  int64   `json:"expiresAt"`
	WasLapsed  bool    `json:"wasLapsed"`
	RenewCount int     `json:"renewCount"`
	Re         string  `json:"re_msgId,omitempty"`
}

// KeyRenewedShort tells the holders.
type KeyRenewedShort struct {
	KeyRef    string `json:"keyRef"`
	Label     string `json:"label"`
	ExpiresAt int64  `json:"expiresAt"`
	TTL       int64  `json:"ttl"`
	WasLapsed bool   `json:"wasLapsed"`
}

// KeyExpiringSoon tells a holder that its key will end.
type KeyExpiringSoon struct {
	KeyRef      string `json:"keyRef"`
	Label       string `json:"label"`
	ExpiresAt   int64  `json:"expiresAt"`
	MsRemaining int64  `json:"msRemaining"`
	Lapsed      bool   `json:"lapsed"`
}

// KeyExpiry is the ServerNotice of kind key-expiry, for who may renew.
type KeyExpiry struct {
	Kind      string `json:"kind"`
	Text      string `json:"text"`
	Label     string `json:"label"`
	KeyKind   string `json:"keyKind"`
	KeyRef    string `json:"keyRef"`
	ExpiresAt int64  `json:"expiresAt"`
	Lapsed    bool   `json:"lapsed"`
}

// KeyError says why a key verb did nothing.
type KeyError struct {
	Code    string `json:"code"`
	Message string `json:"message"`
	Re      string `json:"re_msgId,omitempty"`
}
