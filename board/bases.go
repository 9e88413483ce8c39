package board

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/aster-mesh/aster/protocol"
)

// BaseAsked is where members were asked last to agree on a base.
type BaseAsked struct {
	At   pos    `json:"at"`
	Wall int64  `json:"wall"` // clock of who proposed it, ms
	Prev string `json:"prev,omitempty"`
}

// Log and Seq are where its record lies; its author proposed it.
func (b *BaseAsked) Log() protocol.LogID { return b.At.log }

// Seq is that in Log.
func (b *BaseAsked) Seq() uint64 { return b.At.seq }

// BaseHeld is the newest word that a base holds.
type BaseHeld struct {
	At     pos     `json:"at"`
	Wall   int64   `json:"wall"`
	Log    logText `json:"log"` // with Seq: of the proposal
	Seq    uint64  `json:"seq"`
	Prev   string  `json:"prev,omitempty"`
	Fold   int     `json:"fold"`
	Digest string  `json:"digest"`
}

// Word is where it is said.
func (b *BaseHeld) Word() (protocol.LogID, uint64) { return b.At.log, b.At.seq }

// bases is what records say of bases. Of proposals, answers and words that one holds the newest counts; the bases of logs only
// ever rise, so two that were agreed apart are one: of each log the higher.
type bases struct {
	asked   *BaseAsked
	answers map[protocol.PeerID]CutAnswer
	held    *BaseHeld
	marks   map[protocol.LogID]uint64
}

func newBases() bases {
	return bases{answers: map[protocol.PeerID]CutAnswer{}, marks: map[protocol.LogID]uint64{}}
}

// baseStep takes an inside node's word on a base.
func (s *State) baseStep(at pos, wall int64, body protocol.CutBody) {
	b := &s.bases
	if body.Step == protocol.CutBase {
		if len(body.Marks) > 0 && len(body.Marks) <= protocol.CutMarksMax && len(body.Prev) <= 64 && (b.asked == nil || b.asked.At.before(at)) {
			b.asked = &BaseAsked{at, wall, body.Prev}
		}
		return
	}
	log, err := protocol.ParseLogID(body.Log)
	sum, err2 := hex.DecodeString(body.Digest)
	if err != nil || err2 != nil || len(sum) != sha256.Size {
		return
	}
	digest := hex.EncodeToString(sum)
	if body.Step == protocol.CutBaseAnswer {
		if old, ok := b.answers[at.log.Peer]; !ok || old.At.before(at) {
			b.answers[at.log.Peer] = CutAnswer{At: at, Log: logText{log}, Seq: body.Seq, Fold: body.Fold, Digest: digest}
		}
		return
	}
	marks, err := Marks(body.Marks)
	if err != nil || len(marks) > protocol.CutMarksMax || len(body.Prev) > 64 {
		return
	}
	for log, seq := range marks {
		b.marks[log] = max(b.marks[log], seq)
	}
	if b.held == nil || b.held.At.before(at) {
		b.held = &BaseHeld{at, wall, logText{log}, body.Seq, body.Prev, body.Fold, digest}
	}
}

// Marks reads the marks of a cut; one whose log has no name is an error.
func Marks(texts map[string]uint64) (map[protocol.LogID]uint64, error) {
	out := make(map[protocol.LogID]uint64, len(texts))
	for text, seq := range texts {
		log, err := protocol.ParseLogID(text)
		if err != nil {
			return nil, fmt.Errorf("marks of a cut: %w", err)
		}
		if seq > 0 {
			out[log] = seq
		}
	}
	return out, nil
}

// BaseAsked is the newest proposal of a base with the answers to it, by node; nil: none yet.
func (s *State) BaseAsked() (*BaseAsked, []CutAnswer) {
	asked := s.bases.asked
	if asked == nil {
		return nil, nil
	}
	answers := slices.DeleteFunc(byPeer(s.bases.answers), func(a CutAnswer) bool { return a.Log.LogID != asked.At.log || a.Seq != asked.At.seq })
	one := *asked
	return &one, answers
}

// BaseHeld is the newest word that a base holds, and how high all that hold are; nil: none does. The caller changes nothing.
func (s *State) BaseHeld() (*BaseHeld, map[protocol.LogID]uint64) { return s.bases.held, s.bases.marks }

// basesImage is bases as plain values.
type basesImage struct {
	Asked   *BaseAsked  `json:"asked,omitempty"`
	Answers []CutAnswer `json:"answers,omitempty"`
	Held    *BaseHeld   `json:"held,omitempty"`
	Marks   []markImage `json:"marks,omitempty"`
}

func (b *bases) image() *basesImage {
	if b.asked == nil && b.held == nil && len(b.answers) == 0 {
		return nil // as it was before there were any
	}
	img := &basesImage{Asked: b.asked, Answers: byPeer(b.answers), Held: b.held}
	for log, seq := range b.marks {
		img.Marks = append(img.Marks, markImage{Log: log.String(), Mark: seq})
	}
	slices.SortFunc(img.Marks, func(a, b markImage) int { return strings.Compare(a.Log, b.Log) })
	return img
}

func (s *State) restoreBases(img *basesImage) error {
	if img == nil {
		return nil
	}
	b := &s.bases
	b.asked, b.held = img.Asked, img.Held
	for _, a := range img.Answers {
		b.answers[a.By()] = a
	}
	for _, m := range img.Marks {
		log, err := protocol.ParseLogID(m.Log)
		if err != nil {
			return err
		}
		b.marks[log] = m.Mark
	}
	return nil
}
