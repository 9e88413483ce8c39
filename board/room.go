package board

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/roles/room"
)

// room is a room of this mesh; only records of the inside count, whose members all hold them.
func (s *State) room(at pos, id protocol.RoomID) *room.Room {
	if at.log.Scope != protocol.ScopeInside || id == "" {
		return nil
	}
	r := s.rooms[id]
	if r == nil {
		r = &room.Room{ID: id}
		s.rooms[id] = r
	}
	return r
}

func (s *State) roomStep(at pos, wall int64, body protocol.RoomBody) {
	if out, ok := at.log.Scope.Outsider(); ok && out != at.log.Peer && body.Room != "" {
		s.sharedRoom(out, body.Room).Apply(room.At(at.at, at.log, at.seq), wall, body)
		return
	}
	if r := s.room(at, body.Room); r != nil {
		r.Apply(room.At(at.at, at.log, at.seq), wall, body)
	}
}

func (s *State) roomSaid(at pos, wall int64, env *protocol.Envelope) {
	if r := s.room(at, env.Room); r != nil {
		r.Said(room.At(at.at, at.log, at.seq), wall, env)
	}
}

// Rooms returns copies of all rooms that anything was said of, closed ones with their id alone.
func (s *State) Rooms() (map[protocol.RoomID]*room.Room, error) {
	raw, err := json.Marshal(s.rooms)
	if err != nil {
		return nil, fmt.Errorf("copy rooms: %w", err)
	}
	out := map[protocol.RoomID]*room.Room{}
	if err := json.Unmarshal(raw, &out); err != nil {
		return nil, fmt.Errorf("copy rooms: %w", err)
	}
	return out, nil
}

// sharedRoom is a room as a member outside was told of it, by nodes of the inside alone.
func (s *State) sharedRoom(p protocol.PeerID, id protocol.RoomID) *room.Room {
	if s.shared[p] == nil {
		s.shared[p] = map[protocol.RoomID]*room.Room{}
	}
	r := s.shared[p][id]
	if r == nil {
		r = &room.Room{ID: id}
		s.shared[p][id] = r
	}
	return r
}

// SharedRooms returns copies of all rooms as members outside were told of them.
func (s *State) SharedRooms() (map[protocol.PeerID]map[protocol.RoomID]*room.Room, error) {
	raw, err := json.Marshal(s.shared)
	if err != nil {
		return nil, fmt.Errorf("copy rooms: %w", err)
	}
	out := map[protocol.PeerID]map[protocol.RoomID]*room.Room{}
	if err := json.Unmarshal(raw, &out); err != nil {
		return nil, fmt.Errorf("copy rooms: %w", err)
	}
	return out, nil
}

// HasRoom says whether anything was ever said of a room, by its channel's name.
func (s *State) HasRoom(channel string) bool {
	id, ok := strings.CutPrefix(channel, protocol.RoomChannel)
	return ok && s.rooms[protocol.RoomID(id)] != nil
}

// RoomWords is what a room remembers of its talk, for who shows a channel without its words.
type RoomWords struct {
	Channel string
	Count   int   // of the newest that it remembers
	Last    int64 // author's clock, ms
}

// RoomWords lists the open rooms in which something was said, the one that was used last first.
func (s *State) RoomWords() (out []RoomWords) {
	for id, r := range s.rooms {
		if n := len(r.Lines); r.Open() && n > 0 {
			out = append(out, RoomWords{protocol.RoomChannel + string(id), n, r.Lines[n-1].Wall})
		}
	}
	slices.SortFunc(out, func(a, b RoomWords) int {
		return cmp.Or(cmp.Compare(b.Last, a.Last), cmp.Compare(a.Channel, b.Channel))
	})
	return out
}

func (s *State) restoreRooms(img *image) error {
	for _, r := range img.Rooms {
		if !r.Valid() {
			return errors.New("a room contradicts itself")
		}
		s.rooms[r.ID] = r
	}
	for _, one := range img.Shared {
		if !one.Room.Valid() {
			return errors.New("a room contradicts itself")
		}
		s.sharedRoom(one.With, one.Room.ID)
		s.shared[one.With][one.Room.ID] = one.Room
	}
	return nil
}
