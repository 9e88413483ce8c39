package board

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/roles/keys"
	"github.com/aster-mesh/aster/roles/member"
)

// ErrBadCheckpoint says that bytes are not a whole checkpoint of this version: the board is then folded from the
// journal again.
var ErrBadCheckpoint = errors.New("bad board checkpoint")

// checkpointTag names the version of the fold too: what a program of another one passed over, an update would go on without.
var checkpointTag = fmt.Sprintf("aster.board.%d ", FoldVersion)

type checkpoint struct {
	Mesh  member.MeshID `json:"mesh"`
	Stale bool          `json:"stale,omitempty"`
	Image image         `json:"image"`
}

// Encode returns all of the State, in one order. Decode gives an equal State, which goes on after Mark of each log.
func (s *State) Encode() []byte {
	body := s.checkpoint(false)
	sum := sha256.Sum256(body)
	return slices.Concat([]byte(checkpointTag+hex.EncodeToString(sum[:])+"\n"), body)
}

// checkpoint is the body of Encode. At a base it is the same in whatever order records came: what would be decided otherwise
// by records of before it is settled.
func (s *State) checkpoint(base bool) []byte {
	img := s.image()
	img.Roster = s.roster.Encode()
	img.Claims, _ = s.claimImages()
	img.Decided = s.decidedImages()
	for i := range img.Decided {
		if base {
			img.Decided[i].Passed = 0
		}
	}
	items := map[*task][]pos{}
	for _, ls := range s.logs {
		if ls.mark > 0 || len(ls.waiting) > 0 {
			img.Marks = append(img.Marks, markImage{ls.id.String(), ls.mark, ls.waitingInOrder(), slices.Sorted(maps.Keys(ls.bound)), ls.ranges, ls.said.image()})
		}
		for _, item := range ls.delegates {
			items[item.task] = append(items[item.task], item.at)
		}
	}
	for _, t := range s.tasks {
		ti := t.image()
		ti.Old, ti.Items = t.old, items[t]
		slices.SortFunc(ti.Items, pos.compare)
		img.Tasks = append(img.Tasks, ti)
	}
	img.sort()
	return protocol.EncodeBody(checkpoint{s.roster.Mesh(), s.stale, img})
}

// Decode reads what Encode wrote. Anything else, one changed byte included, is ErrBadCheckpoint.
func Decode(text []byte) (*State, error) {
	head, body, ok := bytes.Cut(text, []byte("\n"))
	sum := sha256.Sum256(body)
	if !ok || string(head) != checkpointTag+hex.EncodeToString(sum[:]) {
		return nil, fmt.Errorf("%w: not whole", ErrBadCheckpoint)
	}
	return decodeImage(body, KeptTasks)
}

func decodeImage(body []byte, kept int) (*State, error) {
	var c checkpoint
	if err := json.Unmarshal(body, &c); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrBadCheckpoint, err)
	}
	img := &c.Image
	if img.Version != 1 {
		return nil, fmt.Errorf("%w: version %d", ErrBadCheckpoint, img.Version)
	}
	roster, err := member.DecodeRoster(c.Mesh, img.Roster)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrBadCheckpoint, err)
	}
	s := newState(roster, kept)
	s.stale, s.count = c.Stale, img.Count
	sum, err := hex.DecodeString(img.Sum)
	if err != nil || len(sum) != len(s.sum) {
		return nil, fmt.Errorf("%w: sum %q", ErrBadCheckpoint, protocol.CutText(img.Sum, 80))
	}
	copy(s.sum[:], sum)
	for k, n := range img.Kinds {
		s.kinds[k] = n
	}
	for k, n := range img.Intents {
		s.intents[k] = n
	}
	for _, m := range img.Marks {
		log, err := protocol.ParseLogID(m.Log)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrBadCheckpoint, err)
		}
		ls := s.log(log)
		ls.mark, ls.ranges = m.Mark, m.Ranges
		ls.restoreWaiting(m.Waiting)
		if m.Said != nil {
			ls.said = *m.Said
		}
		for _, id := range m.Bound {
			ls.binds(protocol.BindBody{Agent: id, Home: log.Peer})
		}
	}
	if s.keys, err = keys.DecodeRing(img.Keys); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrBadCheckpoint, err)
	}
	s.restoreAgents(img)
	if err := s.restoreRooms(img); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrBadCheckpoint, err)
	}
	s.document = img.Document
	for i := range img.Fences {
		s.fences[img.Fences[i].Peer] = &img.Fences[i]
	}
	s.restoreForks(img.Forks)
	s.restoreCut(img)
	if err := s.restoreBases(img.Bases); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrBadCheckpoint, err)
	}
	if err := s.restoreChannels(img.Channels); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrBadCheckpoint, err)
	}
	if err := s.restoreClaims(img); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrBadCheckpoint, err)
	}
	for i := range img.Tasks {
		if err := s.restoreTask(&img.Tasks[i]); err != nil {
			return nil, err
		}
	}
	return s, nil
}

func (s *State) restoreAgents(img *image) {
	for _, b := range img.Bindings {
		if guests(b.At.log) {
			s.guest(b.At.log.Peer).bind(b.At, b.Body)
			continue
		}
		key := protocol.FoldAgentID(b.Body.Agent)
		if s.bindings[key] == nil {
			s.bindings[key] = map[protocol.PeerID]*binding{}
		}
		if len(b.Homes) == 0 {
			b.Homes = []protocol.PeerID{b.Body.Home}
		}
		// An agent that never moved was bound by its home, also where an older checkpoint does not say so.
		s.bindings[key][b.Body.First()] = &binding{b.At, b.Body, b.Settled || b.Body.Moves == 0, b.Homes}
	}
	for _, m := range img.Moves {
		s.moves[agentKey{protocol.FoldAgentID(m.Body.Agent), m.Body.Origin}] = &moved{m.At, m.Body}
	}
	for _, p := range img.Presence {
		s.presentAt(&presence{p.At, p.Wall, p.Body})
	}
	for i := range img.Declarations {
		d := img.Declarations[i].Declaration
		d.at = img.Declarations[i].At
		d.Log, d.Seq = d.at.log, d.at.seq
		s.declarations[declarationKey{agentKey{protocol.FoldAgentID(d.From), d.Log.Peer}, d.Intent, d.Item, guests(d.Log)}] = &d
	}
}

func (s *State) restoreTask(img *taskImage) error {
	t := s.task(img.ID, img.Worker, img.Scope)
	t.final, t.outcome, t.refused, t.cancelled, t.delegated = img.Final, img.Outcome, img.Refused, img.Cancelled, img.Delegated
	t.words = img.Words
	if t.words != nil {
		if err := t.checkWords(); err != nil {
			return err
		}
	} else if !t.ended() {
		return fmt.Errorf("%w: an open task without words", ErrBadCheckpoint)
	}
	for _, at := range img.Items {
		ls := s.log(at.log)
		if ls.delegates == nil {
			ls.delegates = map[uint64]*delegateItem{}
		}
		item := &delegateItem{at, t}
		ls.delegates[at.seq] = item
		s.remember(item)
	}
	t.old = t.old || img.Old
	return nil
}

// checkWords refuses what no fold makes and views rely on.
func (t *task) checkWords() error {
	w := t.words
	switch {
	case t.delegated != (w.Delegate != nil), (t.final != nil) != (w.Final != nil),
		t.refused != (w.Tiers[protocol.Refused] != nil), t.cancelled != (w.Cancel != nil):
		return fmt.Errorf("%w: task %q contradicts itself", ErrBadCheckpoint, protocol.CutText(string(t.key.ID), 80))
	}
	for tier, x := range w.Tiers {
		if x == nil {
			return fmt.Errorf("%w: task %q has an empty tier %q", ErrBadCheckpoint, protocol.CutText(string(t.key.ID), 80), protocol.CutText(string(tier), 20))
		}
	}
	return nil
}
