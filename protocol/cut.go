package protocol

// CutStep says what a CutBody does.
type CutStep string

const (
	CutPropose CutStep = "propose"
	CutAnswer  CutStep = "answer"
	// The same of a base, below which records may leave, and the word that it holds.
	CutBase       CutStep = "base"
	CutBaseAnswer CutStep = "base-answer"
	CutHold       CutStep = "hold"
)

// CutBody is about a cut through all logs, at which the members of the inside compare what they make of the records up to it
// (DESIGN 4 Retention). Whoever proposes it answers like everybody else, once it has folded them.
type CutBody struct {
	Step CutStep `json:"step"`
	// Of a proposal: Marks have the last seq of each log of an author's last start, and Past stands for the logs of its former
	// ones, by a digest of how far each goes, so that a mesh may grow old. Of what neither names nothing lies below the cut.
	// Records is how many do.
	Marks   map[string]uint64 `json:"marks,omitempty"` // LogID.String() → seq
	Past    map[PeerID]string `json:"past,omitempty"`  // 32 hex digits
	Records uint64            `json:"records,omitempty"`
	// Prev names, of a base, the one before; empty: none was. Its Marks are the ends of commits, and name those logs alone whose
	// base rises. The word that it holds repeats them, with the digest that a majority answered.
	Prev string `json:"prev,omitempty"`
	// Of an answer, and of the word that a base holds: where the proposal lies, and the digest of the fold there. Digests of different versions of the fold say
	// nothing of each other.
	Log    string `json:"log,omitempty"` // LogID.String()
	Seq    uint64 `json:"seq,omitempty"`
	Fold   int    `json:"fold,omitempty"`
	Digest string `json:"digest,omitempty"` // hex SHA-256
	// Parts are the same of each part of the board, 16 hex digits, so that people are told in what boards differ.
	Parts map[string]string `json:"parts,omitempty"`
}

// CutPartsMax bounds the parts of an answer; one with more names none.
const CutPartsMax = 64

// CutMarksMax bounds the logs that a proposal names, so that its record is far below RecordBytesMax.
const CutMarksMax = 3000
