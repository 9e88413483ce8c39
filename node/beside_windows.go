package node

import (
	"context"
	"errors"
	"fmt"
	"net"
)

// share does nothing: two processes cannot listen on one address here without either hijacking the other.
func share(net.Listener) error { return nil }

// ListenBeside fails on this system: the running node is stopped first.
func ListenBeside(context.Context, string) (net.Listener, error) {
	return nil, fmt.Errorf("open the board's port beside another process: %w", errors.ErrUnsupported)
}
