package hub

import (
	"time"

	"github.com/aster-mesh/aster/protocol"
)

// fence takes what happens to a hub that writes nothing more. It says whether the input is dealt with: what only changes
// the view goes on, and what Ready then finds beside is left out by fenced.
func (c *Core) fence(input Input) bool {
	switch in := input.(type) {
	case Say:
		in.Values = nil // an outbox's line waits
		c.refuse(in, &in.Env, c.closed)
	case Acked:
		c.tellClosed(in.Token)
	case Heard:
		c.tellClosed(in.Token)
	case Attach:
		c.tellClosed(in.Token)
	case Declare:
		c.tellClosed(in.Token)
	case Forget:
		c.tellClosed(in.Token)
	case Rename:
		c.tellClosed(in.Token)
	case Move:
		c.tellClosed(in.Token)
	case Wait:
		c.tellClosed(in.Token)
	case Author:
		c.tellClosed(in.Token)
	case SayLive, Taken, Applied, DeliveredElsewhere, Arrive, Doing, Announce:
	case Tick:
		c.next = time.Time{}
	default:
		return false
	}
	return true
}

func (c *Core) tellClosed(t Token) { c.tell(Told{Token: t, Refusal: c.closed}) }

// fenced is what a hub that writes nothing more lets out: answers and views.
func fenced(rd Ready) Ready {
	out := rd.Out[:0]
	for _, o := range rd.Out {
		switch o.(type) {
		case Told, Refused, Roster, PresenceChanged, MainChanged:
			out = append(out, o)
		}
	}
	return Ready{Out: out}
}

// Fenced is why this hub writes nothing more, or nil.
func (c *Core) Fenced() *protocol.Refusal { return c.closed }
