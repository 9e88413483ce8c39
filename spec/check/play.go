package check

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/aster-mesh/aster/spec"
)

// play is one run of one vector. It belongs to one goroutine.
type play struct {
	ctx     context.Context
	urls    []string
	watch   []*socket         // a board at each of urls
	at      map[string]int    // client → its place in urls
	beside  map[string]string // client → its address at a node that the host keeps beside
	opt     Options
	tag     string // makes ids new in every run
	words   words
	clients map[string]*socket
	fences  int
}

// failure is a Failure with its place among the rules.
type failure struct {
	Failure
	rule string
	step int // index of the step
}

// broken is a step's failure on its way up.
type broken struct {
	why string
	got []string
}

func (b *broken) Error() string { return b.why }

func brokenf(format string, args ...any) error { return &broken{why: fmt.Sprintf(format, args...)} }

func (p *play) run(v *spec.Vector) *failure {
	defer p.clean()
	for i, s := range v.Steps {
		err := p.step(s)
		if err == nil {
			continue
		}
		f := &failure{rule: s.Rule, step: i, Failure: Failure{Vector: v.Name, Line: s.Line, Step: s.Text, Why: err.Error()}}
		var b *broken
		if errors.As(err, &b) {
			f.Got = b.got
		}
		return f
	}
	return nil
}

// clean ends all connections. Main is the same agent in every vector, so its mail is settled.
func (p *play) clean() {
	if s := p.clients["main"]; s != nil {
		got, closed, _, _ := s.state()
		var out []byte
		for _, m := range got {
			if f, ok := m.value.(map[string]any); ok && f["msgId"] != nil {
				out = s.saying(out, ackFor(f["msgId"]))
			}
		}
		if !closed && len(out) > 0 {
			s.write(out)
			_ = p.fence("main", "main")
		}
	}
	for _, s := range p.clients {
		s.shut()
	}
}

func ackFor(id any) []byte {
	raw, _ := json.Marshal(map[string]any{"type": "CUSTOM", "name": "AckProcessed", "value": map[string]any{"ackFor": id}})
	return raw
}

func (p *play) step(s spec.Step) error {
	arg := p.words.fill(s.Arg, p.tag)
	switch s.Verb {
	case "open":
		return p.open(s.Who, arg)
	case "deny":
		return p.deny(s.Who, arg)
	case "join":
		return p.join(s.Who, arg)
	case "board":
		if err := p.open(s.Who, arg); err != nil {
			return err
		}
		return p.expect(s.Who, `{"type":"CUSTOM","name":"AgentList"}`)
	case "pass":
		return p.pass(s.Arg)
	case "later":
		return p.later(s.Arg)
	case "host":
		return p.opt.Host.Do(p.ctx, arg)
	case "http":
		return p.http(arg)
	case "fence":
		return p.fence(s.Who, strings.Fields(s.Arg)...)
	}
	c := p.clients[s.Who]
	if c == nil {
		return fmt.Errorf("%s has no connection", s.Who)
	}
	switch s.Verb {
	case ">":
		c.write(c.saying(c.held, []byte(arg)))
		c.held = nil
	case ">>":
		c.held = c.saying(c.held, []byte(arg))
	case "flood":
		return p.flood(c, arg)
	case "volley":
		return p.volley(s.Who, arg)
	case "<":
		return p.expect(s.Who, arg)
	case "!":
		return p.absent(c, arg)
	case "mark":
		c.base = c.cursor
	case "raw":
		b, err := hex.DecodeString(strings.ReplaceAll(arg, " ", ""))
		if err != nil {
			return fmt.Errorf("raw: %w", err)
		}
		c.write(b)
	case "mute":
		c.mu.Lock()
		c.muted = true
		c.mu.Unlock()
	case "drop":
		c.shut()
	case "close":
		code, _ := strconv.Atoi(arg)
		c.write(appendFrame(nil, opClose, binary.BigEndian.AppendUint16(nil, uint16(code))))
	case "closed":
		return p.closed(c, arg)
	}
	return nil
}

// expect waits for the next frame that matches, passing over others.
func (p *play) expect(who, text string) error {
	c := p.clients[who]
	pattern, err := parsePattern(text)
	if err != nil {
		return err
	}
	deadline := time.NewTimer(p.opt.Patience)
	defer deadline.Stop()
	from, at := c.cursor, c.cursor
	nearest := ""
	for {
		got, closed, code, reason := c.state()
		for ; at < len(got); at++ {
			diff := p.words.match(pattern, got[at].value, "frame")
			if diff == "" {
				c.cursor = at + 1
				return nil
			}
			if alike(pattern, got[at].value) {
				nearest = diff
			}
		}
		why := "nothing like it came within " + p.opt.Patience.String()
		if nearest != "" {
			why = nearest
		}
		if closed {
			return &broken{fmt.Sprintf("%s; the hub closed the connection: %d %s", why, code, reason), tail(got[from:])}
		}
		select {
		case <-c.news:
		case <-deadline.C:
			return &broken{why, tail(got[from:])}
		case <-p.ctx.Done():
			return p.ctx.Err()
		}
	}
}

// alike says whether a frame is of the name that a pattern is about.
func alike(pattern, got any) bool {
	p, ok := pattern.(map[string]any)
	g, ok2 := got.(map[string]any)
	return ok && ok2 && p["name"] == g["name"] && (p["type"] == nil || p["type"] == g["type"])
}

// tail shows the last frames.
func tail(got []message) []string {
	var out []string
	for _, m := range got[max(0, len(got)-8):] {
		out = append(out, clip(m.raw))
	}
	return out
}

// absent looks for a frame that must not have come since the connection's beginning or its last mark.
func (p *play) absent(c *socket, text string) error {
	pattern, err := parsePattern(text)
	if err != nil {
		return err
	}
	got, _, _, _ := c.state()
	for _, m := range got[c.base:c.cursor] {
		if p.words.match(pattern, m.value, "frame") == "" {
			return &broken{"this must not come", []string{clip(m.raw)}}
		}
	}
	return nil
}

// closed waits for the hub's close: arg is its codes and, if they matter, the reason.
func (p *play) closed(c *socket, arg string) error {
	want, wantReason, _ := strings.Cut(arg, " ")
	deadline := time.NewTimer(p.opt.Patience)
	defer deadline.Stop()
	select {
	case <-c.done:
	case <-deadline.C:
		got, _, _, _ := c.state()
		return &broken{"the connection is still open after " + p.opt.Patience.String(), tail(got[c.cursor:])}
	case <-p.ctx.Done():
		return p.ctx.Err()
	}
	got, _, code, reason := c.state()
	from := c.cursor
	c.cursor = len(got)
	for _, w := range strings.Split(want, "|") {
		if (w == strconv.Itoa(code) || w == "none" && code == noCode) && (wantReason == "" || wantReason == reason) {
			return nil
		}
	}
	return &broken{fmt.Sprintf("closed with %d %q", code, reason), tail(got[from:])}
}

// fence proves that all which from sent before has gone through the hub: a Report from it to the first of to, which the
// others see too if they are boards.
func (p *play) fence(from string, to ...string) error {
	c := p.clients[from]
	if c == nil || len(to) == 0 {
		return fmt.Errorf("fence needs a sender and a recipient with connections")
	}
	p.fences++
	id := fmt.Sprintf("fence%d-%s-%s", p.fences, from, p.tag)
	raw, _ := json.Marshal(map[string]any{
		"type": "CUSTOM", "id": id, "name": "Report", "targetAgentId": p.words.fill("$"+to[0], p.tag), "msgId": id,
		"timestamp": time.Now().UnixMilli(), "value": map[string]any{"summary": "fence"},
	})
	c.write(c.saying(nil, raw))
	for i, who := range to {
		if err := p.expect(who, `{"name":"Report","msgId":"`+id+`"}`); err != nil {
			return err
		}
		if i == 0 {
			p.clients[who].write(p.clients[who].saying(nil, ackFor(id)))
		}
	}
	return nil
}

func (p *play) pass(arg string) error {
	d, err := time.ParseDuration(arg)
	if err != nil {
		return err
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-p.ctx.Done():
		return p.ctx.Err()
	}
}
