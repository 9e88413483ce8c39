package hub

import (
	"time"

	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/roles/room"
)

// shownText is a header or summary as clients read it.
type shownText struct {
	Text        string `json:"text"`
	CoversUntil string `json:"covers_until,omitempty"`
	Version     int    `json:"version,omitempty"`
	UpdatedBy   string `json:"updatedBy,omitempty"`
	UpdatedAt   string `json:"updatedAt,omitempty"`
}

func isoTime(wall int64) string {
	return time.UnixMilli(wall).UTC().Format("2006-01-02T15:04:05.000Z")
}

func byOf(id protocol.AgentID) string {
	if id == "" {
		return "board"
	}
	return string(id)
}

func shown(t *protocol.RoomText, s *room.Step, version int) *shownText {
	if t == nil {
		return nil
	}
	return &shownText{Text: t.Text, CoversUntil: t.CoversUntil, Version: version, UpdatedBy: byOf(s.Body.By), UpdatedAt: isoTime(s.Wall)}
}

// decisionID names a decision by its record, since two nodes may write one at once.
func decisionID(at room.Pos) string {
	return "rd-" + protocol.IdentityOf("", protocol.MsgID(at)).String()[:12]
}

func shownDecision(s *room.Step) map[string]any {
	d := s.Body.Decision
	out := map[string]any{"id": decisionID(s.Pos), "text": d.Text, "supersedes": nil, "by": byOf(s.Body.By), "at": isoTime(s.Wall)}
	if d.Supersedes != "" {
		out["supersedes"] = d.Supersedes
	}
	return out
}

// artifacts is all that was agreed in a room.
func artifacts(r *room.Room) map[string]any {
	out := map[string]any{}
	header := r.Header
	if header == nil && r.Created.Body.Header != nil {
		header = r.Created
	}
	if header != nil {
		out["header"] = shown(header.Body.Header, header, max(r.Version, 1))
	}
	decisions := []map[string]any{}
	for _, d := range r.Decisions {
		decisions = append(decisions, shownDecision(d))
	}
	out["decisions"] = decisions
	if r.Summary != nil {
		out["summary"] = shown(r.Summary.Body.Summary, r.Summary, r.Version)
	}
	return out
}

func delta(r *room.Room, at room.Pos, wall int64, body *protocol.RoomBody) map[string]any {
	s := &room.Step{Pos: at, Wall: wall, Body: *body}
	out := map[string]any{}
	if t := shown(body.Header, s, r.Version); t != nil {
		out["header"] = t
	}
	if body.Decision != nil {
		out["decision"] = shownDecision(s)
	}
	if t := shown(body.Summary, s, r.Version); t != nil {
		out["summary"] = t
	}
	return out
}

func queue(r *room.Room) []map[string]any {
	out := []map[string]any{}
	for _, s := range r.Queue() {
		out = append(out, map[string]any{"agentId": s.Body.Agent, "bid": s.Body.Bid, "at": s.Wall})
	}
	return out
}
