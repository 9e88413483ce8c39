package main

import (
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/api"
)

// at is a moment of today, so that it prints without its date.
func at(t *testing.T, clock string) int64 {
	t.Helper()
	m, err := moment(clock, timeNow())
	if err != nil {
		t.Fatal(err)
	}
	return m.UnixMilli()
}

var inboxBlobs = []protocol.BlobRef{{Name: "plan\x1b[31m.md", Bytes: 5200}, {Name: "base.bundle", Use: "base", Bytes: 12}}

func TestWordsAndExitCodes(t *testing.T) {
	delegateAt := at(t, "14:02:07")
	message := api.Message{
		Pos: 9, Short: "7kq2m", At: delegateAt, NodeName: "devbox", Log: "L", Seq: 3, Text: "Add a test",
		Envelope: protocol.Envelope{ID: "id-1", From: "codex-shop", To: "claude-shop", Source: protocol.SourceAgent, Intent: protocol.Delegate, Value: []byte(`{"task":"Add a test"}`)},
		Tiers:    []api.TierAt{{Tier: protocol.Logged, At: delegateAt}, {Tier: protocol.Persisted, At: delegateAt + 2}},
	}
	unknown := protocol.Refuse(protocol.CodeUnknownAgent, `no agent "cart". Here: claude-cart, codex-cart`, "Nothing was sent")
	for _, c := range []struct {
		name   string
		routes map[string]any
		stdin  string
		args   string // fields
		code   int
		out    string // whole; "*" anything
		err    string // whole; "*" anything
		asked  string // last request, if it matters
	}{
		{
			name: "send", routes: map[string]any{"POST /send": api.SendResult{MsgID: "id-1", Short: "7kq2m", Tier: protocol.Logged, To: "claude-shop", ToState: protocol.StateIdle, ToWakes: "rewake"}},
			args: "send --to claude-shop how are you", out: "m-7kq2m logged; claude-shop is idle, wakes by rewake\n",
			asked: `POST /send {"to":"claude-shop","intent":"Request","value":{"text":"how are you"}}`,
		},
		{
			name: "send to one that nothing wakes", args: "send --to b hi", out: "m-7kq2m logged; b is pull-only: it reads its inbox\n",
			routes: map[string]any{"POST /send": api.SendResult{MsgID: "id-1", Short: "7kq2m", Tier: protocol.Logged, To: "b", ToState: protocol.StatePullOnly, ToWakes: "nothing: it reads its inbox"}},
		},
		{
			name: "send from stdin as json", stdin: "line one\nline two\n",
			routes: map[string]any{"POST /send": api.SendResult{MsgID: "id-1", Short: "7kq2m", Tier: protocol.Logged, To: "b"}},
			args:   "send --json --to b --from a --no-wake --intent Report -",
			out:    `{"msgId":"id-1","short":"7kq2m","tier":"logged","to":"b"}` + "\n",
			asked:  `POST /send {"from":"a","to":"b","intent":"Report","value":{"text":"line one\nline two"},"noWake":true}`,
		},
		{
			name: "send to nobody known", routes: map[string]any{"POST /send": unknown},
			args: "send --to cart hi", code: 4, err: `no agent "cart". Here: claude-cart, codex-cart. Nothing was sent` + "\n",
		},
		{
			name: "rename an agent", routes: map[string]any{"POST /agents/{id}/rename": api.Agent{ID: "bert", Unread: 1200}},
			args: "agent rename bob bert", out: "bob is called bert now, with 1,200 unread\n", asked: `POST /agents/bob/rename {"to":"bert"}`,
		},
		{name: "send without text", args: "send --to b", code: 2, err: "*"},
		{name: "send with bad value", args: "send --to b --value {", code: 2, err: "*"},
		{
			name: "send waits for a tier", args: "send --to b --wait persisted --timeout 5s hi",
			routes: map[string]any{"POST /send": api.SendResult{MsgID: "id-1", Short: "7kq2m", Tier: protocol.Logged}, "GET /messages/{id}": message},
			out:    "m-7kq2m persisted\n", asked: "GET /messages/id-1?timeout=5s&wait=persisted",
		},
		{
			name: "send waits in vain", args: "send --to b --wait processed --timeout 5s hi",
			routes: map[string]any{"POST /send": api.SendResult{MsgID: "id-1", Short: "7kq2m", Tier: protocol.Logged}, "GET /messages/{id}": protocol.Refuse("timed-out", "it did not happen in time", "")},
			code:   5, out: "m-7kq2m logged\n", err: "m-7kq2m is not processed after 5 s. Where it is: aster show m-7kq2m\n",
		},
		{
			name: "a lone node says at once that replicated cannot come", args: "send --to b --wait replicated hi",
			routes: map[string]any{"POST /send": api.SendResult{MsgID: "id-1", Short: "7kq2m", Tier: protocol.Logged, Alone: true}},
			code:   1, out: "m-7kq2m logged\n", err: "m-7kq2m is logged; replicated cannot come: no other node is here\n",
		},
		{
			name: "agents", args: "agents",
			routes: map[string]any{"GET /agents": map[string]any{"agents": []api.Agent{
				{ID: "claude-shop", Role: protocol.RoleMain, State: protocol.StateIdle, Wakes: "rewake", Here: true},
				{ID: "codex-shop", Role: protocol.RoleLocal, State: protocol.StateWorking, Wakes: "nothing: its next prompt", Unread: 2, Here: true},
			}}},
			out: "AGENT        ROLE   STATE    WAKES BY                  UNREAD\n" +
				"claude-shop  main   idle     rewake                    0\n" +
				"codex-shop   local  working  nothing: its next prompt  2\n",
		},
		{
			name: "inbox", args: "inbox --agent claude-shop",
			routes: map[string]any{"GET /inbox": map[string]any{"items": []api.InboxItem{
				{Pos: 1, MsgID: "id-1", Short: "7kq2m", From: "codex-shop", Intent: protocol.Delegate, At: delegateAt, Text: "Add a test\x1b[31m", Blobs: inboxBlobs},
				{Pos: 3, MsgID: "id-3", Short: "9mmdk", From: "claude-shop", Intent: protocol.WorkerReport, At: delegateAt, Re: "0190f5a2-7b3c-7def-8123-456789abcdef", Value: []byte(`{"status":"in_progress"}`), Text: "halfway"},
				{Pos: 2, MsgID: "id-2", Short: "4jd0s", Source: protocol.SourceBoard, Intent: "UserPrompt", At: delegateAt + 1000, Text: "and hurry"},
			}}},
			out: "14:02:07  t-7kq2m  Delegate from codex-shop\n          Add a test[31m\n          attached: plan [31m.md, 5.1 KiB\n          attached: base.bundle (base), 12 B\n          to have them: aster show t-7kq2m --save DIR\n" +
				"14:02:07  m-9mmdk  WorkerReport from claude-shop on t-tqkff: in progress\n          halfway\n" +
				"14:02:08  m-4jd0s  UserPrompt from a person\n          and hurry\n",
			asked: "GET /inbox?agent=claude-shop",
		},
		{name: "an empty inbox", args: "inbox", routes: map[string]any{"GET /inbox": map[string]any{"items": []api.InboxItem{}}}, err: "nothing unread\n"},
		{name: "ack", args: "ack t-7kq2m", routes: map[string]any{"POST /ack": map[string]any{"acked": []string{"0190f5a2-7b3c-7def-8123-456789abcdef"}}}, out: "*", asked: `POST /ack {"ids":["t-7kq2m"]}`},
		{name: "wait", args: "wait --agent a --timeout 2m", routes: map[string]any{"GET /wait": api.WaitResult{Agent: "a", Unread: 2, IDs: []string{"t-7kq2m", "m-4jd0s"}}}, out: "2 unread for a: t-7kq2m m-4jd0s\n", asked: "*"},
		{name: "wait in vain", args: "wait", routes: map[string]any{"GET /wait": protocol.Refuse("timed-out", "it did not happen in time", "")}, code: 5, err: "timed out\n"},
		{
			name: "show", args: "show t-7kq2m", routes: map[string]any{"GET /messages/{id}": message},
			out: "t-7kq2m    Delegate  id-1\nfrom       codex-shop\nto         claude-shop\nat         14:02:07 on devbox\nlog        L seq 3\n" +
				"logged     14:02:07, after 0 ms\npersisted  14:02:07, after 2 ms\n\nAdd a test\n",
		},
		{name: "show of nothing", args: "show zzzzz", routes: map[string]any{"GET /messages/{id}": protocol.Refuse(protocol.CodeUnknownID, `there is no message "zzzzz"`, "")}, code: 4, err: `there is no message "zzzzz"` + "\n"},
		{
			name: "tail of the past", args: "tail --since 1m --follow=false",
			routes: map[string]any{"GET /status": api.Status{Nodes: 1}, "GET /tail": http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				processed := message
				processed.Tiers = append(slices.Clone(message.Tiers), api.TierAt{Tier: protocol.Processed, At: delegateAt + 2000, Agent: "claude-shop"})
				writeLine(w, api.Event{Type: "message", Message: &processed})
			})},
			out: "14:02:07 codex-shop -> claude-shop  Delegate t-7kq2m  persisted 2 ms (replicated: no other node yet)\n14:02:09 claude-shop  processed t-7kq2m\n",
		},
		{
			name: "invite", args: "invite --lan",
			routes: map[string]any{"POST /invites": api.InviteResult{Token: "aster1-abc", Listen: []string{"/ip4/127.0.0.1/tcp/1", "/ip4/192.0.2.14/tcp/1", "/ip4/192.0.2.14/udp/1/quic-v1"}}},
			out:    "aster1-abc\n", err: "this node now listens on 192.0.2.14; within 1 h, once, on the other machine: aster up --detach --join -\n",
			asked: `POST /invites {"role":"local","ttlMillis":3600000,"lan":true}`,
		},
		{
			name: "invite of a node that only this machine reaches", args: "invite", routes: map[string]any{"POST /invites": api.InviteResult{Token: "aster1-abc", Loopback: true}},
			out: "aster1-abc\n", err: "within 1 h, once, on this machine only: aster --home DIR up --detach --join -\nother machines cannot reach this node; to let them: aster invite --lan\n",
		},
		{name: "invite as main", args: "invite --role main", code: 2, err: "*"},
		{
			name: "revoke a stranger", args: "member revoke x", code: 4, err: "no node \"x\". Members: devbox, mac-mini\n",
			routes: map[string]any{"GET /peers": map[string]any{"peers": []api.Peer{{Name: "devbox", Self: true}, {Name: "mac-mini"}}}},
		},
		{
			name: "revoke", args: "member revoke mac-mini --reason stolen", out: "mac-mini is revoked\n", asked: `POST /members/P2/revoke {"reason":"stolen"}`,
			routes: map[string]any{"GET /peers": map[string]any{"peers": []api.Peer{{Name: "mac-mini", Peer: "P2"}}}, "POST /members/{peer}/revoke": map[string]bool{"ok": true}},
		},
		{
			name: "issue a key", args: "key issue --label partner --ttl 1h",
			routes: map[string]any{"POST /keys": api.KeyIssued{Secret: "ck-0123456789abcdef01234567", JoinURL: "ws://h/ws?key=ck-0123456789abcdef01234567", Page: "http://h/join/collab?key=ck-0123456789abcdef01234567", Key: api.Key{Ref: "kr-0123456789ab", Kind: "collab", Label: "partner", Expires: delegateAt}}},
			out:    "ck-0123456789abcdef01234567\n", asked: `POST /keys {"kind":"collab","label":"partner","ttlMillis":3600000}`,
			err: "kr-0123456789ab, collab, until " + clock(delegateAt) + "; shown this once\njoin at ws://h/ws?key=KEY, how: http://h/join/collab?key=KEY\n",
		},
		{
			name: "issue a local key", args: "key issue --kind local --ttl 0",
			routes: map[string]any{"POST /keys": api.KeyIssued{File: "/h/local-keys/local.key", Page: "http://x/join/local?label=local", Key: api.Key{Ref: "kr-0123456789ab", Kind: "local"}}},
			out:    "/h/local-keys/local.key\n", asked: `POST /keys {"kind":"local","ttlMillis":0}`,
			err: "kr-0123456789ab, local, no end; the key lies in this file, which you alone can read. How to join with it: http://x/join/local?label=local\n",
		},
		{
			name: "keys", args: "key list --all", asked: "GET /keys?all=1",
			routes: map[string]any{"GET /keys": map[string]any{"keys": []api.Key{
				{Ref: "kr-0123456789ab", Label: "partner\x1b[31m", Kind: "collab", State: "ACTIVE", Bound: "p", Connection: "connected", RenewCount: 2},
				{Ref: "kr-1123456789ab", Label: "old", Kind: "peer", State: "REVOKED", Lapsed: true, Connection: "never"},
			}}},
			out: "KEY              LABEL         KIND    STATE      AGENT  UNTIL   RENEWED\n" +
				"kr-0123456789ab  partner [31m  collab  connected  p      no end  2\n" +
				"kr-1123456789ab  old           peer    ended      -      no end  0\n",
		},
		{
			name: "revoke a key gently", args: "key revoke partner --at-session-end", asked: `POST /keys/partner/revoke {"mode":"sessionEnd"}`,
			routes: map[string]any{"POST /keys/{ref}/revoke": api.KeyRevoked{Key: api.Key{Ref: "kr-1", Label: "partner", State: "REVOKED_PENDING"}}},
			out:    "kr-1 partner ends with its session, in 5 min at the latest\n",
		},
		{
			name: "revoke a key", args: "key revoke kr-1", asked: `POST /keys/kr-1/revoke {"mode":"immediate"}`, out: "kr-1 partner is revoked\n",
			routes: map[string]any{"POST /keys/{ref}/revoke": api.KeyRevoked{Key: api.Key{Ref: "kr-1", Label: "partner", State: "REVOKED"}}},
		},
		{
			name: "renew a key", args: "key renew kr-1 --ttl 1h", asked: `POST /keys/kr-1/renew {"ttlMillis":3600000}`, out: "kr-1 partner works until " + clock(delegateAt) + "\n",
			routes: map[string]any{"POST /keys/{ref}/renew": api.Key{Ref: "kr-1", Label: "partner", Expires: delegateAt}},
		},
		{
			name: "label a key", args: "key label kr-1 two", asked: `POST /keys/kr-1/label {"label":"two"}`, out: "kr-1 is called two\n",
			routes: map[string]any{"POST /keys/{ref}/label": api.Key{Ref: "kr-1", Label: "two"}},
		},
		{
			name: "label of no key", args: "key label x y", code: 4, err: "there is no such key; aster key list shows them\n",
			routes: map[string]any{"POST /keys/{ref}/label": protocol.Refuse("KEY_NOT_FOUND", "there is no such key", "aster key list shows them")},
		},
		{name: "main", args: "main", routes: map[string]any{"GET /main": api.Main{Term: 4, Peer: "P", Node: "devbox", Agent: "claude-shop", Here: true, Sure: true, Voters: []string{"devbox", "mac"}, Missing: []string{"mac"}}}, out: "claude-shop on devbox, term 4 (this node)\nwho elects: devbox, mac\nIt does not reach mac, which are too few to elect another.\n"},
		{name: "main take", args: "main take", code: 2, err: "*"},
		{name: "claim", args: "claim acquire src --pid 7", routes: map[string]any{"POST /claims": api.Claim{ID: "c1", Agent: "a", Scopes: []string{"path:src"}}}, out: "c1\n", err: "a holds path:src while process 7 runs\n"},
		{name: "claims", args: "claim list", routes: map[string]any{"GET /claims": map[string]any{"claims": []api.Claim{{ID: "c1", Agent: "a", NodeName: "mac", Scopes: []string{"path:src"}, Why: "w"}}}}, out: "*"},
		{name: "main take by force", args: "main take --force", routes: map[string]any{"POST /main/take": api.TakeResult{Main: api.Main{Term: 5, Peer: "P", Node: "mac", Here: true}, Twice: []api.Claim{{Agent: "a", NodeName: "devbox", Scopes: []string{"path:x/"}}}}}, out: "mac, no agent named yet, term 5 (this node)\nUntil their leases end, five minutes at most, these claims may be held twice:\n  path:x/  a on devbox\n"},
		{
			name: "report", args: "report --re t-7kq2m --status done --summary +14", out: "m-9mmdk logged\n",
			routes: map[string]any{"GET /messages/{id}": message, "POST /send": api.SendResult{MsgID: "id-9", Short: "9mmdk", Tier: protocol.Logged}},
			asked:  `POST /send {"from":"claude-shop","to":"codex-shop","intent":"WorkerReport","value":{"outcome":"done","re_msgId":"id-1","status":"done","summary":"+14"},"re":"id-1"}`,
		},
		{name: "report without a status", args: "report --re x", code: 2, err: "*"},
		{name: "task cancel", args: "task cancel t-7kq2m", routes: map[string]any{"POST /tasks/{id}/cancel": api.Task{Short: "7kq2m", State: api.TaskCancelled}}, out: "t-7kq2m is cancelled\n"},
		{name: "fetch of what still runs", args: "task fetch t-7kq2m", code: 1, err: "t-7kq2m is running: there is no result yet. Follow it: aster task show t-7kq2m\n", routes: map[string]any{"GET /tasks/{id}": api.Task{Short: "7kq2m", State: api.TaskRunning}}},
		{name: "an internal fault", args: "status", code: 1, err: "the node could not do it; aster logs says why\n", routes: map[string]any{"GET /status": protocol.Refuse("internal", "the node could not do it", "aster logs says why")}},
		{name: "something else on the port", args: "status", code: 1, err: "*", routes: map[string]any{"GET /status": 418}},
		{name: "board", args: "board", out: "http://127.0.0.1:7878/open/x\n", routes: map[string]any{"POST /board-link": map[string]string{"url": "http://127.0.0.1:7878/open/x"}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFake(t, c.routes)
			got := f.type_(t, c.stdin, strings.Fields(c.args)...)
			if got.code != c.code {
				t.Errorf("exit %d, want %d", got.code, c.code)
			}
			if c.out != "*" && got.out != c.out {
				t.Errorf("stdout:\n%swant:\n%s", got.out, c.out)
			}
			if c.err != "*" && got.err != c.err {
				t.Errorf("stderr:\n%swant:\n%s", got.err, c.err)
			}
			if c.asked != "" && c.asked != "*" && f.last() != c.asked {
				t.Errorf("asked %s\nwant  %s", f.last(), c.asked)
			}
			if strings.Contains(got.out+got.err, fakeToken) {
				t.Error("the token was printed")
			}
		})
	}
}

func TestEveryCommandSaysThatNoNodeRuns(t *testing.T) {
	home := newHome(t)
	for _, args := range []string{
		"status", "peers", "agents", "agent list", "agent forget x", "agent rename x y", "agent move x y", "main", "main handoff x", "main take --force", "claim list", "claim acquire x", "claim release x", "board", "down", "invite", "member list", "member renew x", "member revoke x", "leave",
		"key issue", "key list", "key renew x", "key label x y", "key revoke x",
		"send --to a hi", "delegate --to a hi", "report --re x --status done", "inbox", "inbox --follow", "ack x", "wait", "show x", "outbox", "tail", "search x",
		"task list", "task show x", "task fetch x", "task cancel x",
	} {
		for _, stale := range []bool{false, true} {
			if stale { // a process that was killed left its file behind
				writeJSONFile(t, filepath.Join(home, "node.json"), api.NodeFile{PID: 1, Board: "http://127.0.0.1:1", Token: "x"})
			} else {
				os.Remove(filepath.Join(home, "node.json"))
			}
			got := typeIn(t, nil, "", append(strings.Fields(args), "--home", home)...)
			if want := "no node runs here (home " + tilde(home) + "). Start it: aster --home " + tilde(home) + " up\n"; got.code != 3 || got.err != want || got.out != "" {
				t.Errorf("aster %s (stale %v): exit %d, stdout %q, stderr %q", args, stale, got.code, got.out, got.err)
			}
		}
	}
}

func TestMistakesOfUsageExit2(t *testing.T) {
	home := newHome(t)
	for _, args := range []string{"bogus", "status extra", "ack", "send --bogus", "task bogus", "up --leave", "wait --timeout 0s", "wait --timeout x", "tail --since yesterday", "delegate hi", "delegate --to a --timeout 5s hi", "invite --ttl 0s", "key issue --kind main", "key issue --ttl -1s", "key renew", "key renew x --ttl 0s", "key label x", "key revoke", "inbox --all --dead", "search", "show"} {
		got := typeIn(t, nil, "", append(strings.Fields(args), "--home", home)...)
		if got.code != 2 || got.err == "" || got.out != "" {
			t.Errorf("aster %s: exit %d, stdout %q, stderr %q", args, got.code, got.out, got.err)
		}
	}
}

func TestAnEmptyAcceptanceCommandExits2AndSendsNothing(t *testing.T) {
	for _, empty := range []string{"", " ", "\t\n"} {
		got := typeIn(t, nil, "", "delegate", "--to", "a", "--accept", "make", "--accept", empty, "hi", "--home", newHome(t))
		if want := "--accept is empty, which checks nothing: give it a command (is a variable in it unset?), or leave it out"; got.code != 2 || !strings.Contains(got.err, want) || got.out != "" {
			t.Errorf("%q: exit %d, stdout %q, stderr %q", empty, got.code, got.out, got.err)
		}
	}
}

func TestAHomeThatOthersMayReadIsRefusedByName(t *testing.T) {
	home := newHome(t)
	if err := os.Chmod(home, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, args := range []string{"status", "up", "logs", "config"} {
		got := typeIn(t, nil, "", args, "--home", home)
		if want := "home " + tilde(home) + " can be read by others (mode 0755). Mend it: chmod 700 " + tilde(home) + "\n"; got.code != 4 || got.err != want {
			t.Errorf("aster %s: exit %d, %q", args, got.code, got.err)
		}
	}
	if err := os.WriteFile(filepath.Join(home, "passwd"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range []string{"status", "up"} { // a slip of the hand must not end in chmod 700 /etc
		got := typeIn(t, nil, "", args, "--home", home)
		if want := tilde(home) + " is not the home of a node, and holds other things. Use a folder of its own: aster --home DIR\n"; got.code != 4 || got.err != want {
			t.Errorf("aster %s: exit %d, %q", args, got.code, got.err)
		}
	}
}
