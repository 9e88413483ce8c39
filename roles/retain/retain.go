package retain

import (
	"time"

	"github.com/aster-mesh/aster/protocol"
)

const (
	// AskedFor is how long what asks a person stays in any case: boards offer it for an answer that long.
	AskedFor = 7 * 24 * time.Hour
	// PressedAge is what age becomes when room is short, for content that another node keeps: long enough that whoever just
	// heard of it finds it here.
	PressedAge = time.Hour
	// expired is when whoever has not processed a message will not be given it any more, whatever became of its home.
	expired = protocol.MessageLife + 24*time.Hour
)

// Rules say how long content stays after it is over.
type Rules struct {
	// Age is the least age of content and of every message that names it; 0 keeps everything.
	Age time.Duration
	// Pressed: room is short, so that what another node keeps may leave before its age.
	Pressed bool
}

// Naming is one message that names the content.
type Naming struct {
	Said time.Time
	// To and Rcpt are whom it is for; both empty: for nobody in particular, so nobody owes it a word.
	To   protocol.AgentID
	Rcpt []protocol.AgentID
	// Settled are the agents, folded, that have processed or refused it; for To one settled word of anybody is enough, since
	// an agent may have had another name.
	Settled map[protocol.AgentID]bool
	Unread  bool // it lies unread in an inbox here
	Shown   bool // boards show it as what its sender declares now
	Open    bool // its task has not ended
	Asks    bool // it asks a person something, answered or not
	Waiting bool // and that is still to be answered
	// Lacking is a member, by name, that may not have it yet and has not been gone for longer than Age; empty: none.
	Lacking string
	// Elsewhere: this node is home to neither its sender nor its recipient, and one of those homes is linked and has it.
	Elsewhere bool
}

// Why says what holds content; empty: nothing does.
type Why string

const (
	Young     Why = "young"     // not old enough, or nothing may leave
	Unread    Why = "unread"    // somebody it is for has not processed it
	Open      Why = "open-task" // its task has not ended
	Asked     Why = "question"  // a person is still asked by it
	Shown     Why = "shown"     // it is what its sender declares now
	Lacking   Why = "member"    // a member may not have it yet
	Uncertain Why = "damaged"   // a record that may name it is damaged
)

// Held is Why with the member that lacks it, for people.
type Held struct {
	Why    Why
	Member string
}

// Holds says what holds content that is here since that time and is named by these messages. No message at all holds
// nothing, but what none names is not for this package to judge: the caller does not ask.
func (r Rules) Holds(now, since time.Time, named []Naming) Held {
	if r.Age <= 0 && !r.Pressed {
		return Held{Why: Young}
	}
	for i := range named {
		if why := owes(now, &named[i]); why != "" {
			return Held{Why: why}
		}
	}
	for i := range named {
		if who := named[i].Lacking; who != "" {
			return Held{Lacking, who}
		}
	}
	age, elsewhere := r.Age, len(named) > 0
	for i := range named {
		elsewhere = elsewhere && named[i].Elsewhere
	}
	if r.Pressed && elsewhere && (age <= 0 || age > PressedAge) {
		age = PressedAge
	}
	if age <= 0 || now.Sub(since) < age {
		return Held{Why: Young}
	}
	for i := range named {
		switch old := now.Sub(named[i].Said); {
		case named[i].Asks && old < AskedFor:
			return Held{Why: Asked}
		case old < age:
			return Held{Why: Young}
		}
	}
	return Held{}
}

// owes says whether somebody is still to do something with a message.
func owes(now time.Time, m *Naming) Why {
	switch {
	case m.Unread:
		return Unread
	case m.Open:
		return Open
	case m.Waiting:
		return Asked
	case m.Shown:
		return Shown
	case now.Sub(m.Said) >= expired:
		return ""
	case m.To != "" && len(m.Settled) == 0:
		return Unread
	}
	for _, id := range m.Rcpt {
		if !m.Settled[protocol.FoldAgentID(id)] {
			return Unread
		}
	}
	return ""
}
