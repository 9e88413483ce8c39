package claim

import (
	"flag"
	"fmt"
	"math/rand"
	"testing"
	"time"

	"github.com/aster-mesh/aster/protocol"
)

var seedFlag = flag.Int64("seed", -1, "replay one seed of the simulation, with its trace")

// crowd is a mesh in which mains die and agents want the same few things.
type crowd struct {
	t     *testing.T
	rng   *rand.Rand
	now   time.Duration
	nodes []*simNode
	main  int // -1: none
	term  uint64
	g     *Granter
	open  []protocol.ClaimBody // what the records of the mains say
	mail  []letter
	next  int
	hasty bool // the control: it asks nobody
	twice int
	seed  int64
}

type simNode struct {
	peer   protocol.PeerID
	h      *Holder
	rate   float64
	wall   time.Duration
	slept  time.Duration
	silent bool // cut off
	starts int
}

type letter struct {
	at time.Duration
	f  func()
}

func (c *crowd) logf(format string, args ...any) {
	if *seedFlag >= 0 {
		c.t.Logf("%8.1f "+format, append([]any{c.now.Seconds()}, args...)...)
	}
}

func (c *crowd) moment(n *simNode) protocol.Moment {
	return protocol.Moment{Wall: (time.Duration(float64(c.now)*n.rate) + n.wall + 1e6*time.Second).Milliseconds(),
		Up: time.Duration(float64(c.now-n.slept)*n.rate) + time.Hour, Boot: "b"}
}

func newCrowd(t *testing.T, seed int64, hasty bool) *crowd {
	c := &crowd{t: t, rng: rand.New(rand.NewSource(seed)), main: -1, hasty: hasty, seed: seed}
	for i := range 3 + c.rng.Intn(3) {
		h, _ := NewHolder(nil)
		c.nodes = append(c.nodes, &simNode{peer: protocol.PeerID(fmt.Sprint("P", i)), h: h, rate: 0.995 + 0.01*c.rng.Float64(),
			wall: time.Duration(c.rng.Intn(1200)-600) * time.Second})
	}
	c.elect()
	return c
}

// elect puts another node in office. Records of the last main reach it up to some point.
func (c *crowd) elect() {
	c.main = c.rng.Intn(len(c.nodes))
	c.term++
	n := c.nodes[c.main]
	n.silent = false
	known := c.open[:c.rng.Intn(len(c.open)+1)]
	claims := map[string]Claim{}
	for _, b := range known {
		if b.Op == protocol.ClaimGrant {
			claims[b.ID] = Claim{b.ID, b.Agent, b.Home, b.Session, b.Scopes, b.Why, b.Term}
		} else {
			delete(claims, b.ID)
		}
	}
	var list []Claim
	for _, b := range known {
		if cl, ok := claims[b.ID]; ok {
			list = append(list, cl)
			delete(claims, b.ID)
		}
	}
	var others []protocol.PeerID
	for _, o := range c.nodes {
		others = append(others, o.peer)
	}
	if c.hasty {
		others = nil
	}
	c.g = NewGranter(protocol.Term{Number: c.term, Peer: n.peer}, c.moment(n), list, others)
	c.logf("%s is main of term %d, knows %d claims", n.peer, c.term, len(list))
	c.open = append([]protocol.ClaimBody(nil), known...)
}

func (c *crowd) post(f func()) {
	d := time.Duration(c.rng.Intn(300)) * time.Millisecond
	if c.rng.Intn(20) == 0 {
		d = time.Duration(c.rng.Intn(30)) * time.Second
	}
	c.mail = append(c.mail, letter{c.now + d, f})
}

// ask carries a question to the main of now, if it is still in office when it comes, and its answer back.
func (c *crowd) ask(n *simNode, question func(g *Granter, now protocol.Moment) func()) {
	if n.silent || c.main < 0 {
		return
	}
	term, start := c.term, n.starts
	c.post(func() {
		if c.main < 0 || c.term != term || n.silent {
			return
		}
		answer := question(c.g, c.moment(c.nodes[c.main]))
		c.record()
		if answer != nil {
			c.post(func() { // it may come when another is main
				if n.starts == start {
					answer()
				}
			})
		}
	})
}

// record keeps what main decided.
func (c *crowd) record() {
	for _, b := range c.g.Records() {
		c.logf("main: %s %s %v of %s %s", b.Op, b.ID, b.Scopes, b.Home, b.Reason)
		c.open = append(c.open, b)
	}
}

func (c *crowd) step() {
	c.now += time.Duration(c.rng.Intn(2000)) * time.Millisecond
	for i := 0; i < len(c.mail); i++ {
		if l := c.mail[i]; l.at <= c.now {
			c.mail = append(c.mail[:i], c.mail[i+1:]...)
			l.f()
			i = -1
		}
	}
	for _, n := range c.nodes {
		now := c.moment(n)
		n.h.Expired(now)
		for _, cl := range n.h.ToRenew(now) {
			c.ask(n, func(g *Granter, at protocol.Moment) func() {
				if !g.Renew(at, n.peer, cl.ID) {
					return func() { n.h.Drop(cl.ID) }
				}
				term := g.Term()
				return func() { n.h.Renewed(now, cl.ID, term) }
			})
		}
	}
	if c.main >= 0 {
		c.g.Tick(c.moment(c.nodes[c.main]))
		for _, p := range c.g.Silent() {
			n := c.nodes[p[1]-'0']
			if n.silent {
				continue
			}
			all := n.h.Tell(c.g.Term())
			c.ask(n, func(g *Granter, at protocol.Moment) func() {
				lost := g.Held(at, n.peer, all)
				return func() {
					for _, id := range lost {
						n.h.Drop(id)
					}
				}
			})
		}
		c.record()
	}
	c.mishap()
	c.check()
}

func (c *crowd) mishap() {
	n := c.nodes[c.rng.Intn(len(c.nodes))]
	now := c.moment(n)
	switch c.rng.Intn(60) {
	case 0:
		c.main, c.g = -1, nil // it dies, or is sure no more
		c.logf("no main")
	case 1, 2, 3:
		if c.main < 0 {
			c.elect()
		}
	case 4, 5:
		n.silent = !n.silent && c.main >= 0 && c.nodes[c.main] != n
		c.logf("%s silent %v", n.peer, n.silent)
	case 6:
		n.h, _ = NewHolder(n.h.Encode())
		n.starts++ // and knows no more what it has asked
	case 7:
		n.slept += time.Duration(c.rng.Intn(100)) * time.Millisecond
	case 8:
		if all := n.h.All(); len(all) > 0 {
			n.h.Drop(all[0].ID)
			c.ask(n, func(g *Granter, _ protocol.Moment) func() { g.Release(n.peer, all[0].ID, "done"); return nil })
		}
	default:
		if c.rng.Intn(4) > 0 {
			return
		}
		c.next++
		cl := Claim{ID: fmt.Sprint("c", c.next), Agent: protocol.AgentID(n.peer), Home: n.peer, Session: "s",
			Scopes: []string{[]string{"a", "a/b", "b", "contract:x"}[c.rng.Intn(4)]}}
		c.ask(n, func(g *Granter, at protocol.Moment) func() {
			got, no := g.Acquire(at, cl)
			if no != nil {
				return nil
			}
			return func() {
				if n.h.Granted(now, got) {
					c.logf("%s has %s %v of term %d", n.peer, got.ID, got.Scopes, got.Term.Number)
				}
			}
		})
	}
}

// check holds at every instant: nothing is held by two.
func (c *crowd) check() {
	for i, a := range c.nodes {
		for _, b := range c.nodes[i+1:] {
			for _, x := range a.h.All() {
				for _, y := range b.h.All() {
					sx, _ := ParseAll(x.Scopes)
					sy, _ := ParseAll(y.Scopes)
					if sx.Overlaps(sy) && a.h.Left(c.moment(a), x.ID) > 0 && b.h.Left(c.moment(b), y.ID) > 0 {
						if c.twice++; !c.hasty {
							c.t.Fatalf("after %v %s and %s hold %v and %v at once; replay with -seed %d", c.now, a.peer, b.peer, x, y, c.seed)
						}
						return
					}
				}
			}
		}
	}
}

func TestNoClaimOfADeadMainIsGrantedAgainWhileItsLeaseRuns(t *testing.T) {
	granted := 0
	for seed := range int64(1000) {
		if *seedFlag >= 0 {
			seed = *seedFlag
		}
		c := newCrowd(t, seed, false)
		for range 900 {
			c.step()
		}
		granted += c.next
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
		if *seedFlag >= 0 {
			return
		}
	}
	t.Logf("%d claims were asked for", granted)
}

// Without the waiting the same runs find claims that are held twice, so the test above could.
func TestWithoutTheWaitingClaimsAreHeldTwice(t *testing.T) {
	runs := 0
	for seed := range int64(100) {
		c := newCrowd(t, seed, true)
		for range 900 {
			c.step()
		}
		if c.twice > 0 {
			runs++
		}
	}
	if runs == 0 {
		t.Error("100 hasty runs and nothing was held twice: the simulation tries nothing")
	}
	t.Logf("%d of 100 hasty runs hold something twice", runs)
}
