package web

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/api"
)

// Find looks through what the fake holds, as a node does.
func (f *fake) Find(_ context.Context, q FindQuery) (out api.Found, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls = append(f.calls, "find "+q.Words)
	older := len(f.history)
	n := older + len(f.snap.Messages)
	out.Of = uint64(n)
	words := strings.ToLower(q.Words)
	up := q.Words == "" && (q.After > 0 || q.At > 0)
	takes := func(m *api.Message) bool {
		e := &m.Envelope
		return (q.Agent == "" || e.From == q.Agent || e.To == q.Agent) && (q.Intent == "" || e.Intent == q.Intent) && (q.Role == "" || e.FromRole == q.Role) &&
			(q.Thread == "" || e.Thread == q.Thread) && (q.Task == "" || string(e.ID) == q.Task || string(e.Re) == q.Task) &&
			(q.Words == "" || strings.Contains(strings.ToLower(m.Text), words)) &&
			(q.Before == 0 || m.Pos < q.Before) && (q.After == 0 || m.Pos > q.After) && (q.At == 0 || m.At >= q.At) && (q.Until == 0 || m.At <= q.Until)
	}
	for i := range n {
		at := i
		if !up {
			at = n - 1 - i
		}
		var m *api.Message
		if at < older {
			m = &f.history[at]
		} else {
			m = &f.snap.Messages[at-older]
		}
		if !takes(m) {
			continue
		}
		if len(out.Messages) == q.Limit {
			if last := out.Messages[q.Limit-1].Pos; up {
				out.After = last
			} else {
				out.Before = last
			}
			break
		}
		out.Messages = append(out.Messages, *m)
	}
	switch {
	case up:
		if len(out.Messages) > 0 {
			out.Before = out.Messages[0].Pos
		}
	default:
		slices.Reverse(out.Messages)
		if q.Before > 0 && len(out.Messages) > 0 {
			out.After = out.Messages[len(out.Messages)-1].Pos
		}
	}
	return out, nil
}

func (f *fake) Thread(ctx context.Context, id string, until int64) (out api.Thread, err error) {
	m, err := f.Message(ctx, id)
	if err != nil {
		return out, err
	}
	root := m.Envelope.ID
	if m.Envelope.Re != "" {
		root = m.Envelope.Re
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, o := range f.all() {
		if (o.Envelope.ID == root || o.Envelope.Re == root) && (until == 0 || o.At <= until) {
			out.Messages = append(out.Messages, o)
		}
	}
	return out, nil
}

func (f *fake) Proof(ctx context.Context, id string) (out api.Proof, err error) {
	m, err := f.Message(ctx, id)
	if err != nil {
		return out, err
	}
	return api.Proof{Log: m.Log, Seq: m.Seq, Node: m.Node, NodeName: m.NodeName, At: "1.0", Wall: m.At, Hash: strings.Repeat("ab", 32), Prev: strings.Repeat("cd", 32),
		Bytes: 412, SignedBy: m.Seq + 2, Sig: []byte("signature"), Holds: true, Receipts: m.Tiers}, nil
}

func (f *fake) Asks(context.Context) (api.Asks, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.snap.Asks, nil
}

func (f *fake) Layers(context.Context) []api.Layer {
	f.mu.Lock()
	defer f.mu.Unlock()
	return []api.Layer{{Name: "loop", OK: !f.silent}, {Name: "disk", OK: !f.snap.Status.DiskFull}, {Name: "ready", OK: true}}
}

func (f *fake) ServeMetrics(w http.ResponseWriter, _ *http.Request) {
	_, _ = w.Write([]byte("aster_up 1\n"))
}

func (f *fake) Health(context.Context) (api.Health, error) { return f.measured, nil }

func (f *fake) Figures(context.Context) (out api.Figures, _ error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, p := range f.snap.Peers[:3] {
		row := api.NodeFigures{Peer: p.Peer, Name: p.Name, Self: p.Self, OK: p.Linked, At: time.Now().Add(-9 * time.Minute).UnixMilli(), Health: f.measured}
		out.Nodes = append(out.Nodes, row)
	}
	if len(out.Nodes) > 2 && len(f.measured.Samples) > 66 {
		short := slices.Clone(f.measured.Samples[len(f.measured.Samples)-66:])
		for i := range short {
			short[i].Receipts = map[bool]int64{true: 10}[i == 30] // one sample alone
		}
		out.Nodes[1].Samples = short
		out.Nodes[2].OK, out.Nodes[2].At, out.Nodes[2].Samples = false, 0, nil
	}
	return out, f.figuresErr
}

func (f *fake) Document(context.Context) (api.StateDocument, error) {
	if f.slowDoc != nil {
		<-f.slowDoc
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	a := f.agenda
	a.Words = slices.Clone(a.Words)
	return a, nil
}

func (f *fake) Rooms(context.Context) ([]api.Room, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.openRooms, nil
}

func (f *fake) Invites(context.Context) ([]api.InviteRow, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.invited, nil
}

func (f *fake) WithdrawInvite(_ context.Context, id string) error {
	f.note("withdraw %s", id)
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := range f.invited {
		if f.invited[i].ID == id {
			f.invited[i].Expires = 1
			return nil
		}
	}
	return protocol.Refuse(protocol.CodeUnknownID, "this node made no invite "+id, "")
}

// Moment is what the fake holds that was said by then; its tasks and agents are as they are, unless a test says otherwise.
func (f *fake) Moment(_ context.Context, at int64, ticks bool) (out api.Moment, err error) {
	f.note("moment %d", at)
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.momentErr != nil {
		return out, f.momentErr
	}
	out = api.Moment{At: at, Main: f.snap.Status.Main, Agents: f.snap.Agents}
	for _, a := range f.snap.Asks.Asks {
		if a.At <= at {
			out.Asks = append(out.Asks, a)
		}
	}
	for _, p := range f.snap.Peers {
		out.Peers = append(out.Peers, api.Peer{Peer: p.Peer, Name: p.Name, Role: p.Role, Inside: p.Inside, Self: p.Self, Alive: "unknown"})
	}
	for _, t := range f.snap.Tasks {
		if t.At <= at {
			out.Tasks = append(out.Tasks, t)
		}
	}
	for _, m := range f.all() {
		if ticks {
			out.Ticks = append(out.Ticks, m.At)
		}
		if m.At <= at {
			m.Late = f.late == m.Envelope.ID
			out.Messages = append(out.Messages, m)
			if m.At < at {
				out.Prev = m.At
			}
		} else if out.Next == 0 {
			out.Next = m.At
		}
	}
	out.Messages = out.Messages[max(0, len(out.Messages)-100):]
	if len(out.Messages) == 0 { // before the mesh
		out.Agents, out.Asks, out.Main = nil, nil, api.Main{}
	}
	return out, nil
}

func (f *fake) TaskAt(ctx context.Context, id string, at int64) (api.Task, error) {
	t, err := f.Task(ctx, id)
	if err == nil && t.At > at {
		err = protocol.Refuse(protocol.CodeUnknownID, "there was no task then", "")
	}
	return t, err
}

func (f *fake) CompareBoards(context.Context) (api.Compared, error) {
	f.note("compare boards")
	return api.Compared{}, nil
}
