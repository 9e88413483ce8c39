package web

import (
	"net/http"

	"github.com/aster-mesh/aster/protocol/api"
)

// backupRows are what aster export and aster doctor ask, which can read the home.
func (s *Server) backupRows() []route {
	return []route{
		{method: "POST", path: api.Prefix + "/store/copy", who: ownerOnly, handle: s.copyStore},
		{method: "GET", path: api.Prefix + "/store", who: ownerOnly, handle: s.storeHealth},
		{method: "POST", path: api.Prefix + "/store/repair", who: ownerOnly, handle: s.repairStore},
		{method: "POST", path: api.Prefix + "/store/compare", who: ownerOnly, handle: s.compareBoards},
	}
}

func (s *Server) compareBoards(w http.ResponseWriter, r *http.Request, _ Standing) {
	c, err := s.backend.CompareBoards(r.Context())
	s.give(w, r, c, err)
}

func (s *Server) copyStore(w http.ResponseWriter, r *http.Request, _ Standing) {
	c, err := s.backend.CopyStore(r.Context())
	s.give(w, r, c, err)
}

func (s *Server) storeHealth(w http.ResponseWriter, r *http.Request, _ Standing) {
	h, err := s.backend.StoreHealth(r.Context())
	s.give(w, r, h, err)
}

func (s *Server) repairStore(w http.ResponseWriter, r *http.Request, _ Standing) {
	h, err := s.backend.RepairStore(r.Context())
	s.give(w, r, h, err)
}
