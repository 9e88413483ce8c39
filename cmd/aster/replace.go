package main

import (
	"context"
	"errors"
	"net"
	"strings"
	"time"

	"github.com/aster-mesh/aster/cmd/aster/internal/client"
	"github.com/aster-mesh/aster/node"
)

const (
	// replaceWait is how long the node that is replaced may take to hear that it is to end, and then to end: one commit, one
	// checkpoint, its parts.
	replaceWait = 10 * time.Second
	// askWithin bounds one request to it. A request on a new connection may wait in our own queue, where nobody answers yet.
	askWithin = time.Second
)

// takePlace makes cfg that of a node which goes on where the running one stops. The port is opened beside it before it is
// told to: several clients give up for good when a port is refused once. Where that cannot be (Windows, a node that does
// not share), the other stops first.
func (a *app) takePlace(ctx context.Context, cfg *node.Config) error {
	c, err := client.Open(a.home)
	if errors.Is(err, client.ErrNotRunning) {
		return nil
	}
	if err != nil {
		return err
	}
	defer c.Close()
	until := time.Now().Add(replaceWait)
	defer func() { cfg.LockWait = max(time.Until(until), askWithin) }()
	asking, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	if _, err := c.Status(asking); errors.Is(err, client.ErrNotRunning) {
		return nil // its file is left over, or it holds the home and serves nobody: the lock tells which
	}
	// The connection of that question is kept, so the next one reaches the same process.
	if addr, same := sameBoard(cfg.Board, c.Node().Board); same && cfg.BoardListener == nil {
		if ln, err := node.ListenBeside(ctx, addr); err == nil {
			cfg.BoardListener = ln
		} else {
			cfg.Log.Info("the port is closed until this node serves", "err", err)
		}
	}
	return askToStop(ctx, c, until)
}

// askToStop returns when the node has begun to end, or cannot be asked.
func askToStop(ctx context.Context, c *client.Client, until time.Time) error {
	for time.Now().Before(until) {
		asking, cancel := context.WithTimeout(ctx, askWithin)
		err := c.Down(asking)
		cancel()
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if !errors.Is(err, context.DeadlineExceeded) {
			return nil // what it did not hear, it shows by its lock
		}
	}
	return nil
}

// sameBoard says whether a configuration wants the board where it runs now, and where that is. A free port means the
// present one: clients know it.
func sameBoard(want, url string) (addr string, same bool) {
	addr = strings.TrimSuffix(strings.TrimPrefix(url, "http://"), "/")
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return "", false
	}
	if want == "" || want == addr {
		return addr, true
	}
	wantHost, wantPort, err := net.SplitHostPort(want)
	return addr, err == nil && wantHost == host && wantPort == "0"
}
