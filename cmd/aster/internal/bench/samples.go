package bench

import (
	"slices"
	"time"
)

// samples are times of one kind of work.
type samples []time.Duration

// at is a quantile in milliseconds, 0 without samples.
func (s samples) at(q float64) float64 {
	if len(s) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(s))
	return millis(sorted[min(int(q*float64(len(sorted))), len(sorted)-1)])
}

func (s samples) p50() float64 { return s.at(0.5) }
func (s samples) p99() float64 { return s.at(0.99) }

// side is one of the things compared: once does its work and says how long the measured part took.
type side struct {
	once func() (time.Duration, error)
	got  samples
}

// blockOf is how many turns a side has before the next one's: short, so that what else happens on the machine hits all
// sides alike, and long enough that each runs warm.
const blockOf = 25

// interleave gives the sides turns for about d. every is the pace within a block; 0: at once.
func interleave(d, every time.Duration, sides ...*side) error {
	for end := time.Now().Add(d); time.Now().Before(end); {
		for _, s := range sides {
			begin := time.Now()
			for i := range blockOf {
				if every > 0 {
					time.Sleep(time.Until(begin.Add(time.Duration(i) * every)))
				}
				took, err := s.once()
				if err != nil {
					return err
				}
				if every > 0 || i > 0 { // the first of a block pays for caches that the other sides used
					s.got = append(s.got, took)
				}
			}
		}
	}
	return nil
}

// median of values; it sorts them.
func median(v []float64) float64 {
	if len(v) == 0 {
		return 0
	}
	slices.Sort(v)
	return v[len(v)/2]
}
