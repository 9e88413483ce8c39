package mesh

import (
	"context"
	"net"
	"slices"
	"time"
)

const (
	watchEvery   = 2 * time.Second
	addrsEvery   = 3 // watches: the machine's addresses are read every 6 s, which costs some 0.2 ms
	sleepMin     = 5 * time.Second
	unusedAfter  = 10 * time.Second // connections beside a link's
	unlinkedLife = time.Minute      // connections without a link
)

// watch notices a sleep of the machine or of this process, changes of address, and connections that nothing uses.
func (m *Mesh) watch(ctx context.Context) {
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	last := time.Now()
	addrs := machineAddrs()
	for n := 1; ; n++ {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		now := time.Now()
		if slept := asleep(last, now); slept > sleepMin {
			m.log.Info("slept", "for", slept)
			m.Kick()
		}
		last = now
		if n%addrsEvery != 0 {
			continue
		}
		if next := machineAddrs(); !slices.Equal(next, addrs) {
			addrs = next
			m.moved()
		}
		m.prune()
	}
}

// asleep is for how long nothing ran between two looks that should be watchEvery apart. While a machine sleeps its wall
// clock goes on and the monotonic one does not; while a process is stopped both do, whatever somebody sets the wall clock to.
func asleep(last, now time.Time) time.Duration {
	return max(now.Round(0).Sub(last.Round(0)), now.Sub(last)) - watchEvery
}

// moved follows a change of this machine's addresses.
func (m *Mesh) moved() {
	m.mu.Lock()
	lan := m.lan
	m.mu.Unlock()
	if lan {
		if err := m.listenLAN(); err != nil {
			m.log.Warn("new address not listened on", "err", err)
		}
	}
	m.log.Info("addresses changed", "addrs", m.Addrs())
	if m.cfg.OnAddrs != nil {
		m.cfg.OnAddrs(m.Addrs())
	}
	m.Kick()
}

func machineAddrs() []string {
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		return nil
	}
	out := make([]string, len(addrs))
	for i, a := range addrs {
		out[i] = a.String()
	}
	slices.Sort(out)
	return out
}

// prune closes connections without streams: those that lost against another when both sides dialled, and those whose
// purpose is over. Both sides know which connection carries the link, so they agree on which go.
func (m *Mesh) prune() {
	for _, c := range m.host.swarm.Conns() {
		if len(c.GetStreams()) > 0 || m.carriesLink(c) {
			continue
		}
		life := unlinkedLife
		if p, _, ok := remote(c.RemotePeer()); ok && m.link(p) != nil {
			life = unusedAfter
		}
		if time.Since(c.Stat().Opened) > life {
			m.dropConn(c)
		}
	}
}
