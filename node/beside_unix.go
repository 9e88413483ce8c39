//go:build unix

package node

import (
	"context"
	"fmt"
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// share lets a later process of the same user open the address of ln beside it, if that asks for it by ListenBeside. It
// is set on a socket that listens already, which it got for itself alone: a node that is only started by mistake on the
// same address asks for no sharing, and is told that it is taken.
func share(ln net.Listener) error {
	tcp, ok := ln.(*net.TCPListener)
	if !ok {
		return nil
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return fmt.Errorf("share the board's port: %w", err)
	}
	return reuse(raw)
}

func reuse(raw syscall.RawConn) error {
	var err error
	if ran := raw.Control(func(fd uintptr) { err = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEPORT, 1) }); ran != nil {
		err = ran
	}
	if err != nil {
		return fmt.Errorf("share the board's port: %w", err)
	}
	return nil
}

// ListenBeside opens the address of a running node's board beside that node, for Config.BoardListener: what connects
// from then on waits in either's queue, and the port is open when the other ends. It fails where the other process is
// another user's or does not share, and on systems that cannot.
func ListenBeside(ctx context.Context, addr string) (net.Listener, error) {
	c := net.ListenConfig{Control: func(_, _ string, raw syscall.RawConn) error { return reuse(raw) }}
	return c.Listen(ctx, "tcp", addr)
}
