package node

import (
	"crypto/ed25519"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aster-mesh/aster/board"
	"github.com/aster-mesh/aster/node/hub"
	"github.com/aster-mesh/aster/protocol"
)

func namedPeer(name string) protocol.PeerID {
	seed := make([]byte, ed25519.SeedSize)
	copy(seed, name)
	return protocol.PeerIDOf(ed25519.NewKeyFromSeed(seed).Public().(ed25519.PublicKey))
}

// randomWords are bindings, moves and withdrawals of a few names by nodes of the inside and outside, each in a log of its
// own, so that any order is one in which logs may come.
func randomWords(dice *rand.Rand, inside, outside []protocol.PeerID) []*protocol.Record {
	var out []*protocol.Record
	write := func(author protocol.PeerID, kind protocol.Kind, body any) {
		scope := protocol.ScopeInside
		if slices.Contains(outside, author) {
			scope = protocol.ScopeOutside(author)
		}
		at := protocol.HLC(1000 + len(out))
		out = append(out, &protocol.Record{
			Log: protocol.LogID{Peer: author, Start: protocol.Start{At: at, Rand: 1}, Scope: scope}, Seq: 1, At: at, Kind: kind, Body: protocol.EncodeBody(body),
		})
	}
	names := []protocol.AgentID{"bob", "Bob", "bob-2", "bob-3", "zoe"}
	all := slices.Concat(inside, outside)
	for range 14 {
		name, first := names[dice.IntN(len(names))], all[dice.IntN(len(all))]
		since := protocol.HLC(dice.IntN(50))
		bind := protocol.BindBody{Agent: name, Home: first, Since: since, Role: protocol.RoleLocal}
		write(first, protocol.KindBind, bind)
		moves := uint64(0)
		for range dice.IntN(4) {
			to := inside[dice.IntN(len(inside))]
			if slices.Contains(outside, first) {
				bind.Forgotten = dice.IntN(2) == 0
				write(first, protocol.KindBind, bind)
				continue
			}
			if dice.IntN(3) > 0 {
				moves++
			}
			moved := protocol.MoveBody{Agent: name, Origin: first, Since: since, Role: protocol.RoleLocal, From: bind.Home, To: to, Moves: max(moves, 1), Forced: dice.IntN(3) == 0}
			write(inside[dice.IntN(len(inside))], protocol.KindMove, moved)
			bind = moved.Bind()
			bind.Forgotten = dice.IntN(6) == 0
			if dice.IntN(2) == 0 {
				write(to, protocol.KindBind, bind)
			}
			bind.Forgotten = false
		}
	}
	return out
}

// TestHubAndBoardCallAgentsAlike: whatever was bound, moved, forgotten, in whatever order it comes to each, and over a
// restart of the hub from the board: the same agents under the same names in the same homes.
func TestHubAndBoardCallAgentsAlike(t *testing.T) {
	self := namedPeer("self")
	inside := []protocol.PeerID{namedPeer("a"), namedPeer("b"), namedPeer("c")}
	outside := []protocol.PeerID{namedPeer("g"), namedPeer("h")}
	members := map[protocol.PeerID]hub.Member{self: {Name: "self", Inside: true, Role: protocol.RoleLocal}}
	for _, p := range inside {
		members[p] = hub.Member{Name: "in", Inside: true, Role: protocol.RoleLocal}
	}
	for _, p := range outside {
		members[p] = hub.Member{Name: "out", Role: protocol.RoleCollab}
	}
	now := time.UnixMilli(1_790_000_000_000)
	for seed := range uint64(60) {
		dice := rand.New(rand.NewPCG(seed, 1))
		words := randomWords(dice, inside, outside)
		want, digest := "", ""
		for range 12 {
			dice.Shuffle(len(words), func(i, j int) { words[i], words[j] = words[j], words[i] })
			core := hub.New(hub.Boot{Self: self, Start: protocol.Start{At: 1, Rand: 1}, Members: members, Now: now})
			st := board.New("mesh")
			for _, rec := range words {
				core.Step(now, hub.Applied{Record: rec})
				if err := st.Apply(rec, nil); err != nil {
					t.Fatal(err)
				}
			}
			decoded, err := board.Decode(st.Encode())
			if err != nil {
				t.Fatal(err)
			}
			again := hub.New(bootOf(decoded, self, members, now))
			got := [3]string{homesOfHub(core, now), homesOfBoard(st), homesOfHub(again, now)}
			if want == "" {
				want, digest = got[0], st.Digest()
			}
			if got != [3]string{want, want, want} || st.Digest() != digest || decoded.Digest() != digest {
				t.Fatalf("seed %d:\nhub\n%s\nboard\n%s\nhub again\n%s\nfirst\n%s", seed, got[0], got[1], got[2], want)
			}
		}
	}
}

func bootOf(st *board.State, self protocol.PeerID, members map[protocol.PeerID]hub.Member, now time.Time) hub.Boot {
	b := hub.Boot{Self: self, Start: protocol.Start{At: 2, Rand: 2}, Members: members, Now: now}
	for _, a := range st.Agents() {
		b.Agents = append(b.Agents, boundOf(&a))
	}
	for _, f := range st.Withdrawn() {
		b.Ended = append(b.Ended, hub.Former(f))
	}
	return b
}

func homesOfHub(c *hub.Core, now time.Time) string {
	var out []string
	for _, k := range c.Agents(now) {
		out = append(out, fmt.Sprintf("%s@%s", k.Agent, k.Home.Short()))
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

func homesOfBoard(st *board.State) string {
	var out []string
	for _, a := range st.Agents() {
		out = append(out, fmt.Sprintf("%s@%s", a.ID, a.Home.Short()))
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}
