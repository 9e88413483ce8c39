package board

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/roles/member"
)

// crowd is a journal in which a member that was inside names, as a member outside and in three logs, far more agents than
// anybody keeps, takes some of them back, and tells of the presence of all.
func crowd(t testing.TB, seed uint64) (j *journal, guest protocol.PeerID) {
	dice := rand.New(rand.NewPCG(seed, 5))
	j = newJournal(t)
	l := j.founded()
	j.bind(l, "m", "v1")
	guest = j.peers[1]
	logs := []*journalLog{j.open(1, protocol.ScopeInside)}
	for range 3 {
		logs = append(logs, j.open(1, protocol.ScopeOutside(guest)))
	}
	for range 5 * protocol.GuestNamesMax {
		k := 1 + dice.IntN(3)
		if dice.IntN(100) == 0 {
			k = 0
		}
		id := protocol.AgentID(fmt.Sprint("v", dice.IntN(2*protocol.GuestNamesMax)))
		kind, body := protocol.KindBind, any(protocol.BindBody{Agent: id, Home: guest, Since: protocol.HLC(dice.IntN(9)), Role: protocol.RoleCollab, Forgotten: dice.IntN(4) == 0})
		if dice.IntN(3) == 0 {
			kind, body = protocol.KindPresence, protocol.PresenceBody{Agent: id, State: "idle"}
		}
		j.clock += protocol.HLC(dice.IntN(20))
		at := j.clock
		if dice.IntN(3) == 0 {
			at -= protocol.HLC(min(int(j.clock), dice.IntN(9000)))
		}
		logs[k].raw(at, kind, protocol.EncodeBody(body))
	}
	return j, guest
}

// TestAMemberOutsideNamesItsShareOfAgentsAlone: so many of its names are kept, and which ones is the same in every order in
// which its logs come, behind a checkpoint too; what it said while it was inside stays.
func TestAMemberOutsideNamesItsShareOfAgentsAlone(t *testing.T) {
	orders := uint64(12)
	if testing.Short() {
		orders = 4
	}
	for seed := range uint64(3) {
		j, guest := crowd(t, seed)
		var want string
		for order := range orders {
			records := j.merged(rand.New(rand.NewPCG(order, 2)))
			s := newState(member.NewRoster(j.id), 10)
			stop := rand.New(rand.NewPCG(order, 4)).IntN(len(records))
			for i, r := range records {
				if i == stop {
					again, err := Decode(s.Encode())
					if err != nil {
						t.Fatal(err)
					}
					again.kept, s = s.kept, again
				}
				if err := s.Apply(r, nil); err != nil {
					t.Fatal(err)
				}
			}
			if g := s.guests[guest]; len(g.bindings) != protocol.GuestNamesMax || len(g.presence) != protocol.GuestNamesMax {
				t.Fatalf("%d names and %d presences kept, want %d of each", len(g.bindings), len(g.presence), protocol.GuestNamesMax)
			}
			listed := 0
			for _, a := range s.Agents() {
				if a.Home == guest && a.Guest {
					listed++
				}
			}
			if listed == 0 || listed > protocol.GuestNamesMax {
				t.Fatalf("%d agents of it are listed", listed)
			}
			if o, ok := s.Owner("m"); !ok || o != j.peers[0] {
				t.Fatal("main's agent is gone")
			}
			if want == "" {
				want = s.Digest()
			}
			if s.Digest() != want {
				t.Fatalf("seed %d: order %d gives another board", seed, order)
			}
		}
	}
}
