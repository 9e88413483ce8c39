package web

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/aster-mesh/aster/protocol"
)

// Keeper keeps what the board must know after a restart: a few kilobytes that nobody else may read.
type Keeper interface {
	// Load returns what was saved last, or nothing.
	Load() ([]byte, error)
	// Save replaces it whole, and returns once that survives a crash.
	Save([]byte) error
}

const (
	// operatorsMax bounds the accounts of one board; more people than this want several boards.
	operatorsMax = 32
	// endedMax bounds sessions that were ended before their time and are remembered until it; one more ends them all.
	endedMax = 4096
)

// operators are the accounts of people, and which sign-ins hold. Safe for concurrent use.
type operators struct {
	keep  Keeper // nil: nothing outlives the process
	ended func() // called after a change, which may have ended sessions; set before the first request

	// without is done once there is an account: whoever was let in for being on this machine is not any more.
	without context.Context
	first   context.CancelFunc

	mu   sync.Mutex
	file operatorsFile
	open map[sessionTag]openSession
}

// operatorsFile is what is kept.
type operatorsFile struct {
	Round    uint32             `json:"round"`            // of sign-ins; one of an earlier round counts no more
	Ended    map[string]int64   `json:"ended,omitempty"`  // tag of a session that was ended → when it would have ended, ms
	Epochs   uint32             `json:"epochs,omitempty"` // of accounts and passwords so far
	Accounts map[string]account `json:"accounts,omitempty"`
}

type account struct {
	Password password `json:"password"`
	Epoch    uint32   `json:"epoch"` // another with each password: sessions by an older one are over
	Made     int64    `json:"made"`  // ms
}

// openSession ends what a session holds open when it is ended.
type openSession struct {
	ctx    context.Context
	cancel context.CancelFunc
	in     admission
}

func newOperators(keep Keeper) (*operators, error) {
	o := &operators{keep: keep, open: map[sessionTag]openSession{}}
	o.without, o.first = context.WithCancel(context.Background())
	if keep != nil {
		raw, err := keep.Load()
		if err != nil {
			return nil, fmt.Errorf("read accounts: %w", err)
		}
		if len(raw) > 0 {
			if err := json.Unmarshal(raw, &o.file); err != nil {
				return nil, fmt.Errorf("read accounts: %w", err) // to go on without would open what they guard
			}
		}
	}
	if o.file.Accounts == nil {
		o.file.Accounts = map[string]account{}
	}
	if o.file.Ended == nil {
		o.file.Ended = map[string]int64{}
	}
	if len(o.file.Accounts) > 0 {
		o.first()
	}
	return o, nil
}

// change applies do to a copy and makes it the truth once it is kept. Then it ends the sessions that hold no more.
func (o *operators) change(now time.Time, do func(*operatorsFile) *protocol.Refusal) error {
	err := o.exchange(now, do)
	if err == nil && o.ended != nil {
		o.ended()
	}
	return err
}

func (o *operators) exchange(now time.Time, do func(*operatorsFile) *protocol.Refusal) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	next := o.file
	next.Accounts, next.Ended = maps.Clone(o.file.Accounts), maps.Clone(o.file.Ended)
	if no := do(&next); no != nil {
		return no
	}
	maps.DeleteFunc(next.Ended, func(_ string, until int64) bool { return until <= now.UnixMilli() })
	if len(next.Ended) > endedMax {
		next.Round, next.Ended = next.Round+1, map[string]int64{}
	}
	if o.keep != nil {
		raw, err := json.MarshalIndent(next, "", "  ")
		if err == nil {
			err = o.keep.Save(append(raw, '\n'))
		}
		if err != nil {
			return fmt.Errorf("keep accounts: %w", err)
		}
	}
	o.file = next
	if len(next.Accounts) > 0 {
		o.first()
	}
	for tag, s := range o.open {
		if !o.file.holds(&s.in) {
			s.cancel()
			delete(o.open, tag)
		}
	}
	return nil
}

// holds says whether a sign-in that is in time was not ended.
func (f *operatorsFile) holds(in *admission) bool {
	if in.round != f.Round || f.Ended[hex.EncodeToString(in.tag[:])] != 0 {
		return false
	}
	if in.account == "" {
		return true
	}
	a, ok := f.Accounts[in.account]
	return ok && a.Epoch == in.epoch
}

// still says whether a sign-in that is in time was not ended.
func (o *operators) still(in *admission) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.file.holds(in)
}

// enter says whether a sign-in holds, and returns what ends with it.
func (o *operators) enter(in admission, now time.Time) (context.Context, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.file.holds(&in) {
		return nil, false
	}
	s, ok := o.open[in.tag]
	if !ok {
		for tag, old := range o.open {
			if !now.Before(old.in.until) {
				old.cancel()
				delete(o.open, tag)
			}
		}
		s.in = in
		s.ctx, s.cancel = context.WithCancel(context.Background())
		o.open[in.tag] = s
	}
	return s.ctx, true
}

// any says whether there are accounts: then nobody is let in for being on this machine.
func (o *operators) any() bool { return o.count() > 0 }

func (o *operators) count() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.file.Accounts)
}

func (o *operators) names() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Sorted(maps.Keys(o.file.Accounts))
}

func (o *operators) account(name string) (account, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	a, ok := o.file.Accounts[name]
	return a, ok
}

// round is what a new session belongs to.
func (o *operators) round() uint32 {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.file.Round
}

// put makes an account, or gives it another password, which ends its sessions.
func (o *operators) put(name string, p password, now time.Time) error {
	return o.change(now, func(f *operatorsFile) *protocol.Refusal {
		old, there := f.Accounts[name]
		if !there && len(f.Accounts) >= operatorsMax {
			return protocol.Refuse("LIMIT_EXCEEDED", "a board has at most %d accounts", "aster operator remove", operatorsMax)
		}
		if !there {
			old.Made = now.UnixMilli()
		}
		f.Epochs++
		f.Accounts[name] = account{Password: p, Epoch: f.Epochs, Made: old.Made}
		return nil
	})
}

func (o *operators) remove(name string, now time.Time) error {
	return o.change(now, func(f *operatorsFile) *protocol.Refusal {
		if _, ok := f.Accounts[name]; !ok {
			return protocol.Refuse(protocol.CodeUnknownID, "there is no account %s", "aster operator list", name)
		}
		delete(f.Accounts, name)
		return nil
	})
}

// end ends one session before its time.
func (o *operators) end(in admission, now time.Time) error {
	return o.change(now, func(f *operatorsFile) *protocol.Refusal {
		f.Ended[hex.EncodeToString(in.tag[:])] = in.until.UnixMilli()
		return nil
	})
}

// endAll ends every session there is.
func (o *operators) endAll(now time.Time) error {
	return o.change(now, func(f *operatorsFile) *protocol.Refusal {
		f.Round++
		f.Ended = map[string]int64{}
		return nil
	})
}
