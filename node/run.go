package node

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/oklog/run"

	"github.com/aster-mesh/aster/board/web"
	"github.com/aster-mesh/aster/node/bridge"
	"github.com/aster-mesh/aster/node/gossip"
	"github.com/aster-mesh/aster/node/hub"
	"github.com/aster-mesh/aster/node/journal"
	"github.com/aster-mesh/aster/node/mesh"
	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/api"
	"github.com/aster-mesh/aster/roles"
	"github.com/aster-mesh/aster/roles/member"
	"github.com/aster-mesh/aster/roles/worker"
)

// Run runs one node until ctx ends, it is asked to stop, or a part fails; that part's error names it. It returns
// *RunningError when another process holds the home, and *protocol.Refusal when an invite is refused.
func Run(ctx context.Context, cfg Config) (err error) {
	cfg.fill()
	h, err := openHomeWithin(ctx, cfg)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, h.close()) }()
	n := &Node{cfg: cfg, log: cfg.Log, home: h, began: time.Now(), pages: newPages(), token: randomText(32), figures: newFigures(), push: newPushing(&cfg)}
	n.ctx, n.stop = context.WithCancelCause(ctx)
	n.done = n.ctx.Done()
	defer n.stop(errStopping)
	n.blobs = newBlobs(n)
	n.metrics = n.metricsHandler()
	n.twins.seen, n.cutCame, n.fetch = make(chan []string, 1), make(chan struct{}, 1), make(chan baseFrom, 1)

	invite, err := n.placeInMesh()
	if err != nil {
		return err
	}
	if n.store, err = journal.Open(h.path("journal"), journal.Options{BytesMax: cfg.Store.BytesMax, Log: cfg.Log, Sign: signer(h.key)}); err != nil {
		return fmt.Errorf("open journal: %w", err)
	}
	defer func() { err = errors.Join(err, n.store.Close()) }()
	n.reportRecovery()
	if err := n.openMesh(); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, n.mesh.Close()) }()
	var joined *api.Joined
	if invite != nil {
		if joined, err = n.joinAgain(invite); err != nil {
			return err
		}
	}
	board, err := n.openBoard() // before anything is written: a port that is taken leaves a home as it was
	if err != nil {
		return err
	}
	if err := n.open(board); err != nil {
		return errors.Join(err, board.Close())
	}
	if cfg.probe != nil {
		cfg.probe(n)
	}
	err = n.runParts(board, joined)
	n.stop(errStopping)
	n.wait.Wait()
	if errors.Is(context.Cause(n.ctx), errLeft) {
		return n.retire()
	}
	if errors.Is(err, errDown) || errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// open makes the parts, in the order in which they need each other.
func (n *Node) open(board net.Listener) error {
	if err := n.readBegins(); err != nil {
		return err
	}
	if err := n.openLoop(); err != nil {
		return err
	}
	n.loop.readDeclared()
	if err := n.openAbroad(); err != nil {
		return err
	}
	return n.openParts(web.Exposed(board.Addr()))
}

func (c *Config) fill() {
	c.silentWait, c.askTime = cmp.Or(c.silentWait, silentWait), cmp.Or(c.askTime, askTime)
	c.halfAfter, c.fetchWindow = cmp.Or(c.halfAfter, halfAfter), cmp.Or(c.fetchWindow, fetchWindow)
	if c.Deadlock.After <= 0 {
		c.Deadlock.After = deadlockAfter
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
}

func randomText(bytes int) string {
	b := make([]byte, bytes)
	_, _ = rand.Read(b) // crypto/rand never fails
	return hex.EncodeToString(b)
}

// openMesh listens where the home listened before; a port that is taken is replaced by another, and said.
func (n *Node) openMesh() error {
	m := &n.home.mesh
	listen := n.cfg.Mesh
	if len(listen) == 0 {
		port, err := mesh.PickPort(m.Port)
		if err != nil {
			return fmt.Errorf("choose a port for the mesh: %w", err)
		}
		if m.Port != 0 && port != m.Port {
			n.twins.port = m.Port
			n.warnings.set("port", fmt.Sprintf("mesh port %d is taken: using %d from now on", m.Port, port))
		}
		m.Port = port
		listen = mesh.ListenOn(loopback, port)
	}
	n.ownRole.Store(protocol.RoleLocal)
	if chain, err := member.ParseChain(m.Chain); err == nil {
		n.ownRole.Store(chain[0].Cert.Role)
	}
	var err error
	n.mesh, err = mesh.New(mesh.Config{
		Key: n.home.key, Listen: listen, MeshID: m.Mesh, Standing: n.standingOf,
		Admit:  func(ctx context.Context, req mesh.AdmitRequest) ([]byte, bool) { return n.admit(ctx, req) },
		OnLink: n.onLink, OnFrame: n.onFrame, OnLinkDown: n.onLinkDown, OnRefused: n.onRefused, OnAddrs: n.onAddrs, OnOlder: n.onOlder, OnTwin: n.onTwin,
		Log: n.log,
	})
	if err != nil {
		return fmt.Errorf("open mesh: %w", err)
	}
	return n.reopenLAN()
}

// maySee is the replica's question: may a peer hold logs of a scope (DESIGN 4 One way out).
func (n *Node) maySee(viewer protocol.PeerID, s protocol.Scope) bool {
	if viewer == n.home.peer {
		return roles.MaySee(roles.Viewer{Inside: n.role().Inside(), Peer: viewer}, s)
	}
	return roles.MaySee(roles.Viewer{Inside: n.standingOf(viewer) == mesh.Inside, Peer: viewer}, s)
}

// openBoard opens the board's port: a given one or the home's, else the usual one, else a free one, kept from then on.
func (n *Node) openBoard() (net.Listener, error) {
	if n.cfg.BoardListener != nil {
		n.boardURL = "http://" + n.cfg.BoardListener.Addr().String()
		return n.cfg.BoardListener, nil
	}
	m := &n.home.mesh
	tries := []string{n.cfg.Board}
	if n.cfg.Board == "" {
		tries = []string{m.Board, "127.0.0.1:7878", "127.0.0.1:0"}
	}
	var last error
	for _, addr := range tries {
		if addr == "" {
			continue
		}
		ln, err := net.Listen("tcp", addr)
		if err != nil {
			last = err
			continue
		}
		if n.cfg.Board == "" {
			if ln.Addr().String() != m.Board && m.Board != "" {
				n.warnings.set("board-port", fmt.Sprintf("board port %s is taken: using %s from now on", m.Board, ln.Addr()))
			}
			m.Board = ln.Addr().String()
		}
		if err := share(ln); err != nil {
			n.log.Info("aster up --replace will close the port for a moment", "err", err)
		}
		n.boardURL = "http://" + ln.Addr().String()
		return ln, n.home.saveMesh()
	}
	return nil, protocol.Refuse("port-taken", "the board's address %s cannot be opened: %v", "choose another with --board, or end what uses it", n.cfg.Board, last)
}

// openParts makes the parts that need loop and store.
func (n *Node) openParts(exposed bool) error {
	n.mesh.Handle(mesh.Blob, false, n.blobs.serve)
	n.mesh.Handle(mesh.Tail, false, n.serveTail)
	if n.role().Inside() {
		g, err := gossip.New(gossip.Config{
			Self: n.home.peer, Streams: streams{n.mesh}, Meta: []byte(n.home.mesh.Name), OnChange: n.onGossip, Log: n.log,
			Inside: func(p protocol.PeerID) bool { return p == n.home.peer || n.standingOf(p) == mesh.Inside },
		})
		if err != nil {
			return fmt.Errorf("open gossip: %w", err)
		}
		n.gossip = g
		n.mesh.Handle(mesh.Figures, true, n.serveFigures)
		n.mesh.Handle(mesh.Base, true, n.serveBase)
		n.mesh.Handle(mesh.Gossip, true, func(p protocol.PeerID, s mesh.Stream) { g.Serve(p, s) })
	}
	if err := errors.Join(n.openTraces(), n.openWeb(exposed)); err != nil {
		return err
	}
	n.bridge = bridge.New(bridge.Config{Dir: n.home.path("agents"), Submit: n.submitLine, Keep: n.keepAttached, Unread: n.inboxItems, Log: n.log,
		Cursor: func(k string) []byte {
			v, _, err := n.store.Value(k)
			if err != nil {
				n.log.Error("cursor not readable", "part", "bridge", "err", err)
			}
			return v
		}})
	if len(n.cfg.Worker.Command) == 0 {
		return nil
	}
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program: %w", err)
	}
	keeper := n.cfg.Keeper
	if len(keeper) == 0 {
		keeper = []string{self, "keeper"}
	}
	w, err := worker.New(worker.Config{
		Command: n.cfg.Worker.Command, Repo: n.cfg.Worker.Repo, Slots: n.cfg.Worker.Slots, Wall: n.cfg.Worker.Wall,
		OutputBytesMax: n.cfg.Worker.OutputBytes, Tokens: n.cfg.Worker.Tokens, Dir: n.home.path("runs"), Keeper: keeper, Log: n.log, Open: n.openForTask,
	})
	if err != nil {
		return err
	}
	n.runner = &runner{n: n, w: w, wake: make(chan struct{}, 1), told: map[protocol.TaskID]toldProgress{}, delayed: map[protocol.MsgID]*delayed{}}
	return nil
}

// runParts is the run group: the first part that returns ends all, and all are waited for.
func (n *Node) runParts(ln net.Listener, joined *api.Joined) error {
	srv := n.web.HTTP(n.ctx)
	var g run.Group
	add := func(name string, f func(context.Context) error) {
		ctx, cancel := context.WithCancel(n.ctx)
		g.Add(func() error {
			if err := f(ctx); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			return nil
		}, func(error) { cancel() })
	}
	loopCtx, endLoop := context.WithCancel(context.WithoutCancel(n.ctx)) // it ends last, so that what the others said is logged
	loopDone := make(chan error, 1)
	go func() {
		err := n.loop.run(loopCtx)
		close(n.loop.ended)
		n.stop(err)
		loopDone <- err
	}()
	add("journal", n.store.Run)
	add("mesh", n.mesh.Run)
	if n.gossip != nil {
		add("gossip", n.gossip.Run)
	}
	gate := make(chan struct{})
	add("catching up", func(ctx context.Context) error { return n.catchUp(ctx, gate) })
	add("bridge", behind(gate, n.bridge.Run))
	add("boards", behind(gate, n.abroad.run))
	add("health", n.sampleHealth)
	add("state document", n.watchState)
	add("access lists", n.watchAccess)
	add("attachments", n.sweeping)
	add("retention", n.retaining)
	add("comparison", behind(gate, n.comparing))
	if n.cfg.Deadlock.Detect {
		add("deadlock", n.watchDeadlocks)
	}
	for name, part := range map[string]func(context.Context) error{"snapshots": n.fetching, "twins": n.lookForTwins, "traces": n.traces.Run, "web push": behind(gate, n.tellPushes)} {
		add(name, part)
	}
	if n.runner != nil && n.fenced.Load() == nil {
		if err := n.startRunner(); err != nil {
			endLoop()
			return errors.Join(err, <-loopDone, ln.Close())
		}
		add("worker", behind(gate, n.runner.run))
	}
	serving, endServing := context.WithCancel(n.ctx)
	g.Add(func() error {
		select {
		case <-gate:
		case <-serving.Done():
			return ln.Close()
		}
		if err := srv.Serve(ln); !errors.Is(err, http.ErrServerClosed) {
			return fmt.Errorf("board: %w", err)
		}
		return nil
	}, func(error) { endServing(); srv.Close() })
	add("ready", behind(gate, func(ctx context.Context) error { return n.ready(ctx, joined) }))
	err := g.Run()
	n.stop(errStopping)
	n.wait.Wait()
	endLoop()
	if loopErr := <-loopDone; loopErr != nil {
		err = fmt.Errorf("loop: %w", loopErr)
	}
	return err
}

// startRunner binds the agent that the runner works as: it is reachable from now on.
func (n *Node) startRunner() error {
	conn := hub.ConnID(n.connIDs.Add(1))
	if err := n.loop.call(n.ctx, func() { n.runner.agent, n.runner.conn = n.loop.own(), conn }); err != nil {
		return err
	}
	_, err := n.loop.ask(n.ctx, n.runner.attached)
	return err
}

// ready tells the caller that the node serves, then only waits for the end.
func (n *Node) ready(ctx context.Context, joined *api.Joined) error {
	if joined != nil {
		n.firstComparison(ctx, joined)
	}
	n.enableFiles()
	r := api.Ready{Event: "ready", Board: n.boardURL, Peer: n.home.peer, PID: os.Getpid(), Name: n.home.mesh.Name, Mesh: n.mesh.Addrs(), Role: n.role(), Joined: joined}
	if err := n.loop.call(ctx, func() { r.Agent = n.loop.own() }); err != nil {
		return nil
	}
	r.Warnings = n.warnings.all()
	if err := n.writeNodeFile(); err != nil {
		return err
	}
	n.isUp.Store(true)
	if n.cfg.Ready != nil {
		n.cfg.Ready(r)
	}
	n.keepNodeFile(ctx)
	if err := context.Cause(n.ctx); errors.Is(err, errDown) || errors.Is(err, errLeft) {
		return err
	}
	return nil
}

// firstComparisonWait: ready is said after so long in any case (DESIGN 8).
const firstComparisonWait = 10 * time.Second

// firstComparison waits until the inviter's vector has come, what it named is here, and it has what we wrote.
func (n *Node) firstComparison(ctx context.Context, joined *api.Joined) {
	ctx, cancel := context.WithTimeout(ctx, firstComparisonWait)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		caught := false
		err := n.loop.call(ctx, func() {
			p := n.loop.peers[n.home.mesh.Inviter]
			if p == nil || !p.compared {
				return
			}
			for _, info := range n.mesh.Links() {
				if info.Peer == n.home.mesh.Inviter {
					joined.RTTMicros = info.RTT.Microseconds()
				}
			}
			_, behind := n.loop.rep.Behind(n.home.mesh.Inviter)
			joined.Records = n.store.Records()
			joined.Of = joined.Records
			for _, lack := range n.loop.rep.Lacking(n.loop.now) {
				joined.Of += lack.Known - lack.Have
			}
			caught = behind == 0 && joined.Records == joined.Of && joined.RTTMicros > 0
		})
		if err != nil || caught {
			if err != nil && ctx.Err() != nil {
				n.warnings.set("first", "the first comparison with the inviting node takes longer than 10 s; it goes on by itself")
			}
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			n.warnings.set("first", "the first comparison with the inviting node takes longer than 10 s; it goes on by itself")
			return
		}
	}
}
