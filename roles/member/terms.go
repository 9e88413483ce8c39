package member

import (
	"github.com/aster-mesh/aster/protocol"
)

// term is what the records that count say of one term.
type term struct {
	write *write // that names it
	prev  protocol.Term
	cuts  map[protocol.LogID]uint64 // of prev's logs
}

// decodeTerm reads a record of who is main. Only the main itself says so.
func (w *write) decodeTerm(rec *protocol.Record) bool {
	var err error
	if w.term, err = protocol.DecodeBody[protocol.TermBody](rec); err != nil {
		return false
	}
	w.cuts = map[protocol.LogID]uint64{}
	for text, seq := range w.term.Cuts {
		if log, err := protocol.ParseLogID(text); err == nil && log.Peer == w.term.Prev.Peer {
			w.cuts[log] = seq
		}
	}
	return w.term.Number > 0 && w.term.Peer == rec.Log.Peer && (w.term.Agent == "" || protocol.CheckAgentID(w.term.Agent) == nil)
}

// decodeVoters reads a decision on who elects, which only that term's main makes.
func (w *write) decodeVoters(rec *protocol.Record) bool {
	var err error
	w.voters, err = protocol.DecodeBody[protocol.VotersBody](rec)
	return err == nil && w.voters.Term.Number > 0 && w.voters.Term.Peer == rec.Log.Peer && len(w.voters.Voters) > 0 &&
		len(w.voters.Voters) <= 4*protocol.NodesMax
}

// settleTerm adds a record of a term that counts; they come in ascending order.
func (r *Roster) settleTerm(w *write) {
	t := r.terms[w.term.Term()]
	if t == nil {
		t = &term{cuts: map[protocol.LogID]uint64{}}
		r.terms[w.term.Term()] = t
	}
	if t.write == nil || later(w, t.write) {
		t.write = w
	}
	if t.prev.Compare(w.term.Prev) < 0 {
		t.prev = w.term.Prev
	}
	for log, seq := range w.cuts {
		t.cuts[log] = max(t.cuts[log], seq)
	}
}

// later says whether w names the main agent of a term rather than what came before it in order. After a main's last word
// it names nobody.
func later(w, before *write) bool {
	a, b := w.term, before.term
	return !b.Ended && (a.Ended || a.Agent != "" || b.Agent == "")
}

// Term is the term in office: of all that count the greatest (number, peer). The zero TermBody: none yet. Of two
// records of one term the later one that names an agent says which.
func (r *Roster) Term() protocol.TermBody {
	r.resolveRest()
	if t := r.terms[r.inOffice]; t != nil {
		return t.write.term
	}
	return protocol.TermBody{}
}

// Voters is the latest decision on who elects; the zero VotersBody: none yet.
func (r *Roster) Voters() protocol.VotersBody {
	r.resolveRest()
	if r.voters == nil {
		return protocol.VotersBody{}
	}
	return r.voters.voters
}

// DecisionBound is the last seq of a log up to which decisions of a term's main count: claims, and whatever else says of
// which term it is. NoBound while the term is in office. A term that another followed counts as far as its followers
// hold its logs, of two the further; one that a rival of another side overruled counts not at all. What the main's node
// says besides, its mail above all, is not bound by it.
func (r *Roster) DecisionBound(t protocol.Term, log protocol.LogID) uint64 {
	r.resolveRest()
	switch {
	case log.Peer != t.Peer || r.terms[t] == nil:
		return 0
	case t == r.inOffice:
		return NoBound
	}
	bound := uint64(0)
	for _, next := range r.terms {
		if next.prev == t {
			bound = max(bound, next.cuts[log])
		}
	}
	return bound
}
