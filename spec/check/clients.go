package check

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// open connects; arg holds a ?query and headers as Name=value.
func (p *play) open(who, arg string) error {
	query, header := openArgs(p.atNode(who, arg))
	if p.opt.Msgpack && header.Get("Sec-WebSocket-Protocol") == "" {
		header.Set("Sec-WebSocket-Protocol", subprotocol)
	}
	s, err := dial(p.ctx, p.address(who), query, header)
	if err != nil {
		return brokenf("%v", err)
	}
	if old := p.clients[who]; old != nil {
		old.shut()
	}
	p.clients[who] = s
	return nil
}

func openArgs(arg string) (query string, header http.Header) {
	header = http.Header{}
	for _, word := range strings.Fields(arg) {
		if word[0] == '?' {
			query = word
		} else if name, value, ok := strings.Cut(word, "="); ok {
			header.Set(name, value)
		}
	}
	return query, header
}

// atNode takes @NODE from the beginning of arg: the client is at that node of the host's, for all of the vector.
func (p *play) atNode(who, arg string) string {
	if !strings.HasPrefix(arg, "@") {
		return arg
	}
	node, rest, _ := strings.Cut(arg[1:], " ")
	p.beside[who] = p.opt.Host.Address(node)
	return strings.TrimSpace(rest)
}

// deny connects in vain: arg begins with the statuses that the upgrade may be answered with.
func (p *play) deny(who, arg string) error {
	want, rest, _ := strings.Cut(arg, " ")
	query, header := openArgs(rest)
	s, err := dial(p.ctx, p.address(who), query, header)
	var no *errRefused
	switch {
	case err == nil:
		s.shut()
		return brokenf("the upgrade was answered 101")
	case !errors.As(err, &no):
		return err
	}
	for _, w := range strings.Split(want, "|") {
		if w == strconv.Itoa(no.status) || w == "drop" && no.status == 0 {
			return nil
		}
	}
	return brokenf("%v", no)
}

// join opens a connection, says HELLO with the fields of arg beside type and agentId, and waits until it is accepted.
func (p *play) join(who, arg string) error {
	query, arg := "", p.atNode(who, arg)
	if strings.HasPrefix(arg, "?") {
		query, arg, _ = strings.Cut(arg, " ")
	}
	hello := map[string]any{"type": "HELLO", "agentId": p.words.fill("$"+who, p.tag)}
	if arg = strings.TrimSpace(arg); arg != "" {
		if err := json.Unmarshal([]byte(arg), &hello); err != nil {
			return fmt.Errorf("join %s: %w", who, err)
		}
	}
	if err := p.open(who, query); err != nil {
		return err
	}
	raw, _ := json.Marshal(hello)
	p.clients[who].write(p.clients[who].saying(nil, raw))
	if err := p.expect(who, `{"type":"CUSTOM","name":"ConnectionInfo"}`); err != nil || len(p.urls) == 1 || p.beside[who] != "" {
		return err
	}
	return p.known(hello["agentId"])
}

// address is where a client connects: each new one at the next node, and always at the same.
func (p *play) address(who string) string {
	if url := p.beside[who]; url != "" {
		return url
	}
	if _, ok := p.at[who]; !ok {
		p.at[who] = (len(p.at) - 1) % len(p.urls)
	}
	return p.urls[p.at[who]%len(p.urls)]
}

// known waits until every node lists an agent that joined one of them.
func (p *play) known(id any) error {
	pattern := map[string]any{"name": "AgentList", "value": map[string]any{"agents": []any{"...", map[string]any{"agentId": id}}}}
	deadline := time.NewTimer(p.opt.Patience)
	defer deadline.Stop()
	for i, s := range p.watch {
		for !p.lists(s, pattern) {
			select {
			case <-s.news:
			case <-deadline.C:
				return brokenf("%v joined %s and is not listed at %s", id, p.urls[0], p.urls[i])
			case <-p.ctx.Done():
				return p.ctx.Err()
			}
		}
	}
	return nil
}

// lists says whether the newest AgentList that came to s matches. What it has looked at is let go.
func (p *play) lists(s *socket, pattern any) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := len(s.got) - 1; i >= 0; i-- {
		if alike(pattern, s.got[i].value) {
			s.got = s.got[i : i+1]
			return p.words.match(pattern, s.got[0].value, "frame") == ""
		}
	}
	return false
}
