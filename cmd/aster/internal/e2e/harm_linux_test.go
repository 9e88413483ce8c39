package e2e

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"syscall"
	"time"
)

// upTo draws a span of at most d, mostly a short one.
func upTo(rng *rand.Rand, d time.Duration) time.Duration {
	f := rng.Float64()
	return time.Duration(float64(d) * (0.04 + 0.96*f*f))
}

// over says that no new fault begins any more.
func (c *chaos) over() bool { return time.Since(c.began) > c.span }

// longest is how long one fault lasts at most: in the long run past every deadline of a link.
func (c *chaos) longest() time.Duration {
	if long {
		return 25 * time.Second
	}
	return 5 * time.Second
}

// up starts a node, with a clock of its own where there is one to be had.
func (c *chaos) up(n *node, rng *rand.Rand) {
	c.t.Helper()
	if n.program != "" {
		words := skew(rng)
		n.env = []string{clockVariable + "=" + words}
		c.note("clock", "%s starts with the clock %q", n.name, words)
	}
	n.up("")
}

// harmProcesses kills and stops nodes, and leaves all of them running.
func (c *chaos) harmProcesses(rng *rand.Rand) {
	for !c.over() {
		instant(upTo(rng, c.longest()/8))
		i, j := rng.IntN(len(c.nodes)), rng.IntN(len(c.nodes))
		n, d := c.nodes[i], upTo(rng, c.longest())
		switch kind := rng.IntN(8); {
		case kind < 4:
			d /= 5
			c.note("kill", "%s is killed for %s", n.name, d.Round(time.Millisecond))
			n.kill()
			instant(d)
			c.up(n, rng)
		case kind == 4 && j != i:
			c.note("kill", "%s and %s are killed", n.name, c.nodes[j].name)
			n.kill()
			c.nodes[j].kill()
			c.up(n, rng)
			c.up(c.nodes[j], rng)
		default:
			c.note("stop", "%s is stopped for %s", n.name, d.Round(time.Millisecond))
			pid := n.cmd.Process
			must(c.t, pid.Signal(syscall.SIGSTOP))
			instant(d)
			must(c.t, pid.Signal(syscall.SIGCONT))
		}
	}
}

// harmNetwork harms paths, one harm after the other, and leaves them whole.
func (c *chaos) harmNetwork(rng *rand.Rand) {
	hosts := c.lab.hosts
	for !c.over() {
		instant(upTo(rng, c.longest()/6))
		order := rng.Perm(len(hosts))
		d := upTo(rng, c.longest())
		kind := []string{"cable", "cut", "one way", "loss", "loss everywhere", "split", "move"}[rng.IntN(7)]
		words, err := c.harm(kind, order)
		c.note(kind, "%s for %s", words, d.Round(time.Millisecond))
		instant(d)
		err = errors.Join(err, hosts[order[0]].plug(true))
		for _, h := range hosts {
			err = errors.Join(err, h.filter())
		}
		if err != nil {
			c.t.Errorf("%s: %v", kind, err)
			return
		}
	}
}

// harm does one harm to the paths of the first two of order.
func (c *chaos) harm(kind string, order []int) (words string, err error) {
	hosts := c.lab.hosts
	a, b := hosts[order[0]], hosts[order[1]]
	switch kind {
	case "cable":
		return fmt.Sprintf("the cable of n%d is out", order[0]), a.plug(false)
	case "cut":
		return fmt.Sprintf("nothing passes between n%d and n%d", order[0], order[1]), errors.Join(a.filter(from(b)...), b.filter(from(a)...))
	case "one way":
		return fmt.Sprintf("nothing comes to n%d from n%d", order[0], order[1]), a.filter(from(b)...)
	case "loss":
		return fmt.Sprintf("n%d loses 30 %% of what comes", order[0]), a.filter(lossy)
	case "loss everywhere":
		for _, h := range hosts {
			err = errors.Join(err, h.filter(lossy))
		}
		return "all lose 30 % of what comes", err
	case "move":
		c.moves++
		a.ip4, a.ip6 = fmt.Sprintf("10.83.21.%d", 20+c.moves), fmt.Sprintf("fd83:21::%d", 20+c.moves)
		return fmt.Sprintf("n%d is at %s from now on, and nothing else happens", order[0], a.ip4), a.addresses(a.ip4+"/24", a.ip6+"/64")
	}
	for _, o := range order[2:] {
		err = errors.Join(err, hosts[o].filter(append(from(a), from(b)...)...))
	}
	for _, h := range []*labHost{a, b} {
		var rules []string
		for _, o := range order[2:] {
			rules = append(rules, from(hosts[o])...)
		}
		err = errors.Join(err, h.filter(rules...))
	}
	return fmt.Sprintf("n%d and n%d are apart from the others", order[0], order[1]), err
}
