package node

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/oklog/run"

	"github.com/aster-mesh/aster/board"
	"github.com/aster-mesh/aster/board/web"
	"github.com/aster-mesh/aster/node/bridge"
	"github.com/aster-mesh/aster/node/gossip"
	"github.com/aster-mesh/aster/node/hub"
	"github.com/aster-mesh/aster/node/journal"
	"github.com/aster-mesh/aster/node/mesh"
	"github.com/aster-mesh/aster/node/replica"
	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/api"
	"github.com/aster-mesh/aster/protocol/asterism"
	"github.com/aster-mesh/aster/protocol/meshwire"
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
	n := &Node{cfg: cfg, log: cfg.Log, home: h, began: time.Now(), pages: newPages(), token: randomText(32)}
	n.ctx, n.stop = context.WithCancelCause(ctx)
	n.done = n.ctx.Done()
	defer n.stop(errStopping)
	n.blobs = newBlobs(n)

	invite, err := n.placeInMesh()
	if err != nil {
		return err
	}
	if n.store, err = journal.Open(h.path("journal"), journal.Options{BytesMax: cfg.Store.BytesMax, Log: cfg.Log}); err != nil {
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
		if joined, err = n.join(invite); err != nil {
			return err
		}
	}
	if err := n.openLoop(); err != nil {
		return err
	}
	board, err := n.openBoard()
	if err != nil {
		return err
	}
	if err := n.openParts(); err != nil {
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

func (c *Config) fill() {
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Name == "" {
		if host, err := os.Hostname(); err == nil {
			c.Name, _, _ = strings.Cut(host, ".")
		}
	}
}

func randomText(bytes int) string {
	b := make([]byte, bytes)
	_, _ = rand.Read(b) // crypto/rand never fails
	return hex.EncodeToString(b)
}

// placeInMesh founds a mesh in a fresh home, or decides what --join means in this one (DESIGN 5).
func (n *Node) placeInMesh() (*member.Invite, error) {
	m := &n.home.mesh
	var invite *member.Invite
	if n.cfg.Join != "" {
		in, r := member.ParseInvite(n.cfg.Join)
		if r != nil {
			return nil, r
		}
		invite = &in
	}
	back := invite != nil && string(invite.Mesh) == m.Mesh && m.Revoked != ""
	if m.Mesh != "" && invite != nil && string(invite.Mesh) == m.Mesh && !back {
		n.warnings.set("join", "this home is in that mesh already; the invite was not used")
		invite = nil
	}
	if m.Mesh != "" && invite != nil && !back {
		alone, err := n.aloneInMesh()
		if err != nil {
			return nil, err
		}
		if !alone {
			return nil, protocol.Refuse(protocol.CodeNotAllowed, "this home is a member of another mesh with other nodes",
				"Leave that first: aster leave. Or use another home: aster up --home DIR --join -")
		}
		if !n.cfg.Leave {
			return nil, protocol.Refuse(protocol.CodeNotAllowed, "this home has a mesh of its own, with nobody else in it",
				"Give it up: aster up --leave --join -. Or use another home: aster up --home DIR --join -")
		}
		if err := n.retire(); err != nil {
			return nil, err
		}
	}
	if m.Name == "" || n.cfg.Name != "" && m.Mesh == "" {
		m.Name = n.cfg.Name
	}
	if invite != nil {
		m.Mesh, m.Inviter = string(invite.Mesh), invite.Inviter
		return invite, nil
	}
	if m.Mesh != "" {
		if m.Revoked != "" {
			n.warnings.set("revoked", revokedLine(m.Revoked))
		}
		return nil, nil
	}
	return nil, n.found()
}

// aloneInMesh looks into the home's own journal for other members that were not revoked.
func (n *Node) aloneInMesh() (bool, error) {
	store, err := journal.Open(n.home.path("journal"), journal.Options{Log: n.log})
	if err != nil {
		return false, fmt.Errorf("open journal: %w", err)
	}
	defer store.Close()
	st, _, err := foldBoard(store, member.MeshID(n.home.mesh.Mesh), n.log)
	if err != nil {
		return false, err
	}
	for _, m := range st.Members() {
		if m.Peer != n.home.peer && !m.Revoked {
			return false, nil
		}
	}
	return n.home.mesh.Inviter == "", nil
}

// found makes a mesh key and this node's certificate under it.
func (n *Node) found() error {
	key, err := keyFile(n.home.path("mesh.key"), true)
	if err != nil {
		return err
	}
	chain, r := member.Found(key, member.Admit{Peer: n.home.peer, Name: n.home.mesh.Name, Role: protocol.RoleLocal}, n.began)
	if r != nil {
		return r
	}
	m := &n.home.mesh
	m.Mesh = string(member.MeshIDOf(key.Public().(ed25519.PublicKey)))
	m.Chain = member.EncodeChain(chain)
	m.Agent = n.cfg.Agent
	return n.home.saveMesh()
}

// retire puts the present mesh's journal aside, readable, and makes the home fresh again.
func (n *Node) retire() error {
	m := &n.home.mesh
	aside := fmt.Sprintf("journal-of-%s", member.MeshID(m.Mesh).Short())
	if err := os.Rename(n.home.path("journal"), n.home.path(aside)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("put the old mesh aside: %w", err)
	}
	if err := removeIfThere(n.home.path("mesh.key")); err != nil {
		return err
	}
	*m = meshFile{Name: m.Name, Port: m.Port, Board: m.Board, Retired: append(m.Retired, aside)}
	return n.home.saveMesh()
}

func (n *Node) reportRecovery() {
	r := n.store.Recovery()
	if r.TornBytes > 0 {
		n.log.Info("unfinished commit left out", "part", "journal", "bytes", r.TornBytes)
	}
	if len(r.SetAside) > 0 {
		n.warnings.set("damaged", fmt.Sprintf("the store was damaged (%s): %d records were taken over, the rest comes from other nodes; the old files are kept as %s",
			r.Reason, r.Salvaged, strings.Join(r.SetAside, ", ")))
		n.log.Error("damaged store set aside", "part", "journal", "reason", r.Reason, "files", r.SetAside, "salvaged", r.Salvaged, "lost", len(r.Lost))
	}
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
		OnLink: n.onLink, OnFrame: n.onFrame, OnLinkDown: n.onLinkDown, OnRefused: n.onRefused, OnAddrs: n.onAddrs,
		Log: n.log,
	})
	if err != nil {
		return fmt.Errorf("open mesh: %w", err)
	}
	if m.LAN {
		if err := n.mesh.OpenLAN(); err != nil {
			n.warnings.set("lan", "not every network of this machine could be opened: "+err.Error())
		}
	}
	return nil
}

// join redeems an invite at its inviter. On a refusal the home is as before.
func (n *Node) join(invite *member.Invite) (*api.Joined, error) {
	m := &n.home.mesh
	ctx, cancel := context.WithTimeout(n.ctx, 30*time.Second)
	defer cancel()
	req := member.JoinRequest{Invite: invite.ID, Secret: invite.Secret, Name: m.Name, Version: n.cfg.Version, Addrs: n.mesh.Addrs()}
	raw, addr, err := n.mesh.Admit(ctx, invite.Inviter, invite.Addrs, append([]byte{askJoin}, req.Encode()...))
	if err != nil {
		return nil, protocol.Refuse(protocol.CodeInviteUnknown, "no node answers at the invite's addresses (%s)",
			"Is the inviting node running and reachable from here? On it: aster status; then aster invite --lan", strings.Join(invite.Addrs, ", "))
	}
	answer, err := member.DecodeJoinAnswer(raw)
	if err != nil {
		return nil, protocol.Refuse(protocol.CodeInviteBad, "the inviting node's answer cannot be read", "update aster on both machines")
	}
	if answer.Refusal != nil {
		return nil, answer.Refusal
	}
	chain, err := member.ParseChain(answer.Chain)
	if err != nil {
		return nil, protocol.Refuse(protocol.CodeCertBad, "the certificate cannot be read", "aster invite makes a new invite")
	}
	cert, r := member.Verify(invite.Mesh, chain, time.Now(), nil)
	if r != nil {
		return nil, r
	}
	if cert.Peer != n.home.peer {
		return nil, protocol.Refuse(protocol.CodeCertBad, "the certificate is another node's", "aster invite makes a new invite")
	}
	m.Chain, m.Name, m.Agent, m.Revoked = answer.Chain, cert.Name, n.cfg.Agent, ""
	n.ownRole.Store(cert.Role)
	joined := &api.Joined{Transport: transportOf(addr), Direct: true}
	for _, in := range answer.Members {
		c, err := member.ParseChain(in.Chain)
		if err != nil {
			continue
		}
		if cert, r := member.Verify(invite.Mesh, c, time.Now(), nil); r == nil {
			m.Seeds = append(m.Seeds, seedMember{Peer: cert.Peer, Chain: in.Chain, Addrs: in.Addrs})
			if cert.Peer == invite.Inviter {
				joined.Through = cert.Name
			}
		}
	}
	return joined, n.home.saveMesh()
}

func transportOf(addr string) string {
	switch {
	case strings.Contains(addr, "/ws"):
		return "ws"
	case strings.Contains(addr, "/quic"):
		return "quic"
	}
	return "tcp"
}

// foldBoard reads the board's checkpoint and the tail after it. clock is the greatest hybrid time of the tail.
func foldBoard(store *journal.Journal, id member.MeshID, log *slog.Logger) (*board.State, uint64, error) {
	st := board.New(id)
	pos, raw, ok, err := store.Checkpoint(boardCheckpoint)
	if err != nil {
		return nil, 0, fmt.Errorf("checkpoint of the board: %w", err)
	}
	if ok {
		if st2, err := board.Decode(raw); err == nil && st2.Roster().Mesh() == id {
			st = st2
		} else {
			log.Warn("the board's checkpoint is not usable: it is folded anew", "err", err)
			pos = 0
		}
	}
	for again := true; again; {
		again = false
		for {
			page, err := store.Since(pos, 2000)
			if err != nil {
				return nil, 0, fmt.Errorf("read journal: %w", err)
			}
			if len(page) == 0 {
				break
			}
			for i := range page {
				if err := st.Apply(&page[i].Record, nil); err != nil {
					log.Error("record not folded", "pos", page[i].Pos, "err", err)
				}
				pos = page[i].Pos
			}
		}
		if st.Stale() {
			st, pos, again = st.Restart(), 0, true
		}
	}
	return st, pos, nil
}

// openLoop restores what the loop owns from the store.
func (n *Node) openLoop() error {
	st, pos, err := foldBoard(n.store, member.MeshID(n.home.mesh.Mesh), n.log)
	if err != nil {
		return err
	}
	heads, err := n.store.Heads()
	if err != nil {
		return fmt.Errorf("read heads: %w", err)
	}
	clock := protocol.HLCAt(time.Now())
	for _, h := range heads {
		if rec, ok, err := n.store.At(h.Log, h.Seq); err == nil && ok {
			clock = max(clock, rec.Record.At)
		}
	}
	if chain, err := member.ParseChain(n.home.mesh.Chain); err == nil {
		clock = max(clock, chain[0].Cert.Lifts) // logs that begin before the revocation it lifts would count nowhere
	}
	n.startID = protocol.Start{At: clock + 1, Rand: randomNumber()}
	l := &loop{
		n: n, log: n.log.With("part", "loop"), jobs: make(chan func(), jobsMax), now: time.Now(), store: n.store, board: st,
		chain: map[protocol.LogID]protocol.Hash{}, from: map[protocol.LogID]protocol.PeerID{}, fresh: map[protocol.LogID][]protocol.Record{},
		tokens: map[hub.Token]func(hub.Told){}, tierWait: map[hub.Ref][]tierWaiter{}, sockets: map[hub.ConnID]*socket{},
		enc: asterism.NewEncoder(func() string { return "evt_" + string(newID()) }), peers: map[protocol.PeerID]*peerState{},
		lastSeen: map[protocol.PeerID]time.Time{}, addrs: map[protocol.PeerID]meshwire.Addrs{}, live: map[protocol.PeerID]*liveQueue{}, heardNames: names{},
		pos: pos, savedAt: pos, saved: time.Now(),
	}
	n.loop = l
	if err := l.restore(heads, clock); err != nil {
		return err
	}
	saved, err := n.store.ValuesWithPrefix(keyAddrs)
	if err != nil {
		return fmt.Errorf("read addresses: %w", err)
	}
	for _, raw := range saved {
		var a meshwire.Addrs
		if json.Unmarshal(raw, &a) == nil && a.Verify() == nil {
			l.addrs[a.Peer] = a
		}
	}
	l.foundingRecords()
	l.membersDirty = true
	return nil
}

// restore makes hub and replica from what is durable.
func (l *loop) restore(heads []journal.Head, clock protocol.HLC) error {
	boot, err := l.n.boot(l.board, clock)
	if err != nil {
		return err
	}
	boot.Seqs = map[protocol.Scope]uint64{}
	var held []replica.Head
	for _, h := range heads {
		held = append(held, replica.Head{Log: h.Log, Seq: h.Seq, Hash: h.Hash})
		if h.Log.Peer == l.n.home.peer && h.Log.Start == l.n.startID {
			boot.Seqs[h.Log.Scope], l.chain[h.Log] = h.Seq, h.Hash
		}
	}
	l.core = hub.New(boot)
	l.rep = replica.New(l.n.home.peer, held, l.n.maySee)
	for _, h := range held {
		if bound := l.roster().Bound(h.Log); bound != member.NoBound {
			l.rep.Cut(h.Log, bound)
		}
	}
	return nil
}

func randomNumber() uint64 {
	var b [8]byte
	_, _ = rand.Read(b[:]) // crypto/rand never fails
	return binary.BigEndian.Uint64(b[:])
}

// foundingRecords are the first of a mesh: its founder's membership, and the first term. A founder that died before
// they were durable writes them at its next start.
func (l *loop) foundingRecords() {
	m := &l.n.home.mesh
	if m.Inviter != "" {
		return
	}
	if _, ok := l.roster().Member(l.n.home.peer); !ok {
		l.core.Step(l.now, hub.Author{Scope: protocol.ScopeInside, Kind: protocol.KindMember, Body: protocol.EncodeBody(
			protocol.MemberBody{Peer: l.n.home.peer, Name: m.Name, Role: protocol.RoleLocal, Chain: m.Chain, Addrs: l.n.mesh.Addrs()})})
	}
	if l.roster().Term().Number == 0 {
		l.core.Step(l.now, hub.Author{Scope: protocol.ScopeInside, Kind: protocol.KindTerm, Body: protocol.EncodeBody(
			protocol.TermBody{Number: 1, Peer: l.n.home.peer, Agent: protocol.AgentID(l.n.cfg.Agent)})})
	}
}

// boot is what the hub starts from.
func (n *Node) boot(st *board.State, clock protocol.HLC) (hub.Boot, error) {
	b := hub.Boot{Self: n.home.peer, Start: n.startID, Clock: clock, Members: map[protocol.PeerID]hub.Member{}, Term: st.Roster().Term(), Unread: map[protocol.AgentID][]hub.Letter{}}
	for p, m := range n.loop.known() {
		b.Members[p] = hub.Member{Name: m.Name, Role: m.Role, Inside: m.Inside, Gone: m.Revoked}
	}
	var err error
	if b.Selections, err = n.selections(); err != nil {
		return b, err
	}
	for _, a := range st.Agents() {
		role := a.Role
		if role == protocol.RoleMain {
			role = protocol.RoleLocal
		}
		b.Binds = append(b.Binds, protocol.BindBody{Agent: a.ID, Home: a.Home, Since: a.Since, Name: a.Name, Role: role, Client: a.Client})
		if a.Home != n.home.peer {
			continue
		}
		rows, err := n.store.Inbox(a.ID, journal.InboxQuery{})
		if err != nil {
			return b, fmt.Errorf("read inbox of %s: %w", a.ID, err)
		}
		for i := range rows {
			m := &rows[i].Message
			l := hub.Letter{Ref: hub.Ref{Log: m.Log, Seq: m.Seq}, ID: m.Envelope.ID, From: m.Envelope.From, At: time.UnixMilli(m.Wall),
				Bytes: len(m.Envelope.Value) + 256, Wakes: protocol.Wakes(&m.Envelope, a.ID)}
			for _, t := range m.Tiers {
				l.Given = l.Given || t.Tier == hub.Given
			}
			b.Unread[a.ID] = append(b.Unread[a.ID], l)
		}
		if err := n.pending(&b, a.ID); err != nil {
			return b, err
		}
	}
	return b, nil
}

// pending lists an agent's messages that no home has confirmed yet.
func (n *Node) pending(b *hub.Boot, agent protocol.AgentID) error {
	out, err := n.store.Outbox(agent, false, outboxRowsMax)
	if err != nil {
		return fmt.Errorf("read outbox of %s: %w", agent, err)
	}
	for i := range out {
		m := &out[i]
		taken := m.Envelope.To == "" || m.Log.Peer != n.home.peer
		for _, t := range m.Tiers {
			taken = taken || t.Tier == protocol.Persisted || t.Tier == protocol.Processed || t.Tier == protocol.Refused
		}
		if !taken {
			b.Pending = append(b.Pending, hub.Pending{Ref: hub.Ref{Log: m.Log, Seq: m.Seq}, From: agent, To: m.Envelope.To, ID: m.Envelope.ID, At: time.UnixMilli(m.Wall)})
		}
	}
	return nil
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
				n.warnings.set("board", fmt.Sprintf("board port %s is taken: using %s from now on", m.Board, ln.Addr()))
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
func (n *Node) openParts() error {
	n.mesh.Handle(mesh.Blob, false, n.blobs.serve)
	if n.role().Inside() {
		g, err := gossip.New(gossip.Config{
			Self: n.home.peer, Streams: streams{n.mesh}, Meta: []byte(n.home.mesh.Name), OnChange: n.onGossip, Log: n.log,
			Inside: func(p protocol.PeerID) bool { return p == n.home.peer || n.standingOf(p) == mesh.Inside },
		})
		if err != nil {
			return fmt.Errorf("open gossip: %w", err)
		}
		n.gossip = g
		n.mesh.Handle(mesh.Gossip, true, func(p protocol.PeerID, s mesh.Stream) { g.Serve(p, s) })
	}
	key, err := keyFile(n.home.path("session.key"), true)
	if err != nil {
		return err
	}
	n.web = web.New(web.Config{Backend: n, Token: n.token, SessionKey: key.Seed(), Log: n.log})
	n.bridge = bridge.New(bridge.Config{Dir: n.home.path("agents"), Submit: n.submitLine, Unread: n.inboxItems, Log: n.log,
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
		OutputBytesMax: n.cfg.Worker.OutputBytes, Tokens: n.cfg.Worker.Tokens, Dir: n.home.path("runs"), Keeper: keeper, Log: n.log,
	})
	if err != nil {
		return err
	}
	n.runner = &runner{n: n, w: w, wake: make(chan struct{}, 1), told: map[protocol.TaskID]toldProgress{}}
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
		n.stop(err)
		loopDone <- err
	}()
	add("journal", n.store.Run)
	add("mesh", n.mesh.Run)
	if n.gossip != nil {
		add("gossip", n.gossip.Run)
	}
	add("bridge", n.bridge.Run)
	if n.runner != nil {
		if err := n.startRunner(); err != nil {
			endLoop()
			return errors.Join(err, <-loopDone, ln.Close())
		}
		add("worker", n.runner.run)
	}
	g.Add(func() error {
		if err := srv.Serve(ln); !errors.Is(err, http.ErrServerClosed) {
			return fmt.Errorf("board: %w", err)
		}
		return nil
	}, func(error) { srv.Close() })
	add("ready", func(ctx context.Context) error { return n.ready(ctx, joined) })
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
	var own protocol.AgentID
	if err := n.loop.call(n.ctx, func() { own = n.loop.own() }); err != nil {
		return err
	}
	n.runner.agent, n.runner.conn = own, hub.ConnID(n.connIDs.Add(1))
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
	if err := writeFile(n.home.path("node.json"), api.NodeFile{PID: r.PID, Board: n.boardURL, Token: n.token, Peer: n.home.peer, Version: n.cfg.Version}); err != nil {
		return err
	}
	if n.cfg.Ready != nil {
		n.cfg.Ready(r)
	}
	<-ctx.Done()
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
