package node

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/aster-mesh/aster/board/web"
	"github.com/aster-mesh/aster/node/hub"
	"github.com/aster-mesh/aster/node/journal"
	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/api"
)

// names are the nodes' names as of the last change of members; read by any goroutine.
type names map[protocol.PeerID]string

func (n *Node) nameOf(p protocol.PeerID) string {
	if m := n.names.Load(); m != nil {
		if name := (*m)[p]; name != "" {
			return name
		}
	}
	return "…" + p.Short()
}

// message turns a stored message into the API's.
func (n *Node) message(m *journal.Message) api.Message {
	return api.Message{
		Pos: m.Pos, Short: shortOf(&m.Envelope), At: m.Wall, Node: m.Log.Peer, NodeName: n.nameOf(m.Log.Peer),
		Log: m.Log.String(), Seq: m.Seq, Doubt: n.doubt(m.Log.Peer), Envelope: tame(m.Envelope), Text: n.textOf(&m.Envelope), Tiers: n.joined(n.tiersOf(m), n.others(m)),
		Waits: n.waitsAbroad(m),
	}
}

func (n *Node) tiersOf(m *journal.Message) []api.TierAt {
	out := []api.TierAt{{Tier: protocol.Logged, At: m.Wall, By: m.Log.Peer}}
	for _, t := range m.Tiers {
		if t.Tier != hub.Given && t.Tier != hub.Kept && t.Tier != protocol.Handed {
			out = addTier(out, api.TierAt{Tier: t.Tier, At: t.Wall, By: t.By, Agent: t.Agent, Reason: t.Reason})
		}
	}
	if n.replicatedHas(m.Log, m.Seq) {
		out = addTier(out, api.TierAt{Tier: protocol.Replicated})
	}
	sortTiers(out)
	return out
}

// sortTiers puts tiers into their printed order; a refusal comes last.
func sortTiers(tiers []api.TierAt) {
	rank := func(t protocol.Tier) int {
		if i := slices.Index(protocol.TierOrder, t); i >= 0 {
			return i
		}
		return len(protocol.TierOrder)
	}
	slices.SortStableFunc(tiers, func(a, b api.TierAt) int { return rank(a.Tier) - rank(b.Tier) })
}

// shortOf is what people see of an id: t- for Delegates, m- for the rest.
func shortOf(e *protocol.Envelope) string {
	if e.Intent == protocol.Delegate {
		return "t-" + protocol.ShortID(e.ID)
	}
	return "m-" + protocol.ShortID(e.ID)
}

// textOf is the headline of a message, read from the beginning of its blob where the value is one.
func (n *Node) textOf(e *protocol.Envelope) string {
	if e.ValueBlob == nil {
		return e.Text(protocol.ShortTextBytesMax)
	}
	r, _, err := n.store.OpenBlob(e.ValueBlob.SHA256)
	if errors.Is(err, journal.ErrNoBlob) {
		words, _ := n.absence(e.ValueBlob.SHA256)
		return "(" + words + ")"
	}
	if err != nil {
		return ""
	}
	defer r.Close()
	return headline(r)
}

// fill reads a value that is kept as a blob.
func (n *Node) fill(e *protocol.Envelope) error {
	if e.ValueBlob == nil {
		return nil
	}
	r, _, err := n.store.OpenBlob(e.ValueBlob.SHA256)
	if err != nil {
		return fmt.Errorf("value of %s: %w", protocol.ShortID(e.ID), err)
	}
	defer r.Close()
	raw, err := io.ReadAll(io.LimitReader(r, protocol.FrameBytesMax))
	if err != nil {
		return fmt.Errorf("value of %s: %w", protocol.ShortID(e.ID), err)
	}
	e.Value, e.ValueBlob = raw, nil
	return nil
}

// resolve finds the one message that a person or program means by an id.
func (n *Node) resolve(id string) (journal.Message, error) {
	text := strings.TrimSpace(id)
	if short, ok := strings.CutPrefix(text, "t-"); ok && len(short) <= 12 {
		text = short
	} else if short, ok := strings.CutPrefix(text, "m-"); ok && len(short) <= 12 {
		text = short
	}
	found, err := n.store.Resolve(text)
	if err != nil {
		return journal.Message{}, err
	}
	if text != id && strings.HasPrefix(id, "t-") {
		found = slices.DeleteFunc(found, func(m journal.Message) bool { return m.Envelope.Intent != protocol.Delegate })
	}
	if len(found) > 1 {
		found = slices.DeleteFunc(slices.Clone(found), func(m journal.Message) bool { return n.again(&m) })
	}
	switch len(found) {
	case 0:
		if snap := n.begins.Load(); snap != nil {
			return journal.Message{}, protocol.Refuse(protocol.CodeUnknownID, "nothing here has the id %q; what was settled before %s has left, and with it its proof",
				"aster task list and aster tail show ids", protocol.CutText(id, 80), snap.Until().Format(time.DateTime))
		}
		return journal.Message{}, protocol.Refuse(protocol.CodeUnknownID, "nothing here has the id %q", "aster task list and aster tail show ids", protocol.CutText(id, 80))
	case 1:
		return found[0], nil
	}
	longer := protocol.ShortIDOf(found[0].Envelope.ID, 8)
	return journal.Message{}, protocol.Refuse(protocol.CodeAmbiguousID, "%d messages have the id %q", fmt.Sprintf("type more of it, for instance %s", longer), len(found), protocol.CutText(id, 80))
}

// Message implements web.Viewer.
func (n *Node) Message(_ context.Context, id string) (api.Message, error) {
	m, err := n.undeleted(id)
	if err != nil {
		return api.Message{}, err
	}
	if err := n.fillToShow(&m.Envelope); err != nil {
		return api.Message{}, err
	}
	return n.message(&m), nil
}

// Messages implements web.Viewer.
func (n *Node) Messages(_ context.Context, q web.MessageQuery) ([]api.Message, error) {
	limit := q.Limit
	if limit <= 0 || limit > web.MessagesMax {
		limit = web.MessagesMax
	}
	jq := journal.Query{Agent: q.Agent, Intent: q.Intent, Before: q.Before, After: q.After, Limit: limit}
	if q.After == 0 && q.Since == 0 {
		jq.Newest = true
	}
	var out []api.Message
	for {
		page, err := n.words(jq)
		if err != nil {
			return nil, err
		}
		for i := range page {
			if page[i].Wall >= q.Since && len(out) < limit {
				out = append(out, n.message(&page[i]))
			}
		}
		if jq.Newest || len(page) < limit || len(out) >= limit {
			break
		}
		jq.After = page[len(page)-1].Pos
	}
	if jq.Newest {
		slices.Reverse(out)
	}
	return out, nil
}

// Search implements web.Viewer.
func (n *Node) Search(_ context.Context, words string, before uint64, limit int) ([]api.Message, error) {
	found, err := n.search(words, before, limit)
	if err != nil {
		return nil, err
	}
	out := make([]api.Message, len(found))
	for i := range found {
		out[i] = n.message(&found[i])
	}
	return out, nil
}

// Inbox implements web.Mail.
func (n *Node) Inbox(ctx context.Context, q web.InboxQuery) ([]api.InboxItem, error) {
	agent, err := n.speaker(ctx, q.Agent, false)
	if err != nil {
		return nil, err
	}
	rows, err := n.store.Inbox(agent, journal.InboxQuery{All: q.All, Dead: q.Dead, After: q.After, Limit: q.Limit})
	if err != nil {
		return nil, err
	}
	out := make([]api.InboxItem, 0, len(rows))
	for i := range rows {
		e := n.inNames(&rows[i].Message)
		text := n.textOf(e)
		if err := n.fillToShow(e); err != nil {
			return nil, err
		}
		out = append(out, api.InboxItem{
			Pos: rows[i].Message.Pos, MsgID: e.ID, Short: shortOf(e), From: e.From, Source: e.Source, Intent: e.Intent,
			At: rows[i].Message.Wall, Re: e.Re, Text: text, Value: protocol.TameNumbers(e.Value), Blobs: e.Blobs,
			Processed: rows[i].Processed, Dead: rows[i].Dead,
		})
	}
	return out, nil
}

// Outbox implements web.Mail.
func (n *Node) Outbox(_ context.Context, agent protocol.AgentID, dead bool) ([]api.Message, error) {
	agents := []protocol.AgentID{agent}
	if err := n.loop.call(context.Background(), func() {
		if agent == "" {
			agents = nil
			for _, k := range n.loop.core.Presences(n.loop.now) {
				agents = append(agents, k.Agent)
			}
		}
		for _, a := range agents {
			agents = append(agents, n.loop.core.Formerly(a)...)
		}
	}); err != nil {
		return nil, err
	}
	var out []api.Message
	for _, a := range agents {
		found, err := n.store.Outbox(a, dead, outboxRowsMax)
		if err != nil {
			return nil, err
		}
		for i := range found {
			out = append(out, n.message(&found[i]))
		}
	}
	slices.SortFunc(out, func(a, b api.Message) int { return int(int64(a.Pos) - int64(b.Pos)) })
	return out, nil
}

const outboxRowsMax = 1000

// Agents implements web.Viewer.
func (n *Node) Agents(ctx context.Context) (out []api.Agent, err error) {
	err = n.loop.call(ctx, func() { out = n.loop.agents() })
	return out, err
}

func (l *loop) agents() []api.Agent {
	known := l.core.Agents(l.now)
	out := make([]api.Agent, len(known))
	for i := range known {
		out[i] = l.n.agent(&known[i])
	}
	for _, f := range l.core.Filling() {
		if i := slices.IndexFunc(out, func(a api.Agent) bool { return a.ID == f.Agent }); i >= 0 {
			out[i].Filled = f.Percent
		}
	}
	l.recall(out)
	return out
}

func (n *Node) agent(k *hub.Known) api.Agent {
	a := api.Agent{
		ID: k.Agent, Name: k.Name, Role: k.Role, Home: k.Home, Node: n.nameOf(k.Home), Here: k.Here, State: k.State,
		Wakes: k.Wakes, Unread: k.Unread, UnreadBytes: k.Bytes, Doing: k.Doing, Attached: k.Attached, Room: k.Room,
	}
	if k.Room && k.Here {
		a.Name = cmp.Or(n.abroad.topicOf(k.Agent), a.Name)
	}
	if !k.Since.IsZero() {
		a.Since = k.Since.UnixMilli()
	}
	return a
}

// PutBlob implements web.Blobs.
func (n *Node) PutBlob(ctx context.Context, r io.Reader, want string) (protocol.BlobRef, error) {
	if refusal := n.full(); refusal != nil {
		return protocol.BlobRef{}, refusal
	}
	ref, err := n.store.PutBlob(ctx, r, want)
	if errors.Is(err, journal.ErrFull) { // there is room, but not for this
		err = protocol.Refuse(protocol.CodeDiskFull, "there is no room for it here. Nothing is lost", "Free space or raise store.bytes_max, and send it again")
	}
	return ref, err
}

// Attachment implements web.Blobs: content for the message that names it, never for its hash alone.
func (n *Node) Attachment(_ context.Context, id, sha256 string) (io.ReadSeekCloser, protocol.BlobRef, error) {
	m, err := n.undeleted(id)
	if err != nil {
		return nil, protocol.BlobRef{}, err
	}
	for _, ref := range m.Envelope.AllBlobs() {
		if ref.SHA256 != sha256 {
			continue
		}
		r, total, err := n.openContent(ref)
		if errors.Is(err, journal.ErrNoBlob) {
			words, hint := n.absence(sha256)
			err = protocol.Refuse(protocol.CodeUnknownID, "this attachment is not here: %s", hint, words)
		}
		ref.Bytes = total
		return r, ref, err
	}
	return nil, protocol.BlobRef{}, protocol.Refuse(protocol.CodeUnknownID, "that message has no such attachment", "aster show lists them")
}

// OpenBlob implements web.Blobs.
func (n *Node) OpenBlob(ctx context.Context, sha256 string) (io.ReadSeekCloser, int64, error) {
	r, total, err := n.openContent(protocol.BlobRef{SHA256: sha256, Bytes: protocol.BlobBytesMax})
	if errors.Is(err, journal.ErrNoBlob) {
		if _, left := n.store.LeftAt(sha256); left {
			words, hint := n.absence(sha256)
			return nil, 0, protocol.Refuse(protocol.CodeUnknownID, "this attachment is not here: %s", hint, words)
		}
		return nil, 0, protocol.Refuse(protocol.CodeUnknownID, "no attachment %s is here", "", protocol.CutText(sha256, 64))
	}
	return r, total, err
}

// valueOf reads one field of a JSON object; the zero value when it is not there or of another type.
func valueOf[T any](value json.RawMessage, field string) (out T) {
	var fields map[string]json.RawMessage
	if json.Unmarshal(value, &fields) == nil {
		var v T
		if json.Unmarshal(fields[field], &v) == nil {
			return v
		}
	}
	return out
}
