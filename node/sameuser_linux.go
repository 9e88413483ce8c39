package node

import (
	"encoding/binary"
	"net"
	"net/http"
	"net/netip"
	"os"
	"syscall"
)

// Netlink's question for one TCP socket (linux/inet_diag.h, linux/sock_diag.h).
const (
	netlinkSockDiag  = 4
	sockDiagByFamily = 20
	diagRequestBytes = 16 + 56
	diagUIDOffset    = 16 + 4 + 48 + 12 // header; family, state, timer, retrans; sockid; expires, rqueue, wqueue
)

// sameUser says whether the other end of a loopback connection belongs to the user that runs this node (or to root).
// It asks the kernel for exactly that socket, so its cost does not grow with the number of connections.
func sameUser(r *http.Request) bool {
	remote, err1 := netip.ParseAddrPort(r.RemoteAddr)
	localAddr, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if err1 != nil || !ok {
		return false
	}
	local, err := netip.ParseAddrPort(localAddr.String())
	if err != nil {
		return false
	}
	uid, ok := ownerOf(remote, local)
	return ok && (uid == uint32(os.Geteuid()) || uid == 0)
}

// ownerOf returns the user of the socket whose own address is from and whose peer is to.
func ownerOf(from, to netip.AddrPort) (uint32, bool) {
	fd, err := syscall.Socket(syscall.AF_NETLINK, syscall.SOCK_DGRAM|syscall.SOCK_CLOEXEC, netlinkSockDiag)
	if err != nil {
		return 0, false
	}
	defer syscall.Close(fd)
	if err := syscall.SetsockoptTimeval(fd, syscall.SOL_SOCKET, syscall.SO_RCVTIMEO, &syscall.Timeval{Sec: 1}); err != nil {
		return 0, false
	}
	// A client may dial an IPv4 address through an IPv6 socket: ask for both families.
	for _, family := range []uint8{syscall.AF_INET, syscall.AF_INET6} {
		if uid, ok := askOwner(fd, family, from, to); ok {
			return uid, true
		}
	}
	return 0, false
}

func askOwner(fd int, family uint8, from, to netip.AddrPort) (uint32, bool) {
	req := make([]byte, diagRequestBytes)
	native := binary.NativeEndian
	native.PutUint32(req[0:], diagRequestBytes)
	native.PutUint16(req[4:], sockDiagByFamily)
	native.PutUint16(req[6:], syscall.NLM_F_REQUEST)
	req[16], req[17] = family, syscall.IPPROTO_TCP
	native.PutUint32(req[20:], ^uint32(0)) // any state
	id := req[24:]
	binary.BigEndian.PutUint16(id[0:], from.Port())
	binary.BigEndian.PutUint16(id[2:], to.Port())
	if !putAddr(id[4:20], family, from.Addr()) || !putAddr(id[20:36], family, to.Addr()) {
		return 0, false
	}
	native.PutUint64(id[40:], ^uint64(0)) // no cookie
	if err := syscall.Sendto(fd, req, 0, &syscall.SockaddrNetlink{Family: syscall.AF_NETLINK}); err != nil {
		return 0, false
	}
	answer := make([]byte, 4096)
	n, _, err := syscall.Recvfrom(fd, answer, 0)
	if err != nil || n < diagUIDOffset+4 || native.Uint16(answer[4:]) != sockDiagByFamily {
		return 0, false
	}
	return native.Uint32(answer[diagUIDOffset:]), true
}

func putAddr(dst []byte, family uint8, a netip.Addr) bool {
	a = a.WithZone("")
	if family == syscall.AF_INET {
		if a = a.Unmap(); !a.Is4() {
			return false
		}
		v := a.As4()
		copy(dst, v[:])
		return true
	}
	v := a.As16()
	copy(dst, v[:])
	return true
}
