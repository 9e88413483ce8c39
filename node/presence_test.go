package node

import (
	"testing"
	"time"

	"github.com/aster-mesh/aster/board"
	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/api"
)

func TestAnAgentBehindNoLinkIsShownAsItWasLastHeardOf(t *testing.T) {
	const there, linked protocol.PeerID = "there", "linked"
	st := board.New("mesh")
	for _, home := range []protocol.PeerID{there, linked} {
		log := protocol.LogID{Peer: home, Start: protocol.Start{At: 1, Rand: 1}, Scope: protocol.ScopeInside}
		for i, rec := range []protocol.Record{
			{Kind: protocol.KindBind, Body: protocol.EncodeBody(protocol.BindBody{Agent: protocol.AgentID("of-" + home), Home: home, Since: 1})},
			{Kind: protocol.KindPresence, Wall: 5000, Body: protocol.EncodeBody(protocol.PresenceBody{Agent: protocol.AgentID("of-" + home), State: "working"})},
		} {
			rec.Log, rec.Seq, rec.At = log, uint64(i+1), protocol.HLC(i+1)
			if err := st.Apply(&rec, nil); err != nil {
				t.Fatal(err)
			}
		}
	}
	l := &loop{board: st, peers: map[protocol.PeerID]*peerState{linked: {}}, lastSeen: map[protocol.PeerID]time.Time{}}
	rows := func() []api.Agent {
		out := []api.Agent{
			{ID: "Of-There", Home: there, State: protocol.StateAway}, {ID: "of-linked", Home: linked, State: protocol.StateIdle},
			{ID: "mine", Here: true, State: protocol.StateIdle}, {ID: "never-heard-of", Home: there, State: protocol.StateAway},
		}
		l.recall(out)
		return out
	}
	got := rows()
	if a := got[0]; a.State != protocol.StateWorking || a.AsOf != 5000 || a.Since != 5000 {
		t.Errorf("after a restart: %+v", a)
	}
	for _, a := range got[1:] {
		if a.AsOf != 0 || a.State == protocol.StateWorking {
			t.Errorf("not as of then: %+v", a)
		}
	}
	l.lastSeen[there] = time.UnixMilli(9000)
	if a := rows()[0]; a.AsOf != 9000 || a.Since != 5000 {
		t.Errorf("after the end of a link: %+v", a)
	}
}
