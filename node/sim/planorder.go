package sim

import (
	"math/rand/v2"
	"time"
)

// OrderPlanOf draws a plan in which agents and persons say one thing after another, and their nodes end and start again in
// the midst of it while links are slow, cut or down: peers lack the end of what a node logged before its restart when it
// speaks again.
func OrderPlanOf(seed uint64) Plan {
	r := rand.New(rand.NewPCG(seed, 0x0DE2))
	p := Plan{Seed: seed, Nodes: 3 + r.IntN(3), Length: time.Duration(6+r.IntN(10)) * time.Second, Delay: time.Duration(1+r.IntN(60)) * time.Millisecond,
		SyncTime: time.Duration(r.IntN(8)) * time.Millisecond}
	if p.Nodes > 3 {
		p.Outside = r.IntN(2)
	}
	if r.IntN(3) == 0 {
		p.Loss, p.Twice, p.Reorder = r.Float64()*0.15, r.Float64()*0.1, r.Float64()*0.1
	}
	p.Clients = p.Nodes + r.IntN(p.Nodes)
	add := func(at time.Duration, do Verb, a, b int, spell time.Duration) {
		p.Actions = append(p.Actions, Action{At: at, Do: do, A: a, B: b, N: r.IntN(1 << 16), For: spell})
	}
	spell := func(most time.Duration) time.Duration { return time.Duration(r.Int64N(int64(most))) }
	for range 1 + r.IntN(2) { // talks
		from, to, do := r.IntN(64), r.IntN(64), Say
		if r.IntN(4) == 0 {
			do = Person
		}
		every := 50*time.Millisecond + spell(400*time.Millisecond)
		for at := spell(2 * time.Second); at < p.Length; at += spell(2 * every) {
			add(at, do, from, to, 0)
		}
	}
	for range 6 + r.IntN(10) {
		at := spell(p.Length)
		switch a, b := r.IntN(64), r.IntN(64); r.IntN(8) {
		case 0, 1, 2:
			add(at, Crash, a, b, spell(2*time.Second))
		case 3:
			add(at, Stop, a, b, spell(time.Second))
		case 4:
			add(at, []Verb{Cut, Slow, Drag, Suspend}[r.IntN(4)], a, b, spell(4*time.Second))
		case 5:
			add(at, Split, a, b, spell(5*time.Second))
		case 6:
			add(at, Drop, a, b, 0)
		case 7:
			add(at, []Verb{Away, Back, Full, Fail}[r.IntN(4)], a, b, spell(2*time.Second))
		}
	}
	return p
}
