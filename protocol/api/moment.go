package api

// Moment answers GET /moment: the board as it stood at a past time, by what the journal here holds now. Whoever asks again
// may be told more: records of that time may still arrive. Of presence it has what settled; links, queues and what is on no
// record are not in it.
type Moment struct {
	At   int64 `json:"at"`             // ms: all that was logged by then, in hybrid time
	Prev int64 `json:"prev,omitempty"` // when something was said last before At; 0: nothing was
	Next int64 `json:"next,omitempty"` // when something was said first after it

	Records  uint64    `json:"records"` // that counted
	Main     Main      `json:"main"`
	Peers    []Peer    `json:"peers"`    // without links
	Agents   []Agent   `json:"agents"`   // as their homes last recorded them
	Tasks    []Task    `json:"tasks"`    // open ones first, then the last ended
	Messages []Message `json:"messages"` // the last 100, oldest first
	Asks     []Ask     `json:"asks"`
	// Ticks are times of messages at even counts, from the first to the last, when they were asked for: a slider over them gives a
	// busy minute more room than a quiet night.
	Ticks []int64 `json:"ticks,omitempty"`
}
