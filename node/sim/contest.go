package sim

import (
	"fmt"
	"slices"

	"github.com/aster-mesh/aster/board"
	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/roles/claim"
	"github.com/aster-mesh/aster/roles/election"
)

// contest is the judge's book of who is main and who holds what.
type contest struct {
	w        *World
	won      map[uint64]protocol.PeerID // elected, by number
	forced   bool                       // a person took the office: there may be two, and what they grant may overlap
	sessions map[string]bool            // processes that may hold claims; false: ended
	of       map[string]*client
	order    []string
}

func (x *contest) init(w *World) {
	*x = contest{w: w, won: map[uint64]protocol.PeerID{}, sessions: map[string]bool{}, of: map[string]*client{}}
}

// begin starts a process that may hold claims.
func (x *contest) begin(c *client) string {
	s := fmt.Sprint("process ", len(x.order))
	x.sessions[s], x.of[s] = true, c
	x.order = append(x.order, s)
	return s
}

// end ends all processes of a machine.
func (x *contest) end(n *node) {
	for _, s := range x.order {
		if x.of[s].at == n {
			x.sessions[s] = false
		}
	}
}

// took judges a term's beginning.
func (x *contest) took(p *proc, b *protocol.TermBody) {
	w := x.w
	w.Stats.Terms++
	w.logf("node %d is main of term %d, forced %v", p.n.i, b.Number, b.Forced)
	w.note('M', p.n.i, 0, b.Number)
	if b.Forced {
		return
	}
	if old, ok := x.won[b.Number]; ok && old != b.Peer && w.Stats.Restores == 0 {
		w.fail("one main a term", "term %d: nodes %d and %d are elected", b.Number, w.byPeer[old].i, p.n.i)
	}
	x.won[b.Number] = b.Peer
}

// looks judges what a process knows at the end of its turn: that nobody else acts as main, and that no claim of an agent
// here overlaps one of another's.
func (x *contest) looks(p *proc) {
	if p.office == nil || x.forced || x.w.Stats.Restores > 0 {
		return
	}
	if st := p.office.Status(); st.Main && st.Sure && !p.n.counted() {
		for _, n := range x.w.nodes {
			if n == p.n || n.p == nil || n.p.office == nil || n.suspended() || n.counted() {
				continue
			}
			if o := n.p.office.Status(); o.Main && o.Sure {
				x.w.fail("one main acts at a time", "node %d in term %d, node %d in term %d", p.n.i, st.Term.Number, n.i, o.Term.Number)
			}
		}
	}
	for _, c := range p.office.Held() {
		if p.office.Left(c.ID) > 0 && x.w.contest.sessions[c.Session] {
			x.heldOnce(p, &c)
		}
	}
}

// counted says that a node counts no longer, whether it knows or not.
func (n *node) counted() bool { return n.out || n.doomed }

func (x *contest) heldOnce(p *proc, c *claim.Claim) {
	mine, no := claim.ParseAll(c.Scopes)
	if no != nil {
		x.w.fail("claims are of scopes", "node %d holds %v", p.n.i, c.Scopes)
		return
	}
	for _, n := range x.w.nodes {
		if n == p.n || n.p == nil || n.p.office == nil || n.suspended() {
			continue
		}
		for _, o := range n.p.office.Held() {
			theirs, _ := claim.ParseAll(o.Scopes)
			if mine.Overlaps(theirs) && n.p.office.Left(o.ID) > 0 && x.sessions[o.Session] {
				x.w.fail("nothing is held twice", "node %d holds %v of term %d, node %d %v of term %d", p.n.i, c.Scopes, c.Term.Number, n.i, o.Scopes, o.Term.Number)
			}
		}
	}
}

// scopes are what agents want for themselves alone: few, so that they meet.
var scopes = []string{"path:a/", "path:a/b/", "path:c/", "contract:x"}

// contend carries out an action about who is main or who holds what; false: it is none.
func (w *World) contend(a Action, n *node, c, d *client) bool {
	x := &w.contest
	switch a.Do {
	case Claim:
		w.claims(c, scopes[a.N%len(scopes)])
	case Unclaim:
		if p := n.p; p != nil && !n.suspended() {
			p.post(func() {
				if held := p.office.Held(); len(held) > 0 {
					w.Stats.Released++
					p.office.Release(held[a.N%len(held)].ID)
				}
			})
		}
	case EndProc:
		if len(x.order) > 0 {
			x.sessions[x.order[a.N%len(x.order)]] = false
		}
	case HandOver:
		if p := n.p; p != nil && !n.suspended() && p.inside {
			p.post(func() {
				p.office.AskHandOver(d.id, "because", func(no *protocol.Refusal) {
					if no == nil {
						w.Stats.HandOvers++
						w.logf("main is asked to hand over to %s", d.id)
					}
				})
			})
		}
	case Take:
		if p := n.p; p != nil && !n.suspended() && p.inside {
			p.post(func() {
				if no := p.office.Force(p.insideLinked()); no == nil {
					x.forced = true
					w.Stats.Takes++
					w.logf("node %d takes the office", n.i)
				}
			})
		}
	case KillMain:
		if m := w.mainNode(); m != nil {
			m.kill("being main")
			if a.N%3 == 0 {
				m.reboots()
			}
			m.startIn(a.For)
		}
	case Wipe:
		n.wiped(a)
	default:
		return false
	}
	return true
}

// claims has a client ask main for a scope.
func (w *World) claims(c *client, scope string) {
	p := c.at.p
	if p == nil || c.at.suspended() || !c.attached || !p.inside {
		return
	}
	session := w.contest.begin(c)
	id := string(w.newID())
	p.post(func() {
		if _, ok := p.core.Agent(c.id); !ok {
			return
		}
		w.logf("%s asks for %s", c.id, scope)
		forget := p.office.Acquire(claim.Claim{ID: id, Agent: c.id, Home: p.n.peer, Session: session, Scopes: []string{scope}}, func(got claim.Claim, no *protocol.Refusal) {
			if no == nil {
				w.Stats.Granted++
				w.logf("%s has %s of term %d", c.id, scope, got.Term.Number)
			} else {
				w.Stats.Ungranted++
				w.contest.sessions[session] = false
			}
		})
		w.after(askWait, func() { p.post(forget) })
	})
}

// wiped is a node whose store is lost: its home is there, and the rest comes from others, if there are any.
func (n *node) wiped(a Action) {
	if !n.inMesh || n.w.insiders() < 3 {
		return
	}
	if n.p != nil {
		n.kill("its store being lost")
	}
	n.w.logf("node %d has lost its store", n.i)
	n.w.Stats.Wipes++
	n.past = append(n.past, n.disk)
	n.disk, n.lost = NewDisk(signerOf(n.key)), true
	n.w.ledger.restored(n)
	n.startIn(a.For / 4)
}

// handsOver is what the main agent does when it is asked to hand over: it says that it is ready, or forgets to.
func (c *client) handsOver() {
	if !c.w.oddsAre(0.7) {
		return
	}
	c.w.after(c.w.spell(0, 5e9), func() {
		p := c.at.p
		if p == nil || !c.attached || p.office == nil {
			return
		}
		p.post(func() {
			if k, ok := p.core.Agent(c.id); ok && k.Role == protocol.RoleMain {
				p.office.HandOverReady()
			}
		})
	})
}

// oneMain says what the nodes of the inside do not agree on yet about who is main.
func (w *World) oneMain() *broken {
	if !w.Plan.Office {
		return nil
	}
	all := w.inside()
	var main *node
	var latest election.Status // with the newest decision on who elects
	for _, n := range all {
		st := n.p.office.Status()
		if st.Main && st.Sure {
			if main != nil {
				return &broken{"one main acts at a time", fmt.Sprintf("nodes %d and %d", main.i, n.i)}
			}
			main = n
		}
		if st.Stamp.Compare(latest.Stamp) > 0 {
			latest = st
		}
	}
	if main == nil {
		if w.cannotElect(all, latest.Voters) {
			return nil
		}
		return &broken{"there is one main in the end", fmt.Sprintf("none is sure of it; voters %v", w.numbers(latest.Voters))}
	}
	for _, c := range main.p.board.Claims() {
		if !main.p.office.Knows(c.ID) {
			return &broken{"what the board shows as held ends", fmt.Sprintf("%v of node %d, which main does not know", c.Scopes, w.byPeer[c.Home].i)}
		}
	}
	term := main.p.office.Status().Term
	for _, n := range all {
		if st, t := n.p.office.Status(), n.p.roster().Term().Term(); st.Term != term || t != term {
			return &broken{"everybody names the same main", fmt.Sprintf("node %d is main of %v, node %d knows %v and %v", main.i, term.Number, n.i, st.Term.Number, t.Number)}
		}
		for _, c := range n.p.office.Held() {
			if n.p.office.Left(c.ID) > 0 && !slices.ContainsFunc(main.p.board.Claims(), func(b board.Claim) bool { return b.ID == c.ID }) {
				return &broken{"what is held is on the board", fmt.Sprintf("node %d holds %v", n.i, c.Scopes)}
			}
		}
	}
	return nil
}

func (w *World) numbers(peers []protocol.PeerID) (out []int) {
	for _, p := range peers {
		out = append(out, w.byPeer[p].i)
	}
	return out
}

// cannotElect says whether too few of those who elect are left: then a person is needed.
func (w *World) cannotElect(all []*node, voters []protocol.PeerID) bool {
	left, electors := 0, 0
	for _, p := range voters {
		n := w.byPeer[p]
		electors++
		if slices.Contains(all, n) && n.p.office.Status().Mute == 0 {
			left++
		}
	}
	return left < electors/2+1 // also of those that are revoked
}

// mute says whether some node waits until its forgotten votes are over.
func (w *World) mute() bool {
	return w.Plan.Office && slices.ContainsFunc(w.inside(), func(n *node) bool { return n.p != nil && n.p.office.Status().Mute > 0 })
}
