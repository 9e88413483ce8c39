package election

import "github.com/aster-mesh/aster/protocol"

// Kind says what a Message is.
type Kind uint8

// The messages between nodes about the office; the numbers travel.
const (
	Beat    Kind = 1 // main to all inside: I am here, and these elect
	BeatAck Kind = 2 // its answer
	Ask     Kind = 3 // candidate to voters
	Vote    Kind = 4 // its answer
)

// Message is one of them. Fields that a kind does not use are zero.
type Message struct {
	Kind Kind
	Term protocol.Term // the sender's own, of a Beat; else in office as far as the sender knows
	Seen uint64        // highest number of a term that the sender voted in or knows

	Seq      uint64 // of a Beat, and of its answer
	Strong   bool   // of a Beat: hear it and give nobody else a vote for MainSilence
	Resigned bool   // of a Beat: it forbids nobody anything
	OK       bool   // of a BeatAck: taken as the main's word; of a Vote: yes

	Pre    bool   // of an Ask and a Vote: would you?
	Number uint64 // of an Ask and a Vote: of the term asked for

	Stamp  protocol.Stamp    // of the sender's voters
	Voters []protocol.PeerID // of a Beat, to those who may not have them
}
