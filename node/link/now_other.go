//go:build !unix

package link

import (
	"net"
	"syscall"
)

// rawOf is nil: here a socket cannot be asked to take only what it has room for.
func rawOf(net.Conn) syscall.RawConn { return nil }

func writeNow(syscall.RawConn, []byte) int { return 0 }
