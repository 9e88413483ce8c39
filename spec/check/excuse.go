package check

import (
	"strings"

	"github.com/aster-mesh/aster/spec"
)

// excuse is one case of a difference. A string "@NAME" in its pattern stands for what is in that set by now.
type excuse struct {
	id      string
	c       spec.Case
	pattern any
}

func newExcuse(id string, c spec.Case) (excuse, error) {
	p, err := parsePattern(c.Pattern)
	return excuse{id, c, p}, err
}

// The sets hold what became of things in this replay, so that a pattern can name a kind of frame and no frame.
const (
	setRefused = "refused" // ids of messages that this hub refused
	setTurned  = "turned"  // ids of agents whose HELLO it refused
	setStream  = "stream"  // ids of text streams
	setClosed  = "closed"  // ids of questions that it called settled
	setParked  = "parked"  // ids of messages that one of the two held back in a room
	setStays   = "stays"   // ids of agents in a room that the earlier hub let another one take out
	setKnown   = "known"   // ids that clients chose
)

func (r *replay) put(set string, id any) {
	text, ok := id.(string)
	if !ok || text == "" {
		return
	}
	if r.sets[set] == nil {
		r.sets[set] = map[string]bool{}
	}
	r.sets[set][text] = true
}

// noteSaid takes what a frame of a client says about it.
func (r *replay) noteSaid(who string, f map[string]any) {
	kind, _ := f["type"].(string)
	switch {
	case kind == "HELLO":
		s := r.who[who]
		id, _ := f["agentId"].(string)
		if s.agent != "" && s.agent != id {
			r.put(setTurned, id) // no connection becomes another agent
			break
		}
		s.agent = id
		r.who[who] = s
	case strings.HasPrefix(kind, "TEXT_MESSAGE_"):
		r.put(setStream, f["messageId"])
	}
}

// noteTold takes what a frame of this hub says about others.
func (r *replay) noteTold(who string, frame any) {
	f, _ := frame.(map[string]any)
	v, _ := f["value"].(map[string]any)
	switch f["name"] {
	case "ServerNotice":
		if v["kind"] == "refused" {
			r.put(setRefused, v["msgId"])
		}
	case "RelayUnreachable":
		r.put(setRefused, v["msgId"])
	case "ConnectionRejected":
		r.put(setTurned, v["agentId"])
		s := r.who[who]
		s.turned = true
		r.who[who] = s
		r.put(setTurned, s.agent)
	case "SelectionResolved", "SelectionExpired":
		r.put(setClosed, v["promptId"])
	case "RoomGuard":
		if v["action"] == "parked" {
			r.put(setParked, v["msgId"])
		}
	case "RoomStall":
		r.put(setParked, v["parkedMsgId"])
	}
}

// noteMissed takes what the earlier hub said, and this one did not.
func (r *replay) noteMissed(missing bool, frame any) {
	f, _ := frame.(map[string]any)
	v, _ := f["value"].(map[string]any)
	switch {
	case !missing:
	case f["name"] == "RoomLeft":
		r.put(setStays, v["agentId"])
	case f["name"] == "RoomGuard":
		r.put(setParked, v["msgId"])
	}
}

// fits says whether a pattern is about a value.
func (r *replay) fits(pattern, value any) bool {
	filled, ok := r.withSets(pattern, value)
	return ok && (words{}).match(filled, value, "") == ""
}

// withSets turns each "@NAME" of a pattern into what stands at its place, if that is in the set.
func (r *replay) withSets(pattern, value any) (any, bool) {
	switch p := pattern.(type) {
	case string:
		set, is := strings.CutPrefix(p, "@")
		if !is {
			return p, true
		}
		text, _ := value.(string)
		return value, r.sets[set][text]
	case map[string]any:
		v, _ := value.(map[string]any)
		out := map[string]any{}
		for key, sub := range p {
			filled, ok := r.withSets(sub, v[key])
			if !ok {
				return nil, false
			}
			out[key] = filled
		}
		return out, true
	}
	list, _ := pattern.([]any)
	rows, _ := value.([]any)
	if len(list) != 2 || list[0] != "..." {
		return pattern, true
	}
	for _, row := range rows { // one of them
		if r.fits(list[1], row) {
			return []any{"...", row}, true
		}
	}
	return nil, false
}

// excuse finds the difference that explains a missing or an extra frame.
func (r *replay) excuse(missing bool, who string, value any) *excuse {
	return r.find(who, value, func(c *spec.Case) bool {
		switch c.Kind {
		case spec.Missing:
			return missing
		case spec.Again:
			return missing && r.struck[who+brief(value)]
		}
		return c.Kind == spec.Extra && !missing
	})
}

// find finds the first difference with a case that holds and is about a value.
func (r *replay) find(who string, value any, holds func(*spec.Case) bool) *excuse {
	s := r.who[who]
	for i := range r.excuses {
		e := &r.excuses[i]
		about := false
		switch e.c.Who {
		case "*":
			about = true
		case "agent":
			about = s.agent != ""
		case "board":
			about = s.agent == ""
		case "outside":
			about = s.outside
		case "stays":
			about = r.sets[setStays][s.agent]
		case "turned":
			about = s.turned
		}
		if about && holds(&e.c) && r.fits(e.pattern, value) {
			return e
		}
	}
	return nil
}

func (r *replay) excused(missing bool, who string, value any) bool {
	e := r.excuse(missing, who, value)
	if e != nil {
		r.out.Used[e.id]++
		r.noteMissed(missing, value)
	}
	return e != nil
}
