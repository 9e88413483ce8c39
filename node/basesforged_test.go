package node

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aster-mesh/aster/board"
	"github.com/aster-mesh/aster/node/mesh"
	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/roles/cut"
	"github.com/aster-mesh/aster/roles/member"
)

// inventedBase is a snapshot at the newest records of a node, with one of a log that it made up so that all others lack it.
func inventedBase(t *testing.T, n *Node) *board.Snapshot {
	t.Helper()
	page, err := n.store.Since(0, 1000)
	if err != nil {
		t.Fatal(err)
	}
	all := []protocol.Record{{Log: protocol.LogID{Peer: n.home.peer, Start: protocol.Start{At: 1, Rand: 1}, Scope: protocol.ScopeInside}, Seq: 1, At: 1, Kind: protocol.KindCut}}
	for i := range page {
		all = append(all, page[i].Record)
	}
	st, ends := board.New(member.MeshID(n.home.mesh.Mesh)), map[protocol.LogID]board.Base{}
	for i := range all {
		if rec := &all[i]; rec.Log.Scope == protocol.ScopeInside {
			if err := st.Apply(rec, nil); err != nil {
				t.Fatal(err)
			}
			ends[rec.Log] = board.Base{Log: rec.Log, Seq: rec.Seq, Hash: rec.Hash()}
		}
	}
	return st.Snapshot(slices.Collect(maps.Values(ends)), 1, 1)
}

// TestNobodyTakesYoungRecordsByABase: a member tells of a base that it made up. Who would lose young records there does not begin
// there, whoever invited whom; and where records stay, only whoever invited a node is believed at all.
func TestNobodyTakesYoungRecordsByABase(t *testing.T) {
	for why, records := range map[string]time.Duration{"would take young records": 90 * 24 * time.Hour, "as soon as the node that invited it is linked": 0} {
		t.Run(why, func(t *testing.T) { takesNoYoung(t, records, why) })
	}
}

func takesNoYoung(t *testing.T, records time.Duration, why string) {
	var log safeBuffer
	var na, nb *Node
	start(t, func(c *Config) {
		c.Name, c.Log, c.probe = "devbox", log.logger(), func(n *Node) { na = n }
		c.Retention.Records = records
	})
	start(t, func(c *Config) { c.Name, c.Join, c.probe = "mac-mini", invite(t, na), func(n *Node) { nb = n } })
	alike(t, na, nb)
	before := na.store.Records()
	nb.begins.Store(inventedBase(t, nb))
	until(t, "it is told and does not begin there", func() bool {
		if err := nb.loop.call(t.Context(), func() { nb.loop.tellBase([]protocol.PeerID{na.home.peer}) }); err != nil {
			t.Fatal(err)
		}
		return na.begins.Load() != nil || strings.Contains(log.String(), why)
	})
	if now := na.store.Records(); na.begins.Load() != nil || now < before {
		t.Errorf("%d records of %d are left", now, before)
	}
}

// joined starts three members, the first of which invited the others.
func joined(t *testing.T, log *safeBuffer, na, nb, nc **Node) (first *running) {
	t.Helper()
	cfg := func(c *Config) {
		c.cutLook, c.fetchWindow, c.Log, c.Retention.Records = -1, 50*time.Millisecond, log.logger(), 90*24*time.Hour
	}
	first = start(t, func(c *Config) { cfg(c); c.Name, c.probe = "devbox", func(n *Node) { *na = n } })
	start(t, func(c *Config) {
		cfg(c)
		c.Name, c.Join, c.probe = "mac-mini", invite(t, *na), func(n *Node) { *nb = n }
	})
	start(t, func(c *Config) { cfg(c); c.Name, c.Join, c.probe = "laptop", invite(t, *na), func(n *Node) { *nc = n } })
	alike(t, *na, *nb, *nc)
	return first
}

func tells(t *testing.T, from, to *Node) {
	t.Helper()
	if err := from.loop.call(t.Context(), func() { from.loop.tellBase([]protocol.PeerID{to.home.peer}) }); err != nil {
		t.Fatal(err)
	}
}

// TestOneMembersBaseIsNotTakenWhileTheInviterIsAway: status says what is waited for, and what helps.
func TestOneMembersBaseIsNotTakenWhileTheInviterIsAway(t *testing.T) {
	var log safeBuffer
	var na, nb, nc *Node
	a := joined(t, &log, &na, &nb, &nc)
	nb.begins.Store(inventedBase(t, nb))
	a.stop()
	until(t, "it waits and says so", func() bool {
		tells(t, nb, nc)
		line := warned(t, nc)
		return strings.Contains(line, "what mac-mini holds begins at a base") && strings.Contains(line, "devbox is linked, which invited it. Start that node: aster up")
	})
	if nc.begins.Load() != nil || strings.Contains(log.String(), "would take young records") {
		t.Error("the snapshot of one member was fetched")
	}
}

// TestASnapshotThatComesAtATrickleIsFetchedOfAnother, and who gives it so is not asked again for a while.
func TestASnapshotThatComesAtATrickleIsFetchedOfAnother(t *testing.T) {
	var log safeBuffer
	var na, nb, nc *Node
	joined(t, &log, &na, &nb, &nc)
	slow, other := nb, nc
	if nc.home.peer < nb.home.peer {
		slow, other = nc, nb
	}
	snap := inventedBase(t, nb)
	slow.begins.Store(snap)
	other.begins.Store(snap)
	slow.mesh.Handle(mesh.Base, true, func(_ protocol.PeerID, s mesh.Stream) {
		raw := snap.Encode()
		for i := range raw {
			if _, err := s.Write(raw[i : i+1]); err != nil || pause(t.Context(), 10*time.Millisecond) != nil {
				return
			}
		}
	})
	stalled := false
	until(t, "the snapshot is here, of the other", func() bool {
		if err := na.loop.call(t.Context(), func() {
			stalled = stalled || na.loop.stalled(slow.home.peer)
			delete(na.loop.stalls, other.home.peer) // a slow machine may have held it up, too
		}); err != nil {
			t.Fatal(err)
		}
		tells(t, slow, na)
		tells(t, other, na)
		return stalled && strings.Contains(log.String(), "would take young records")
	})
}

// TestWhoBeganAtAnothersWordSaysSoUntilItIsConfirmed: by a word of a majority on record, and loudly if its board differs.
func TestWhoBeganAtAnothersWordSaysSoUntilItIsConfirmed(t *testing.T) {
	if testing.Short() {
		t.Skip("seconds of whole nodes")
	}
	var w aged
	var na, nb *Node
	w.start(t, "devbox", "", oneDay, &na)
	w.start(t, "mac-mini", invite(t, na), oneDay, &nb)
	alike(t, na, nb)
	held(t, na, nb)
	w.pass(cut.BaseAge + time.Hour)
	agreeing(t, "a base holds", func() bool { return settled(t, na) != 0 && settled(t, nb) != 0 }, na, nb)
	look := func() {
		if err := nb.agree(t.Context(), &baser{}); err != nil {
			t.Fatal(err)
		}
	}
	began := func(digest string) {
		if err := nb.loop.call(t.Context(), func() {
			if err := nb.keepBegun(&begun{na.home.peer, digest, nb.time().Add(-time.Hour).UnixMilli()}); err != nil {
				t.Error(err)
			}
		}); err != nil {
			t.Fatal(err)
		}
		look()
	}
	const line = "began at what devbox gave it"
	if began(strings.Repeat("0", 64)); !strings.Contains(warned(t, nb), line) {
		t.Errorf("an invented beginning is not told of: %q", warned(t, nb))
	}
	nb.begun.Store(nil)
	if err := nb.readBegun(); err != nil || nb.begun.Load() == nil {
		t.Errorf("a restart forgets it, %v", err)
	}
	var from *board.Snapshot
	if err := nb.loop.call(t.Context(), func() { from = nb.loop.board.From() }); err != nil {
		t.Fatal(err)
	}
	if began(from.Digest()); strings.Contains(warned(t, nb), line) || nb.begun.Load() != nil {
		t.Errorf("the word of both members confirms nothing: %q", warned(t, nb))
	}
}

// TestOneMembersWordHasNoRecordLeave: a member says that a base holds which nobody was asked about.
func TestOneMembersWordHasNoRecordLeave(t *testing.T) {
	var w aged
	var na, nb *Node
	w.start(t, "devbox", "", oneDay, &na)
	w.start(t, "mac-mini", invite(t, na), oneDay, &nb)
	alike(t, na, nb)
	marks, texts := map[protocol.LogID]uint64{}, map[string]uint64{}
	var log protocol.LogID
	if err := nb.loop.call(t.Context(), func() {
		for _, h := range nb.loop.rep.Heads() {
			if h.Log.Scope == protocol.ScopeInside {
				log, marks[h.Log], texts[h.Log.String()] = h.Log, h.Seq, h.Seq
			}
		}
	}); err != nil {
		t.Fatal(err)
	}
	snap, err := nb.snapshot(t.Context(), nil, marks)
	if err != nil {
		t.Fatal(err)
	}
	if err := nb.loop.call(t.Context(), func() {
		nb.loop.authorCut(protocol.CutBody{Step: protocol.CutHold, Log: log.String(), Seq: 1, Marks: texts, Fold: board.FoldVersion, Digest: snap.Digest()})
	}); err != nil {
		t.Fatal(err)
	}
	alike(t, na, nb)
	held(t, na, nb)
	w.pass(cut.BaseAge - time.Hour)
	for range 3 {
		if err := na.agree(t.Context(), &baser{}); err != nil {
			t.Fatal(err)
		}
	}
	if na.begins.Load() != nil || settled(t, na) != 0 {
		t.Error("a base holds by the word of one member")
	}
	st, err := na.Status(t.Context())
	if err != nil || !slices.ContainsFunc(st.Warnings, func(w string) bool { return strings.HasPrefix(w, "mac-mini says that records may leave") }) {
		t.Errorf("nobody is named: %q %v", st.Warnings, err)
	}

	// The word holds up nothing: the next base is agreed on.
	w.pass(2 * time.Hour)
	agreeing(t, "old records leave all the same", haveBegun(na, nb), na, nb)
	alike(t, na, nb)
}

// TestABoardStandsOnTheBaseOfItsView: while a member folds up to a base it may begin at another, above which alone it has records.
// What was folded from before that is not taken then.
func TestABoardStandsOnTheBaseOfItsView(t *testing.T) {
	var w aged
	var na, nb *Node
	w.start(t, "devbox", "", oneDay, &na)
	w.start(t, "mac-mini", invite(t, na), 0, &nb)
	alike(t, na, nb)
	held(t, na, nb)
	w.pass(cut.BaseAge + time.Hour)
	var v baseView
	look := func() {
		if err := nb.loop.call(t.Context(), func() { v = nb.loop.baseView() }); err != nil {
			t.Fatal(err)
		}
	}
	agreeing(t, "a base holds", func() bool {
		look()
		return v.from != nil
	}, na, nb)
	stands := v.from
	v.from = nil // as it was when it began to fold
	if err := nb.standOn(t.Context(), &baser{}, &v); err != nil {
		t.Fatal(err)
	}
	if look(); v.from != stands {
		t.Error("the board stands on what was folded from an earlier base")
	}
}
