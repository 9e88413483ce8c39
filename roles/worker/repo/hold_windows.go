package repo

import (
	"context"
	"os"
)

// hold does nothing here: Windows lets no child inherit a lock. A git whose node was killed while it prepared a tree may
// meet the next node's; that attempt then fails by name.
func hold(ctx context.Context, _ string) (context.Context, func(), error) { return ctx, func() {}, nil }

func inherited(context.Context) []*os.File { return nil }
