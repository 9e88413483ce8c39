package web

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/api"
)

const testToken = "test-token-of-node-json"

// fake is a node in memory. Its fields are set before it is served, or under mu.
type fake struct {
	mu       sync.Mutex
	snap     api.Snapshot
	history  []api.Message // older than the snapshot's messages
	queue    int           // events that may wait for one reader
	readers  map[chan api.Event]bool
	sent     []api.SendRequest
	sendErr  error
	inboxes  []api.InboxItem
	inboxErr error
	calls    []string
	parts    map[string][]byte
	named    map[string]protocol.BlobRef // message/hash → what the message says
	blobs    map[string][]byte
	stateDoc []byte
	silent   bool // Status does not answer
	callers  []Caller
	waitFor  chan struct{}
	slow     chan struct{} // closed when a snapshot may be given; nil: at once
	slowBlob chan struct{} // closed when content may be stored; nil: at once
	slowDoc  chan struct{} // closed when the state document may be given; nil: at once
	ahead    time.Duration // of the node's clock

	momentErr, pushErr, figuresErr error          // what a moment, web push and the figures are refused with
	late                           protocol.MsgID // of past moments: came late
	measured                       api.Health
	openRooms                      []api.Room
	claimed                        []api.Claim
	invited                        []api.InviteRow
	agenda                         api.StateDocument
}

func newFake() *fake {
	return &fake{snap: sampleSnapshot(time.Now()), queue: 64, readers: map[chan api.Event]bool{}, blobs: map[string][]byte{}, waitFor: make(chan struct{})}
}

var errFakeInternal = errors.New("secret detail /home/someone")

func (f *fake) note(call string, args ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls = append(f.calls, fmt.Sprintf(call, args...))
}

func (f *fake) Status(ctx context.Context) (api.Status, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.silent {
		return api.Status{}, errors.New("silent")
	}
	s := f.snap.Status
	s.Now = time.Now().Add(f.ahead).UnixMilli()
	return s, nil
}

func (f *fake) Peers(context.Context) ([]api.Peer, error)   { return f.snap.Peers, nil }
func (f *fake) Agents(context.Context) ([]api.Agent, error) { return f.snap.Agents, nil }
func (f *fake) Tasks(context.Context) ([]api.Task, error)   { return f.snap.Tasks, nil }

func (f *fake) Snapshot(ctx context.Context) (api.Snapshot, error) {
	if f.slow != nil {
		select {
		case <-f.slow:
		case <-ctx.Done():
			return api.Snapshot{}, ctx.Err()
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	s := f.snap
	s.Status.Now = time.Now().Add(f.ahead).UnixMilli()
	return s, nil
}

func (f *fake) all() []api.Message {
	return append(append([]api.Message{}, f.history...), f.snap.Messages...)
}

func (f *fake) Message(_ context.Context, id string) (api.Message, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if id == "broken" {
		return api.Message{}, errFakeInternal
	}
	for _, m := range f.all() {
		if string(m.Envelope.ID) == id || m.Short == id || "m-"+m.Short == id || "t-"+m.Short == id {
			return m, nil
		}
	}
	return api.Message{}, fmt.Errorf("look up: %w", protocol.Refuse(protocol.CodeUnknownID, "no message "+id, ""))
}

func (f *fake) WaitTier(ctx context.Context, id string, tier protocol.Tier) (api.Message, error) {
	m, err := f.Message(ctx, id)
	if err != nil {
		return m, err
	}
	for _, t := range m.Tiers {
		if t.Tier == tier {
			return m, nil
		}
	}
	<-ctx.Done()
	return api.Message{}, ctx.Err()
}

func (f *fake) Messages(_ context.Context, q MessageQuery) ([]api.Message, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var out []api.Message
	for _, m := range f.all() {
		e := m.Envelope
		if q.Agent != "" && e.From != q.Agent && e.To != q.Agent || q.Intent != "" && e.Intent != q.Intent ||
			q.Before > 0 && m.Pos >= q.Before || m.Pos <= q.After && q.After > 0 || m.At < q.Since {
			continue
		}
		out = append(out, m)
	}
	if len(out) > q.Limit {
		if q.After > 0 || q.Since > 0 {
			out = out[:q.Limit]
		} else {
			out = out[len(out)-q.Limit:]
		}
	}
	return out, nil
}

func (f *fake) Search(ctx context.Context, words string, before uint64, limit int) ([]api.Message, error) {
	f.note("search %s %d %d", words, before, limit)
	return nil, nil
}

func (f *fake) Task(_ context.Context, id string) (api.Task, error) {
	for _, t := range f.snap.Tasks {
		if string(t.ID) == id || "t-"+t.Short == id {
			return t, nil
		}
	}
	return api.Task{}, protocol.Refuse(protocol.CodeUnknownID, "no task "+id, "")
}

func (f *fake) Subscribe(ctx context.Context, since uint64) <-chan api.Event {
	f.mu.Lock()
	defer f.mu.Unlock()
	ch := make(chan api.Event, f.queue+1000)
	if since != SinceNow {
		for _, m := range f.all() {
			if m.Pos > since {
				ch <- api.Event{Type: "message", Pos: m.Pos, Message: &m}
			}
		}
	}
	f.readers[ch] = true
	context.AfterFunc(ctx, func() { f.drop(ch) })
	return ch
}

func (f *fake) drop(ch chan api.Event) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.readers[ch] {
		delete(f.readers, ch)
		close(ch)
	}
}

// emit gives e to every reader; one that lags by queue events is dropped, as the node does.
func (f *fake) emit(e api.Event) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if e.Type == "message" {
		f.snap.Messages = append(f.snap.Messages, *e.Message)
		f.snap.Pos = e.Pos
	}
	for ch := range f.readers {
		if len(ch) >= f.queue {
			delete(f.readers, ch)
			close(ch)
			continue
		}
		ch <- e
	}
}

func (f *fake) readerCount() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.readers)
}

func (f *fake) State(context.Context) ([]byte, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.stateDoc, nil
}

func (f *fake) Send(_ context.Context, req api.SendRequest) (api.SendResult, error) {
	f.mu.Lock()
	f.sent = append(f.sent, req)
	err := f.sendErr
	f.mu.Unlock()
	if err != nil {
		return api.SendResult{}, err
	}
	id := req.MsgID
	if id == "" {
		id = "0190a0a0-0000-7000-8000-00000000beef"
	}
	env := protocol.Envelope{ID: id, From: req.From, Source: protocol.SourceBoard, To: req.To, Intent: req.Intent, Value: req.Value}
	f.mu.Lock()
	pos := f.snap.Pos + 1
	f.mu.Unlock()
	m := api.Message{Pos: pos, Short: shortOf(id, env.Intent), At: time.Now().UnixMilli(), NodeName: "devbox", Node: "12D3KooWdevbox", Log: "log", Seq: pos, Envelope: env, Text: env.Text(200),
		Tiers: []api.TierAt{{Tier: protocol.Logged, At: time.Now().UnixMilli()}}}
	f.emit(api.Event{Type: "message", Pos: pos, Message: &m})
	f.hears("devbox", req)
	return api.SendResult{MsgID: id, Short: m.Short, Tier: protocol.Logged, To: req.To, ToState: protocol.StateIdle, ToWakes: "rewake"}, nil
}

func (f *fake) Inbox(_ context.Context, q InboxQuery) ([]api.InboxItem, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.inboxErr != nil {
		return nil, f.inboxErr
	}
	var out []api.InboxItem
	for _, it := range f.inboxes {
		if it.Pos > q.After {
			out = append(out, it)
		}
	}
	return out, nil
}

func (f *fake) Outbox(context.Context, protocol.AgentID, bool) ([]api.Message, error) {
	return nil, nil
}

func (f *fake) Ack(_ context.Context, req api.AckRequest) (api.AckResult, error) {
	f.note("ack %v", req.IDs)
	return api.AckResult{Acked: []protocol.MsgID{"whole-id"}}, nil
}

func (f *fake) Wait(ctx context.Context, agent protocol.AgentID, _ bool) (api.WaitResult, error) {
	select {
	case <-ctx.Done():
		return api.WaitResult{}, fmt.Errorf("wait: %w", ctx.Err())
	case <-f.waitFor:
		return api.WaitResult{Agent: agent, Unread: 1, IDs: []string{"t-7kq2m"}}, nil
	}
}

func (f *fake) CancelTask(_ context.Context, id string) (api.Task, error) {
	f.note("cancel %s", id)
	t, err := f.Task(context.Background(), id)
	t.State, t.Ended = api.TaskCancelled, time.Now().UnixMilli()
	return t, err
}

func (f *fake) Invite(context.Context, api.InviteRequest) (api.InviteResult, error) {
	return api.InviteResult{Token: "aster1-x"}, nil
}
func (f *fake) Keys(_ context.Context, all bool) ([]api.Key, error) {
	f.note("keys %v", all)
	return []api.Key{{Ref: "kr-1", Kind: "collab", Label: "l"}}, nil
}

func (f *fake) IssueKey(_ context.Context, req api.KeyRequest) (api.KeyIssued, error) {
	f.note("issue %s %s", req.Kind, req.Label)
	return api.KeyIssued{Secret: "ck-x"}, nil
}

func (f *fake) RenewKey(_ context.Context, ref string, ttl *int64) (api.Key, error) {
	f.note("renew key %s %v", ref, ttl != nil)
	return api.Key{Ref: ref}, nil
}

func (f *fake) LabelKey(_ context.Context, ref, label string) (api.Key, error) {
	f.note("label key %s %s", ref, label)
	return api.Key{Ref: ref, Label: label}, nil
}

func (f *fake) RevokeKey(_ context.Context, ref, mode string) (api.KeyRevoked, error) {
	f.note("revoke key %s %s", ref, mode)
	return api.KeyRevoked{Key: api.Key{Ref: ref}}, nil
}

func (f *fake) JoinKey(_ context.Context, secret string) (api.Key, error) {
	if kind, ok := map[string]string{"ck-good": "collab", "uk-good": "upstream"}[secret]; ok {
		return api.Key{Kind: kind, Bound: "partner", Expires: 1790000000000}, nil
	}
	return api.Key{}, protocol.Refuse(protocol.CodeBadKey, "no such key", "")
}

func (f *fake) JoinLocal(_ context.Context, label string) (api.Key, string, error) {
	switch label {
	case "good":
		return api.Key{Kind: "local", Label: label}, "/home/local-keys/good.key", nil
	case "../x", "":
		return api.Key{}, "", protocol.Refuse(protocol.CodeBadFrame, "bad label", "")
	}
	return api.Key{}, "", protocol.Refuse(protocol.CodeUnknownID, "no such label", "")
}

func (f *fake) RenewMember(_ context.Context, p protocol.PeerID) (api.Peer, error) {
	return api.Peer{Peer: p}, nil
}
func (f *fake) RevokeMember(_ context.Context, p protocol.PeerID, why string) error {
	f.note("revoke %s %s", p, why)
	return nil
}
func (f *fake) Leave(context.Context) error { f.note("leave"); return nil }
func (f *fake) ForgetAgent(_ context.Context, a protocol.AgentID) error {
	f.note("forget %s", a)
	return nil
}
func (f *fake) MoveAgent(_ context.Context, a protocol.AgentID, node string) (api.Moved, error) {
	f.note("move %s %s", a, node)
	return api.Moved{Agent: a, Node: node}, nil
}
func (f *fake) Main(context.Context) (api.Main, error) { return api.Main{}, nil }

func (f *fake) Handoff(_ context.Context, req api.HandoffRequest) error {
	f.note("handoff %s", req.Agent)
	return nil
}

func (f *fake) TakeMain(context.Context) (api.TakeResult, error) {
	f.note("take")
	return api.TakeResult{}, nil
}

func (f *fake) StoreHealth(context.Context) (api.StoreHealth, error) { return api.StoreHealth{}, nil }

func (f *fake) RepairStore(context.Context) (api.StoreHealth, error) {
	f.note("repair store")
	return api.StoreHealth{}, nil
}

func (f *fake) CopyStore(context.Context) (api.StoreCopy, error) {
	f.note("copy store")
	return api.StoreCopy{Dir: "/home/export-1"}, nil
}

func (f *fake) Claims(context.Context) ([]api.Claim, error) { return f.claimed, nil }

func (f *fake) Acquire(_ context.Context, req api.ClaimRequest) (api.Claim, error) {
	f.note("acquire %v", req.Scopes)
	return api.Claim{ID: "c", Scopes: req.Scopes}, nil
}

func (f *fake) ReleaseClaim(_ context.Context, id string) error {
	f.note("release %s", id)
	return nil
}

func (f *fake) RenameAgent(_ context.Context, a, to protocol.AgentID) (api.Agent, error) {
	f.note("rename %s %s", a, to)
	return api.Agent{ID: to}, nil
}
func (f *fake) Shutdown(context.Context) error { f.note("down"); return nil }

func (f *fake) PutBlob(_ context.Context, r io.Reader, want string) (protocol.BlobRef, error) {
	data, err := io.ReadAll(r)
	if err != nil {
		return protocol.BlobRef{}, fmt.Errorf("store blob: %w", err)
	}
	if f.slowBlob != nil {
		<-f.slowBlob
	}
	sum := sha256.Sum256(data)
	got := hex.EncodeToString(sum[:])
	if want != "" && want != got {
		return protocol.BlobRef{}, protocol.Refuse(protocol.CodeBadFrame, "the content has another hash", "")
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.blobs[got] = data
	return protocol.BlobRef{SHA256: got, Bytes: int64(len(data))}, nil
}

func (f *fake) PutPart(ctx context.Context, sha string, offset, total int64, r io.Reader) (api.Upload, error) {
	data, err := io.ReadAll(r)
	if err != nil {
		return api.Upload{}, fmt.Errorf("store piece: %w", err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.parts == nil {
		f.parts = map[string][]byte{}
	}
	if len(data) > 0 && offset != int64(len(f.parts[sha])) {
		return api.Upload{}, protocol.Refuse("chunk-out-of-range", "it does not follow", "")
	}
	f.parts[sha] = append(f.parts[sha], data...)
	have := int64(len(f.parts[sha]))
	if have == total {
		f.blobs[sha] = f.parts[sha]
	}
	return api.Upload{SHA256: sha, Bytes: total, Have: have, Complete: have == total}, nil
}

func (f *fake) Attachment(_ context.Context, msg, sha string) (io.ReadSeekCloser, protocol.BlobRef, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	ref, ok := f.named[msg+"/"+sha]
	if !ok {
		return nil, ref, protocol.Refuse(protocol.CodeUnknownID, "that message has no such attachment", "")
	}
	return closer{bytes.NewReader(f.blobs[sha])}, ref, nil
}

type closer struct{ *bytes.Reader }

func (closer) Close() error { return nil }

func (f *fake) OpenBlob(_ context.Context, sum string) (io.ReadSeekCloser, int64, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	data, ok := f.blobs[sum]
	if !ok {
		return nil, 0, protocol.Refuse(protocol.CodeUnknownID, "no such attachment", "")
	}
	return closer{bytes.NewReader(data)}, int64(len(data)), nil
}

func (f *fake) ServeSocket(w http.ResponseWriter, _ *http.Request, who Caller) {
	f.mu.Lock()
	f.callers = append(f.callers, who)
	f.mu.Unlock()
	w.WriteHeader(http.StatusSwitchingProtocols)
}

// newServer makes a server that hashes passwords quickly.
func newServer(t *testing.T, cfg Config) *Server {
	t.Helper()
	s, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	s.rounds = 10
	return s
}

// serve starts a server over f. Its clock is real; its paces are short.
func serve(t *testing.T, f *fake, change ...func(*Server)) (*Server, *httptest.Server) {
	t.Helper()
	s := newServer(t, Config{Backend: f, Token: testToken, Hosts: []string{"board.example"}})
	s.beatEvery, s.stateEvery = 20*time.Millisecond, 10*time.Millisecond
	for _, c := range change {
		c(s)
	}
	base, cancel := context.WithCancel(context.Background())
	ts := httptest.NewUnstartedServer(nil)
	ts.Config = s.HTTP(base)
	ts.Start()
	t.Cleanup(func() { cancel(); ts.Close() })
	return s, ts
}

func value(v any) json.RawMessage {
	out, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return out
}

// shortOf is the short form as a node gives it.
func shortOf(id protocol.MsgID, intent protocol.Intent) string {
	if intent == protocol.Delegate {
		return "t-" + protocol.ShortID(id)
	}
	return "m-" + protocol.ShortID(id)
}
