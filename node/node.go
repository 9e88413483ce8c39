package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aster-mesh/aster/board"
	"github.com/aster-mesh/aster/board/web"
	"github.com/aster-mesh/aster/node/bridge"
	"github.com/aster-mesh/aster/node/gossip"
	"github.com/aster-mesh/aster/node/hub"
	"github.com/aster-mesh/aster/node/journal"
	"github.com/aster-mesh/aster/node/mesh"
	"github.com/aster-mesh/aster/node/trace"
	"github.com/aster-mesh/aster/node/turn"
	"github.com/aster-mesh/aster/protocol"
)

// Node is one running node. Run makes it; its methods are the board's Backend and may be called from any goroutine.
type Node struct {
	// Fixed before anything runs.
	cfg      Config
	log      *slog.Logger
	home     *home // mesh is the loop's to change
	store    *journal.Journal
	loop     *loop
	mesh     *mesh.Mesh
	gossip   *gossip.Gossip // nil on an outside node
	web      *web.Server
	push     *pushing
	bridge   *bridge.Bridge
	traces   *trace.Exporter // nil: off
	abroad   *abroad
	runner   *runner // nil without [worker] command
	blobs    *blobs
	pages    *pages
	pastOnce sync.Once
	past     *past // folds of past moments, once somebody looks back
	startID  protocol.Start
	began    time.Time
	token    string
	boardURL string

	ctx  context.Context // ends when the node is to stop
	done <-chan struct{} // of ctx
	stop context.CancelCauseFunc
	wait sync.WaitGroup // sockets, subscriptions and whatever else was started by a request

	standings   atomic.Pointer[standings]
	names       atomic.Pointer[names]
	aliases     atomic.Pointer[hub.Aliases]
	older       atomic.Bool  // the disk was once replaced by an older copy
	ownRole     atomic.Value // protocol.Role
	replicated  sync.Map     // protocol.LogID of ours → uint64
	skews       sync.Map     // protocol.PeerID → time.Duration
	outsideUsed sync.Map     // protocol.PeerID of an outside member, or the like (book) → int64, bytes
	booking     sync.Mutex   // held while it is read and changed outside the loop
	alive       sync.Map     // protocol.PeerID → gossip's word
	connIDs     atomic.Uint64
	strangers   strangers
	unnamed     unnamed
	heardAt     atomic.Uint64 // counts what sockets say that may be boards
	boardPast   boardPast
	knocks      knocks
	warnings    warnings
	lanes       lanes
	debts       debts
	credit      credit
	offenders   offenders
	aside       aside
	revokedBy   atomic.Pointer[string] // a member that refuses this node as revoked; nil: none is known
	health      health
	figures     othersFigures
	document    atomic.Pointer[board.Document] // the state document as it is served; nil: none yet
	channels    atomic.Pointer[board.Channels] // what is put away or deleted
	disk        diskGauge
	shown       shown                 // the loop's
	seeded      []turn.KnownMember    // the loop's; nil: to be verified anew
	fenced      atomic.Pointer[fence] // nil: this start writes
	twins       twins
	differ      atomic.Int64                   // members whose boards differ
	cutCame     chan struct{}                  // capacity 1: there may be a proposal to answer
	begins      atomic.Pointer[board.Snapshot] // where the store begins; nil: with the first records
	begun       atomic.Pointer[begun]          // where it began of another, unconfirmed; nil: nowhere
	baseLook    atomic.Pointer[baseLook]       // what was found last about bases
	fetch       chan baseFrom                  // capacity 1: a snapshot to be fetched
	isUp        atomic.Bool                    // ready has been said
	metrics     http.Handler                   // fixed before anything runs
	uploads     sync.Mutex                     // held while a client's upload is counted and entered
	retention   retention
	accessRead  fileLook // access.json when it was read last; the goroutine's that watches it, once that runs
}

var _ web.Backend = (*Node)(nil)

// mail tells adapters of an agent here that its inbox has grown.
func (n *Node) mail(agent protocol.AgentID) {
	n.bridge.Notify(agent)
	n.abroad.mail(agent)
	if n.runner != nil && protocol.FoldAgentID(n.runner.agent) == protocol.FoldAgentID(agent) {
		notify(n.runner.wake)
	}
}

// later runs f after d unless the node stops first.
func (n *Node) later(d time.Duration, f func()) {
	n.wait.Add(1)
	go func() {
		defer n.wait.Done()
		t := time.NewTimer(d)
		defer t.Stop()
		select {
		case <-t.C:
			f()
		case <-n.done:
		}
	}()
}

// warnings are what a person should know, one line a kind, shown by status and the board until the process ends.
type warnings struct {
	mu    sync.Mutex
	lines map[string]string
}

func (w *warnings) set(kind, line string) (fresh bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.lines == nil {
		w.lines = map[string]string{}
	}
	fresh = w.lines[kind] != line
	w.lines[kind] = line
	return fresh
}

// clear withdraws a line whose reason is gone.
func (w *warnings) clear(kind string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.lines, kind)
}

func (w *warnings) all() []string {
	_, lines := w.named()
	return lines
}

// named are the lines by kind, with the kind of each.
func (w *warnings) named() (kinds, lines []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, kind := range slices.Sorted(maps.Keys(w.lines)) {
		kinds, lines = append(kinds, kind), append(lines, w.lines[kind])
	}
	return kinds, lines
}

func (l *loop) warn(kind, line string) {
	if l.n.warnings.set(kind, line) {
		l.log.Warn(line, "kind", kind)
	}
}

// answerTime is how long a node goes on that was told to end: the answer leaves first.
const answerTime = 100 * time.Millisecond

// Shutdown implements web.Members.
func (n *Node) Shutdown(context.Context) error {
	n.later(answerTime, func() { n.stop(errDown) })
	return nil
}

var errDown = errors.New("asked to stop")

// streams is the mesh as gossip sees it.
type streams struct{ m *mesh.Mesh }

func (s streams) Open(ctx context.Context, to protocol.PeerID) (gossip.Stream, error) {
	return s.m.OpenStream(ctx, to, mesh.Gossip)
}

// onGossip notes what gossip says of the others' liveness.
func (n *Node) onGossip(members []gossip.Member) {
	changed := false
	for _, m := range members {
		old, _ := n.alive.Swap(m.Peer, string(m.State))
		changed = changed || old != string(m.State)
	}
	if changed {
		_ = n.loop.post(n.ctx, n.loop.peersChanged)
	}
}

func (n *Node) aliveness() map[protocol.PeerID]string {
	out := map[protocol.PeerID]string{}
	n.alive.Range(func(p, word any) bool {
		out[p.(protocol.PeerID)] = word.(string)
		return true
	})
	return out
}

func (n *Node) gossipPeers(peers []mesh.Peer) {
	if n.gossip == nil {
		return
	}
	for _, p := range peers {
		if n.standingOf(p.ID) == mesh.Inside {
			n.gossip.Join(p.ID)
		}
	}
}

// submitLine commits a line of an agent's outbox together with the cursor behind it.
func (n *Node) submitLine(ctx context.Context, agent protocol.AgentID, line bridge.Line, cursorKey string, cursor []byte) error {
	values := map[string][]byte{cursorKey: cursor}
	env, keep, err := n.lineEnvelope(agent, line)
	if err != nil {
		return err
	}
	if !keep {
		done := make(chan error, 1)
		if err := n.loop.post(ctx, func() {
			for k, v := range values {
				n.loop.value(k, v)
			}
			n.loop.after = append(n.loop.after, func(err error) { done <- err })
		}); err != nil {
			return err
		}
		select {
		case err := <-done:
			return err
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-n.done:
			return errStopping
		}
	}
	if refusal := n.mute(); refusal != nil {
		return refusal
	}
	if err := n.spill(ctx, &env); err != nil {
		return err
	}
	_, err = n.loop.ask(ctx, func(t hub.Token) hub.Input {
		return n.loop.said(hub.Say{As: agent, Env: env, Values: values, Token: t, BindAs: "files"})
	})
	return err
}

// inboxItems implements bridge.Config.Unread.
func (n *Node) inboxItems(agent protocol.AgentID, after uint64, limit int) ([]bridge.Item, error) {
	rows, err := n.store.Inbox(agent, journal.InboxQuery{All: after > 0, After: after, Limit: limit})
	if err != nil {
		return nil, fmt.Errorf("inbox of %s: %w", agent, err)
	}
	out := make([]bridge.Item, 0, len(rows))
	for i := range rows {
		env := *n.inNames(&rows[i].Message)
		if err := n.fillToShow(&env); err != nil {
			return nil, err
		}
		env.ValueBlob = nil
		if env.Room != "" {
			env.To = agent // each copy of a room's message says for whom it is
		}
		out = append(out, bridge.Item{Pos: rows[i].Message.Pos, At: rows[i].Message.Wall, Envelope: env})
	}
	return out, nil
}
