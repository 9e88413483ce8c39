package board

import (
	"maps"
	"slices"
	"strings"

	"github.com/aster-mesh/aster/protocol"
)

// basesImage is bases as plain values.
type basesImage struct {
	Open    []BaseAsked `json:"open,omitempty"`
	Answers []CutAnswer `json:"answers,omitempty"`
	Words   []BaseHeld  `json:"words,omitempty"`
	Held    *heldImage  `json:"held,omitempty"`  // with Marks: of words that are not kept apart any more
	Marks   []markImage `json:"marks,omitempty"` // of earlier programs: all
	False   []BaseFalse `json:"false,omitempty"`
}

// heldImage is also what earlier programs wrote.
type heldImage struct {
	At     pos     `json:"at"`
	Wall   int64   `json:"wall"`
	Log    logText `json:"log"`
	Seq    uint64  `json:"seq"`
	Asked  pos     `json:"asked,omitzero"`
	Prev   string  `json:"prev,omitempty"`
	Fold   int     `json:"fold"`
	Digest string  `json:"digest"`
}

func (s *State) basesImage() *basesImage {
	s.judge()
	b := &s.bases
	img := &basesImage{}
	for _, asked := range b.open {
		img.Open = append(img.Open, *asked)
	}
	slices.SortFunc(img.Open, func(a, b BaseAsked) int { return a.At.compare(b.At) })
	for _, of := range b.answers {
		img.Answers = append(img.Answers, slices.Collect(maps.Values(of))...)
	}
	slices.SortFunc(img.Answers, func(a, b CutAnswer) int { return a.At.compare(b.At) })
	for _, w := range b.words {
		img.Words = append(img.Words, *w)
	}
	if l := b.last; l != nil {
		img.Held = &heldImage{l.At, l.Wall, logText{l.Asked.log}, l.Asked.seq, l.Asked, l.Prev, l.Fold, l.Digest}
	}
	for log, seq := range b.floor {
		img.Marks = append(img.Marks, markImage{Log: log.String(), Mark: seq})
	}
	slices.SortFunc(img.Marks, func(a, b markImage) int { return strings.Compare(a.Log, b.Log) })
	for _, lie := range b.lies {
		img.False = append(img.False, *lie)
	}
	slices.SortFunc(img.False, func(a, b BaseFalse) int { return a.At.compare(b.At) })
	if len(img.Open)+len(img.Answers)+len(img.Words)+len(img.Marks)+len(img.False) == 0 {
		return nil // as it was before there were any
	}
	return img
}

// restoreBases is called once the marks of logs are there.
func (s *State) restoreBases(img *basesImage) error {
	if img == nil {
		return nil
	}
	b := &s.bases
	for i := range img.Open {
		b.open[img.Open[i].At.log] = &img.Open[i]
	}
	for i := range img.Words {
		b.addWord(&img.Words[i])
	}
	for _, a := range img.Answers {
		s.addAnswer(a) // an earlier program kept some to what is no proposal
	}
	if h := img.Held; h != nil {
		asked := h.Asked
		if asked.seq == 0 {
			asked = pos{h.At.at, h.Log.LogID, h.Seq}
		}
		b.last = &BaseHeld{At: h.At, Wall: h.Wall, Asked: asked, Prev: h.Prev, Fold: h.Fold, Digest: h.Digest, holds: true}
	}
	for _, m := range img.Marks {
		log, err := protocol.ParseLogID(m.Log)
		if err != nil {
			return err
		}
		b.floor[log] = m.Mark
	}
	for i := range img.False {
		b.lies[img.False[i].By()] = &img.False[i]
	}
	return nil
}
