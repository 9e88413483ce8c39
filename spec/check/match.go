package check

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// clockSlack is how far a hub's clock may be from ours.
const clockSlack = 5 * time.Minute

// words are what $name stands for in one run of one vector.
type words map[string]string

// stepped is the word under which stands how far the hub's clock was stepped; no vector can write it.
const stepped = "+"

func (w words) ahead() time.Duration {
	d, _ := time.ParseDuration(w[stepped])
	return d
}

var (
	variable = regexp.MustCompile(`\$([a-z][a-z0-9]*)`)
	repeated = regexp.MustCompile(`@\{([0-9]+):([^}]*)\}`)
)

// fill writes a line out: $name for a client or an id that is new in each run, @{N:text} for text N times.
func (w words) fill(line, tag string) string {
	line = variable.ReplaceAllStringFunc(line, func(v string) string {
		if known, ok := w[v[1:]]; ok {
			return known
		}
		return v[1:] + "-" + tag
	})
	return repeated.ReplaceAllStringFunc(line, func(v string) string {
		m := repeated.FindStringSubmatch(v)
		n, _ := strconv.Atoi(m[1])
		return strings.Repeat(m[2], n)
	})
}

func parsePattern(text string) (any, error) {
	var p any
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		return nil, fmt.Errorf("pattern %s: %w", text, err)
	}
	return p, nil
}

// match says where got differs from pattern, or nothing. Wildcards are strings: "*" anything, "*text", "*number", "*now"
// (a time in ms), "*in:part" a text that holds part, "-" absent, "*NAME=" anything, kept as $NAME. An object may have more
// fields than its pattern; an array that begins with "..." holds matches of the rest in their order, one that begins with
// "-" holds no match of the rest.
func (w words) match(pattern, got any, at string) string {
	switch p := pattern.(type) {
	case map[string]any:
		g, ok := got.(map[string]any)
		if !ok {
			return at + " is no object"
		}
		for _, key := range slices.Sorted(maps.Keys(p)) {
			v, there := g[key]
			if p[key] == "-" {
				if there && v != nil {
					return at + "." + key + " is there"
				}
				continue
			}
			if !there {
				return at + "." + key + " is absent"
			}
			if diff := w.match(p[key], v, at+"."+key); diff != "" {
				return diff
			}
		}
		return ""
	case []any:
		return w.matchList(p, got, at)
	case string:
		return w.matchText(p, got, at)
	}
	if pattern != got {
		return fmt.Sprintf("%s is %s", at, brief(got))
	}
	return ""
}

func (w words) matchList(p []any, got any, at string) string {
	g, ok := got.([]any)
	if !ok {
		return at + " is no array"
	}
	if len(p) > 0 && p[0] == "..." {
		next := 0
		for _, want := range p[1:] {
			found := false
			for next < len(g) && !found {
				found = w.match(want, g[next], at) == ""
				next++
			}
			if !found {
				return at + " lacks " + brief(want)
			}
		}
		return ""
	}
	if len(p) > 0 && p[0] == "-" {
		for _, unwanted := range p[1:] {
			for _, have := range g {
				if w.match(unwanted, have, at) == "" {
					return at + " holds " + brief(have)
				}
			}
		}
		return ""
	}
	if len(g) != len(p) {
		return fmt.Sprintf("%s has %d items", at, len(g))
	}
	for i := range p {
		if diff := w.match(p[i], g[i], fmt.Sprintf("%s[%d]", at, i)); diff != "" {
			return diff
		}
	}
	return ""
}

func (w words) matchText(p string, got any, at string) string {
	text, isText := got.(string)
	number, isNumber := got.(float64)
	name, keeps := strings.CutSuffix(p, "=")
	ok := false
	switch {
	case p == "*":
		ok = true
	case p == "*text":
		ok = isText && text != ""
	case p == "*number":
		ok = isNumber
	case p == "*now":
		ok = isNumber && math.Abs(number-float64(time.Now().Add(w.ahead()).UnixMilli())) < float64(clockSlack.Milliseconds())
	case strings.HasPrefix(p, "*in:"):
		ok = isText && strings.Contains(text, p[len("*in:"):])
	case keeps && strings.HasPrefix(p, "*"):
		if isNumber {
			text, isText = strconv.FormatFloat(number, 'f', -1, 64), true
		}
		if ok = isText; ok {
			w[name[1:]] = text
		}
	default:
		ok = isText && text == p
	}
	if !ok {
		return fmt.Sprintf("%s is %s", at, brief(got))
	}
	return ""
}

// brief shows a value in a line.
func brief(v any) string {
	raw, err := json.Marshal(v)
	if err != nil {
		return "?"
	}
	return clip(raw)
}

// shownMax bounds what a report shows of one frame.
const shownMax = 2_000

func clip(raw []byte) string {
	if len(raw) > shownMax {
		return strings.ToValidUTF8(string(raw[:shownMax]), "") + fmt.Sprintf("… (%d bytes)", len(raw))
	}
	return strings.ToValidUTF8(string(raw), "\ufffd")
}
