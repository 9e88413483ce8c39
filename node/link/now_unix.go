//go:build unix

package link

import (
	"net"
	"syscall"
)

// rawOf is nil for a connection that is no plain socket.
func rawOf(c net.Conn) syscall.RawConn {
	tcp, ok := c.(*net.TCPConn)
	if !ok {
		return nil
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return nil
	}
	return raw
}

// writeNow writes what the socket takes without waiting. An error shows at the next write that waits.
func writeNow(raw syscall.RawConn, p []byte) (n int) {
	_ = raw.Write(func(fd uintptr) bool {
		for n < len(p) {
			m, err := syscall.Write(int(fd), p[n:])
			if err == syscall.EINTR {
				continue
			}
			if err != nil || m <= 0 {
				break
			}
			n += m
		}
		return true
	})
	return n
}
