package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"time"

	"github.com/aster-mesh/aster/node/journal"
	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/api"
)

// repairTime is how long a repair of a running node waits for what others have.
const repairTime = 30 * time.Second

// ExamineHome looks for damage in the store of a home that no node runs in, and changes nothing. *RunningError: one does.
func ExamineHome(ctx context.Context, dir string) (h api.StoreHealth, err error) {
	unlock, err := holdHome(dir)
	if err != nil {
		return h, err
	}
	defer unlock()
	store := filepath.Join(dir, "journal")
	if m, err := readMesh(dir); err == nil && m.Mesh != "" && !isThere(store) {
		h.Faults = append(h.Faults, api.StoreFault{Code: journal.FaultFile, What: "the folder journal is missing"})
	}
	faults, err := journal.Examine(ctx, store)
	for _, f := range faults {
		h.Faults = append(h.Faults, api.StoreFault(f))
	}
	return h, err
}

func holdHome(dir string) (unlock func(), err error) {
	if !isThere(filepath.Join(dir, "mesh.json")) {
		return nil, protocol.Refuse(codeNoHome, "%s is no home of a node", "Say which: aster --home DIR …", dir)
	}
	lock, err := lockFile(filepath.Join(dir, "lock"))
	if errors.Is(err, errLocked) {
		f, _ := ReadNodeFile(dir)
		return nil, &RunningError{f}
	}
	if err != nil {
		return nil, fmt.Errorf("lock home: %w", err)
	}
	return func() { lock.Close() }, nil
}

// repairRounds is how often a store is opened until looking at all of it finds nothing that only opening mends.
const repairRounds = 4

// RepairHome rebuilds the damaged store of a home that no node runs in from what verifies, and sets the damaged files aside.
// What is missing then comes from other nodes once a node runs. *RunningError: one does.
func RepairHome(ctx context.Context, dir string) (h api.StoreHealth, err error) {
	unlock, err := holdHome(dir)
	if err != nil {
		return h, err
	}
	defer unlock()
	sign, err := signerIn(dir)
	if err != nil {
		return h, fmt.Errorf("repair: %w", err)
	}
	faults, err := journal.Examine(ctx, filepath.Join(dir, "journal"))
	if err == nil {
		err = journal.NoteDamage(filepath.Join(dir, "journal"), faults)
	}
	if err != nil {
		return h, fmt.Errorf("repair: %w", err)
	}
	for round := 1; ; round++ {
		store, err := journal.Open(filepath.Join(dir, "journal"), journal.Options{BytesMax: 1 << 62, Log: slog.New(slog.DiscardHandler), Sign: sign})
		if err != nil {
			return h, fmt.Errorf("repair: %w", err)
		}
		_, scrubbed := store.Scrub(ctx)
		h = storeHealth(store, h, nil)
		if err := store.Close(); err != nil && scrubbed == nil {
			return h, fmt.Errorf("repair: %w", err)
		}
		if scrubbed == nil {
			break
		}
		if !errors.Is(scrubbed, journal.ErrDamaged) || round == repairRounds {
			return h, fmt.Errorf("repair: %w", scrubbed)
		}
	}
	if l, is := journal.LossIn(filepath.Join(dir, "journal")); is {
		h.Faults = append(h.Faults, api.StoreFault{Code: journal.FaultLost, What: l.String()})
	}
	if h.Reason == "" {
		return h, nil
	}
	return h, writeFile(filepath.Join(dir, importedFile), imported{Exported: time.Now().UnixMilli(), Repaired: true})
}

// StoreHealth implements web.Backups.
func (n *Node) StoreHealth(ctx context.Context) (h api.StoreHealth, err error) {
	names := map[protocol.PeerID]string{}
	if err := n.loop.call(ctx, func() {
		for p := range n.loop.known() {
			names[p] = n.nameOf(p)
		}
	}); err != nil {
		return h, err
	}
	if why := n.store.Suspicion(); why != "" {
		h.Faults = append(h.Faults, api.StoreFault{Code: journal.FaultNoted, What: why})
	}
	if why := n.lost(); why != "" {
		h.Faults = append(h.Faults, api.StoreFault{Code: journal.FaultLost, What: why})
	}
	return storeHealth(n.store, h, names), nil
}

// lost says that everything was lost, until something of before came again or a person accepts it.
func (n *Node) lost() string {
	dir := n.home.path("journal")
	l, is := journal.LossIn(dir)
	if !is {
		return ""
	}
	heads, err := n.store.Heads()
	if err != nil {
		return l.String()
	}
	for _, h := range heads {
		if h.Log.Peer == n.home.peer && h.Log.Start.At.Time().UnixMilli() < l.At && h.Seq > 0 {
			if err := journal.AcceptLoss(dir); err != nil {
				n.log.Warn("the note of a loss was not removed", "err", err)
			}
			return ""
		}
	}
	return l.String()
}

// AcceptLoss has the node of the home in dir say no more that its store lost everything.
func AcceptLoss(dir string) error { return journal.AcceptLoss(filepath.Join(dir, "journal")) }

func (n *Node) sayLost() {
	if why := n.lost(); why != "" {
		n.warnings.set("lost", why+". To leave it at that: aster doctor --accept-loss")
	} else {
		n.warnings.clear("lost")
	}
}

// stillDamaged withdraws the warning of a rebuilt store once nothing is missing any more, and says what is lost wholly.
func (n *Node) stillDamaged() {
	n.sayLost()
	if n.store.Recovery().Reason == "" || n.store.Suspicion() != "" {
		return
	}
	if h := storeHealth(n.store, api.StoreHealth{}, nil); len(h.Missing)+len(h.Contents)+len(h.Faults) == 0 {
		n.warnings.clear("damaged")
	}
}

// RepairStore implements web.Backups: everything is read again, and what is damaged is asked for.
func (n *Node) RepairStore(ctx context.Context) (api.StoreHealth, error) {
	if _, err := n.store.Scrub(ctx); errors.Is(err, journal.ErrDamaged) {
		return api.StoreHealth{}, protocol.Refuse(codeStoreDamaged, "the store is damaged where only a start mends it (%v)", "aster down, then aster doctor --repair", err)
	} else if err != nil {
		return api.StoreHealth{}, err
	}
	n.fetchDamaged(ctx)
	if err := n.loop.call(ctx, func() { n.loop.mendAt = time.Time{} }); err != nil {
		return api.StoreHealth{}, err
	}
	var h api.StoreHealth
	err := lookUntil(ctx, repairTime, func() (through bool, err error) {
		h, err = n.StoreHealth(ctx)
		return len(h.Missing) == 0, err
	})
	return h, err
}

// The pause between two looks at what was repaired: each reads all heads and lists the content.
const (
	firstPause = 50 * time.Millisecond
	pauseMax   = 2 * time.Second
)

// lookUntil looks until it is through, less and less often, and for the last time after within.
func lookUntil(ctx context.Context, within time.Duration, look func() (through bool, err error)) error {
	for pause, until := firstPause, time.Now().Add(within); ; pause = min(2*pause, pauseMax) {
		through, err := look()
		left := time.Until(until)
		if err != nil || through || left <= 0 {
			return err
		}
		t := time.NewTimer(min(pause, left))
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return context.Cause(ctx)
		}
	}
}

// fetchDamaged asks linked nodes for content that was found damaged.
func (n *Node) fetchDamaged(ctx context.Context) {
	for _, sha := range n.store.DamagedBlobs() {
		if ctx.Err() != nil {
			return
		}
		if err := n.blobs.fetchOnce(ctx, "", protocol.BlobRef{SHA256: sha, Bytes: protocol.BlobBytesMax}); err != nil {
			n.log.Warn("damaged content has not come again", "sha256", sha, "err", err)
		}
	}
}

// fetchDamagedWithin is fetchDamaged for whoever waits no longer than that: the rest comes beside everything else.
func (n *Node) fetchDamagedWithin(ctx context.Context, most time.Duration) {
	through := make(chan struct{})
	n.wait.Go(func() {
		defer close(through)
		n.fetchDamaged(ctx)
	})
	limit := time.NewTimer(most)
	defer limit.Stop()
	select {
	case <-through:
	case <-limit.C:
	case <-ctx.Done():
	}
}

func (n *Node) reportRecovery() {
	n.sayLost()
	r := n.store.Recovery()
	if r.TornBytes > 0 {
		n.log.Info("unfinished commit left out", "part", "journal", "bytes", r.TornBytes)
	}
	if r.Reason == "" {
		return
	}
	kept := ""
	if len(r.SetAside) > 0 {
		kept = "; the old files are kept"
	}
	n.warnings.set("damaged", fmt.Sprintf("the store was damaged (%s): %d records were taken over, the rest comes from other nodes%s. See what is missing, and mend it: aster doctor --repair",
		r.Reason, r.Salvaged, kept))
	n.log.Error("damaged store set aside", "part", "journal", "reason", r.Reason, "files", r.SetAside, "salvaged", r.Salvaged, "lost", len(r.Lost))
}
