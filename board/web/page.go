package web

import (
	"context"
	"net/http"

	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/api"
)

// Page is what the board's page asks beside what commands do.
type Page interface {
	// Find gives messages by words and by what they are. It looks at a bounded part of the journal at a time; the answer
	// says where to go on.
	Find(ctx context.Context, q FindQuery) (api.Found, error)
	// Thread is what belongs to a message, said until a time in ms (0: until now).
	Thread(ctx context.Context, id string, until int64) (api.Thread, error)
	// Moment is the board as it stood at a time in ms; ticks asks for the places of a slider too.
	Moment(ctx context.Context, at int64, ticks bool) (api.Moment, error)
	// TaskAt is a task as it stood at a time in ms.
	TaskAt(ctx context.Context, id string, at int64) (api.Task, error)
	Proof(ctx context.Context, id string) (api.Proof, error)
	Asks(ctx context.Context) (api.Asks, error)
	Health(ctx context.Context) (api.Health, error)
	// Figures are what each inside member measured of itself; it waits three seconds at most for those that do not answer.
	Figures(ctx context.Context) (api.Figures, error)
	// Document is the state document, and what people said about it.
	Document(ctx context.Context) (api.StateDocument, error)
	Rooms(ctx context.Context) ([]api.Room, error)
	Invites(ctx context.Context) ([]api.InviteRow, error)
	// WithdrawInvite makes an unused invite useless.
	WithdrawInvite(ctx context.Context, id string) error
}

// FindQuery selects messages; what is zero does not restrict.
type FindQuery struct {
	Words  string           // all of them, the last may be a beginning
	Agent  protocol.AgentID // sender or target
	Role   protocol.Role    // of the sender
	Intent protocol.Intent
	Thread string
	Task   string // a Delegate's id: it, and what answers it
	Room   protocol.RoomID
	Before uint64 // Pos, exclusive
	After  uint64 // Pos, exclusive
	At     int64  // ms: what was logged from then on; only without Before, After and Words
	Until  int64  // ms: what had been logged by then, as it stood then
	Limit  int    // 1 to MessagesMax
}

func (s *Server) find(w http.ResponseWriter, r *http.Request, _ Standing) {
	p := params{r: r}
	q := FindQuery{
		Words: p.text("q"), Agent: protocol.AgentID(p.text("agent")), Role: protocol.Role(p.text("role")), Intent: protocol.Intent(p.text("intent")),
		Thread: p.text("thread"), Task: p.text("task"), Room: protocol.RoomID(p.text("room")),
		Before: p.number("before"), After: p.number("after"), At: int64(p.number("at")), Until: int64(p.number("until")), Limit: p.limit(100),
	}
	if p.err != nil {
		s.fail(w, r, p.err)
		return
	}
	got, err := s.backend.Find(r.Context(), q)
	got.Messages = list(got.Messages)
	s.answerPacked(w, r, got, err)
}

func (s *Server) moment(w http.ResponseWriter, r *http.Request, _ Standing) {
	p := params{r: r}
	at := p.number("at")
	if p.text("at") == "" {
		p.refuse("at is a time in milliseconds since 1970")
	}
	if p.err != nil {
		s.fail(w, r, p.err)
		return
	}
	got, err := s.backend.Moment(r.Context(), int64(at), p.flag("ticks"))
	got.Peers, got.Agents, got.Tasks, got.Messages, got.Asks = list(got.Peers), list(got.Agents), list(got.Tasks), list(got.Messages), list(got.Asks)
	s.answerPacked(w, r, got, err)
}

func (s *Server) thread(w http.ResponseWriter, r *http.Request, _ Standing) {
	p := params{r: r}
	until := int64(p.number("until"))
	if p.err != nil {
		s.fail(w, r, p.err)
		return
	}
	got, err := s.backend.Thread(r.Context(), r.PathValue("id"), until)
	got.Messages = list(got.Messages)
	s.answer(w, r, got, err)
}

func (s *Server) proof(w http.ResponseWriter, r *http.Request, _ Standing) {
	got, err := s.backend.Proof(r.Context(), r.PathValue("id"))
	got.Receipts = list(got.Receipts)
	s.answer(w, r, got, err)
}

func (s *Server) asks(w http.ResponseWriter, r *http.Request, _ Standing) {
	got, err := s.backend.Asks(r.Context())
	s.answer(w, r, whole(got), err)
}

// whole gives lists that are never null.
func whole(a api.Asks) api.Asks {
	a.Asks, a.Ended = list(a.Asks), list(a.Ended)
	return a
}

func (s *Server) health(w http.ResponseWriter, r *http.Request, _ Standing) {
	got, err := s.backend.Health(r.Context())
	got.Samples = list(got.Samples)
	s.answerPacked(w, r, got, err)
}

func (s *Server) figures(w http.ResponseWriter, r *http.Request, _ Standing) {
	got, err := s.backend.Figures(r.Context())
	got.Nodes = list(got.Nodes)
	for i := range got.Nodes {
		got.Nodes[i].Samples = list(got.Nodes[i].Samples)
	}
	s.answerPacked(w, r, got, err)
}

func (s *Server) document(w http.ResponseWriter, r *http.Request, _ Standing) {
	got, err := s.backend.Document(r.Context())
	got.Words = list(got.Words)
	s.answerPacked(w, r, got, err)
}

func (s *Server) rooms(w http.ResponseWriter, r *http.Request, _ Standing) {
	got, err := s.backend.Rooms(r.Context())
	s.answer(w, r, map[string]any{"rooms": list(got)}, err)
}

func (s *Server) listInvites(w http.ResponseWriter, r *http.Request, _ Standing) {
	got, err := s.backend.Invites(r.Context())
	s.answer(w, r, map[string]any{"invites": list(got)}, err)
}

func (s *Server) withdrawInvite(w http.ResponseWriter, r *http.Request, _ Standing) {
	s.done(w, r, http.StatusOK, s.backend.WithdrawInvite(r.Context(), r.PathValue("id")))
}
