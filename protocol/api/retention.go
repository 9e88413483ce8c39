package api

// Retention says how long attachments and large values stay that are over, and what holds those that are old enough.
type Retention struct {
	Age       int64  `json:"age"`          // ms; 0: nothing leaves for its age
	At        int64  `json:"at,omitempty"` // the last look through them, ms since 1970; 0: none since the start
	Left      int    `json:"left"`         // since the start
	LeftBytes int64  `json:"leftBytes"`
	Held      []Held `json:"held,omitempty"`    // as of At, the most bytes first
	Records   int64  `json:"records"`           // how old records are before they may leave, ms; 0: they stay
	From      int64  `json:"from,omitempty"`    // up to when old records have left here, ms since 1970; 0: none has
	Next      string `json:"next,omitempty"`    // why the members agree on no further base now, in words; empty: they do, or just did
	Settled   int64  `json:"settled,omitempty"` // up to when the members have agreed on what records come to, ms since 1970: no revocation takes that back
}
