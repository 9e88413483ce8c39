package api

// Compared says how the boards of the inside compare where its members were asked last to. The lists are names of nodes.
type Compared struct {
	At      int64    `json:"at"` // when that was, ms since 1970, by the clock of By
	By      string   `json:"by"` // who asked
	Records uint64   `json:"records"`
	Digest  string   `json:"digest,omitempty"` // of the board there, as a majority answered; empty: none has
	Alike   []string `json:"alike,omitempty"`
	Differ  []string `json:"differ,omitempty"` // from the majority; without one, from one another
	In      []string `json:"in,omitempty"`     // which parts of the board differ; sum is all records that count
	Other   []string `json:"other,omitempty"`  // run another version, whose answer says nothing
	Open    []string `json:"open,omitempty"`   // have not answered
}
