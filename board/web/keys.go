package web

import (
	"net/http"

	"github.com/aster-mesh/aster/protocol/api"
)

func (s *Server) listKeys(w http.ResponseWriter, r *http.Request, _ Standing) {
	got, err := s.backend.Keys(r.Context(), r.URL.Query().Get("all") == "1")
	s.answer(w, r, map[string]any{"keys": list(got)}, err)
}

func (s *Server) issueKey(w http.ResponseWriter, r *http.Request, who Standing) {
	var req api.KeyRequest
	if err := readJSON(w, r, &req); err != nil {
		s.fail(w, r, err)
		return
	}
	got, err := s.backend.IssueKey(r.Context(), req)
	if err != nil || who != Operator || got.Page == "" {
		s.answer(w, r, got, err)
		return
	}
	s.answer(w, r, issued{got, squares(got.Page)}, nil)
}

// issued is a key for who looks at a page: with its address as a QR code.
type issued struct {
	api.KeyIssued
	Squares []string `json:"squares,omitempty"`
}

func (s *Server) renewKey(w http.ResponseWriter, r *http.Request, _ Standing) {
	var req api.KeyRenewRequest
	if err := readJSON(w, r, &req); err != nil {
		s.fail(w, r, err)
		return
	}
	got, err := s.backend.RenewKey(r.Context(), r.PathValue("ref"), req.TTLMillis)
	s.answer(w, r, got, err)
}

func (s *Server) labelKey(w http.ResponseWriter, r *http.Request, _ Standing) {
	var req api.KeyLabelRequest
	if err := readJSON(w, r, &req); err != nil {
		s.fail(w, r, err)
		return
	}
	got, err := s.backend.LabelKey(r.Context(), r.PathValue("ref"), req.Label)
	s.answer(w, r, got, err)
}

func (s *Server) revokeKey(w http.ResponseWriter, r *http.Request, _ Standing) {
	var req api.KeyRevokeRequest
	if err := readJSON(w, r, &req); err != nil {
		s.fail(w, r, err)
		return
	}
	got, err := s.backend.RevokeKey(r.Context(), r.PathValue("ref"), req.Mode)
	s.answer(w, r, got, err)
}
