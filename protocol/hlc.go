package protocol

import (
	"fmt"
	"time"
)

// HLC is a hybrid logical time: 48 bits of milliseconds since 1970, 16 bits of counter. It orders, it tells no time
// (DESIGN 4 Clocks; Kulkarni et al., "Logical Physical Clocks", 2014).
type HLC uint64

// HLCMax bounds what is accepted from others: the start of the year 2200. It is the only reason to refuse a time.
const HLCMax = HLC(7258118400000) << 16

// HLCAt is the hybrid time that a wall clock alone would give.
func HLCAt(t time.Time) HLC { return HLC(uint64(max(t.UnixMilli(), 0))) << 16 }

// Time is the wall part, for rough comparison only.
func (h HLC) Time() time.Time { return time.UnixMilli(int64(h >> 16)) }

func (h HLC) String() string { return fmt.Sprintf("%d.%d", uint64(h>>16), uint64(h&0xffff)) }

// Clock makes and merges hybrid times. The zero value is ready. Not safe for concurrent use: the node's loop owns it.
type Clock struct{ last HLC }

// Next is greater than every time made or merged before, and at least now.
func (c *Clock) Next(now time.Time) HLC {
	c.last = max(c.last+1, HLCAt(now))
	return c.last
}

// Merge takes a time from elsewhere, so that what follows here sorts after it. False: it lies beyond HLCMax and was not
// taken.
func (c *Clock) Merge(h HLC) bool {
	if h >= HLCMax {
		return false
	}
	c.last = max(c.last, h)
	return true
}

// Last is the greatest time made or merged.
func (c *Clock) Last() HLC { return c.last }
