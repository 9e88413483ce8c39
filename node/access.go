package node

import (
	"context"
	"errors"
	"io/fs"
	"net/http"
	"net/netip"
	"os"
	"time"

	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/roles/access"
	"github.com/aster-mesh/aster/roles/keys"
)

// accessLook is how often access.json is looked at: what the contract promises (wire 7.2).
const accessLook = time.Second

// warnAccess is the kind of the warning that speaks of the file. aster doctor knows it by its first word.
const warnAccess = "access"

// fileLook is what a file looked like.
type fileLook struct {
	mod  time.Time
	size int64
}

// openAccess makes the lists of the home hold. Without a readable file nobody but this machine is let in: an owner who
// shut doors must not find them open after a restart.
func (n *Node) openAccess() {
	n.accessRead = lookAt(n.home.path("access.json")) // before it is read: what changes from here on is seen
	if _, err := n.web.LoadAccess(); err != nil {
		n.web.ShutOut()
		n.warnings.set(warnAccess, "access.json is not readable ("+err.Error()+"): only this machine is let in")
	}
}

// watchAccess follows what somebody writes into access.json. What is not readable changes nothing, and is said.
func (n *Node) watchAccess(ctx context.Context) error {
	looks := time.NewTicker(accessLook)
	defer looks.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-looks.C:
			n.lookAtAccess()
		}
	}
}

// lookAtAccess reads access.json if it is not as it was when it was read last. One goroutine calls it.
func (n *Node) lookAtAccess() {
	look := lookAt(n.home.path("access.json"))
	if look.mod.Equal(n.accessRead.mod) && look.size == n.accessRead.size {
		return
	}
	n.accessRead = look
	changed, err := n.web.LoadAccess()
	if err != nil {
		n.warnings.set(warnAccess, "access.json is not readable ("+err.Error()+"): what it said before holds")
		return
	}
	n.warnings.clear(warnAccess)
	if changed {
		n.accessChanged()
	}
}

func lookAt(path string) fileLook {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return fileLook{size: -1}
	}
	if err != nil {
		return fileLook{size: -2}
	}
	return fileLook{info.ModTime(), info.Size()}
}

// accessChanged makes the lists hold for the sockets that are open.
func (n *Node) accessChanged() {
	_ = n.loop.post(n.ctx, func() {
		for _, s := range n.loop.sockets {
			n.loop.bar(s)
		}
	})
}

// bar ends a session whose address may not come in as it did.
func (l *loop) bar(s *socket) bool {
	no := s.barred(s.surface())
	if no != nil {
		l.endSession(s, keys.Key{}, no)
	}
	return no != nil
}

// remoteOf is where a request comes from; the zero address, which no list lets in, where that cannot be told.
func remoteOf(r *http.Request) netip.Addr {
	at, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.Addr{}
	}
	return at.Addr().Unmap()
}

// surface is the door that a socket came in by, as far as that is decided. Call it in the loop.
func (s *socket) surface() access.Surface {
	switch {
	case s.as != nil && s.proxy:
		return access.MCP
	case s.as != nil:
		return access.Agent
	case s.board:
		return access.UI
	}
	return "" // it has not said which agent it is, and is shown nothing
}

// barred says why a socket's address may not come in by a door, or come in by it as it does.
func (s *socket) barred(by access.Surface) *protocol.Refusal {
	rules := s.n.web.Access()
	switch {
	case by == "" && !rules.AllowsAny(s.from), by != "" && !rules.Allows(by, s.from):
		return protocol.Refuse(access.CodeAddress, "this node does not let agents in from your address", "ask its owner, who can see and change that at /api/access")
	case (by == access.Agent || by == access.MCP) && rules.Agent.RequireKey && !s.keyed && !s.hostLocal:
		return protocol.Refuse(protocol.CodeKeyRequired, "agents of other machines need a key here", "ask the board's owner for a key: aster key issue")
	}
	return nil
}
