package node

import (
	"fmt"
	"time"

	"github.com/aster-mesh/aster/board"
	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/roles/cut"
)

// Why no base rises, and who said a false word on one, for those who look.

// warnBaseWaits is about a base that waits for somebody to do something.
const warnBaseWaits = "base-waits"

// baseWaits is how long a base waits before boards warn of it: members are away over a weekend.
const baseWaits = 3 * 24 * time.Hour

// falseAfter is how long answers may take that are there before a word.
const falseAfter = 10 * time.Minute

// baseLook is what comparing found last about bases.
type baseLook struct {
	differs, clock bool
	looked         time.Time
	rose           bool
	owed           cut.Owed
	young          int64
}

// standstill is what is known of why no base rises.
func (l *loop) standstill() *cut.Standstill {
	n := l.n
	s := &cut.Standstill{Now: l.now, Age: n.cfg.Retention.Records}
	if look := n.baseLook.Load(); look != nil {
		s.Differs, s.Clock, s.Looked, s.Rose, s.Owed, s.Young = look.differs, look.clock, look.looked, look.rose, look.owed, look.young
	}
	from := l.board.From()
	held, agreed := l.board.BaseHeld()
	s.Behind = held != nil && cut.Raises(baseSeq(from), agreed)
	for _, asked := range l.board.BasesAsked() {
		if asked.Prev != from.ID() {
			continue // nobody who stands where this node does answers it
		}
		l.waitsFor(s, &asked)
		break
	}
	proposer := cut.Proposer(l.roster().Term().Peer, l.insideMembers(), l.isUp)
	if s.Mine = proposer == n.home.peer; proposer != "" {
		s.Proposer = n.nameOf(proposer)
	}
	return s
}

func (l *loop) waitsFor(s *cut.Standstill, asked *board.BaseAsked) {
	inside := l.board.BaseInside(asked)
	if len(inside) == 0 {
		return
	}
	v := cut.Judge(inside, board.ToJudge(l.board.BaseAnswers(asked)))
	s.By, s.Since, s.Enough = l.n.nameOf(asked.Log().Peer), time.UnixMilli(asked.Wall), v.Digest != ""
	if v.Digest == "" {
		for _, p := range v.Differ {
			s.Others = append(s.Others, l.n.nameOf(p))
		}
	}
	spoke := map[protocol.PeerID]bool{}
	for _, h := range l.rep.Heads() {
		spoke[h.Log.Peer] = true
	}
	for _, p := range v.Open {
		if spoke[p] {
			s.Open = append(s.Open, l.n.nameOf(p))
		} else {
			s.Never = append(s.Never, l.n.nameOf(p))
		}
	}
}

// baseWarnings are the lines of members who said that a base holds which does not.
func (l *loop) baseWarnings() (out []string) {
	for _, f := range l.board.BaseFalse() {
		age := l.now.Sub(time.UnixMilli(f.Wall))
		if age >= cut.BaseAge || !f.Sure && 0 <= age && age < falseAfter {
			continue // nobody needs to do anything about it any more, or the answers may be on their way
		}
		log, seq := f.Word()
		why := "and no majority of the members has answered so, as far as is known here"
		if f.Sure {
			why = "and proposed no such base"
		}
		out = append(out, fmt.Sprintf("%s says that records may leave (%s, record %d), %s: its word has no effect. If it is not a fault of its program: aster member revoke %[1]s",
			l.n.nameOf(f.By()), log, seq, why))
	}
	return out
}

// noteStandstill warns once a base has waited for long, and logs who said false words.
func (l *loop) noteStandstill(b *baser) {
	for _, line := range l.baseWarnings() {
		if !b.logged[line] {
			b.logged[line] = true
			l.log.Warn(line)
		}
	}
	l.noteBegun()
	s := l.standstill()
	why := s.Why()
	if s.By != "" && why != "" && l.now.Sub(s.Since) >= baseWaits {
		l.warn(warnBaseWaits, "old records do not leave: "+why)
		return
	}
	l.n.warnings.clear(warnBaseWaits)
}
