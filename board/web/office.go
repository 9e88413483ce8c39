package web

import (
	"net/http"

	"github.com/aster-mesh/aster/protocol/api"
)

// officeTable is what concerns main and claims.
func (s *Server) officeTable() []route {
	v1 := api.Prefix
	return []route{
		{method: "GET", path: v1 + "/main", who: signedIn, handle: s.main},
		{method: "POST", path: v1 + "/main/handoff", who: signedIn, handle: s.handoff},
		{method: "POST", path: v1 + "/main/take", who: ownerOnly, handle: s.takeMain},
		{method: "GET", path: v1 + "/claims", who: signedIn, handle: s.claims},
		{method: "POST", path: v1 + "/claims", who: ownerOnly, handle: s.acquire},
		{method: "POST", path: v1 + "/claims/{id}/release", who: ownerOnly, handle: s.releaseClaim},
	}
}

func (s *Server) main(w http.ResponseWriter, r *http.Request, _ Standing) {
	m, err := s.backend.Main(r.Context())
	s.give(w, r, m, err)
}

func (s *Server) handoff(w http.ResponseWriter, r *http.Request, _ Standing) {
	var req api.HandoffRequest
	err := readJSON(w, r, &req)
	if err == nil {
		err = s.backend.Handoff(r.Context(), req)
	}
	s.give(w, r, struct{}{}, err)
}

func (s *Server) takeMain(w http.ResponseWriter, r *http.Request, _ Standing) {
	out, err := s.backend.TakeMain(r.Context())
	s.give(w, r, out, err)
}

func (s *Server) claims(w http.ResponseWriter, r *http.Request, _ Standing) {
	all, err := s.backend.Claims(r.Context())
	s.give(w, r, map[string]any{"claims": all}, err)
}

func (s *Server) acquire(w http.ResponseWriter, r *http.Request, _ Standing) {
	var req api.ClaimRequest
	err := readJSON(w, r, &req)
	var out api.Claim
	if err == nil {
		out, err = s.backend.Acquire(r.Context(), req)
	}
	s.give(w, r, out, err)
}

func (s *Server) releaseClaim(w http.ResponseWriter, r *http.Request, _ Standing) {
	s.give(w, r, struct{}{}, s.backend.ReleaseClaim(r.Context(), r.PathValue("id")))
}

// give answers with v, or with why not.
func (s *Server) give(w http.ResponseWriter, r *http.Request, v any, err error) {
	if err != nil {
		s.fail(w, r, err)
		return
	}
	writeJSON(w, http.StatusOK, v)
}
