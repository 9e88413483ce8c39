package board

import "github.com/aster-mesh/aster/protocol"

// baseSaid is how much of what a log says of bases counts. Words whose answers never come, and answers to what is never proposed,
// are kept as long as the board: records that are still to come may make them count. So each log has its share of both. It looks
// at the log alone, so order cannot matter, and what held once holds for ever.
type baseSaid struct {
	Words   int                     `json:"words,omitempty"`
	Marks   int                     `json:"marks,omitempty"` // that its words name together
	Answers int                     `json:"answers,omitempty"`
	To      map[protocol.PeerID]int `json:"to,omitempty"` // of its answers, to proposals of each node
}

// word says whether one more that names so many logs counts.
func (b *baseSaid) word(marks int) bool {
	if b.Words >= protocol.BaseWordsMax || b.Marks+marks > protocol.BaseWordMarksMax {
		b.Words = protocol.BaseWordsMax // none after it does, be it smaller
		return false
	}
	b.Words++
	b.Marks += marks
	return true
}

// answer says whether one more to a proposal of a node counts.
func (b *baseSaid) answer(to protocol.PeerID) bool {
	if b.Answers >= protocol.BaseAnswersMax || b.To[to] >= protocol.BaseAnswersToOneMax {
		return false
	}
	if b.To == nil {
		b.To = map[protocol.PeerID]int{}
	}
	b.Answers++
	b.To[to]++
	return true
}

func (b *baseSaid) image() *baseSaid {
	if b.Words+b.Answers == 0 {
		return nil
	}
	return b
}
