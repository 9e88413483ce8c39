package main

import (
	"strings"
	"testing"

	"github.com/aster-mesh/aster/protocol/api"
)

// TestAMessageThatWaitsForAFloorSaysSo, and for whose.
func TestAMessageThatWaitsForAFloorSaysSo(t *testing.T) {
	for _, tt := range []struct {
		waits api.Waits
		want  string
	}{
		{api.Waits{Board: "two", Room: "rt-1@two", For: api.WaitsTurn}, "for the floor of room rt-1@two at two, until somebody else speaks there"},
		{api.Waits{Board: "two", Room: "rt-1@two", For: api.WaitsPerson}, "for the floor of room rt-1@two at two, until a person speaks there"},
		{api.Waits{Board: "two", Room: "rt-1@two", For: api.WaitsMinute}, "for the floor of room rt-1@two at two, for a minute at most"},
		{api.Waits{Board: "two", Room: "rt-1@two", For: api.WaitsBoard}, "for the board two: there is no connection"},
	} {
		rows := messageRows(api.Message{Waits: &tt.waits})
		if last := rows[len(rows)-1]; last[0] != "waits" || !strings.HasPrefix(last[1], tt.want) {
			t.Errorf("%+v is shown as %q", tt.waits, last)
		}
	}
}
