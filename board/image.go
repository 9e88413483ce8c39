package board

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"

	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/api"
	"github.com/aster-mesh/aster/roles/room"
)

// image is a State as plain values in one order: what Canonical and Encode write.
type image struct {
	Version      int                        `json:"v"`
	Count        uint64                     `json:"count"`
	Sum          string                     `json:"sum"`
	Kinds        map[protocol.Kind]uint64   `json:"kinds"`
	Intents      map[protocol.Intent]uint64 `json:"intents"`
	Marks        []markImage                `json:"marks"`
	Roster       json.RawMessage            `json:"roster"`
	Bindings     []bindingImage             `json:"bindings"`
	Moves        []movedImage               `json:"moves,omitempty"`
	Presence     []presenceImage            `json:"presence"`
	Declarations []declarationImage         `json:"declarations"`
	Keys         json.RawMessage            `json:"keys"`
	Tasks        []taskImage                `json:"tasks"`
	Ended        map[api.TaskState]uint64   `json:"ended"`
	Rooms        []*room.Room               `json:"rooms,omitempty"`
	Shared       []sharedImage              `json:"shared,omitempty"`
	Document     *Document                  `json:"document,omitempty"`
	Fences       []Fence                    `json:"fences,omitempty"`
	Forks        []Fork                     `json:"forks,omitempty"`
	Channels     []*Channel                 `json:"channels,omitempty"`
	Cut          *Cut                       `json:"cut,omitempty"`
	CutAnswers   []CutAnswer                `json:"cutAnswers,omitempty"`
	Bases        *basesImage                `json:"bases,omitempty"`
	Claims       []claimImage               `json:"claims,omitempty"`  // in a checkpoint those that are over as well
	Decided      []decidedImage             `json:"decided,omitempty"` // in a checkpoint only
}

type markImage struct {
	Log  string `json:"log"`
	Mark uint64 `json:"mark"`
	// In a checkpoint only.
	Waiting []waitingReceipt   `json:"waiting,omitempty"`
	Bound   []protocol.AgentID `json:"bound,omitempty"` // folded, sorted
	Ranges  uint64             `json:"ranges,omitempty"`
	Said    *baseSaid          `json:"said,omitempty"`
}

type bindingImage struct {
	At      pos               `json:"at"`
	Body    protocol.BindBody `json:"body"`
	Settled bool              `json:"settled,omitempty"`
	Homes   []protocol.PeerID `json:"homes,omitempty"` // when there were several
}

// sharedImage is a room as a member outside was told of it.
type sharedImage struct {
	With protocol.PeerID `json:"with"`
	Room *room.Room      `json:"room"`
}

type movedImage struct {
	At   pos               `json:"at"`
	Body protocol.MoveBody `json:"body"`
}

type presenceImage struct {
	At   pos                   `json:"at"`
	Wall int64                 `json:"wall"`
	Body protocol.PresenceBody `json:"body"`
}

type declarationImage struct {
	At pos `json:"at"`
	Declaration
}

type taskImage struct {
	ID        protocol.TaskID  `json:"id"`
	Worker    protocol.AgentID `json:"worker"`
	Scope     protocol.Scope   `json:"scope"`
	Final     *pos             `json:"final,omitempty"`
	Outcome   api.TaskState    `json:"outcome,omitempty"`
	Refused   bool             `json:"refused,omitempty"`
	Cancelled bool             `json:"cancelled,omitempty"`
	Delegated bool             `json:"delegated,omitempty"`
	Words     *words           `json:"words,omitempty"`
	// In a checkpoint only.
	Old   bool  `json:"old,omitempty"`
	Items []pos `json:"items,omitempty"` // its Delegate records
}

// Canonical returns the board as bytes that are equal on all nodes that hold the same records, in whatever order they
// came. Of tasks whose words are dropped it has the counts; of logs, the last seq that counts.
func (s *State) Canonical() []byte {
	img := s.image()
	img.Roster = s.roster.Canonical()
	_, img.Claims = s.claimImages()
	for _, ls := range s.logs {
		if n := s.counted(ls); n > 0 {
			img.Marks = append(img.Marks, markImage{Log: ls.id.String(), Mark: n})
		}
	}
	for _, t := range s.tasks {
		if t.words != nil {
			img.Tasks = append(img.Tasks, t.image())
		}
	}
	img.sort()
	return protocol.EncodeBody(img)
}

// Digest is the hex SHA-256 of Canonical.
func (s *State) Digest() string {
	sum := sha256.Sum256(s.Canonical())
	return hex.EncodeToString(sum[:])
}

// image has what a canonical form and a checkpoint share.
func (s *State) image() image {
	img := image{
		Version: 1, Count: s.count, Sum: hex.EncodeToString(s.sum[:]), Kinds: s.kinds, Intents: s.intents, Ended: s.Ended(),
		Keys: s.keys.Encode(),
	}
	for _, homes := range s.bindings {
		for _, b := range homes {
			one := bindingImage{b.at, b.body, b.settled, nil}
			if len(b.homes) > 1 || b.body.Moves > 0 {
				one.Homes = b.homes
			}
			img.Bindings = append(img.Bindings, one)
		}
	}
	for _, g := range s.guests {
		for _, b := range g.bindings {
			img.Bindings = append(img.Bindings, bindingImage{b.at, b.body, b.settled, nil})
		}
		for _, p := range g.presence {
			img.Presence = append(img.Presence, presenceImage{p.at, p.wall, p.body})
		}
	}
	for _, m := range s.moves {
		img.Moves = append(img.Moves, movedImage{m.at, m.body})
	}
	for _, p := range s.presence {
		img.Presence = append(img.Presence, presenceImage{p.at, p.wall, p.body})
	}
	for _, d := range s.declarations {
		img.Declarations = append(img.Declarations, declarationImage{d.at, *d})
	}
	for _, r := range s.rooms {
		img.Rooms = append(img.Rooms, r)
	}
	for p, rooms := range s.shared {
		for _, r := range rooms {
			img.Shared = append(img.Shared, sharedImage{p, r})
		}
	}
	img.Document = s.document
	img.Fences, img.Forks = s.Fences(), s.toldForks()
	img.Channels = s.channels.list()
	img.Bases = s.basesImage()
	img.Cut, img.CutAnswers = s.cut, byPeer(s.cutAnswers)
	return img
}

// sort puts every list in its one order. No two bindings, presences or declarations share a position.
func (img *image) sort() {
	slices.SortFunc(img.Marks, func(a, b markImage) int { return strings.Compare(a.Log, b.Log) })
	slices.SortFunc(img.Bindings, func(a, b bindingImage) int { return a.At.compare(b.At) })
	slices.SortFunc(img.Moves, func(a, b movedImage) int { return a.At.compare(b.At) })
	slices.SortFunc(img.Presence, func(a, b presenceImage) int { return a.At.compare(b.At) })
	slices.SortFunc(img.Declarations, func(a, b declarationImage) int { return a.At.compare(b.At) })
	slices.SortFunc(img.Rooms, func(a, b *room.Room) int { return strings.Compare(string(a.ID), string(b.ID)) })
	slices.SortFunc(img.Shared, func(a, b sharedImage) int {
		return cmp.Or(strings.Compare(string(a.With), string(b.With)), strings.Compare(string(a.Room.ID), string(b.Room.ID)))
	})
	slices.SortFunc(img.Tasks, func(a, b taskImage) int {
		return cmp.Or(strings.Compare(string(a.ID), string(b.ID)), strings.Compare(string(a.Worker), string(b.Worker)), strings.Compare(string(a.Scope), string(b.Scope)))
	})
}

func (t *task) image() taskImage {
	return taskImage{
		ID: t.key.ID, Worker: t.key.Worker, Scope: t.key.Scope, Final: t.final, Outcome: t.outcome, Refused: t.refused, Cancelled: t.cancelled,
		Delegated: t.delegated, Words: t.words,
	}
}
