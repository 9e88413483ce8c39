package protocol

// Compare orders starts of one node: -1 when s began before t.
func (s Start) Compare(t Start) int {
	switch {
	case s.At < t.At, s.At == t.At && s.Rand < t.Rand:
		return -1
	case s == t:
		return 0
	}
	return 1
}

// FenceBody is the last word of a start that has met a newer one of its own node: the home was copied, and both run. It
// writes nothing more; the newer one does (DESIGN 4 Identity of a record).
type FenceBody struct {
	Start string `json:"start"` // that stops
	By    string `json:"by"`    // that goes on
	Host  string `json:"host,omitempty"`
	Home  string `json:"home,omitempty"` // the folder, for people
}

// ForkBody says that its author holds two records under one number of a log: a stolen key or a damaged store. What lies
// from Seq on it takes from neither side.
type ForkBody struct {
	Log    string `json:"log"` // LogID.String()
	Seq    uint64 `json:"seq"`
	Ours   string `json:"ours"`   // hash that the author holds
	Theirs string `json:"theirs"` // hash that it was shown
}
