package api

// PushSubscription asks POST /api/push/subscribe: what a browser gives that is to be told by web push.
type PushSubscription struct {
	Endpoint string   `json:"endpoint"`
	Keys     PushKeys `json:"keys"`
	// QuietUntil: nothing is told before, ms; an hour ahead at most.
	QuietUntil int64 `json:"quietUntil,omitempty"`
}

// PushKeys are the browser's, in base64url.
type PushKeys struct {
	P256dh string `json:"p256dh"`
	Auth   string `json:"auth"`
}

// PushNote is all that a push says, and what GET /api/push/latest answers: how much waits, and no words.
type PushNote struct {
	Waiting int `json:"waiting"` // asks for the person of this board
	NoMain  int `json:"noMain"`  // 1: there has been no main for half a minute
}

// PushSeen asks POST /api/push/seen: whether one of a person's pages is in sight.
type PushSeen struct {
	Page    string `json:"page"` // any name of the page's own, 8 to 40 letters and digits
	Visible bool   `json:"visible"`
}
