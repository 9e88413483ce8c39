package cut

import (
	"slices"
	"time"

	"github.com/aster-mesh/aster/protocol"
)

// Proposer is the member that proposes now: the main, if it is up, else the lowest id of those that are; empty: nobody is.
// Two halves of a mesh may have one each. Of their proposals the newer holds.
func Proposer(main protocol.PeerID, inside []protocol.PeerID, up func(protocol.PeerID) bool) protocol.PeerID {
	var lowest protocol.PeerID
	for _, p := range inside {
		if !up(p) {
			continue
		}
		if p == main {
			return p
		}
		if lowest == "" || p < lowest {
			lowest = p
		}
	}
	return lowest
}

// Due says whether members compare again at now, which they do every so often, when they were last asked to at last. every 0
// is never. A date that lies as far ahead is of a clock that was wrong, and holds nothing up.
func Due(now, last time.Time, every time.Duration) bool {
	return every > 0 && now.Sub(last).Abs() >= every
}

// Answer is what one member made of the records up to a cut.
type Answer struct {
	By     protocol.PeerID
	Fold   int // version of its fold
	Digest string
}

// Verdict is what the answers to one proposal say of the members that were asked.
type Verdict struct {
	// Digest is what more than half of the members answered; empty: nothing, yet or at all.
	Digest string
	Alike  []protocol.PeerID // those that answered it
	// Differ are those that made something else of the same records by the same version of the fold. Where two members and
	// more answered so differently that no majority can come about any more, it is all of these.
	Differ []protocol.PeerID
	Other  []protocol.PeerID // their program folds by another version, which says nothing
	Open   []protocol.PeerID // have not answered
}

// Differences are the parts that are not the same in all of several boards, by name, in order.
func Differences(parts []map[string]string) []string {
	var out []string
	for _, a := range parts {
		for name := range a {
			if !slices.Contains(out, name) && slices.ContainsFunc(parts, func(b map[string]string) bool { return b[name] != a[name] }) {
				out = append(out, name)
			}
		}
	}
	slices.Sort(out)
	return out
}

// Judge compares the answers of the members of the inside. Each member has at most one; answers of others count nothing.
func Judge(inside []protocol.PeerID, answers []Answer) Verdict {
	type made struct {
		fold   int
		digest string
	}
	var v Verdict
	count, of := map[made]int{}, map[protocol.PeerID]made{}
	for _, a := range answers {
		if _, twice := of[a.By]; !twice && slices.Contains(inside, a.By) {
			m := made{a.Fold, a.Digest}
			of[a.By] = m
			count[m]++
		}
	}
	open := len(inside) - len(of)
	var most made // of the most members; what is below counts only where it is clear
	for m, n := range count {
		if n > len(inside)/2 {
			most, v.Digest = m, m.digest
		}
	}
	lost := v.Digest == "" // no digest can get a majority any more
	digests := map[int]int{}
	for m, n := range count {
		lost = lost && n+open <= len(inside)/2
		digests[m.fold]++
	}
	for _, p := range inside {
		m, answered := of[p]
		switch {
		case !answered:
			v.Open = append(v.Open, p)
		case v.Digest != "" && m == most:
			v.Alike = append(v.Alike, p)
		case v.Digest != "" && m.fold == most.fold, lost && digests[m.fold] > 1:
			v.Differ = append(v.Differ, p)
		case v.Digest != "" || lost:
			v.Other = append(v.Other, p)
		}
	}
	return v
}
