package node

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"time"

	"github.com/aster-mesh/aster/node/mesh"
)

// A home that was put back knows nothing of what its node did since it was exported: what it acknowledged, and which tasks
// it ran. Others have that on record. So its first start gives out no mail, runs nothing and serves nobody until another
// node of the inside has given it back, or nobody is there to ask.

// askTime is how long a home that was put back waits for another node of the inside.
const askTime = 30 * time.Second

// putBack is what the home says of its import; nil: nothing is open.
func (n *Node) putBack() *imported {
	raw, err := os.ReadFile(n.home.path(importedFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	var im imported
	if err == nil {
		err = json.Unmarshal(raw, &im)
	}
	if err != nil {
		n.log.Warn("what is said of the import is not readable", "err", err)
	}
	return &im
}

// catchUp waits until what this node did since its home was exported is here again, and says so if nobody had it. gate is
// closed when mail may be given out.
func (n *Node) catchUp(ctx context.Context, gate chan struct{}) error {
	defer func() { <-ctx.Done() }()
	defer close(gate)
	im := n.putBack()
	if n.fenced.Load() != nil || im == nil && n.store.Recovery().Reason == "" {
		return nil
	}
	if im == nil || im.Repaired {
		defer n.fetchDamagedWithin(ctx, n.cfg.askTime)
	}
	if im == nil { // the store was damaged, and this start has rebuilt it
		im = &imported{Exported: n.began.UnixMilli(), Repaired: true}
		if err := writeFile(n.home.path(importedFile), im); err != nil {
			n.log.Warn("that something may be missing was not written down", "err", err)
		}
	}
	if im.Repaired {
		n.log.Info("the store of this home was damaged: mail waits until another node has given back what it lost", "part", "home", "repaired", im.Exported)
	} else {
		n.log.Info("this home was imported: mail waits until another node has given back what was done since", "part", "home", "exported", im.Exported)
	}
	limit := time.NewTimer(n.cfg.askTime)
	defer limit.Stop()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		done := false
		if err := n.loop.call(ctx, func() { done = n.loop.caughtUp() }); err != nil {
			return nil
		}
		if done {
			n.fillInboxes(ctx, im.Repaired)
			return removeIfThere(n.home.path(importedFile))
		}
		select {
		case <-ctx.Done():
			return nil
		case <-limit.C:
			n.fillInboxes(ctx, im.Repaired)
			what := "after " + time.UnixMilli(im.Exported).Format("2006-01-02 15:04:05") + ", when its home was exported,"
			if im.Repaired {
				what = "and its damaged store has lost"
			}
			n.warnings.set("imported", "no other node of the inside answered within "+n.cfg.askTime.String()+": what this node dealt with "+what+
				" may be given out once more. Start another member, and this one anew: aster up --replace")
			return nil
		case <-tick.C:
		}
	}
}

// caughtUp: nobody else is inside, or all of the inside that are linked were compared with, at least one, and nothing that
// they have of this node's logs is lacking.
func (l *loop) caughtUp() bool {
	others, asked := 0, 0
	for peer, m := range l.known() {
		if peer == l.n.home.peer || m.Revoked || !m.Valid || l.n.standingOf(peer) != mesh.Inside {
			continue
		}
		others++
		if l.peers[peer] == nil {
			continue
		}
		if !l.rep.Whole(peer, l.n.home.peer) {
			return false
		}
		asked++
	}
	return others == 0 || asked > 0
}

// behind lets a part begin only once mail may be given out.
func behind(gate <-chan struct{}, f func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		select {
		case <-gate:
			return f(ctx)
		case <-ctx.Done():
			return nil
		}
	}
}

// fillInboxes takes up what agents here are owed of what came again.
func (n *Node) fillInboxes(ctx context.Context, repaired bool) {
	for after, more := uint64(0), n.store.Recovery().Reason != "" || repaired; more; {
		var err error
		if n.loop.call(ctx, func() { after, err = n.loop.replayReceipts(after) }) != nil {
			return
		}
		if err != nil {
			n.log.Error("receipts not read again", "err", err)
		}
		more = after > 0
	}
	_ = n.loop.call(ctx, n.loop.fillInboxes) // it only fails when the node ends
}
