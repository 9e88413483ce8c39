package node

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/aster-mesh/aster/board"
	"github.com/aster-mesh/aster/node/hub"
	"github.com/aster-mesh/aster/node/journal"
	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/api"
	"github.com/aster-mesh/aster/roles/member"
)

// momentTicks is how many places a slider over all of history has.
const momentTicks = 400

// untilMillis is the last hybrid time within a millisecond.
func untilMillis(ms int64) protocol.HLC {
	ms = min(max(ms, 0), int64(protocol.HLCMax>>16)-1)
	return protocol.HLCAt(time.UnixMilli(ms+1)) - 1
}

func (n *Node) folds() *past {
	n.pastOnce.Do(func() { n.past = newPast(n.store, member.MeshID(n.home.mesh.Mesh), n.begins.Load) })
	return n.past
}

// Moment implements web.Page.
func (n *Node) Moment(ctx context.Context, at int64, ticks bool) (out api.Moment, err error) {
	if at < 0 || at >= int64(protocol.HLCMax>>16) {
		return out, protocol.Refuse(protocol.CodeBadFrame, "at is a time in milliseconds since 1970", "")
	}
	until := untilMillis(at)
	a := asked{now: time.UnixMilli(at), until: until, homes: map[protocol.AgentID]protocol.PeerID{}}
	err = n.folds().at(ctx, until, func(st *board.State) {
		out = n.momentOf(st)
		a.keysOf(st.Keys().All(), n.home.peer)
		a.document = st.Document()
	})
	if err != nil {
		return out, err
	}
	out.At = at
	a.main, a.mainAgent = out.Main.Peer, out.Main.Agent
	for _, g := range out.Agents {
		a.homes[protocol.FoldAgentID(g.ID)] = g.Home
	}
	a.takeTasks(out.Tasks)
	if len(out.Tasks) > snapshotTasks {
		out.Tasks = out.Tasks[:snapshotTasks]
	}
	if a.questions, err = n.questionsAt(until); err != nil {
		return out, err
	}
	asks, err := n.asksOf(&a)
	if err != nil {
		return out, err
	}
	out.Asks = asks.Asks
	return out, n.momentSaid(&out, until, ticks)
}

// momentOf is what the fold says.
func (n *Node) momentOf(st *board.State) (out api.Moment) {
	out.Main, out.Records, out.Tasks = st.Main(), st.Counts().Records, st.Tasks()
	out.Main.Here = out.Main.Peer == n.home.peer
	gone := map[protocol.PeerID]bool{}
	for _, m := range st.Members() {
		gone[m.Peer] = m.Revoked
		row := api.Peer{Peer: m.Peer, Name: m.Name, Role: m.Role, Inside: m.Inside, Self: m.Peer == n.home.peer, Alive: "unknown", Until: m.Cert.NotAfter, Issuer: m.AdmittedBy, Revoked: m.Revoked}
		if out.Main.Term > 0 && out.Main.Peer == m.Peer && !m.Revoked {
			row.Role = protocol.RoleMain
		}
		out.Peers = append(out.Peers, row)
	}
	slices.SortFunc(out.Peers, func(a, b api.Peer) int {
		if a.Self != b.Self {
			return map[bool]int{true: -1, false: 1}[a.Self]
		}
		return strings.Compare(a.Name+string(a.Peer), b.Name+string(b.Peer))
	})
	for _, b := range st.Agents() {
		if gone[b.Home] {
			continue
		}
		g := api.Agent{ID: b.ID, Name: b.Name, Role: b.Role, Home: b.Home, Node: cmp.Or(b.NodeName, n.nameOf(b.Home)), Here: b.Home == n.home.peer, State: b.State}
		if b.StateAt > 0 { // it had held for that long when it was recorded
			g.Since = b.StateAt - protocol.PresenceSettles.Milliseconds()
		}
		out.Agents = append(out.Agents, g)
	}
	return out
}

// momentSaid adds what had been said.
func (n *Node) momentSaid(out *api.Moment, until protocol.HLC, ticks bool) error {
	found, err := n.words(journal.Query{Until: until, Limit: snapshotMessages, Newest: true})
	if err != nil {
		return err
	}
	prev, next, late, err := n.store.Beside(until)
	if err != nil {
		return err
	}
	slices.Reverse(found)
	for i := range found {
		out.Messages = append(out.Messages, n.messageAt(&found[i], until, late))
	}
	if prev >= protocol.HLCAt(time.UnixMilli(out.At)) { // of this very millisecond
		if prev, _, _, err = n.store.Beside(protocol.HLCAt(time.UnixMilli(out.At))); err != nil {
			return err
		}
	}
	millis := func(h protocol.HLC) int64 { return int64(h >> 16) }
	out.Prev, out.Next = millis(prev), millis(next)
	if !ticks {
		return nil
	}
	line, err := n.store.Timeline(momentTicks)
	for _, h := range line {
		out.Ticks = append(out.Ticks, millis(h))
	}
	return err
}

// messageAt is a message as it stood at a hybrid time. late: positions above it came after something later. That others have
// it is on no record but theirs.
func (n *Node) messageAt(m *journal.Message, until protocol.HLC, late uint64) api.Message {
	row := n.message(m)
	row.Waits = nil // what it waits for is known of now alone
	row.Tiers = []api.TierAt{{Tier: protocol.Logged, At: m.Wall, By: m.Log.Peer}}
	elsewhere := false
	for _, t := range m.Tiers {
		if t.At > until || t.Tier == hub.Given || t.Tier == hub.Kept || t.Tier == protocol.Handed {
			continue
		}
		row.Tiers = addTier(row.Tiers, api.TierAt{Tier: t.Tier, At: t.Wall, By: t.By, Agent: t.Agent, Reason: t.Reason})
		elsewhere = elsewhere || t.By != m.Log.Peer
	}
	if elsewhere {
		row.Tiers = addTier(row.Tiers, api.TierAt{Tier: protocol.Replicated})
	}
	sortTiers(row.Tiers)
	row.Late = late > 0 && m.Pos > late
	slim(&row)
	return row
}

// TaskAt implements web.Page.
func (n *Node) TaskAt(ctx context.Context, id string, at int64) (t api.Task, err error) {
	m, err := n.resolve(id)
	if err != nil {
		return t, err
	}
	ok := false
	if err := n.folds().at(ctx, untilMillis(at), func(st *board.State) { t, ok = st.Task(m.Envelope.ID) }); err != nil {
		return t, err
	}
	if !ok {
		return t, protocol.Refuse(protocol.CodeUnknownID, "there was no task %s then", "L: live", shortOf(&m.Envelope))
	}
	t.Reports, err = n.reportsOn(m.Envelope.ID, untilMillis(at))
	return t, err
}

// askedFor bounds how many questions of a moment are looked at.
const askedFor = 200

// questionsAt are the questions that were open at a hybrid time.
func (n *Node) questionsAt(until protocol.HLC) (out []hub.Question, err error) {
	over := map[string]bool{}
	// The asker's home alone ends its questions.
	key := func(m *journal.Message, asker protocol.AgentID) string {
		return string(m.Log.Peer) + "/" + string(protocol.FoldAgentID(asker)) + "/" + valueOf[string](m.Envelope.Value, "promptId")
	}
	for _, name := range []protocol.Intent{"SelectionResolved", "SelectionExpired"} {
		found, err := n.store.Messages(journal.Query{Intent: name, Until: until, Limit: askedFor, Newest: true})
		if err != nil {
			return nil, err
		}
		for i := range found {
			e := &found[i].Envelope
			asker := protocol.AgentID(valueOf[string](e.Value, "askedBy"))
			if name == "SelectionExpired" {
				asker = e.To
			}
			if e.Source == protocol.SourceServer {
				over[key(&found[i], asker)] = true
			}
		}
	}
	found, err := n.store.Messages(journal.Query{Intent: "SelectionPrompt", Until: until, Limit: askedFor, Newest: true})
	if err != nil {
		return nil, err
	}
	for i := range slices.Backward(found) { // of several under one id the first counts
		m := &found[i]
		id := key(m, m.Envelope.From)
		if m.Envelope.From == "" || over[id] || until.Time().Sub(m.At.Time()) > askLooksBack {
			continue
		}
		over[id] = true
		q := hub.Question{Asker: m.Envelope.From, ID: valueOf[string](m.Envelope.Value, "promptId"), Ref: hub.Ref{Log: m.Log, Seq: m.Seq}}
		if kind, wait := hub.QuestionClock(&m.Envelope); kind != "" {
			q.Kind, q.Until = kind, time.UnixMilli(m.Wall).Add(wait)
		}
		out = append(out, q)
	}
	return out, nil
}
