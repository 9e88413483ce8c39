package board

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/roles/cut"
)

// BaseAsked is a proposal of a base on which nothing was said yet. Its author's next proposal in the same log ends it, as does
// the word that it holds.
type BaseAsked struct {
	At    pos    `json:"at"`
	Wall  int64  `json:"wall"` // clock of who proposed it, ms
	Prev  string `json:"prev,omitempty"`
	Marks marks  `json:"marks"`
}

// Log and Seq are where its record lies; its author proposed it, and alone says that it holds.
func (b *BaseAsked) Log() protocol.LogID { return b.At.log }

// Seq is that in Log.
func (b *BaseAsked) Seq() uint64 { return b.At.seq }

// BaseHeld is a word that a base holds.
type BaseHeld struct {
	At     pos    `json:"at"`
	Wall   int64  `json:"wall"`
	Asked  pos    `json:"asked"` // the proposal
	Prev   string `json:"prev,omitempty"`
	Marks  marks  `json:"marks,omitempty"`
	Fold   int    `json:"fold"`
	Digest string `json:"digest"`

	holds bool // derived: see judge
}

// Word is where it is said.
func (b *BaseHeld) Word() (protocol.LogID, uint64) { return b.At.log, b.At.seq }

// BaseFalse is a word that a base holds which has no effect.
type BaseFalse struct {
	At   pos   `json:"at"`
	Wall int64 `json:"wall"`
	// Sure: it says something else than its author proposed, or nothing was. If not, no majority of the members answered so before
	// it, as far as their records are here.
	Sure bool `json:"-"`
}

// By is who said it.
func (b *BaseFalse) By() protocol.PeerID { return b.At.log.Peer }

// Word is where it is said.
func (b *BaseFalse) Word() (protocol.LogID, uint64) { return b.At.log, b.At.seq }

// marks say how far logs go.
type marks map[protocol.LogID]uint64

// MarshalJSON writes them by the names of the logs, which json sorts.
func (m marks) MarshalJSON() ([]byte, error) {
	return protocol.EncodeBody(MarkTexts(m)), nil
}

func (m marks) raise(by marks) {
	for log, seq := range by {
		m[log] = max(m[log], seq)
	}
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (m *marks) UnmarshalJSON(text []byte) error {
	var texts map[string]uint64
	err := json.Unmarshal(text, &texts)
	if err == nil {
		*m, err = Marks(texts)
	}
	return err
}

// bases is what records say of bases. A word that a base holds counts if its author proposed that base last in the same log, and
// a majority of the members as of that base answered so before. That is a function of the set of records, so all nodes find the
// same. The bases of logs only ever rise: two that were agreed apart are one, of each log the higher.
type bases struct {
	open    map[protocol.LogID]*BaseAsked
	answers map[placeKey]map[protocol.PeerID]CutAnswer // the first of each node, to what is open, said or still to come
	words   []*BaseHeld                                // in order; of those that hold the newest
	floor   marks                                      // of those that hold and are not among words any more
	last    *BaseHeld                                  // the newest of these
	lies    map[protocol.PeerID]*BaseFalse             // the newest of each node that is surely false

	judged bool      // what follows, and what words holds, is so
	held   *BaseHeld // the newest that holds
	agreed marks     // of all that hold
}

// placeKey is where a record lies.
type placeKey struct {
	log protocol.LogID
	seq uint64
}

// keptWords is how many words that hold are kept apart: what comes so late is not answered any more.
const keptWords = 32

func newBases() bases {
	return bases{open: map[protocol.LogID]*BaseAsked{}, answers: map[placeKey]map[protocol.PeerID]CutAnswer{}, floor: marks{}, lies: map[protocol.PeerID]*BaseFalse{}}
}

// baseStep takes an inside node's word on a base.
func (s *State) baseStep(at pos, wall int64, body protocol.CutBody) {
	b := &s.bases
	b.judged = false
	if body.Step == protocol.CutBaseAnswer {
		s.baseAnswer(at, body)
		return
	}
	of, err := Marks(body.Marks)
	if err != nil || len(of) == 0 || len(of) > protocol.CutMarksMax || len(body.Prev) > 64 {
		return
	}
	open := b.open[at.log]
	if body.Step == protocol.CutBase {
		if open != nil {
			delete(b.answers, placeKey{at.log, open.At.seq})
		}
		b.open[at.log] = &BaseAsked{at, wall, body.Prev, of}
		return
	}
	digest, ok := readDigest(body.Digest)
	if !ok || body.Fold < foldsThatCheck {
		return // earlier programs took anybody's word
	}
	if open == nil || body.Log != at.log.String() || body.Seq != open.At.seq || body.Prev != open.Prev || !maps.Equal(of, open.Marks) {
		if old := b.lies[at.log.Peer]; old == nil || old.At.before(at) {
			b.lies[at.log.Peer] = &BaseFalse{At: at, Wall: wall}
		}
		return
	}
	delete(b.open, at.log)
	if !s.log(at.log).said.word(len(of)) {
		delete(b.answers, placeKey{at.log, open.At.seq}) // as those that are still to come are passed over
		return
	}
	b.addWord(&BaseHeld{At: at, Wall: wall, Asked: open.At, Prev: open.Prev, Marks: of, Fold: body.Fold, Digest: digest})
}

// foldsThatCheck is the first version of the fold that does.
const foldsThatCheck = 3

func readDigest(text string) (string, bool) {
	sum, err := hex.DecodeString(text)
	return hex.EncodeToString(sum), err == nil && len(sum) == sha256.Size
}

func (b *bases) addWord(w *BaseHeld) {
	i, _ := slices.BinarySearchFunc(b.words, w, func(a, b *BaseHeld) int { return a.At.compare(b.At) })
	b.words = slices.Insert(b.words, i, w)
}

func (s *State) baseAnswer(at pos, body protocol.CutBody) {
	log, err := protocol.ParseLogID(body.Log)
	digest, ok := readDigest(body.Digest)
	if err != nil || !ok || !s.log(at.log).said.answer(log.Peer) {
		return
	}
	s.addAnswer(CutAnswer{At: at, Log: logText{log}, Seq: body.Seq, Fold: body.Fold, Digest: digest})
}

// addAnswer takes the first of each node, to what is a proposal or may turn out to be one.
func (s *State) addAnswer(a CutAnswer) {
	b, key := &s.bases, placeKey{a.Log.LogID, a.Seq}
	if a.Seq <= s.Mark(a.Log.LogID) && !b.asks(key) {
		return
	}
	if b.answers[key] == nil {
		b.answers[key] = map[protocol.PeerID]CutAnswer{}
	}
	if old, again := b.answers[key][a.By()]; !again || a.At.before(old.At) {
		b.answers[key][a.By()] = a
	}
}

// asks says whether a proposal lies there of which something may come.
func (b *bases) asks(key placeKey) bool {
	if open := b.open[key.log]; open != nil && open.At.seq == key.seq {
		return true
	}
	return slices.ContainsFunc(b.words, func(w *BaseHeld) bool { return w.Asked.log == key.log && w.Asked.seq == key.seq })
}

// taken says that a record was: answers to one that is no proposal are none.
func (b *bases) taken(log protocol.LogID, seq uint64) {
	if len(b.answers) > 0 {
		if key := (placeKey{log, seq}); b.answers[key] != nil && !b.asks(key) {
			delete(b.answers, key)
		}
	}
	if slices.ContainsFunc(b.words, func(w *BaseHeld) bool { return !w.holds }) {
		b.judged = false // what was lacking may be here
	}
}

// judge finds which words hold, the earlier first.
func (s *State) judge() {
	b := &s.bases
	if b.judged {
		return
	}
	b.judged, b.held, b.agreed = true, b.last, maps.Clone(b.floor)
	holding := 0
	for _, w := range b.words {
		a, ok := s.said(w.Asked, w.Marks, &w.At)
		if w.holds = ok && a.Digest == w.Digest && a.Fold == w.Fold; w.holds {
			b.held = w
			b.agreed.raise(w.Marks)
			holding++
		}
	}
	b.words = slices.DeleteFunc(b.words, func(w *BaseHeld) bool {
		if !w.holds || holding <= keptWords {
			return false
		}
		holding--
		b.floor.raise(w.Marks)
		b.last = &BaseHeld{At: w.At, Wall: w.Wall, Asked: w.Asked, Prev: w.Prev, Fold: w.Fold, Digest: w.Digest, holds: true}
		delete(b.answers, placeKey{w.Asked.log, w.Asked.seq})
		return true
	})
}

// said is what a majority of the members as of a base answered to its proposal, before a word on it if there is one. False: nothing,
// or not all below the base is here. Who is a member there is known from records that lie below, which is all that counts: whoever
// comes later judges alike.
func (s *State) said(asked pos, of marks, before *pos) (cut.Answer, bool) {
	var answers []CutAnswer
	for _, a := range s.bases.answers[placeKey{asked.log, asked.seq}] {
		if before == nil || a.At.before(*before) {
			answers = append(answers, a)
		}
	}
	return cut.Holds(s.insideAt(asked, of), ToJudge(answers))
}

// insideAt are the members of the inside as of a base; none as long as not all below it is here.
func (s *State) insideAt(asked pos, of marks) (inside []protocol.PeerID) {
	base := maps.Clone(s.bases.floor)
	for _, w := range s.bases.words {
		if w.holds && w.At.before(asked) {
			base.raise(w.Marks)
		}
	}
	base.raise(of)
	for log, seq := range base {
		if s.Mark(log) < seq {
			return nil
		}
	}
	for _, m := range s.roster.Below(base).Members() {
		if m.Inside && !m.Revoked {
			inside = append(inside, m.Peer)
		}
	}
	return inside
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

// MarkTexts writes marks as a cut has them, for Marks.
func MarkTexts(marks map[protocol.LogID]uint64) map[string]uint64 {
	out := make(map[string]uint64, len(marks))
	for log, seq := range marks {
		out[log.String()] = seq
	}
	return out
}

// BasesAsked are the newest proposal of each node on which nothing was said yet, the newest first.
func (s *State) BasesAsked() []BaseAsked {
	newest := map[protocol.PeerID]*BaseAsked{}
	for log, asked := range s.bases.open {
		if old := newest[log.Peer]; old == nil || old.At.before(asked.At) {
			newest[log.Peer] = asked
		}
	}
	out := make([]BaseAsked, 0, len(newest))
	for _, asked := range newest {
		out = append(out, *asked)
	}
	slices.SortFunc(out, func(a, b BaseAsked) int { return b.At.compare(a.At) })
	return out
}

// BaseAnswers are the answers to a proposal, by node.
func (s *State) BaseAnswers(asked *BaseAsked) []CutAnswer {
	return byPeer(s.bases.answers[placeKey{asked.At.log, asked.At.seq}])
}

// BaseInside are the members whose answers to a proposal count; none as long as not all below it is here.
func (s *State) BaseInside(asked *BaseAsked) []protocol.PeerID {
	s.judge()
	return s.insideAt(asked.At, asked.Marks)
}

// BaseSaid is what a majority of the members as of a base that is proposed answered; false: nothing yet.
func (s *State) BaseSaid(asked *BaseAsked) (cut.Answer, bool) {
	s.judge()
	return s.said(asked.At, asked.Marks, nil)
}

// BaseHeld is the newest word that a base holds and that counts, and how high all those are; nil: none does. The caller changes
// nothing.
func (s *State) BaseHeld() (*BaseHeld, map[protocol.LogID]uint64) {
	s.judge()
	return s.bases.held, s.bases.agreed
}

// BaseSettled says whether a word that counts says that a base of that digest holds.
func (s *State) BaseSettled(digest string) bool {
	s.judge()
	return s.bases.last != nil && s.bases.last.Digest == digest ||
		slices.ContainsFunc(s.bases.words, func(w *BaseHeld) bool { return w.holds && w.Digest == digest })
}

// BaseFalse are words that a base holds which have no effect, the newest of each node.
func (s *State) BaseFalse() []BaseFalse {
	s.judge()
	newest := map[protocol.PeerID]BaseFalse{}
	for p, lie := range s.bases.lies {
		newest[p] = BaseFalse{lie.At, lie.Wall, true}
	}
	for _, w := range s.bases.words {
		if old, ok := newest[w.At.log.Peer]; !w.holds && (!ok || old.At.before(w.At)) {
			newest[w.At.log.Peer] = BaseFalse{w.At, w.Wall, false}
		}
	}
	return slices.SortedFunc(maps.Values(newest), func(a, b BaseFalse) int { return a.At.compare(b.At) })
}
