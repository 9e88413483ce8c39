package mesh

import (
	"context"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"golang.org/x/time/rate"

	"github.com/aster-mesh/aster/protocol"
)

// A member may open so many streams at once, and for long so many a second; one more waits before anything is read from it. Each
// costs a negotiation, and one that opens them without end would have a processor to itself. Attachments take one each.
const (
	opensPerSec = 100
	opensBurst  = 200
)

// opens holds members to that. The zero value is ready. Safe for concurrent use.
type opens struct {
	mu sync.Mutex
	of map[protocol.PeerID]*rate.Limiter
}

// wait returns when a member may have one more stream served; false: ctx ended first.
func (o *opens) wait(ctx context.Context, from protocol.PeerID) bool {
	o.mu.Lock()
	if o.of == nil {
		o.of = map[protocol.PeerID]*rate.Limiter{}
	}
	l := o.of[from]
	if l == nil { // members alone come here, whose number is bounded
		l = rate.NewLimiter(opensPerSec, opensBurst)
		o.of[from] = l
	}
	o.mu.Unlock()
	return l.Wait(ctx) == nil
}

// A member that goes on opening streams beyond the resource limits, or has one link after the other end for what it sends on it, is
// cut off: each refusal costs a processor, which its others need. It may come back after outFor. No honest node comes near.
const (
	offencesBurst  = 250
	offencesPerSec = 10
	streamOffence  = 1
	linkOffence    = 50
	outFor         = 30 * time.Second
)

// offences are who is out, and how far others have got. The zero value is ready. Safe for concurrent use.
type offences struct {
	mu  sync.Mutex
	of  map[protocol.PeerID]*rate.Limiter
	out map[protocol.PeerID]time.Time // until when
}

// more notes an offence of a member and says whether it is the one too many; of those after it, it is not.
func (o *offences) more(of protocol.PeerID, weight int, now time.Time) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if now.Before(o.out[of]) {
		return false
	}
	l := o.of[of]
	if l == nil { // members alone come here, whose number is bounded
		if o.of == nil {
			o.of, o.out = map[protocol.PeerID]*rate.Limiter{}, map[protocol.PeerID]time.Time{}
		}
		l = rate.NewLimiter(offencesPerSec, offencesBurst)
		o.of[of] = l
	}
	if l.AllowN(now, weight) {
		return false
	}
	o.out[of] = now.Add(outFor)
	return true
}

// isOut says whether a member is cut off now.
func (o *offences) isOut(p protocol.PeerID) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return time.Now().Before(o.out[p])
}

// offended notes an offence, and cuts who did it off when that is one too many. It does not wait.
func (m *Mesh) offended(by protocol.PeerID, weight int, why string) {
	if !m.cfg.Standing(by).Member() || !m.offences.more(by, weight, time.Now()) || !m.enter() {
		return
	}
	m.log.Warn("peer cut off", "peer", by, "why", why, "for", outFor)
	go func() {
		defer m.wg.Done()
		m.closePeer(by, ErrOffends)
	}()
}

// counting is the resource manager as the swarm has it: it tells of streams that are refused before anything is read from them.
type counting struct {
	network.ResourceManager
	refused func(peer.ID)
}

func (c counting) OpenStream(p peer.ID, dir network.Direction) (network.StreamManagementScope, error) {
	scope, err := c.ResourceManager.OpenStream(p, dir)
	if err != nil && dir == network.DirInbound {
		c.refused(p)
	}
	return scope, err
}
