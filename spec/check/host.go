package check

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aster-mesh/aster/spec"
)

// Host does for a run what no client can: it owns the hub. A run without one leaves the vectors out that need it, and says so.
// Its methods are called one at a time.
type Host interface {
	// Can says whether it can do what a need names (spec.Needs), or has a "clock" that it can step.
	Can(need string) bool
	// Do carries out one act of a vector, as the vectors' README lists them, and returns when it is done.
	Do(ctx context.Context, act string) error
	// Address is the ws:// address of a node that it keeps beside, "second", "outside" or "abroad".
	Address(node string) string
	// Token is the credential of a person.
	Token() string
}

// lacks are the needs of a vector that nobody provides.
func (o *Options) lacks(v *spec.Vector) []string {
	var out []string
	for _, need := range v.Needs {
		if o.Host == nil || !o.Host.Can(need) {
			out = append(out, need)
		}
	}
	return out
}

// waits says how long a vector takes on purpose.
func (o *Options) waits(v *spec.Vector) time.Duration {
	if o.Host != nil && o.Host.Can("clock") {
		return v.Wait
	}
	return v.Wait + v.Later
}

// later lets time pass at the hub: by its clock if the host has it, or else really.
func (p *play) later(arg string) error {
	if p.opt.Host != nil && p.opt.Host.Can("clock") {
		d, err := time.ParseDuration(arg)
		if err != nil {
			return err
		}
		p.words[stepped] = (p.words.ahead() + d).String()
		return p.opt.Host.Do(p.ctx, "later "+arg)
	}
	return p.pass(arg)
}

// flood sends a text many times, #i being the count.
func (p *play) flood(c *socket, arg string) error {
	count, text, _ := strings.Cut(arg, " ")
	n, err := strconv.Atoi(count)
	if err != nil {
		return fmt.Errorf("flood: %w", err)
	}
	const segment = 100
	for i := 0; i < n; i += segment {
		var out []byte
		for k := i; k < min(i+segment, n); k++ {
			out = c.saying(out, []byte(strings.ReplaceAll(text, "#i", strconv.Itoa(k))))
		}
		c.write(out)
		if _, closed, _, _ := c.state(); closed {
			return nil
		}
	}
	return nil
}

// volley lets two clients send each other Requests by turns, so often in all.
func (p *play) volley(who, arg string) error {
	other, count, _ := strings.Cut(arg, " ")
	n, err := strconv.Atoi(count)
	if err != nil || p.clients[other] == nil {
		return fmt.Errorf("volley needs another client and a number: %q", arg)
	}
	from, to := who, other
	p.fences++
	for i := range n {
		id := fmt.Sprintf("volley%d-%d-%s", p.fences, i, p.tag)
		raw, _ := json.Marshal(map[string]any{"type": "CUSTOM", "name": "Request", "targetAgentId": p.words.fill("$"+to, p.tag), "msgId": id, "value": map[string]any{"n": i}})
		p.clients[from].write(p.clients[from].saying(nil, raw))
		if err := p.expect(to, `{"name":"Request","msgId":"`+id+`"}`); err != nil {
			return err
		}
		p.clients[to].write(p.clients[to].saying(nil, ackFor(id)))
		from, to = to, from
	}
	return nil
}

// http makes a request at the hub's own address: arg is the statuses that may answer, the method, the path, then Token=… for
// a credential, then text that the answer must hold, as "has:TEXT", and the body.
func (p *play) http(arg string) error {
	want, rest, _ := strings.Cut(arg, " ")
	method, rest, _ := strings.Cut(strings.TrimSpace(rest), " ")
	path, rest, _ := strings.Cut(strings.TrimSpace(rest), " ")
	u, err := url.Parse(p.urls[0])
	if err != nil {
		return err
	}
	token, has := "", ""
	for rest = strings.TrimSpace(rest); ; rest = strings.TrimSpace(rest) {
		word, after, _ := strings.Cut(rest, " ")
		if t, ok := strings.CutPrefix(word, "Token="); ok {
			token, rest = t, after
		} else if h, ok := strings.CutPrefix(word, "has:"); ok {
			has, rest = h, after
		} else {
			break
		}
	}
	ctx, cancel := context.WithTimeout(p.ctx, p.opt.Patience)
	defer cancel()
	scheme := map[string]string{"ws": "http", "wss": "https"}[u.Scheme]
	req, err := http.NewRequestWithContext(ctx, method, scheme+"://"+u.Host+path, strings.NewReader(rest))
	if err != nil {
		return err
	}
	req.Close = true
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	if rest != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	res, err := transport.RoundTrip(req)
	if err != nil {
		return brokenf("%s %s: %v", method, path, err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(io.LimitReader(res.Body, 1<<20))
	if err != nil {
		return brokenf("%s %s: %v", method, path, err)
	}
	if !slices.Contains(strings.Split(want, "|"), strconv.Itoa(res.StatusCode)) || !strings.Contains(string(body), has) {
		return &broken{fmt.Sprintf("answered %d", res.StatusCode), []string{clip(body)}}
	}
	return nil
}
