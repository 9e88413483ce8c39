package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"
)

// Bench says how to measure.
type Bench struct {
	Self    string        // this program
	Dir     string        // homes and files of the measurement; its disk is the one measured
	For     time.Duration // of each measured case, about
	Records int           // in the home of start's second case
	Attacks string        // of hostile only those whose name holds this
	env     []string      // of the processes, beside ours
	nice    bool          // they run when nobody else wants the processor
	// Say is told what begins; nil: nobody watches.
	Say func(string)
}

// Names are what Run takes, in the order of "all".
var Names = []string{"start", "relay", "fanout", "journal", "idle", "hostile"}

var parts = map[string]func(*Bench, context.Context) ([]Row, error){
	"start": (*Bench).start, "relay": (*Bench).relay, "fanout": (*Bench).fanout, "journal": (*Bench).journal, "idle": (*Bench).idle, "hostile": (*Bench).hostile,
}

// Run measures one of Names and returns its rows; those measured before an error are returned with it.
func (b *Bench) Run(ctx context.Context, name string) ([]Row, error) {
	part := parts[name]
	if part == nil {
		return nil, fmt.Errorf("there is no bench %q", name)
	}
	dir, err := os.MkdirTemp(b.Dir, "aster-bench-")
	if err != nil {
		return nil, fmt.Errorf("make a folder to measure in: %w", err)
	}
	here := *b
	here.Dir = dir
	rows, err := part(&here, ctx)
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return rows, errors.Join(err, os.RemoveAll(dir))
}

func (b *Bench) say(format string, args ...any) {
	if b.Say != nil {
		b.Say(fmt.Sprintf(format, args...))
	}
}
