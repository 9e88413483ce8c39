package check

import (
	"maps"
	"slices"
	"strings"

	"github.com/aster-mesh/aster/spec"
)

// hubMade are the fields that hold ids which a hub may have made: ours stand for those of the earlier one.
var hubMade = []string{"msgId", "ackFor", "roomId", "keyRef", "key", "parkedMsgId", "id"}

// comparison is one frame of the earlier hub beside one of ours.
type comparison struct {
	r       *replay
	who     string
	learned map[string]string // ids of the earlier hub → ours
	lacks   []*excuse         // differences that explain what ours has not
}

// same says whether we told what the earlier hub told, with ids of our own where it made them, and less what a difference
// says that we leave out.
func (r *replay) same(who string, old, ours any) bool {
	c := &comparison{r: r, who: who, learned: map[string]string{}}
	if !c.value(old, ours) {
		return false
	}
	maps.Copy(r.alias, c.learned)
	for _, e := range c.lacks {
		r.out.Used[e.id]++
	}
	return true
}

func (c *comparison) value(old, ours any) bool {
	switch o := old.(type) {
	case map[string]any:
		g, ok := ours.(map[string]any)
		return ok && c.object(o, g)
	case []any:
		g, ok := ours.([]any)
		return ok && c.rows(o, g)
	case string:
		g, ok := ours.(string)
		return ok && (o == g || c.alias(o) == g || c.inside(o, g))
	}
	return brief(old) == brief(ours)
}

func (c *comparison) object(o, g map[string]any) bool {
	for _, key := range slices.Sorted(maps.Keys(o)) {
		v := o[key]
		switch have := g[key]; {
		case v == nil: // a field that only we have is no difference
		case have == nil: // null and absent are one
			if !c.excuse(spec.Without, map[string]any{key: v}) {
				return false
			}
		case slices.Contains(hubMade, key):
			if !c.id(v, have) {
				return false
			}
		case !c.try(v, have) && !c.excuse(spec.Differs, map[string]any{key: v}):
			return false
		}
	}
	return true
}

// rows compares what a list holds, in any order.
func (c *comparison) rows(o, g []any) bool {
	rest := slices.Clone(g)
	for _, row := range o {
		i := slices.IndexFunc(rest, func(have any) bool { return c.try(row, have) })
		if i >= 0 {
			rest = slices.Delete(rest, i, i+1)
		} else if !c.excuse(spec.Without, row) {
			return false
		}
	}
	return len(rest) == 0
}

// try compares, and forgets what it took for the same if the whole is not.
func (c *comparison) try(old, ours any) bool {
	learned, lacks := maps.Clone(c.learned), len(c.lacks)
	if c.value(old, ours) {
		return true
	}
	c.learned, c.lacks = learned, c.lacks[:lacks]
	return false
}

// excuse says whether a difference lets ours be without something, or have it otherwise.
func (c *comparison) excuse(kind spec.Kind, what any) bool {
	e := c.r.find(c.who, what, func(s *spec.Case) bool { return s.Kind == kind })
	if e != nil {
		c.lacks = append(c.lacks, e)
	}
	return e != nil
}

func (c *comparison) alias(old string) string {
	if ours := c.learned[old]; ours != "" {
		return ours
	}
	return c.r.alias[old]
}

// inside says whether the one text is the other with an id of ours in it, as "room:ID".
func (c *comparison) inside(old, ours string) bool {
	before, id, ok := strings.Cut(old, ":")
	return ok && c.alias(id) != "" && ours == before+":"+c.alias(id)
}

func (c *comparison) id(old, ours any) bool {
	a, isText := old.(string)
	b, isText2 := ours.(string)
	switch {
	case !isText || !isText2:
		return false
	case a == b || c.alias(a) == b:
		return true
	case !c.r.sets[setKnown][a] && c.alias(a) == "":
		c.learned[a] = b
		return true
	}
	return false
}
