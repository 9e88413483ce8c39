package main

import (
	"testing"

	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/api"
)

// TestAWaitForATierEndsWithARefusal: the node answers a wait on a refusal as well, which is not the tier that was asked for.
func TestAWaitForATierEndsWithARefusal(t *testing.T) {
	message := api.Message{Short: "7kq2m", Envelope: protocol.Envelope{ID: "id-1"},
		Tiers: []api.TierAt{{Tier: protocol.Logged}, {Tier: protocol.Refused, Reason: "inbox-full"}}}
	for tier, c := range map[string]struct {
		code     int
		out, err string
	}{
		"logged":    {exitOK, "m-7kq2m logged\n", ""},
		"persisted": {exitRefused, "m-7kq2m refused\n", "m-7kq2m was logged and then refused: inbox-full. All of it: aster show m-7kq2m\n"},
		"processed": {exitRefused, "m-7kq2m refused\n", "m-7kq2m was logged and then refused: inbox-full. All of it: aster show m-7kq2m\n"},
	} {
		f := newFake(t, map[string]any{"POST /send": api.SendResult{MsgID: "id-1", Short: "7kq2m", Tier: protocol.Logged}, "GET /messages/{id}": message})
		if got := f.type_(t, "", "send", "--to", "b", "--wait", tier, "hi"); got.code != c.code || got.out != c.out || got.err != c.err {
			t.Errorf("%s: %+v", tier, got)
		}
	}
}
