package api

// Layer is one of the things that a node stands on, looked at by itself. GET /layers, which answers within 1.5 s whatever is
// broken, as long as the board's port does.
type Layer struct {
	Name   string `json:"name"` // "loop", "disk", "mesh", "gossip", "ready"
	OK     bool   `json:"ok"`
	Detail string `json:"detail,omitempty"`
}
