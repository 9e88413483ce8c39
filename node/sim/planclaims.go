package sim

import (
	"math/rand/v2"
	"time"
)

// contend draws what concerns who is main and who holds what, by dice of its own: the rest of the plan does not change. A
// part of these runs is long, and little else happens in them, so that leases run out.
func (p *Plan) contend() {
	r := rand.New(rand.NewPCG(p.Seed, 0x0FF1CE))
	if p.Office = r.IntN(3) > 0; !p.Office {
		return
	}
	p.Forces = r.IntN(4) == 0
	if r.IntN(3) == 0 && p.Nodes < 7 {
		p.Length += time.Duration(120+r.IntN(480)) * time.Second
		p.Actions = p.Actions[:len(p.Actions)/4]
	}
	total := 0
	for _, c := range contests {
		total += c.weight
	}
	for range 10 + r.IntN(40) {
		a := Action{At: time.Duration(r.Int64N(int64(p.Length))), A: r.IntN(64), B: r.IntN(64), N: r.IntN(1 << 16), For: time.Duration(r.Int64N(int64(30 * time.Second)))}
		if n := r.IntN(total + 4); n < total {
			for _, c := range contests {
				if n -= c.weight; n < 0 {
					a.Do = c.do
					break
				}
			}
		} else if a.Do = Take; !p.Forces {
			continue
		}
		p.Actions = append(p.Actions, a)
	}
}

// ClaimPlanOf draws a plan about nothing but claims: the mesh is split again and again, agents of both sides ask for the same
// few things just before main is lost and afterwards, clocks are set, machines sleep, mains die.
func ClaimPlanOf(seed uint64) Plan {
	r := rand.New(rand.NewPCG(seed, 0xC1A1))
	p := Plan{Seed: seed, Nodes: 3 + r.IntN(2), Delay: time.Duration(1+r.IntN(20)) * time.Millisecond, SyncTime: time.Duration(r.IntN(4)) * time.Millisecond,
		Skew: 10 * time.Minute, Drift: 0.002, Office: true}
	p.Clients = p.Nodes
	add := func(at time.Duration, do Verb, spell time.Duration) {
		p.Actions = append(p.Actions, Action{At: at, Do: do, A: r.IntN(64), B: r.IntN(64), N: r.IntN(1 << 16), For: spell})
	}
	at := 10 * time.Second // by then all have a vote
	for range 2 + r.IntN(3) {
		apart := time.Duration(20+r.IntN(400)) * time.Second
		some := func(within time.Duration) time.Duration { return at + time.Duration(r.Int64N(int64(within))) }
		for range 2 + r.IntN(3) {
			add(some(5*time.Second), Claim, 0)
		}
		add(some(2*time.Second), Split, apart)
		switch r.IntN(4) {
		case 0:
			add(some(6*time.Second), KillMain, apart/2)
		case 1:
			add(some(6*time.Second), Suspend, apart/2)
		}
		for range r.IntN(4) {
			add(some(apart), Jump, 0)
		}
		for range 3 + r.IntN(4) {
			add(some(apart), Claim, 0)
		}
		add(some(apart), []Verb{Unclaim, EndProc, Claim}[r.IntN(3)], 0)
		at += apart + time.Duration(r.IntN(20))*time.Second
	}
	p.Length = at
	return p
}
