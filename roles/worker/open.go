package worker

import (
	"slices"
	"strings"

	"github.com/aster-mesh/aster/protocol"
)

// Open lists the tasks that were started here and whose end was not reported yet, in the order of their folders. Any
// goroutine may call it.
func (w *Worker) Open() []protocol.TaskID {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := make([]*attempt, 0, len(w.attempts))
	for _, a := range w.attempts {
		all = append(all, a)
	}
	slices.SortFunc(all, func(a, b *attempt) int { return strings.Compare(a.name, b.name) })
	out := make([]protocol.TaskID, len(all))
	for i, a := range all {
		out[i] = a.order.Task
	}
	return out
}

// Waiting is how many tasks were started and wait for a slot. Any goroutine may call it.
func (w *Worker) Waiting() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.queue)
}
