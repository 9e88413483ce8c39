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

// Hub is a fresh hub that a fixture is replayed against.
type Hub struct {
	URL      string
	Post     func(path, body string) error // posts as a signed-in person
	LocalKey func() (string, error)        // reads the key for this machine that was issued last
	Patience time.Duration                 // how long an expected frame may take
}

// Replay sends the clients' side of a fixture to a fresh hub and compares what they are told with what the earlier hub said.
func Replay(ctx context.Context, hub Hub, f *spec.Fixture, differences []spec.Difference) (*Replayed, error) {
	r := &replay{
		play: &play{ctx: ctx, urls: []string{hub.URL}, at: map[string]int{}, opt: Options{Patience: hub.Patience}, words: words{}, clients: map[string]*socket{}},
		hub:  hub, out: Replayed{Used: map[string]int{}}, alias: map[string]string{}, seen: map[string]int{}, struck: map[string]bool{},
		who: map[string]speaker{}, sets: map[string]map[string]bool{},
	}
	defer func() {
		for _, s := range r.clients {
			s.shut()
		}
	}()
	for _, d := range differences {
		for _, c := range d.Cases {
			e, err := newExcuse(d.ID, c)
			if err != nil {
				return nil, err
			}
			r.excuses = append(r.excuses, e)
		}
	}
	for _, m := range f.Moves { // also of what is said later: an expected frame may be looked at before
		var said map[string]any
		if m.Verb != ">" || json.Unmarshal([]byte(m.Arg), &said) != nil {
			continue
		}
		for _, key := range []string{"msgId", "messageId", "id"} {
			r.put(setKnown, said[key])
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

// replay is one fixture on its way.
type replay struct {
	*play
	hub     Hub
	excuses []excuse
	out     Replayed
	alias   map[string]string          // an id that the earlier hub made → ours
	who     map[string]speaker         // by client
	sets    map[string]map[string]bool // what patterns call @NAME
	seen    map[string]int             // client → frames looked at
	struck  map[string]bool            // client and frame that came as the fixture has it
	open    []wanted
	extra   []told
}

// speaker is what a client has said about itself.
type speaker struct {
	agent   string // of its HELLO
	outside bool   // its address holds an outsider's key
	turned  bool   // this hub refused it
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
			if e := r.find(m.Who, frame, func(c *spec.Case) bool { return c.Kind == spec.Earlier }); e != nil {
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
	if _, ended := r.seen[m.Who]; ended && r.clients[m.Who] == nil && (m.Verb == ">" || m.Verb == "close") {
		return nil // the hub closed it; the earlier one may have listened on
	}
	switch m.Verb {
	case "post":
		path, body, _ := strings.Cut(m.Arg, " ")
		return r.hub.Post(path, body)
	case "open":
		return r.opens(m)
	case ">":
		var f map[string]any
		if err := json.Unmarshal([]byte(m.Arg), &f); err != nil {
			return err
		}
		r.noteSaid(m.Who, f)
		arg := m.Arg
		for old, ours := range r.alias {
			arg = strings.ReplaceAll(arg, `"`+old+`"`, `"`+ours+`"`)
		}
		return r.play.step(spec.Step{Verb: ">", Who: m.Who, Arg: arg})
	}
	return r.play.step(spec.Step{Verb: m.Verb, Who: m.Who, Arg: m.Arg})
}

func (r *replay) opens(m spec.Move) error {
	r.seen[m.Who] = 0
	name, key, keyed := strings.Cut(m.Arg, "=")
	local := strings.HasPrefix(key, "lk-")
	if ours := r.alias[key]; ours != "" {
		m.Arg = name + "=" + ours
	} else if local {
		secret, err := r.hub.LocalKey()
		if err != nil {
			return err
		}
		m.Arg = name + "=" + secret
	}
	r.who[m.Who] = speaker{agent: r.who[m.Who].agent, outside: keyed && !local}
	return r.play.open(m.Who, m.Arg)
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
		got, closed, code, reason := s.state()
		fresh := append([]message(nil), got[r.seen[who]:]...)
		r.seen[who] = len(got)
		if closed && r.seen[who] >= 0 {
			fresh = append(fresh, message{raw: []byte("closed"), value: map[string]any{"closed": true, "code": float64(code), "reason": reason}})
			r.seen[who] = len(got)
			delete(r.clients, who)
		}
		for _, m := range fresh {
			news = true
			r.noteTold(who, m.value)
			if !r.strike(who, m.value) {
				r.extra = append(r.extra, told{who, m})
			}
		}
	}
	return news
}

func (r *replay) strike(who string, value any) bool {
	for i, w := range r.open {
		if w.Who == who && r.same(who, w.frame, value) {
			r.struck[who+brief(w.frame)] = true
			r.open = append(r.open[:i:i], r.open[i+1:]...)
			return true
		}
	}
	return false
}
