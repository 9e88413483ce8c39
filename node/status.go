package node

import (
	"context"
	"os"
	"runtime"
	"strconv"
	"strings"

	"github.com/aster-mesh/aster/board/web"
	"github.com/aster-mesh/aster/protocol/api"
	"github.com/aster-mesh/aster/roles/cut"
)

// Status implements web.Viewer.
func (n *Node) Status(ctx context.Context) (st api.Status, err error) {
	n.stillDamaged()
	err = n.loop.call(ctx, func() { st = n.loop.status() })
	if err != nil {
		return st, err
	}
	if st.Boards, err = n.Boards(ctx); err != nil {
		return st, err
	}
	st.Journal, err = n.store.Digest()
	return st, err
}

func (l *loop) status() api.Status {
	n := l.n
	used, free := n.store.Size() // used may be a little over the bound
	st := api.Status{
		Name: n.home.mesh.Name, Peer: n.home.peer, PID: os.Getpid(), Version: n.cfg.Version, Home: n.home.dir,
		Since: n.began.UnixMilli(), Now: l.now.UnixMilli(), MeshID: n.home.mesh.Mesh, Role: l.shownRole(n.home.peer, n.role()), Board: n.boardURL,
		Listen: n.mesh.Addrs(), Loopback: loopbackOnly(n.mesh.Addrs()), Agent: l.own(),
		Records: n.store.Records(), Disk: used, DiskMax: min(used+free, n.store.Bound()), DiskFull: n.noRoom() != nil, DiskShort: n.diskShort(),
		BoardDigest: l.board.Digest(), Goroutines: runtime.NumGoroutine(), ResidentBytes: resident(),
	}
	l.warned(&st)
	st.Copies, st.Retention, st.Compared = l.copies(), n.retentionNow(), l.compared()
	if records := n.cfg.Retention.Records; records > 0 {
		st.Retention.Records = max(records, cut.BaseAge).Milliseconds()
	}
	st.Retention.Next = l.standstill().Why()
	if snap := n.begins.Load(); snap != nil {
		st.Retention.From = snap.Until().UnixMilli()
	}
	if snap := l.board.From(); snap != nil {
		st.Retention.Settled = snap.Until().UnixMilli()
	}
	st.Main = l.main()
	st.Fenced = st.Main.Fenced
	for p, m := range l.known() {
		if m.Revoked || !m.Valid {
			continue
		}
		st.Nodes++
		if l.peers[p] != nil {
			st.Linked++
		}
	}
	for _, lack := range l.rep.Lacking(l.now) {
		st.Behind += lack.Known - lack.Have
	}
	return st
}

// resident is the process's memory as the system counts it; 0 where it does not say.
func resident() int64 {
	raw, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(raw))
	if len(fields) < 2 {
		return 0
	}
	pages, err := strconv.ParseInt(fields[1], 10, 64)
	if err != nil {
		return 0
	}
	return pages * int64(os.Getpagesize())
}

// snapshotMessages and snapshotTasks keep the page's first request small (BOARD 2: at most 64 KiB).
const (
	snapshotMessages = 100
	snapshotTasks    = 60
)

// Snapshot implements web.Viewer.
func (n *Node) Snapshot(ctx context.Context) (s api.Snapshot, err error) {
	err = n.loop.call(ctx, func() {
		s.Status = n.loop.status()
		s.Peers = n.loop.peerRows()
		s.Agents = n.loop.agents()
		s.Tasks = n.loop.board.Tasks()
		s.Pos = n.loop.pos
	})
	if err != nil {
		return s, err
	}
	s.Status.Journal, err = n.store.Digest()
	if err != nil {
		return s, err
	}
	if len(s.Tasks) > snapshotTasks {
		s.Tasks = s.Tasks[:snapshotTasks]
	}
	s.Messages, err = n.Messages(ctx, web.MessageQuery{Before: s.Pos + 1, Limit: snapshotMessages})
	if err != nil {
		return s, err
	}
	for i := range s.Messages {
		slim(&s.Messages[i]) // the page asks for a message's whole value when somebody opens it
	}
	s.Asks, err = n.Asks(ctx)
	return s, err
}

// warned says what a person should know of, each with its kind.
func (l *loop) warned(st *api.Status) {
	st.WarningKinds, st.Warnings = l.n.warnings.named()
	add := func(kind string, lines ...string) {
		for _, line := range lines {
			st.WarningKinds, st.Warnings = append(st.WarningKinds, kind), append(st.Warnings, line)
		}
	}
	add("copy", l.copyWarnings()...)
	add("fork", l.forkWarnings()...)
	add("differ", l.cutWarnings()...)
	add("bases", l.baseWarnings()...)
	add("half", l.halfWarnings()...)
	if why := l.n.store.Suspicion(); why != "" {
		add("suspect", "the store may be damaged ("+why+"): end the node and mend it: aster down, then aster doctor --repair")
	}
	add("inbox", l.inboxWarnings()...)
	add("trace", l.n.traceWarnings()...)
}
