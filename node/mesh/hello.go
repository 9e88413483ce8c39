package mesh

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/aster-mesh/aster/protocol"
)

const (
	helloBytesMax = 8 << 10
	helloVersion  = 1
	goneMax       = 8 // ids of former links that a hello names
	addrsMax      = 16
	addrBytesMax  = 256
)

// hello opens a link: the opener sends one, the other side answers with one, or resets the stream with the reason.
type hello struct {
	Version int    `json:"v"`
	Mesh    string `json:"mesh"`
	Start   uint64 `json:"start"`        // of the sender's process
	At      uint64 `json:"at,omitempty"` // hybrid time of that start; 0: not known, then whoever comes last holds
	Link    uint64 `json:"link"`         // made up by the opener
	// Gone are links with the other side that the sender has lost: whoever still holds one of them lets it go.
	Gone []uint64 `json:"gone,omitempty"`
	// Addrs is where the sender listens: a hint for later dialling, nothing is trusted to it.
	Addrs []string `json:"addrs,omitempty"`
}

func writeHello(w io.Writer, h hello) error {
	if len(h.Addrs) > addrsMax {
		h.Addrs = h.Addrs[:addrsMax]
	}
	body, err := json.Marshal(h)
	if err != nil {
		return fmt.Errorf("encode greeting: %w", err)
	}
	return writeSized(w, body)
}

func readHello(r io.Reader) (hello, error) {
	body, err := readSized(r, helloBytesMax)
	if err != nil {
		return hello{}, err
	}
	return decodeHello(body)
}

// decodeHello bounds what a peer says of itself; addresses that cannot be ones are left out.
func decodeHello(body []byte) (hello, error) {
	var h hello
	if err := json.Unmarshal(body, &h); err != nil {
		return hello{}, fmt.Errorf("%w: %w", ErrBadFrame, err)
	}
	if h.Version != helloVersion || h.Link == 0 || h.Start == 0 || len(h.Gone) > goneMax || len(h.Addrs) > addrsMax {
		return hello{}, fmt.Errorf("%w: greeting", ErrBadFrame)
	}
	kept := h.Addrs[:0]
	for _, a := range h.Addrs {
		if _, err := parseAddr(a); err == nil {
			kept = append(kept, a)
		}
	}
	h.Addrs = kept
	return h, nil
}

// opensFirst says whether the link that a opened holds against one that b opened at the same time.
func opensFirst(a, b protocol.PeerID) bool { return a < b }
