package double

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aster-mesh/aster/node"
	"github.com/aster-mesh/aster/node/link"
	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/api"
	"github.com/aster-mesh/aster/protocol/asterism"
)

// guest is a node that joins the hub.
type guest struct {
	t *testing.T
	api.NodeFile
}

func newGuest(t *testing.T) *guest {
	t.Helper()
	home, ready, done := filepath.Join(t.TempDir(), "home"), make(chan api.Ready, 1), make(chan error, 1)
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		done <- node.Run(ctx, node.Config{Home: home, Name: "guest", Agent: "alice", Board: "127.0.0.1:0", Ready: func(r api.Ready) { ready <- r }})
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("the node ended with %v", err)
		}
	})
	select {
	case <-ready:
	case <-time.After(20 * time.Second):
		t.Fatal("the node is not ready within 20 s")
	}
	f, err := node.ReadNodeFile(home)
	if err != nil {
		t.Fatal(err)
	}
	return &guest{t, f}
}

// call uses the node's API.
func (g *guest) call(method, path string, in any) []byte {
	g.t.Helper()
	raw, err := json.Marshal(in)
	if err != nil {
		g.t.Fatal(err)
	}
	req, err := http.NewRequest(method, g.Board+api.Prefix+path, bytes.NewReader(raw))
	if err != nil {
		g.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+g.Token)
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		g.t.Fatal(err)
	}
	defer res.Body.Close()
	out, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		g.t.Fatalf("%s %s: %d %v %s", method, path, res.StatusCode, err, out)
	}
	return out
}

// until waits for a condition.
func until(t *testing.T, what string, is func() bool) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(30 * time.Second); !is(); <-tick.C {
		if time.Now().After(deadline) {
			t.Fatalf("not within 30 s: %s", what)
		}
	}
}

// peer is an agent of the hub.
type peer struct {
	conn   *link.Conn
	frames chan asterism.Frame
}

func attach(t *testing.T, url, id string) *peer {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	conn, err := link.Dial(ctx, url, nil, link.Options{})
	if err != nil {
		cancel()
		t.Fatal(err)
	}
	p := &peer{conn, make(chan asterism.Frame, 4096)}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = conn.Serve(ctx, func(data []byte, _ bool) {
			if f, no := asterism.Decode(data, 0); no == nil {
				p.frames <- f
			}
		})
	}()
	t.Cleanup(func() { cancel(); <-done })
	p.say(map[string]any{"type": "HELLO", "agentId": id, "capabilities": []string{"ack-layer"}})
	return p
}

func (p *peer) say(f map[string]any) {
	raw, _ := json.Marshal(f)
	p.conn.Send(raw)
}

// reports waits for n Reports and acknowledges each.
func (p *peer) reports(t *testing.T, n int) (ids []string) {
	t.Helper()
	deadline := time.After(30 * time.Second)
	for len(ids) < n {
		select {
		case f := <-p.frames:
			if f.Name == "Report" {
				ids = append(ids, f.MsgID)
				p.say(map[string]any{"type": "CUSTOM", "name": "AckProcessed", "targetAgentId": f.AgentID, "value": map[string]any{"ackFor": f.MsgID}})
			}
		case <-deadline:
			t.Fatalf("%d of %d reports within 30 s", len(ids), n)
		}
	}
	return ids
}

// TestANodeIsAGoodClientOfAnotherHub, also of one with a fault: each message arrives once and in order either way, repeats
// of the hub's are recognised, and the hub's words become receipts.
func TestANodeIsAGoodClientOfAnotherHub(t *testing.T) {
	for _, fault := range []string{"", "B11", "B13", "B19", "KC6", "KC7"} {
		t.Run("fault "+fault, func(t *testing.T) {
			const n = 20
			url := start(t, fault).url
			bob := attach(t, url, "bob")
			g := newGuest(t)
			var row api.Board
			if err := json.Unmarshal(g.call("POST", "/boards", api.BoardRequest{URL: url, Name: "far"}), &row); err != nil || len(row.Seats) != 1 || row.Seats[0].State != api.SeatJoined {
				t.Fatalf("%v %+v", err, row)
			}
			until(t, "bob is listed", func() bool { return strings.Contains(string(g.call("GET", "/agents", nil)), `"bob@far"`) })
			var sent, said []string
			for i := range n {
				var r api.SendResult
				if err := json.Unmarshal(g.call("POST", "/send", api.SendRequest{To: "bob@far", Intent: "Report", Value: json.RawMessage(fmt.Sprintf(`{"summary":"%d"}`, i))}), &r); err != nil {
					t.Fatal(err)
				}
				sent = append(sent, string(r.MsgID))
				for range 2 { // as a hub does that has had no acknowledgement
					bob.say(map[string]any{"type": "CUSTOM", "name": "Request", "targetAgentId": "alice", "msgId": fmt.Sprint("b-", i), "value": map[string]any{"n": i}})
				}
				said = append(said, fmt.Sprint("b-", i))
			}
			if got := bob.reports(t, n); !slices.Equal(got, sent) {
				t.Errorf("bob got %q, sent were %q", got, sent)
			}
			var ids []string
			until(t, "alice has all", func() bool { ids = g.inbox("Request"); return len(ids) >= n })
			if !slices.Equal(ids, said) {
				t.Errorf("alice got %q", ids)
			}
			until(t, "all is processed", func() bool {
				var m api.Message
				if err := json.Unmarshal(g.call("GET", "/messages/"+sent[n-1], nil), &m); err != nil {
					t.Fatal(err)
				}
				return slices.ContainsFunc(m.Tiers, func(at api.TierAt) bool { return at.Tier == protocol.Processed && at.Agent == "bob@far" })
			})
		})
	}
}

// inbox are the ids of alice's mail of an intent, oldest first.
func (g *guest) inbox(intent protocol.Intent) (ids []string) {
	g.t.Helper()
	var got struct {
		Items []api.InboxItem `json:"items"`
	}
	if err := json.Unmarshal(g.call("GET", "/inbox?agent=alice", nil), &got); err != nil {
		g.t.Fatal(err)
	}
	for _, it := range got.Items {
		if it.Intent == intent {
			ids = append(ids, string(it.MsgID))
		}
	}
	return ids
}

// keepsNone in the place of a fault is a hub that does not say that it keeps attachments.
const keepsNone = "keeps no attachments"

// TestAttachmentsGoToAnotherHubAsItTakesThem: to one that keeps them in pieces; to one that keeps none a small one stands in its
// message, and a large one is refused by name to its sender.
func TestAttachmentsGoToAnotherHubAsItTakesThem(t *testing.T) {
	for _, fault := range []string{"", keepsNone} {
		t.Run("hub "+fault, func(t *testing.T) {
			url := start(t, fault).url
			bob := attach(t, url, "bob")
			g := newGuest(t)
			g.call("POST", "/boards", api.BoardRequest{URL: url, Name: "far"})
			until(t, "bob is listed", func() bool { return strings.Contains(string(g.call("GET", "/agents", nil)), `"bob@far"`) })
			large, small := g.file(`"`+strings.Repeat("x", 3<<20)+`"`), g.file(`"hello"`)
			got := map[string]string{}
			for deadline := time.After(60 * time.Second); got[small] == "" || fault == "" && got[large] == ""; {
				select {
				case f := <-bob.frames:
					if strings.HasPrefix(f.Name, "Artifact") {
						t.Errorf("the hub's agent got %s", f.Name)
					}
					if f.Name == "Report" {
						got[f.MsgID] = string(f.Value)
					}
				case <-deadline:
					t.Fatalf("bob got %d reports within a minute: %s", len(got), g.call("GET", "/messages/"+small, nil))
				}
			}
			if fault == "" {
				if !strings.Contains(got[large], `"source":"hub"`) || !strings.Contains(got[small], `"source":"hub"`) {
					t.Errorf("bob got %q", got)
				}
				return
			}
			if len(got) != 1 || !strings.Contains(got[small], `"data:application/json;base64,ImhlbGxvIg=="`) {
				t.Errorf("bob got %q", got)
			}
			until(t, "the large one is refused", func() bool {
				return strings.Contains(string(g.call("GET", "/messages/"+large, nil)), "attachment-not-carried")
			})
		})
	}
}

// file sends bob a Report with content attached and returns its id.
func (g *guest) file(content string) string {
	g.t.Helper()
	var ref protocol.BlobRef
	if err := json.Unmarshal(g.call("PUT", "/blobs", json.RawMessage(content)), &ref); err != nil {
		g.t.Fatal(err)
	}
	ref.Name, ref.Mime = "a.json", "application/json"
	var r api.SendResult
	if err := json.Unmarshal(g.call("POST", "/send", api.SendRequest{To: "bob@far", Intent: "Report", Value: json.RawMessage(`{"summary":"x"}`), Blobs: []protocol.BlobRef{ref}}), &r); err != nil {
		g.t.Fatal(err)
	}
	return string(r.MsgID)
}
