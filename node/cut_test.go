package node

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/aster-mesh/aster/board"
	"github.com/aster-mesh/aster/node/hub"
	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/api"
	"github.com/aster-mesh/aster/roles/member"
)

// calmPair is pair of nodes that compare only when the test says so.
func calmPair(t *testing.T) (b *running, na, nb *Node) {
	t.Helper()
	start(t, func(c *Config) { c.cutLook, c.Name = -1, "devbox"; c.probe = func(n *Node) { na = n } })
	inv, err := na.Invite(t.Context(), api.InviteRequest{Role: protocol.RoleLocal})
	if err != nil {
		t.Fatal(err)
	}
	b = start(t, func(c *Config) {
		c.cutLook, c.Name, c.Join = -1, "mac-mini", inv.Token
		c.probe = func(n *Node) { nb = n }
	})
	return b, na, nb
}

// asks has a node ask the members to compare now.
func (n *Node) asks(t *testing.T) {
	t.Helper()
	before := int64(0)
	if err := n.loop.call(t.Context(), func() {
		if c, _, ok := n.loop.board.Cut(); ok {
			before = int64(c.Seq())
		}
		n.proposes()
	}); err != nil {
		t.Fatal(err)
	}
	until(t, "the proposal is on record", func() (ok bool) {
		_ = n.loop.call(t.Context(), func() {
			c, _, some := n.loop.board.Cut()
			ok = some && int64(c.Seq()) != before
		})
		return ok
	})
}

// proposes is called in the loop.
func (n *Node) proposes() {
	n.cfg.Boards.Compare = 1
	if n.loop.cutDue() {
		n.loop.proposeCut()
	}
	n.cfg.Boards.Compare = 0
}

// comparedAs has nodes take part until the status of each says of the newest comparison what is wanted.
func comparedAs(t *testing.T, what string, ok func(*api.Compared, api.Status) bool, nodes ...*Node) {
	t.Helper()
	until(t, what, func() bool {
		all := true
		for _, n := range nodes {
			var c comparer
			if err := n.compare(t.Context(), &c); err != nil {
				t.Fatal(err)
			}
			st, err := n.Status(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			all = all && st.Compared != nil && ok(st.Compared, st)
		}
		return all
	})
}

// TestMembersCompareTheirBoards: two nodes fold the same records up to the cut that one proposes, and agree; one that says
// something else is named on every board, until it agrees again.
func TestMembersCompareTheirBoards(t *testing.T) {
	b, na, nb := calmPair(t)
	b.attach(t, "worker")
	knows(t, "worker", na, nb)
	alike(t, na, nb) // before that the second might think that it is its turn
	if err := nb.loop.call(t.Context(), nb.proposes); err != nil {
		t.Fatal(err)
	}
	na.asks(t)
	agree := func(c *api.Compared, st api.Status) bool {
		return len(c.Alike) == 2 && len(c.Open) == 0 && c.By == "devbox" && c.Records > 3 && len(st.Warnings) == 0
	}
	comparedAs(t, "both have answered alike", agree, na, nb)

	na.asks(t)
	lie := func(c *board.Cut) protocol.CutBody {
		return protocol.CutBody{Step: protocol.CutAnswer, Log: c.Log().String(), Seq: c.Seq(), Fold: board.FoldVersion, Digest: protocol.Hash{7}.String()}
	}
	until(t, "the other has the proposal and answers wrongly", func() (done bool) {
		_ = nb.loop.call(t.Context(), func() {
			c := nb.loop.openCut()
			if done = c != nil; done {
				nb.loop.core.Step(nb.loop.now, hub.Author{Scope: protocol.ScopeInside, Kind: protocol.KindCut, Body: protocol.EncodeBody(lie(c))})
			}
		})
		return done
	})
	comparedAs(t, "every board says that they differ", func(c *api.Compared, st api.Status) bool {
		return slices.Equal(slices.Sorted(slices.Values(c.Differ)), []string{"devbox", "mac-mini"}) && says(st, "no majority says which is right")
	}, na, nb)
	na.asks(t)
	comparedAs(t, "they agree again", agree, na, nb)
}

// TestBoardThatIsNotTheRecordsIsMadeAnew: a node whose board went wrong while it ran finds that out when it compares.
func TestBoardThatIsNotTheRecordsIsMadeAnew(t *testing.T) {
	b, na, nb := calmPair(t)
	b.attach(t, "worker")
	knows(t, "worker", na, nb)
	alike(t, na, nb)
	right := digests(t, nb)
	spoil := func() {
		wrong := board.New(member.MeshID(nb.home.mesh.Mesh))
		page, err := nb.store.Since(0, 1000)
		if err != nil {
			t.Error(err)
		}
		for i := range page {
			rec := page[i].Record
			if rec.Kind == protocol.KindBind {
				rec.Kind = "lost"
			}
			if err := wrong.Apply(&rec, nil); err != nil {
				t.Error(err)
			}
		}
		nb.loop.board = wrong
	}
	na.asks(t)
	until(t, "the proposal has come", func() (ok bool) {
		_ = nb.loop.call(t.Context(), func() {
			if ok = nb.loop.openCut() != nil; ok {
				spoil()
			}
		})
		return ok
	})
	if got := digests(t, nb); got[1] == right[1] {
		t.Fatal("the board was not spoilt")
	}
	comparedAs(t, "its answer is right, and its board again", func(_ *api.Compared, st api.Status) bool {
		return says(st, "made anew")
	}, nb)
	comparedAs(t, "they agree", func(c *api.Compared, _ api.Status) bool { return len(c.Alike) == 2 }, na, nb)
	alike(t, na, nb)
	until(t, "the agent is back", func() (ok bool) {
		all, err := nb.Agents(t.Context())
		return err == nil && len(all) == 1
	})
}

// TestComparingTakesPartByItself: without being called, once it is due.
func TestComparingTakesPartByItself(t *testing.T) {
	var na, nb *Node
	quick := func(c *Config) { c.cutLook, c.Boards.Compare = 50*time.Millisecond, 2*time.Second }
	start(t, func(c *Config) { quick(c); c.Name = "devbox"; c.probe = func(n *Node) { na = n } })
	inv, err := na.Invite(t.Context(), api.InviteRequest{Role: protocol.RoleLocal})
	if err != nil {
		t.Fatal(err)
	}
	start(t, func(c *Config) { quick(c); c.Name, c.Join = "mac-mini", inv.Token; c.probe = func(n *Node) { nb = n } })
	for _, n := range []*Node{na, nb} {
		until(t, "both answered", func() bool {
			st, err := n.Status(context.WithoutCancel(t.Context()))
			return err == nil && st.Compared != nil && len(st.Compared.Alike) == 2
		})
	}
}

// TestSomebodyHasThemCompareNow: the answers of all that are linked come without waiting for a day, or a minute.
func TestSomebodyHasThemCompareNow(t *testing.T) {
	_, _, na, nb := pair(t, protocol.RoleLocal)
	alike(t, na, nb)
	for _, n := range []*Node{nb, na} {
		c, err := n.CompareBoards(t.Context())
		if err != nil || len(c.Alike) != 2 || c.By != n.home.mesh.Name || len(c.In) > 0 {
			t.Errorf("%+v, %v", c, err)
		}
	}
	var alone *Node
	start(t, func(c *Config) { c.probe = func(n *Node) { alone = n } })
	var no *protocol.Refusal
	if _, err := alone.CompareBoards(t.Context()); !errors.As(err, &no) {
		t.Errorf("a node that is alone compares: %v", err)
	}
}
