package bench

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
)

// spell is one turn of the honest pairs, and what the attacker beside them had of it.
type spell struct {
	took   [2]samples // of each pair
	tally  tally
	lasted time.Duration
}

// spells are turns of one kind.
type spells []spell

// p99s are those of a pair, one a turn: a turn in which the machine did something else weighs as much as any other.
func (s spells) p99s(pair int) (all []float64) {
	for i := range s {
		all = append(all, s[i].took[pair].p99())
	}
	return all
}

// p99 is their median.
func (s spells) p99(pair int) float64 { return median(s.p99s(pair)) }

// all are the samples of a pair in all turns.
func (s spells) all(pair int) (all samples) {
	for i := range s {
		all = append(all, s[i].took[pair]...)
	}
	return all
}

// apart is how many times as large the median of one half of the turns is as that of the other, turn about: what two measurements of
// the same thing differ by, and so what a figure of that many turns cannot tell.
func (s spells) apart(pair int) float64 {
	var halves [2]spells
	for i := range s {
		halves[i%2] = append(halves[i%2], s[i])
	}
	one, other := halves[0].p99(pair), halves[1].p99(pair)
	if min(one, other) == 0 {
		return 0
	}
	return max(one, other) / min(one, other)
}

// attackers is what the attacker had in all turns.
func (s spells) attackers() (sum tally, lasted time.Duration) {
	for i := range s {
		sum.add(s[i].tally)
		lasted += s[i].lasted
	}
	return sum, lasted
}

// attacked measures one attack: the control and the attack take turns.
func (h *hostileBench) attacked(ctx context.Context, kind string) ([]Row, error) {
	h.say("hostile: %s", kind)
	who, _, _ := strings.Cut(kind, ":")
	evil, bare := h.evil[who], h.bare[who]
	var calm, control, attack spells
	for round := range hostileRounds {
		turns := []struct {
			at *target
			to *spells
		}{{&bare, &control}, {&evil, &attack}}
		if round%2 > 0 {
			slices.Reverse(turns)
		}
		if round == 0 || round == hostileRounds-1 {
			turns = append(turns, turns[0])
			turns[2].at, turns[2].to = nil, &calm
		}
		for _, turn := range turns {
			var got spell
			err := h.settle(ctx)
			if err == nil {
				err = h.turn(ctx, kind, turn.at, h.For/2, &got)
			}
			if err != nil {
				return nil, fmt.Errorf("%s: %w", kind, err)
			}
			*turn.to = append(*turn.to, got)
		}
	}
	var rows []Row
	for i, where := range []string{"others at that node", "others from there to another"} {
		base, all := control.p99(i), control.p99s(i)
		r := Row{Bench: "hostile", Case: kind + ", p99 of " + where, Value: attack.p99(i), Unit: "ms",
			Raw: []Raw{{"control p99", base, "ms"}, {"its least", slices.Min(all), "ms"}, {"its most", slices.Max(all), "ms"},
				{"two controls apart", control.apart(i), "x"}, {"calm p99", calm.p99(i), "ms"}, {"p50", attack.all(i).p50(), "ms"},
				{"control p50", control.all(i).p50(), "ms"}, {"samples a p99", float64(len(attack.all(i))) / hostileRounds, ""}},
			Bar: hostileTimes * base, Rule: "2 x control"}
		if i == 0 {
			r.Note = came(attack, control)
		}
		rows = append(rows, r.judge())
	}
	return rows, nil
}

// came is what became of an attacker, by its own count: how often its links ended, and what was taken of it or given to it where the
// control takes or gives all.
func came(attack, control spells) string {
	a, lasted := attack.attackers()
	c, free := control.attackers()
	rate := func(n int64, d time.Duration) float64 { return float64(n) / max(d.Seconds(), 0.001) }
	fate := "held"
	if again := a.Links - int64(len(attack)); again > 0 && a.Links > 0 {
		fate = fmt.Sprintf("its links ended %d times in %.0f s", again, lasted.Seconds())
	} else if again < 0 {
		fate = fmt.Sprintf("let in %d times of %d", a.Links, len(attack))
	}
	return fmt.Sprintf("the attacker: %s; %.1f links, %.0f KB taken of it, %.0f KB given to it a second (the control: %.1f, %.0f, %.0f)", fate,
		rate(a.Links, lasted), rate(a.Sent, lasted)/1e3, rate(a.Got, lasted)/1e3, rate(c.Links, free), rate(c.Sent, free)/1e3, rate(c.Got, free)/1e3)
}
