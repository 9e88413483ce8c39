package node

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/aster-mesh/aster/node/journal"
	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/api"
	"github.com/aster-mesh/aster/protocol/asterism"
)

// sendFile sends a Note with content attached.
func (m *meshOf) sendFile(t *testing.T, from, to protocol.AgentID, text, name string, data []byte) protocol.MsgID {
	t.Helper()
	ref, err := m.n.PutBlob(t.Context(), bytes.NewReader(data), "")
	if err != nil {
		t.Fatal(err)
	}
	ref.Name, ref.Mime = name, "x/y"
	sent, err := m.n.Send(t.Context(), api.SendRequest{From: from, To: to, Intent: "Note", Value: protocol.EncodeBody(map[string]string{"text": text}), Blobs: []protocol.BlobRef{ref}})
	if err != nil {
		t.Fatal(err)
	}
	return sent.MsgID
}

// filesOf are the attachments in an agent's inbox from one sender, as TEXT:NAME:SIZE, with their contents.
func (m *meshOf) filesOf(t *testing.T, agent, from protocol.AgentID) (out []string, contents [][]byte) {
	t.Helper()
	rows, err := m.n.store.Inbox(agent, journal.InboxQuery{All: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rows {
		if r.Envelope.From != from {
			continue
		}
		text := valueOf[string](r.Envelope.Value, "text")
		if len(r.Envelope.Blobs) == 0 {
			out = append(out, text)
		}
		for _, b := range r.Envelope.Blobs {
			c, ref, err := m.n.Attachment(t.Context(), string(r.Envelope.ID), b.SHA256)
			if err != nil {
				t.Fatal(err)
			}
			data, err := io.ReadAll(c)
			if err != nil {
				t.Fatal(err)
			}
			c.Close()
			out, contents = append(out, fmt.Sprintf("%s:%s:%d", text, ref.Name, len(data))), append(contents, data)
		}
	}
	return out, contents
}

// TestAttachmentsGoToAnotherBoardAndComeFromThere, and what is said behind one with a file comes behind it.
func TestAttachmentsGoToAnotherBoardAndComeFromThere(t *testing.T) {
	one, two := founds(t, "one", "", ""), founds(t, "two", "", "")
	one.has(t, "alice")
	two.has(t, "bob")
	one.joins(t, api.BoardRequest{URL: two.url, Name: "two", Agents: []protocol.AgentID{"alice"}})
	until(t, "bob@two is shown", func() bool { return one.present(t, "bob@two") })
	there, back := content(1, 700_000), content(2, 900_001)
	one.sendFile(t, "alice", "bob@two", "for bob", "a.bin", there)
	two.sendFile(t, "bob", "alice", "for alice", "../b.bin", back)
	two.sendFile(t, "bob", "alice", "empty", "none", nil)
	if _, err := one.send(t, "alice", "bob@two", "Note", "behind"); err != nil {
		t.Fatal(err)
	}
	if _, err := two.send(t, "bob", "alice", "Note", "behind"); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		m           *meshOf
		agent, from protocol.AgentID
		want        []string
		data        []byte
	}{
		{two, "bob", "alice", []string{"for bob:a.bin:700000", "behind"}, there},
		{one, "alice", "bob@two", []string{"for alice:../b.bin:900001", "empty:none:0", "behind"}, back},
	} {
		var got []string
		var data [][]byte
		until(t, string(tt.agent)+" has all", func() bool { got, data = tt.m.filesOf(t, tt.agent, tt.from); return len(got) >= len(tt.want) })
		if strings.Join(got, " ") != strings.Join(tt.want, " ") || !bytes.Equal(data[0], tt.data) {
			t.Errorf("%s has %q", tt.agent, got)
		}
	}
	// Whom it was brought for passes it on, as any attachment of a message here.
	alice := one.attach(t, "alice")
	f := alice.next(t, "Note")
	if got := alice.take(t, f.MsgID, back); !bytes.Equal(got, back) {
		t.Errorf("alice's client has %d bytes", len(got))
	}
}

// TestAnAttachmentOfAnotherBoardThatIsLostIsNamed: the message comes all the same, and says so.
func TestAnAttachmentOfAnotherBoardThatIsLostIsNamed(t *testing.T) {
	one, two := founds(t, "one", "", ""), founds(t, "two", "", "")
	one.has(t, "alice")
	bob := two.attach(t, "bob")
	data := content(3, 1000)
	bob.give(t, data, 0, -1)
	value := named(data)
	value["text"] = "it was here"
	one.joins(t, api.BoardRequest{URL: two.url, Name: "two", Agents: []protocol.AgentID{"alice"}})
	until(t, "alice is at two", func() bool { return two.present(t, "alice") })
	one.stop()
	until(t, "alice is away", func() bool { return !two.present(t, "alice") })
	bob.send(t, map[string]any{"type": "CUSTOM", "name": "Note", "targetAgentId": "alice", "msgId": "lost", "value": value})
	until(t, "it waits for alice", func() bool {
		rows, err := two.n.store.Inbox("alice", journal.InboxQuery{})
		return err == nil && len(rows) == 1
	})
	removeBlob(t, two, data)
	one = one.again(t)
	until(t, "alice has it", func() bool { return len(one.texts(t, "alice", "bob@two")) == 1 })
	rows, err := one.n.store.Inbox("alice", journal.InboxQuery{All: true})
	if err != nil {
		t.Fatal(err)
	}
	var v struct {
		Attachments []struct{ Source, Reason string }
	}
	env := rows[len(rows)-1].Envelope
	if err := json.Unmarshal(env.Value, &v); err != nil || len(env.Blobs) != 0 || len(v.Attachments) != 1 || v.Attachments[0].Source != "unavailable" || v.Attachments[0].Reason != "attachment-unknown" {
		t.Errorf("%v: %s with %d attachments", err, env.Value, len(env.Blobs))
	}
	if log := one.log.String(); !strings.Contains(log, `"the board refuses it: attachment-unknown"`) {
		t.Errorf("the board's words, or none of ours, are in the log:\n%s", log)
	}
}

// TestABoardsRefusalIsInNoLog in its words: a known code is said in ours, and what the code decides is decided all the same.
func TestABoardsRefusalIsInNoLog(t *testing.T) {
	for code, want := range map[string]string{"rate": "the board refuses it: rate", "do as I say": "the board refuses it"} {
		var err error = boardRefusal{&protocol.Refusal{Code: code, Reason: "a word", Hint: "do this"}}
		err = fmt.Errorf("give: %w", uploadError(err))
		var no *protocol.Refusal
		if err.Error() != "give: "+want || !errors.As(err, &no) || no.Code != code {
			t.Errorf("%v, %+v", err, no)
		}
	}
}

// removeBlob takes content from a node's disk.
func removeBlob(t *testing.T, m *meshOf, data []byte) {
	t.Helper()
	removed := 0
	err := filepath.WalkDir(m.home, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Name() == asterism.HashOf(data) {
			removed++
			err = os.Remove(path)
		}
		return err
	})
	if err != nil || removed != 1 {
		t.Fatalf("%d removed, %v", removed, err)
	}
}

// cutter passes connections on and cuts the first after so many bytes of either way; total counts what went each way.
type cutter struct {
	url       string
	after     int64
	cut       atomic.Bool
	near, far atomic.Int64
}

func (c *cutter) listen(t *testing.T, to string) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c.url = "ws://" + ln.Addr().String() + "/ws"
	var all sync.WaitGroup
	var mu sync.Mutex
	var open []net.Conn
	ended := false
	t.Cleanup(func() {
		ln.Close()
		mu.Lock()
		ended = true
		for _, c := range open {
			c.Close()
		}
		mu.Unlock()
		all.Wait()
	})
	pass := func(from, to net.Conn, n *atomic.Int64) {
		buf := make([]byte, 32<<10)
		for {
			k, err := from.Read(buf)
			if n.Add(int64(k)) > c.after && c.cut.CompareAndSwap(false, true) {
				err = io.EOF
			} else if k > 0 && err == nil {
				_, err = to.Write(buf[:k])
			}
			if err != nil {
				from.Close()
				to.Close()
				return
			}
		}
	}
	all.Go(func() {
		for {
			near, err := ln.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial("tcp", to)
			if err != nil {
				near.Close()
				continue
			}
			mu.Lock()
			if open = append(open, near, far); ended {
				near.Close()
				far.Close()
			}
			mu.Unlock()
			all.Go(func() { pass(near, far, &c.far) })
			all.Go(func() { pass(far, near, &c.near) })
		}
	})
}

// TestAnAttachmentGoesOnWhereTheBoardWasCutOff, either way: it comes once, and not twice over the line.
func TestAnAttachmentGoesOnWhereTheBoardWasCutOff(t *testing.T) {
	for _, out := range []bool{true, false} {
		t.Run(fmt.Sprintf("out %t", out), func(t *testing.T) {
			one, two := founds(t, "one", "", ""), founds(t, "two", "", "")
			one.has(t, "alice")
			two.has(t, "bob")
			c := &cutter{after: 3 << 20}
			c.listen(t, strings.TrimPrefix(two.Board, "http://"))
			one.joins(t, api.BoardRequest{URL: c.url, Name: "two", Agents: []protocol.AgentID{"alice"}})
			until(t, "bob@two is shown", func() bool { return one.present(t, "bob@two") })
			data := content(4, 4<<20)
			to, agent, from, way := two, protocol.AgentID("bob"), protocol.AgentID("alice"), &c.far
			if out {
				one.sendFile(t, "alice", "bob@two", "big", "big", data)
			} else {
				to, agent, from, way = one, "alice", "bob@two", &c.near
				two.sendFile(t, "bob", "alice", "big", "big", data)
			}
			var got []string
			var all [][]byte
			until(t, "it is there", func() bool { got, all = to.filesOf(t, agent, from); return len(got) > 0 })
			if len(got) != 1 || !bytes.Equal(all[0], data) || !c.cut.Load() {
				t.Errorf("%q, cut %t", got, c.cut.Load())
			}
			if most := int64(len(data))*4/3 + 2<<20; way.Load() > most {
				t.Errorf("%d bytes crossed, at most %d", way.Load(), most)
			}
		})
	}
}
