package node

import (
	"maps"
	"math"
	"net/http"
	"strconv"
	"sync"
	"time"
)

const (
	// knockSpan is how long a refusal is remembered.
	knockSpan = 5 * time.Minute
	// knocksFree is how many refusals are answered at once: a person who corrects a mistake is not made to wait.
	knocksFree = 5
	// knockWaitMax bounds how long the answer is held back then: some clients start anew within half a second, for ever.
	knockWaitMax = 8 * time.Second
	// knockersMax bounds who is remembered.
	knockersMax = 1024
)

// knocks counts refusals of clients that come again and again with what was refused (faults B5, KF8). The zero value is
// ready. Safe for concurrent use.
type knocks struct {
	mu sync.Mutex
	of map[string]knocker
}

type knocker struct {
	times int
	last  time.Time
}

// refused notes one more refusal of who, and says how long its answer shall be held back.
func (k *knocks) refused(who string, now time.Time) time.Duration {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.of == nil {
		k.of = map[string]knocker{}
	}
	o, ok := k.of[who]
	if !ok && len(k.of) >= knockersMax {
		maps.DeleteFunc(k.of, func(_ string, o knocker) bool { return now.Sub(o.last) >= knockSpan })
		for other := range k.of {
			if len(k.of) < knockersMax {
				break
			}
			delete(k.of, other)
		}
	}
	if now.Sub(o.last) >= knockSpan {
		o.times = 0
	}
	o.times, o.last = o.times+1, now
	k.of[who] = o
	if o.times <= knocksFree {
		return 0
	}
	return min(time.Second<<min(o.times-knocksFree-1, 10), knockWaitMax)
}

// comeBack answers an upgrade whose key alone was refused time and again: a client that cannot read ConnectionRejected at
// least learns when to come again.
func comeBack(w http.ResponseWriter, wait time.Duration) {
	w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(wait.Seconds()))))
	http.Error(w, "this key was refused, and still is", http.StatusTooManyRequests)
}
