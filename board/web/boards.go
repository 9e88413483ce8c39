package web

import (
	"context"
	"net/http"

	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/api"
)

// Boards are other boards that the node has joined. A Backend that joins none need not have it.
type Boards interface {
	JoinBoard(ctx context.Context, req api.BoardRequest) (api.Board, error)
	Boards(ctx context.Context) ([]api.Board, error)
	LeaveBoard(ctx context.Context, which string) error
}

// boardTable are the addresses of other boards. Joining one lets agents speak elsewhere, so only who can read the home may.
func (s *Server) boardTable() []route {
	return []route{
		{method: "GET", path: api.Prefix + "/boards", who: signedIn, handle: s.listBoards},
		{method: "POST", path: api.Prefix + "/boards", who: ownerOnly, handle: s.joinBoard},
		{method: "POST", path: api.Prefix + "/boards/leave", who: ownerOnly, handle: s.leaveBoard},
	}
}

// others is the Backend's part at other boards.
func (s *Server) others(w http.ResponseWriter, r *http.Request) (Boards, bool) {
	b, ok := s.backend.(Boards)
	if !ok {
		s.fail(w, r, protocol.Refuse(codeNoRoute, "this node joins no boards", ""))
	}
	return b, ok
}

func (s *Server) listBoards(w http.ResponseWriter, r *http.Request, _ Standing) {
	if b, ok := s.others(w, r); ok {
		got, err := b.Boards(r.Context())
		s.answer(w, r, map[string]any{"boards": list(got)}, err)
	}
}

func (s *Server) joinBoard(w http.ResponseWriter, r *http.Request, _ Standing) {
	var req api.BoardRequest
	if err := readJSON(w, r, &req); err != nil {
		s.fail(w, r, err)
		return
	}
	if b, ok := s.others(w, r); ok {
		got, err := b.JoinBoard(r.Context(), req)
		s.answer(w, r, got, err)
	}
}

func (s *Server) leaveBoard(w http.ResponseWriter, r *http.Request, _ Standing) {
	var req api.BoardLeave
	if err := readJSON(w, r, &req); err != nil {
		s.fail(w, r, err)
		return
	}
	if b, ok := s.others(w, r); ok {
		s.answer(w, r, map[string]any{"event": "left", "url": req.URL}, b.LeaveBoard(r.Context(), req.URL))
	}
}
