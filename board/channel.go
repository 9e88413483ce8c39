package board

import (
	"errors"
	"maps"
	"slices"

	"github.com/aster-mesh/aster/protocol"
)

// Channels is what people put away or deleted, by channel (FoldChannel). A value that somebody was given does not change: the fold makes
// another one.
type Channels map[string]*Channel

// Channel is what counts of the steps on one channel: of each kind the latest.
type Channel struct {
	Key     string               `json:"key"`               // of several spellings the first in byte order
	Deleted *pos                 `json:"deleted,omitempty"` // what stands before it is shown to nobody
	Put     *pos                 `json:"put,omitempty"`
	As      protocol.ChannelStep `json:"as,omitempty"`    // what Put did: archive or restore
	Count   int                  `json:"count,omitempty"` // of an archive
	Last    int64                `json:"last,omitempty"`
}

// Archived says whether the channel is put away now: a channel that was deleted since is not.
func (c *Channel) Archived() bool {
	return c != nil && c.As == protocol.ChannelArchive && (c.Deleted == nil || c.Deleted.before(*c.Put))
}

// Hides says whether a message of the channel is deleted, or put away. at, log and seq are its record's.
func (c *Channel) Hides(at protocol.HLC, log protocol.LogID, seq uint64) (deleted, archived bool) {
	if c == nil {
		return false, false
	}
	p := pos{at, log, seq}
	return c.Deleted != nil && p.before(*c.Deleted), c.Archived() && p.before(*c.Put)
}

// Since is the hybrid time of the deletion that counts, or 0: what was logged before it is shown to nobody.
func (c *Channel) Since() protocol.HLC {
	if c == nil || c.Deleted == nil {
		return 0
	}
	return c.Deleted.at
}

// Of is the steps on the channel of that name, in any spelling, or nil.
func (c Channels) Of(key string) *Channel {
	if len(c) == 0 {
		return nil
	}
	return c[protocol.FoldChannel(key)]
}

// Channels is what is put away or deleted now. Any goroutine may read it.
func (s *State) Channels() Channels {
	s.lent = true
	return s.channels
}

// channelStep takes a step on a channel. Only members of the inside take one.
func (s *State) channelStep(at pos, rec *protocol.Record) {
	body, err := protocol.DecodeBody[protocol.ChannelBody](rec)
	if err != nil || at.log.Scope != protocol.ScopeInside || body.Channel == "" || len(body.Channel) > protocol.ChannelBytesMax {
		return
	}
	next := Channel{Key: body.Channel}
	key := protocol.FoldChannel(body.Channel)
	if old := s.channels[key]; old != nil {
		next = *old
		next.Key = min(old.Key, body.Channel)
	}
	switch body.Step {
	case protocol.ChannelDelete, protocol.ChannelClose:
		if next.Deleted == nil || next.Deleted.before(at) {
			next.Deleted = &at
		}
	case protocol.ChannelArchive, protocol.ChannelRestore:
		if next.Put != nil && !next.Put.before(at) {
			break
		}
		next.Put, next.As, next.Count, next.Last = &at, body.Step, 0, 0
		if body.Step == protocol.ChannelArchive {
			next.Count, next.Last = body.Count, body.Last
		}
	default:
		return
	}
	switch {
	case s.channels == nil:
		s.channels = Channels{}
	case s.lent: // whoever has it reads on
		s.channels = maps.Clone(s.channels)
	}
	s.lent = false
	s.channels[key] = &next
}

// Archived are those that are put away now, in one order.
func (c Channels) Archived() []*Channel {
	return slices.DeleteFunc(c.list(), func(one *Channel) bool { return !one.Archived() })
}

// list is c in one order.
func (c Channels) list() []*Channel {
	out := make([]*Channel, 0, len(c))
	for _, key := range slices.Sorted(maps.Keys(c)) {
		out = append(out, c[key])
	}
	return out
}

func (s *State) restoreChannels(all []*Channel) error {
	for _, c := range all {
		put := c != nil && (c.As == protocol.ChannelArchive || c.As == protocol.ChannelRestore)
		if c == nil || c.Key == "" || put != (c.Put != nil) {
			return errors.New("a channel contradicts itself")
		}
		if s.channels == nil {
			s.channels = Channels{}
		}
		s.channels[protocol.FoldChannel(c.Key)] = c
	}
	return nil
}
