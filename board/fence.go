package board

import (
	"maps"
	"slices"
	"strings"

	"github.com/aster-mesh/aster/protocol"
)

// Fence says that a start of a node has met a newer one of the same node and writes nothing more: the home was copied.
type Fence struct {
	At    pos             `json:"at"`
	Wall  int64           `json:"wall"` // clock of the start that stopped, ms
	Peer  protocol.PeerID `json:"peer"`
	Start protocol.Start  `json:"start"` // that stopped
	By    protocol.Start  `json:"by"`
	Host  string          `json:"host,omitempty"`
	Home  string          `json:"home,omitempty"`
}

// amiss takes what a node says of starts and logs that should not be, and of boards that should be alike.
func (s *State) amiss(at pos, rec *protocol.Record) {
	if rec.Kind == protocol.KindCut {
		s.cutStep(at, rec)
	} else if rec.Kind == protocol.KindFence {
		if body, err := protocol.DecodeBody[protocol.FenceBody](rec); err == nil {
			s.fence(at, rec.Wall, body)
		}
	} else if body, err := protocol.DecodeBody[protocol.ForkBody](rec); err == nil && rec.Log.Scope == protocol.ScopeInside {
		s.fork(at, rec.Wall, body)
	}
}

// fence takes a node's word on itself: a start speaks of itself alone. Of several of a node the newest holds.
func (s *State) fence(at pos, wall int64, body protocol.FenceBody) {
	start, err := protocol.ParseStart(body.Start)
	by, err2 := protocol.ParseStart(body.By)
	if err != nil || err2 != nil || start != at.log.Start || by.Compare(start) <= 0 {
		return
	}
	if old := s.fences[at.log.Peer]; old == nil || old.At.before(at) {
		s.fences[at.log.Peer] = &Fence{at, wall, at.log.Peer, start, by,
			protocol.CutText(body.Host, protocol.ShortTextBytesMax), protocol.CutText(body.Home, protocol.ShortTextBytesMax)}
	}
}

// Fences are the newest fence of each node that has one, sorted by node.
func (s *State) Fences() []Fence {
	out := make([]Fence, 0, len(s.fences))
	for _, f := range s.fences {
		out = append(out, *f)
	}
	slices.SortFunc(out, func(a, b Fence) int { return strings.Compare(string(a.Peer), string(b.Peer)) })
	return out
}

// Fork says that a node holds two records under one number of another's log.
type Fork struct {
	At   pos             `json:"at"`
	Wall int64           `json:"wall"` // clock of who saw it, ms
	By   protocol.PeerID `json:"by"`   // who saw it
	Log  logText         `json:"log"`
	Seq  uint64          `json:"seq"`
}

// logText is a log's id as JSON text.
type logText struct{ protocol.LogID }

func (l logText) MarshalText() ([]byte, error) { return []byte(l.String()), nil }

func (l *logText) UnmarshalText(text []byte) (err error) {
	l.LogID, err = protocol.ParseLogID(string(text))
	return err
}

// forksTold is of how many nodes the word of one is kept: as many as a mesh has. Of more the ones that it told of longest ago give
// way, so that what is kept depends on the set of its words alone. Who tells of nodes that are none crowds out its own words.
const forksTold = protocol.NodesMax

// fork takes an inside node's word on another's log. Of several that tell of one node the newest is shown.
func (s *State) fork(at pos, wall int64, body protocol.ForkBody) {
	log, err := protocol.ParseLogID(body.Log)
	if err != nil || body.Seq == 0 {
		return
	}
	told := s.forks[at.log.Peer]
	if told == nil {
		told = map[protocol.PeerID]*Fork{}
		s.forks[at.log.Peer] = told
	}
	if old := told[log.Peer]; old != nil && !old.At.before(at) {
		return
	}
	told[log.Peer] = &Fork{at, wall, at.log.Peer, logText{log}, body.Seq}
	if len(told) <= forksTold {
		return
	}
	var first *Fork
	for _, f := range told {
		if first == nil || f.At.before(first.At) {
			first = f
		}
	}
	delete(told, first.Log.Peer)
}

// Forks are the newest fork told of each node that has one, sorted by node.
func (s *State) Forks() []Fork {
	newest := map[protocol.PeerID]Fork{}
	for _, f := range s.toldForks() {
		newest[f.Log.Peer] = f
	}
	return slices.SortedFunc(maps.Values(newest), func(a, b Fork) int { return strings.Compare(string(a.Log.Peer), string(b.Log.Peer)) })
}

// toldForks are all that are kept, in order.
func (s *State) toldForks() []Fork {
	out := []Fork{}
	for _, told := range s.forks {
		for _, f := range told {
			out = append(out, *f)
		}
	}
	slices.SortFunc(out, func(a, b Fork) int { return a.At.compare(b.At) })
	return out
}

func (s *State) restoreForks(forks []Fork) {
	for i := range forks {
		f := &forks[i]
		if s.forks[f.By] == nil {
			s.forks[f.By] = map[protocol.PeerID]*Fork{}
		}
		s.forks[f.By][f.Log.Peer] = f
	}
}
