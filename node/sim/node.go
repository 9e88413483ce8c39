package sim

import (
	"crypto/ed25519"
	"crypto/sha256"
	"fmt"
	"time"

	"github.com/aster-mesh/aster/node/journal"
	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/roles/member"
)

// meshKeys are the founder's.
type meshKeys struct {
	key ed25519.PrivateKey
	id  member.MeshID
}

// signerOf signs what the owners of keys wrote.
func signerOf(keys ...ed25519.PrivateKey) journal.Signer {
	of := map[protocol.PeerID]ed25519.PrivateKey{}
	for _, key := range keys {
		of[protocol.PeerIDOf(key.Public().(ed25519.PublicKey))] = key
	}
	return func(r *protocol.Record, h protocol.Hash) {
		if key := of[r.Log.Peer]; key != nil {
			r.SignHash(key, h)
		}
	}
}

func keyOf(text string) ed25519.PrivateKey {
	seed := sha256.Sum256([]byte(text))
	return ed25519.NewKeyFromSeed(seed[:])
}

func keysOf(seed uint64) meshKeys {
	key := keyOf(fmt.Sprint("mesh ", seed))
	return meshKeys{key, member.MeshIDOf(key.Public().(ed25519.PublicKey))}
}

// node is a machine: what is on its disk, its clock, and the process while it runs.
type node struct {
	w    *World
	i    int
	name string
	key  ed25519.PrivateKey
	peer protocol.PeerID
	role protocol.Role
	home home
	disk *Disk
	p    *proc // nil: not running

	inMesh   bool  // it was admitted once
	by       *node // who admitted it; nil: it founded the mesh
	out      bool  // it was revoked: it may run, and counts no longer
	doomed   bool  // somebody tried to
	starts   int
	lets     bool          // its settings say that old records leave
	away     bool          // it does not start for a while
	proposed time.Duration // a base, last
	copies   []oldCopy     // of the disk, oldest first
	past     []*Disk       // that were replaced by a copy
	crash    crashPoint
	slow     time.Duration // the disk is slow before
	short    time.Duration // reads come short before
	missed   bool          // they did once
	full     time.Duration
	asleep   time.Duration // suspended before
	skew     time.Duration // of the clock at the next start
	drift    float64
	planned  int // starts that are arranged

	lost bool // its store, before this start

	boots  int           // of the machine
	booted time.Duration // when
	slept  time.Duration // since then, which its other clock does not count
	deaf   bool          // it has such a clock
}

// home is what mesh.json keeps.
type home struct {
	chain   []byte
	founder bool
	seeds   []seedMember
	revoked bool
	voted   bool
}

type seedMember struct {
	peer  protocol.PeerID
	chain []byte
}

type oldCopy struct {
	at   time.Duration
	disk *Disk
	home home
}

// crashPoint is where in a turn the process shall end.
type crashPoint int

const (
	nowhere crashPoint = iota
	atStep             // stepped, nothing written
	atWrite            // written, not synced
	atSync             // synced, nothing let out
	atOut              // something let out
	atSend             // something sent to peers
	crashPoints
)

func (w *World) addNode(i int) {
	key := keyOf(fmt.Sprintf("node %d of %d", i, w.Plan.Seed))
	n := &node{w: w, i: i, name: fmt.Sprintf("n%d", i), key: key, peer: protocol.PeerIDOf(key.Public().(ed25519.PublicKey)), disk: NewDisk(signerOf(key)), role: protocol.RoleLocal}
	if i >= w.Plan.Nodes-w.Plan.Outside {
		n.role = []protocol.Role{protocol.RoleUpstream, protocol.RoleCollab, protocol.RolePeer}[w.rng.IntN(3)]
	}
	if w.Plan.Skew > 0 {
		n.skew = w.between(-w.Plan.Skew, w.Plan.Skew)
		n.drift = (w.rng.Float64()*2 - 1) * w.Plan.Drift
	}
	n.deaf = w.oddsAre(0.5)
	w.nodes = append(w.nodes, n)
	w.byPeer[n.peer] = n
}

// suspended says whether the machine sleeps.
func (n *node) suspended() bool { return n.w.now < n.asleep }

// wall is what the machine's clock shows at its next start.
func (n *node) wall() time.Time { return epoch.Add(n.w.now + n.w.aged + n.skew) }

// guarded runs a part of the process's turn, which may end in its death.
func (n *node) guarded(f func()) {
	defer func() {
		if r := recover(); r != nil {
			if d, ok := r.(died); !ok || d.n != n {
				panic(r)
			}
		}
	}()
	f()
}

// died ends a process in the middle of what it does.
type died struct{ n *node }

// reaches ends the process if this is where it shall.
func (n *node) reaches(at crashPoint) {
	if n.crash != at || n.w.calm {
		return
	}
	n.crash = nowhere
	n.kill(fmt.Sprintf("at point %d", at))
	panic(died{n})
}

// kill ends the process at once, as a power cut would or a SIGKILL.
func (n *node) kill(why string) {
	if n.p == nil {
		return
	}
	w := n.w
	w.Stats.Crashes++
	w.logf("node %d dies %s", n.i, why)
	w.note('K', n.i, 0, 0)
	n.disk.Crash(w.chance(0.5))
	n.end()
}

// end is what any end of a process means to others.
func (n *node) end() {
	p := n.p
	n.p = nil
	n.crash = nowhere
	w := n.w
	for _, other := range w.nodes {
		if l, _ := w.linkOf(n.i, other.i); l != nil && other != n {
			w.after(w.between(0, killedAfter), func() { w.disconnect(l) })
		}
	}
	for _, c := range w.clients {
		if c.at == n && c.conn != 0 {
			c.lost()
		}
	}
	p.gone = true
}

// startIn arranges for the process to run again.
func (n *node) startIn(d time.Duration) {
	n.planned++
	n.w.after(d, func() {
		if n.planned--; n.p == nil && n.planned == 0 && n.inMesh && !n.away {
			n.boot()
		}
	})
}

// keep keeps a copy of the disk now and then, for Restore.
func (n *node) keep() {
	if n.inMesh && (n.p == nil || !n.p.busy) {
		n.copies = append(n.copies, oldCopy{n.w.now, n.disk.Copy(), n.home})
	}
}
