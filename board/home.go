package board

import (
	"slices"

	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/roles"
)

// moved is the newest move of an agent whose new home has not taken its mail yet.
type moved struct {
	at   pos
	body protocol.MoveBody
}

// claim takes a word on where an agent lives. The word that beats the others holds (roles.Claim); of words that claim the
// same the latest says the rest. settled: the home itself says it, so it has taken the mail.
func (s *State) claim(at pos, body protocol.BindBody, settled bool) {
	key := agentKey{protocol.FoldAgentID(body.Agent), body.First()}
	if s.bindings[key.Agent] == nil {
		s.bindings[key.Agent] = map[protocol.PeerID]*binding{}
	}
	body = shortened(body)
	b := s.bindings[key.Agent][key.Home]
	switch says := roles.ClaimOf(&body); {
	case b == nil:
		b = &binding{at: at, body: body, settled: settled}
		s.bindings[key.Agent][key.Home] = b
	case says == roles.ClaimOf(&b.body):
		b.settled = b.settled || settled
		if b.at.before(at) {
			b.at, b.body = at, body
		}
	case says.Beats(roles.ClaimOf(&b.body)):
		b.at, b.body, b.settled = at, body, settled
	}
	if !slices.Contains(b.homes, body.Home) {
		b.homes = append(b.homes, body.Home)
		slices.Sort(b.homes)
	}
	if m := s.moves[key]; m != nil && (b.settled || roles.ClaimOf(&b.body) != claimOf(&m.body)) {
		delete(s.moves, key)
	}
}

func shortened(body protocol.BindBody) protocol.BindBody {
	body.Name = protocol.CutText(body.Name, 4*protocol.AgentNameRunesMax)
	body.Client = protocol.CutText(body.Client, refBytesMax)
	return body
}

func claimOf(m *protocol.MoveBody) roles.Claim {
	b := m.Bind()
	return roles.ClaimOf(&b)
}

// move takes the word of a member inside that an agent lives elsewhere from now on.
func (s *State) move(at pos, body protocol.MoveBody) {
	if guests(at.log) || body.To == "" || body.Origin == "" || body.Moves == 0 || protocol.CheckAgentID(body.Agent) != nil {
		return
	}
	s.claim(at, body.Bind(), false)
	key := agentKey{protocol.FoldAgentID(body.Agent), body.Origin}
	b := s.bindings[key.Agent][key.Home]
	if b.settled || at.log.Scope != protocol.ScopeInside || roles.ClaimOf(&b.body) != claimOf(&body) {
		return // what its mail was matters to a new home that has not taken it
	}
	if old := s.moves[key]; old == nil || old.at.before(at) {
		s.moves[key] = &moved{at, body}
	}
}
