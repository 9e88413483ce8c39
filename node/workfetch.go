package node

import (
	"context"
	"errors"
	"time"

	"github.com/aster-mesh/aster/protocol"
)

const (
	// startAgain is after how long a Delegate is tried again that could not be started for something that may pass. A peer that
	// links makes it at once.
	startAgain = time.Minute
	// fetchesMax is for how many Delegates at once what they need is fetched; the others wait.
	fetchesMax = 4
)

// delayed is a Delegate that stays unread for now.
type delayed struct {
	stop   context.CancelFunc // of its fetch; nil: none runs
	again  time.Time          // not tried before
	lacked error              // what the last fetch made of it
}

const useBase = "base" // of the bundle that a task starts from

// bring says that all that a Delegate needs is on this disk, or why it never will be. What is not here is fetched beside, so that
// a Cancel and other Delegates are taken up meanwhile; the Delegate stays unread until then.
func (r *runner) bring(ctx context.Context, env *protocol.Envelope) (here bool, err error) {
	var lacking []protocol.BlobRef
	for i, b := range env.AllBlobs() {
		value := i == 0 && env.ValueBlob != nil
		if (value || b.Use == "" || b.Use == useBase) && !r.n.store.HasBlob(b.SHA256) {
			lacking = append(lacking, b)
		}
	}
	if len(lacking) == 0 {
		return true, nil
	}
	if err := r.w.Started(env.ID, max(valueOf[int](env.Value, "attempt"), 1), env.From); err != nil {
		return false, err
	}
	d := r.delayed[env.ID]
	switch {
	case d != nil && d.stop != nil:
		return false, nil
	case d != nil && d.lacked != nil:
		err, d.lacked = d.lacked, nil
		var no *protocol.Refusal
		if errors.As(err, &no) {
			return false, err
		}
		r.delay(env, err)
		return false, nil
	case d != nil && time.Now().Before(d.again):
		return false, nil
	case r.fetching >= fetchesMax:
		return false, nil // the end of another wakes
	}
	if d == nil {
		d = &delayed{}
		r.delayed[env.ID] = d
	}
	fetch, stop := context.WithTimeout(ctx, blobTime)
	d.stop = stop
	r.fetching++
	r.n.wait.Go(func() {
		defer stop()
		var err error
		for _, b := range lacking {
			if err = r.n.fetchForTask(fetch, b); err != nil {
				break
			}
		}
		r.gate.Lock()
		d.stop, d.lacked = nil, err
		r.fetching--
		r.gate.Unlock()
		notify(r.wake)
	})
	return false, nil
}

// delay leaves a Delegate unread until startAgain from now or until a peer links.
func (r *runner) delay(env *protocol.Envelope, why error) {
	r.n.log.Warn("task not started yet", "part", "worker", "msg", env.ID, "err", why)
	d := r.delayed[env.ID]
	if d == nil {
		d = &delayed{}
		r.delayed[env.ID] = d
	}
	d.again = time.Now().Add(startAgain)
	r.n.later(startAgain, func() { notify(r.wake) })
}

// forget ends what is done for a Delegate that is unread no more.
func (r *runner) forget(id protocol.MsgID) {
	if d := r.delayed[id]; d != nil && d.stop != nil {
		d.stop()
	}
	delete(r.delayed, id)
}

// linked tries again at once what waits for a peer. Any goroutine may call it.
func (r *runner) linked() {
	r.retry.Store(true)
	notify(r.wake)
}
