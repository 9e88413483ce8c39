package check

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/aster-mesh/aster/spec"
)

// Replayed is what came of one fixture.
type Replayed struct {
	Used  map[string]int // differences by how often each was met
	Wrong []string       // frames that no difference explains
}

// quiet is how long nothing more may come before a step counts as answered.
const quiet = 250 * time.Millisecond

// Replay sends the clients' side of a fixture to a fresh hub and compares what they are told with what the earlier hub said.
func Replay(ctx context.Context, url string, f *spec.Fixture, differences []spec.Difference, patience time.Duration) (*Replayed, error) {
	r := &replay{
		play:  &play{ctx: ctx, urls: []string{url}, at: map[string]int{}, opt: Options{Patience: patience}, words: words{}, clients: map[string]*socket{}},
		out:   Replayed{Used: map[string]int{}},
		known: map[string]bool{}, alias: map[string]string{}, agents: map[string]bool{}, seen: map[string]int{}, struck: map[string]bool{},
	}
	defer func() {
		for _, s := range r.clients {
			s.shut()
		}
	}()
	for _, d := range differences {
		for _, c := range d.Cases {
			p, err := parsePattern(c.Pattern)
			if err != nil {
				return nil, err
			}
			r.excuses = append(r.excuses, excuse{d.ID, c, p})
		}
	}
	for from := 0; from < len(f.Moves); {
		to := from
		for to < len(f.Moves) && f.Moves[to].Step == f.Moves[from].Step {
			to++
		}
		if err := r.step(f.Moves[from:to]); err != nil {
			return nil, err
		}
		from = to
	}
	return &r.out, nil
}

type excuse struct {
	id      string
	c       spec.Case
	pattern any
}

// replay is one fixture on its way.
type replay struct {
	*play
	excuses []excuse
	out     Replayed
	known   map[string]bool   // ids that clients chose
	alias   map[string]string // an id that the earlier hub made → ours
	agents  map[string]bool   // clients that said HELLO
	seen    map[string]int    // client → frames looked at
	struck  map[string]bool   // client and frame that came as the fixture has it
	open    []wanted
	extra   []told
}

type wanted struct {
	spec.Move
	frame any
	place int // in its step
}

type told struct {
	who string
	m   message
}

// step makes the moves of one step, each when what was told before it in the fixture has come, and settles the account.
func (r *replay) step(moves []spec.Move) error {
	lastRoster := map[string]int{}
	for i, m := range moves {
		if m.Verb == "<" && strings.Contains(m.Arg, `"name":"AgentList"`) {
			lastRoster[m.Who] = i
		}
	}
	for i, m := range moves {
		if m.Verb != "<" {
			continue
		}
		var frame any
		if err := json.Unmarshal([]byte(m.Arg), &frame); err != nil {
			return fmt.Errorf("line %d: %w", m.Line, err)
		}
		roster := strings.Contains(m.Arg, `"name":"AgentList"`)
		if roster && lastRoster[m.Who] != i {
			if e := r.find(m.Who, frame, func(c *spec.Case) bool { return c.Earlier }); e != nil {
				r.out.Used[e.id]++
				continue
			}
		}
		r.open = append(r.open, wanted{m, frame, i})
	}
	for i, m := range moves {
		if m.Verb == "<" {
			continue
		}
		r.await(i)
		if err := r.move(m); err != nil {
			return fmt.Errorf("line %d: %w", m.Line, err)
		}
	}
	r.await(len(moves))
	for began := time.Now(); time.Since(began) < quiet; {
		if r.collect() {
			began = time.Now()
		}
		pause()
	}
	for _, w := range r.open {
		if !r.excused(true, w.Who, w.frame) {
			r.out.Wrong = append(r.out.Wrong, fmt.Sprintf("line %d, %s: %s was not told %s", w.Line, w.Step, w.Who, w.Arg))
		}
	}
	for _, e := range r.extra {
		if !r.excused(false, e.who, e.m.value) {
			r.out.Wrong = append(r.out.Wrong, fmt.Sprintf("%s: %s was also told %s", moves[0].Step, e.who, clip(e.m.raw)))
		}
	}
	r.open, r.extra = nil, nil
	return nil
}

func (r *replay) move(m spec.Move) error {
	if _, ended := r.seen[m.Who]; ended && r.clients[m.Who] == nil && m.Verb != "open" {
		return nil // the hub closed it; the earlier one may have listened on
	}
	switch m.Verb {
	case "open":
		r.seen[m.Who] = 0
		return r.play.open(m.Who, m.Arg)
	case ">":
		var f map[string]any
		if err := json.Unmarshal([]byte(m.Arg), &f); err != nil {
			return err
		}
		if f["type"] == "HELLO" {
			r.agents[m.Who] = true
		}
		for _, key := range []string{"msgId", "messageId", "id"} {
			if id, ok := f[key].(string); ok {
				r.known[id] = true
			}
		}
		arg := m.Arg
		for old, ours := range r.alias {
			arg = strings.ReplaceAll(arg, `"`+old+`"`, `"`+ours+`"`)
		}
		return r.play.step(spec.Step{Verb: ">", Who: m.Who, Arg: arg})
	}
	return r.play.step(spec.Step{Verb: m.Verb, Who: m.Who, Arg: m.Arg})
}

// await waits for what stands before a place and no difference lets be missing.
func (r *replay) await(place int) {
	for deadline := time.Now().Add(r.opt.Patience); time.Now().Before(deadline); pause() {
		r.collect()
		needed := false
		for _, w := range r.open {
			needed = needed || w.place < place && r.excuse(true, w.Who, w.frame) == nil
		}
		if !needed {
			return
		}
	}
}

func pause() { time.Sleep(5 * time.Millisecond) }

// collect takes what has come and strikes it from what is wanted. It says whether there was anything.
func (r *replay) collect() bool {
	news := false
	for who, s := range r.clients {
		got, closed, _, _ := s.state()
		fresh := append([]message(nil), got[r.seen[who]:]...)
		r.seen[who] = len(got)
		if closed && r.seen[who] >= 0 {
			fresh = append(fresh, message{raw: []byte("closed"), value: map[string]any{"closed": true}})
			r.seen[who] = len(got)
			delete(r.clients, who)
		}
		for _, m := range fresh {
			news = true
			if !r.strike(who, m.value) {
				r.extra = append(r.extra, told{who, m})
			}
		}
	}
	return news
}

func (r *replay) strike(who string, value any) bool {
	for i, w := range r.open {
		if w.Who == who && r.same(w.frame, value) {
			r.struck[who+brief(w.frame)] = true
			r.open = append(r.open[:i:i], r.open[i+1:]...)
			return true
		}
	}
	return false
}

// same says whether we told what the earlier hub told, with ids of our own where it made them.
func (r *replay) same(old, ours any) bool {
	o, ok := old.(map[string]any)
	g, ok2 := ours.(map[string]any)
	if !ok || !ok2 {
		return brief(old) == brief(ours)
	}
	learned := map[string]string{}
	for key, v := range o {
		switch have := g[key]; key {
		case "msgId", "ackFor":
			a, isText := v.(string)
			b, isText2 := have.(string)
			switch {
			case v == nil: // none, where we have one
			case !isText || !isText2:
				return false
			case a == b || r.alias[a] == b:
			case !r.known[a] && r.alias[a] == "":
				learned[a] = b
			default:
				return false
			}
		case "agents":
			if !sameRoster(v, have) {
				return false
			}
		default:
			if _, there := g[key]; !there || !r.same(v, have) {
				return false
			}
		}
	}
	for a, b := range learned {
		r.alias[a] = b
	}
	return true
}

// sameRoster compares who is listed in which role, in any order.
func sameRoster(old, ours any) bool {
	a, _ := old.([]any)
	b, _ := ours.([]any)
	if len(a) != len(b) {
		return false
	}
	for _, row := range a {
		if (words{}).match([]any{"...", row}, b, "") != "" {
			return false
		}
	}
	return true
}

// excuse finds the difference that explains a missing or an extra frame.
func (r *replay) excuse(missing bool, who string, value any) *excuse {
	return r.find(who, value, func(c *spec.Case) bool {
		return c.Missing == missing && !c.Earlier && (!c.Again || r.struck[who+brief(value)])
	})
}

// find finds the first difference with a case that holds and is about a frame.
func (r *replay) find(who string, value any, holds func(*spec.Case) bool) *excuse {
	kind := "board"
	if r.agents[who] {
		kind = "agent"
	}
	for i := range r.excuses {
		e := &r.excuses[i]
		if holds(&e.c) && (e.c.Who == "*" || e.c.Who == kind) && (words{}).match(e.pattern, value, "") == "" {
			return e
		}
	}
	return nil
}

func (r *replay) excused(missing bool, who string, value any) bool {
	e := r.excuse(missing, who, value)
	if e != nil {
		r.out.Used[e.id]++
	}
	return e != nil
}
