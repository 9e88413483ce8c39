package node

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// lockLook is how often a node that takes over looks whether the other has let go of the home.
const lockLook = 10 * time.Millisecond

// openHomeWithin is openHome that waits up to Config.LockWait for the process that holds the home to end.
func openHomeWithin(ctx context.Context, cfg Config) (*home, error) {
	began := time.Now()
	look := time.NewTicker(lockLook)
	defer look.Stop()
	for {
		h, err := openHome(cfg.Home)
		var other *RunningError
		if !errors.As(err, &other) || cfg.LockWait <= 0 {
			return h, err
		}
		if time.Since(began) >= cfg.LockWait {
			return nil, fmt.Errorf("the node that runs here (pid %d) was told to stop and still holds %s. See why: aster logs. End it by hand, then run aster up again",
				other.File.PID, cfg.Home)
		}
		select {
		case <-look.C:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}
