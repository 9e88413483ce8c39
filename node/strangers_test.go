package node

import (
	"errors"
	"net/http"
	"testing"

	"github.com/aster-mesh/aster/node/link"
	"github.com/aster-mesh/aster/protocol"
)

// TestStrangersHaveFewPlaces: whoever shows no right may open some sockets and no more, and shuts out nobody who has a key.
func TestStrangersHaveFewPlaces(t *testing.T) {
	var n *Node
	r := start(t, func(c *Config) { c.Access.Keyless, c.probe = false, func(x *Node) { n = x } })
	first := r.come(t, "")
	for range protocol.StrangersMax - 1 {
		r.come(t, "")
	}
	_, err := link.Dial(t.Context(), "ws"+r.Board[len("http"):]+"/ws", nil, link.Options{})
	var refused *link.RefusedError
	if !errors.As(err, &refused) || refused.Status != http.StatusServiceUnavailable {
		t.Errorf("one more: %v, want 503", err)
	}
	r.joinWith(t, localKey(t, r, "partner"), "partner")
	first.conn.Close(1000, "")
	for n.strangers.nobodys() == protocol.StrangersMax {
	}
	r.come(t, "")
}

func (s *strangers) nobodys() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.plain
}

// TestOneKeyShutsOutNoOther: who has a key and never says HELLO takes the places of that key alone.
func TestOneKeyShutsOutNoOther(t *testing.T) {
	r := start(t, nil)
	greedy := issueByAPI(t, r, `{"kind":"collab","label":"greedy"}`)
	for range strangersKeyMax {
		r.come(t, "?key="+greedy)
	}
	_, err := link.Dial(t.Context(), "ws"+r.Board[len("http"):]+"/ws?key="+greedy, nil, link.Options{})
	var refused *link.RefusedError
	if !errors.As(err, &refused) || refused.Status != http.StatusServiceUnavailable {
		t.Errorf("one more of the same key: %v, want 503", err)
	}
	r.joinWith(t, issueByAPI(t, r, `{"kind":"collab","label":"other"}`), "partner")
}
