package meshwire

import "fmt"

const (
	// splitMarks is how many marks, sums or authors go into one frame: below 100 bytes each.
	splitMarks = 2048
	// splitAgents is the same for agents, of 5 KB at the very most and some 150 bytes as a rule.
	splitAgents = 128
	// VectorMarksMax bounds what Join puts together: more logs than 64 nodes open in years.
	VectorMarksMax = 1 << 18
)

// Split cuts a Vector, Have, Presence or Roster into frames that Encode takes, with More on all but the last. Any other
// frame, and a small one, comes back alone.
func Split(f Frame) []Frame {
	switch f := f.(type) {
	case Vector:
		return splitVector(f)
	case Have:
		out := []Frame{}
		for len(f.Marks) > splitMarks {
			out = append(out, Have{f.Marks[:splitMarks]})
			f.Marks = f.Marks[splitMarks:]
		}
		return append(out, f)
	case Presence:
		out := []Frame{}
		for len(f.Agents) > splitAgents {
			out = append(out, Presence{f.Start, f.Counter, f.Agents[:splitAgents], true})
			f.Agents = f.Agents[splitAgents:]
		}
		return append(out, f)
	case Roster:
		out := []Frame{}
		for len(f.Agents) > splitAgents {
			out = append(out, Roster{f.Counter, f.Agents[:splitAgents], nil, true})
			f.Agents = f.Agents[splitAgents:]
		}
		return append(out, f)
	}
	return []Frame{f}
}

func splitVector(v Vector) []Frame {
	out := []Frame{}
	for len(v.Of) > splitMarks {
		out = append(out, Vector{Of: v.Of[:splitMarks], More: true})
		v.Of = v.Of[splitMarks:]
	}
	for len(v.Past) > splitMarks {
		out = append(out, Vector{Past: v.Past[:splitMarks], More: true})
		v.Past = v.Past[splitMarks:]
	}
	for len(v.Marks) > splitMarks {
		out = append(out, Vector{Marks: v.Marks[:splitMarks], More: true})
		v.Marks = v.Marks[splitMarks:]
	}
	return append(out, v)
}

// Join adds the next frame of a vector to what came before it; the result is whole when it has no More. It gives
// ErrFrameTooLarge for a vector that no mesh has.
func (v Vector) Join(next Vector) (Vector, error) {
	v.Marks = append(v.Marks, next.Marks...)
	v.Past = append(v.Past, next.Past...)
	v.Of = append(v.Of, next.Of...)
	v.More = next.More
	if n := len(v.Marks) + len(v.Past) + len(v.Of); n > VectorMarksMax {
		return v, fmt.Errorf("%w: a vector of %d marks, at most %d", ErrFrameTooLarge, n, VectorMarksMax)
	}
	return v, nil
}
