package web

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/api"
)

// Answers that are lists stand in an object, so that they can grow.
type messagesAnswer struct {
	Messages []api.Message `json:"messages"`
}

func (s *Server) status(w http.ResponseWriter, r *http.Request, _ Standing) {
	got, err := s.backend.Status(r.Context())
	s.answer(w, r, got, err)
}

func (s *Server) peers(w http.ResponseWriter, r *http.Request, _ Standing) {
	got, err := s.backend.Peers(r.Context())
	s.answer(w, r, map[string]any{"peers": list(got)}, err)
}

func (s *Server) agents(w http.ResponseWriter, r *http.Request, _ Standing) {
	got, err := s.backend.Agents(r.Context())
	s.answer(w, r, map[string]any{"agents": list(got)}, err)
}

func (s *Server) snapshot(w http.ResponseWriter, r *http.Request, _ Standing) {
	got, err := s.backend.Snapshot(r.Context())
	got.Peers, got.Agents, got.Tasks, got.Messages = list(got.Peers), list(got.Agents), list(got.Tasks), list(got.Messages)
	got.Asks = whole(got.Asks)
	s.answerPacked(w, r, got, err)
}

func (s *Server) tasks(w http.ResponseWriter, r *http.Request, _ Standing) {
	got, err := s.backend.Tasks(r.Context())
	s.answer(w, r, map[string]any{"tasks": list(got)}, err)
}

func (s *Server) task(w http.ResponseWriter, r *http.Request, _ Standing) {
	p := params{r: r}
	at := int64(p.number("at"))
	if p.err != nil {
		s.fail(w, r, p.err)
		return
	}
	ask := s.backend.Task
	if at > 0 {
		ask = func(ctx context.Context, id string) (api.Task, error) { return s.backend.TaskAt(ctx, id, at) }
	}
	got, err := ask(r.Context(), r.PathValue("id"))
	s.answer(w, r, got, err)
}

func (s *Server) messages(w http.ResponseWriter, r *http.Request, _ Standing) {
	q, err := messageQuery(r)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	got, err := s.backend.Messages(r.Context(), q)
	s.answer(w, r, messagesAnswer{list(got)}, err)
}

func messageQuery(r *http.Request) (MessageQuery, error) {
	p := params{r: r}
	q := MessageQuery{
		Agent:  protocol.AgentID(p.text("agent")),
		Intent: protocol.Intent(p.text("intent")),
		Before: p.number("before"),
		After:  p.number("after"),
		Since:  int64(p.number("since")),
		Limit:  p.limit(100),
	}
	return q, p.err
}

func (s *Server) message(w http.ResponseWriter, r *http.Request, _ Standing) {
	p := params{r: r}
	tier := protocol.Tier(p.text("wait"))
	within := p.duration("timeout", 30*time.Second)
	if tier != "" && !protocol.KnownTier(tier) {
		p.refuse("wait takes logged, replicated, persisted or processed")
	}
	if p.err != nil {
		s.fail(w, r, p.err)
		return
	}
	if tier == "" {
		got, err := s.backend.Message(r.Context(), r.PathValue("id"))
		s.answer(w, r, opened{got, markdownWords(got.Envelope.Text(markdownBytes))}, err)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), within)
	defer cancel()
	got, err := s.backend.WaitTier(ctx, r.PathValue("id"), tier)
	s.answer(w, r, got, err)
}

// opened is a message that somebody reads: with its words as a tree where they are more than plain.
type opened struct {
	api.Message
	Words []words `json:"words,omitempty"`
}

func (s *Server) search(w http.ResponseWriter, r *http.Request, _ Standing) {
	p := params{r: r}
	words, before, limit := p.text("q"), p.number("before"), p.limit(100)
	if words == "" {
		p.refuse("q holds the words to look for")
	}
	if p.err != nil {
		s.fail(w, r, p.err)
		return
	}
	got, err := s.backend.Search(r.Context(), words, before, limit)
	s.answer(w, r, messagesAnswer{list(got)}, err)
}

func (s *Server) outbox(w http.ResponseWriter, r *http.Request, _ Standing) {
	p := params{r: r}
	got, err := s.backend.Outbox(r.Context(), protocol.AgentID(p.text("agent")), p.flag("dead"))
	s.answer(w, r, messagesAnswer{list(got)}, err)
}

// wait holds the answer back until there is something to say: who waits costs nothing and reads nothing.
func (s *Server) wait(w http.ResponseWriter, r *http.Request, _ Standing) {
	p := params{r: r}
	within, isNew := p.duration("timeout", time.Hour), p.flag("new")
	if p.err != nil {
		s.fail(w, r, p.err)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), within)
	defer cancel()
	got, err := s.backend.Wait(ctx, protocol.AgentID(p.text("agent")), isNew)
	got.IDs = list(got.IDs)
	s.answer(w, r, got, err)
}

func writeText(w http.ResponseWriter, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = w.Write([]byte(text))
}

// list turns nil into an empty list, so that JSON has [] and not null.
func list[T any](in []T) []T {
	if in == nil {
		return []T{}
	}
	return in
}

// params reads query parameters and keeps the first that is wrong.
type params struct {
	r   *http.Request
	err error
}

func (p *params) refuse(reason string) {
	if p.err == nil {
		p.err = protocol.Refuse(protocol.CodeBadFrame, reason, "")
	}
}

func (p *params) text(name string) string { return p.r.URL.Query().Get(name) }

func (p *params) flag(name string) bool {
	v := p.text(name)
	return v != "" && v != "0" && v != "false"
}

func (p *params) number(name string) uint64 {
	v := p.text(name)
	if v == "" {
		return 0
	}
	n, err := strconv.ParseUint(v, 10, 63)
	if err != nil {
		p.refuse(name + " is a number from 0")
	}
	return n
}

func (p *params) limit(usual int) int {
	n := p.number("limit")
	if n == 0 {
		return usual
	}
	return int(min(n, MessagesMax))
}

func (p *params) duration(name string, usual time.Duration) time.Duration {
	v := p.text(name)
	if v == "" {
		return usual
	}
	d, err := time.ParseDuration(v)
	if err != nil || d < 0 {
		p.refuse(name + " is a duration such as 30s")
		return 0
	}
	return min(d, 24*time.Hour)
}
