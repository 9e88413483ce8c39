package board

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"

	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/roles/cut"
)

// FoldVersion is that of Canonical: nodes whose programs fold differently do not compare digests. Whoever changes what
// Canonical returns for the same records makes it one more.
const FoldVersion = 5

// Cut is where members were asked last to compare their folds.
type Cut struct {
	At   pos   `json:"at"`
	Wall int64 `json:"wall"` // clock of who proposed it, ms
	// Records is how many lie up to it, as its author says.
	Records uint64 `json:"records"`
}

// Log and Seq are where its record lies; its author proposed it.
func (c *Cut) Log() protocol.LogID { return c.At.log }

// Seq is that in Log.
func (c *Cut) Seq() uint64 { return c.At.seq }

// CutAnswer is what one node made of the records up to a cut.
type CutAnswer struct {
	At     pos               `json:"at"`
	Log    logText           `json:"log"` // with Seq: of the proposal
	Seq    uint64            `json:"seq"`
	Fold   int               `json:"fold"`
	Digest string            `json:"digest"`
	Parts  map[string]string `json:"parts,omitempty"` // see Parts
}

// By is who answered.
func (a *CutAnswer) By() protocol.PeerID { return a.At.log.Peer }

// ToJudge are answers as package cut counts them.
func ToJudge(answers []CutAnswer) []cut.Answer {
	out := make([]cut.Answer, 0, len(answers))
	for _, a := range answers {
		out = append(out, cut.Answer{By: a.By(), Fold: a.Fold, Digest: a.Digest})
	}
	return out
}

// cutStep takes an inside node's proposal, of which the newest holds, or its answer, of which its newest holds.
func (s *State) cutStep(at pos, rec *protocol.Record) {
	body, err := protocol.DecodeBody[protocol.CutBody](rec)
	if err != nil || at.log.Scope != protocol.ScopeInside {
		return
	}
	switch body.Step {
	case protocol.CutBase, protocol.CutBaseAnswer, protocol.CutHold:
		s.baseStep(at, rec.Wall, body)
	case protocol.CutPropose:
		if len(body.Marks) == 0 || len(body.Marks) > protocol.CutMarksMax || s.cut != nil && !s.cut.At.before(at) {
			return
		}
		s.cut = &Cut{At: at, Wall: rec.Wall, Records: body.Records}
	case protocol.CutAnswer:
		log, err := protocol.ParseLogID(body.Log)
		sum, err2 := hex.DecodeString(body.Digest)
		if old, ok := s.cutAnswers[at.log.Peer]; err != nil || err2 != nil || len(sum) != 32 || ok && !old.At.before(at) {
			return
		}
		a := CutAnswer{at, logText{log}, body.Seq, body.Fold, hex.EncodeToString(sum), body.Parts}
		if len(a.Parts) > protocol.CutPartsMax {
			a.Parts = nil
		}
		for name, part := range a.Parts {
			if len(name) > 32 || len(part) != 2*partBytes {
				a.Parts = nil // ranging over the map that it was goes on
			}
		}
		s.cutAnswers[at.log.Peer] = a
	}
}

// partBytes are kept of each part's SHA-256.
const partBytes = 8

// Parts are digests of the parts of Canonical, by their names there.
func (s *State) Parts() map[string]string {
	var parts map[string]json.RawMessage
	out := map[string]string{}
	if json.Unmarshal(s.Canonical(), &parts) != nil {
		return out
	}
	for name, raw := range parts {
		sum := sha256.Sum256(raw)
		out[name] = hex.EncodeToString(sum[:partBytes])
	}
	return out
}

// Cut is the newest cut with the answers to it, by node; false: none was proposed yet.
func (s *State) Cut() (Cut, []CutAnswer, bool) {
	if s.cut == nil {
		return Cut{}, nil, false
	}
	answers := slices.DeleteFunc(byPeer(s.cutAnswers), func(a CutAnswer) bool {
		return a.Log.LogID != s.cut.At.log || a.Seq != s.cut.At.seq
	})
	return *s.cut, answers, true
}

func byPeer(answers map[protocol.PeerID]CutAnswer) []CutAnswer {
	out := make([]CutAnswer, 0, len(answers))
	for _, a := range answers {
		out = append(out, a)
	}
	slices.SortFunc(out, func(a, b CutAnswer) int { return strings.Compare(string(a.By()), string(b.By())) })
	return out
}

func (s *State) restoreCut(img *image) {
	s.cut = img.Cut
	for _, a := range img.CutAnswers {
		s.cutAnswers[a.By()] = a
	}
}
