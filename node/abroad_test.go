package node

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aster-mesh/aster/node/foreign"
	"github.com/aster-mesh/aster/node/journal"
	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/api"
	"github.com/aster-mesh/aster/protocol/asterism"
)

// meshOf is a mesh of one node in this process, which keeps its address over restarts.
type meshOf struct {
	*running
	n   *Node
	url string
	log *safeBuffer
}

func founds(t *testing.T, name, home, board string) *meshOf {
	t.Helper()
	m := &meshOf{log: &safeBuffer{}}
	m.running = start(t, func(c *Config) {
		c.Name, c.Log = name, m.log.logger()
		c.probe = func(n *Node) { m.n = n }
		if home != "" {
			c.Home, c.Board = home, board
		}
	})
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("log of %s:\n%s", name, m.log)
		}
	})
	m.url = "ws" + strings.TrimPrefix(m.Board, "http") + "/ws"
	return m
}

// again restarts it in its home, at its address.
func (m *meshOf) again(t *testing.T) *meshOf {
	t.Helper()
	m.stop()
	return founds(t, m.Name, m.home, strings.TrimPrefix(m.Board, "http://"))
}

func (m *meshOf) joins(t *testing.T, req api.BoardRequest) api.Board {
	t.Helper()
	row, err := m.n.JoinBoard(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	return row
}

// has makes an agent that reads its inbox itself.
func (m *meshOf) has(t *testing.T, id protocol.AgentID) {
	t.Helper()
	if _, err := m.n.declare(t.Context(), []protocol.AgentID{id}); err != nil {
		t.Fatal(err)
	}
}

func (m *meshOf) send(t *testing.T, from, to protocol.AgentID, intent protocol.Intent, text string) (protocol.MsgID, error) {
	t.Helper()
	sent, err := m.n.Send(t.Context(), api.SendRequest{From: from, To: to, Intent: intent, Value: protocol.EncodeBody(map[string]string{"text": text})})
	return sent.MsgID, err
}

// texts are all messages of an inbox from one sender, oldest first, as INTENT:text.
func (m *meshOf) texts(t *testing.T, agent, from protocol.AgentID) (out []string) {
	t.Helper()
	rows, err := m.n.store.Inbox(agent, journal.InboxQuery{All: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rows {
		if r.Envelope.From == from {
			out = append(out, string(r.Envelope.Intent)+":"+valueOf[string](r.Envelope.Value, "text"))
		}
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

func (m *meshOf) present(t *testing.T, id protocol.AgentID) bool {
	t.Helper()
	is := false
	if err := m.n.loop.call(t.Context(), func() {
		k, ok := m.n.loop.core.Agent(id)
		is = ok && k.State != protocol.StateAway
	}); err != nil {
		t.Fatal(err)
	}
	return is
}

func (m *meshOf) tiers(t *testing.T, id protocol.MsgID) string {
	t.Helper()
	msg, err := m.n.Message(t.Context(), string(id))
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, tier := range msg.Tiers {
		out = append(out, strings.TrimSuffix(string(tier.Tier)+" "+tier.Reason, " "))
	}
	return strings.Join(out, ",")
}

func (m *meshOf) seatAt(t *testing.T, board string) api.Seat {
	t.Helper()
	all, err := m.n.Boards(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range all {
		if b.Name == board && len(b.Seats) == 1 {
			return b.Seats[0]
		}
	}
	return api.Seat{}
}

func isCode(err error, code string) bool {
	no, ok := err.(*protocol.Refusal)
	return ok && no.Code == code
}

// TestTwoMeshesSpeakThroughABoard: Requests are answered both ways, each receipt is the other side's word, and a Delegate
// is given and taken neither way: it is answered with the reason.
func TestTwoMeshesSpeakThroughABoard(t *testing.T) {
	one, two := founds(t, "one", "", ""), founds(t, "two", "", "")
	one.has(t, "alice")
	two.has(t, "bob")
	row := one.joins(t, api.BoardRequest{URL: two.url, Name: "two", Agents: []protocol.AgentID{"alice"}})
	if len(row.Seats) != 1 || row.Seats[0].State != api.SeatJoined || row.Seats[0].As != "alice" {
		t.Fatalf("not joined: %+v", row)
	}
	until(t, "bob@two is shown", func() bool { return one.present(t, "bob@two") })
	var bob api.Agent
	all, err := one.n.Agents(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range all {
		if a.ID == "bob@two" {
			bob = a
		}
	}
	if bob.Role != protocol.RoleCollab || bob.Wakes != "its own board" {
		t.Errorf("bob@two is shown as %+v", bob)
	}

	asked, err := one.send(t, "alice", "bob@two", "Request", "what time is it?")
	if err != nil {
		t.Fatal(err)
	}
	until(t, "bob is asked", func() bool { return len(two.texts(t, "bob", "alice")) > 0 })
	until(t, "alice's node hears that bob has it", func() bool { return one.tiers(t, asked) == "logged,persisted" })
	if _, err := two.n.Ack(t.Context(), api.AckRequest{IDs: []string{string(asked)}}); err != nil {
		t.Fatal(err)
	}
	until(t, "alice's node hears that bob has handled it", func() bool { return one.tiers(t, asked) == "logged,persisted,processed" })

	answered, err := two.send(t, "bob", "alice", "Response", "noon")
	if err != nil {
		t.Fatal(err)
	}
	until(t, "alice is answered", func() bool { return len(one.texts(t, "alice", "bob@two")) > 0 })
	if got := two.tiers(t, answered); strings.Contains(got, "processed") {
		t.Errorf("processed before alice said so: %s", got)
	}
	if _, err := one.n.Ack(t.Context(), api.AckRequest{IDs: []string{string(answered)}}); err != nil {
		t.Fatal(err)
	}
	until(t, "bob's node hears that alice has handled it", func() bool { return strings.Contains(two.tiers(t, answered), "processed") })

	if _, err := one.send(t, "alice", "bob@two", protocol.Delegate, "do it"); !isCode(err, protocol.CodeNotAllowed) {
		t.Errorf("alice delegates to bob@two: %v", err)
	}
	if _, err := two.send(t, "bob", "alice", protocol.Delegate, "do this"); err != nil {
		t.Fatal(err) // there alice is one of theirs
	}
	until(t, "bob is told that alice takes no Delegate of his", func() bool {
		rows := two.texts(t, "bob", "alice")
		return len(rows) == 2 && strings.HasPrefix(rows[1], "BLOCKED")
	})
	if got := one.texts(t, "alice", "bob@two"); len(got) != 1 {
		t.Errorf("alice was given %q", got)
	}
	if _, err := one.send(t, "bob@two", "alice", "Request", "forged"); err == nil {
		t.Error("a command spoke as an agent of another board")
	}
	if _, err := one.send(t, "carol", "bob@two", "Request", "may I?"); err != nil {
		t.Fatal(err)
	}
	until(t, "carol hears that she has no seat there", func() bool {
		dead, err := one.n.store.Outbox("carol", true, 0)
		return err == nil && len(dead) == 1
	})
}

// TestEachOfAHundredIsThereOnceOverRestarts sends both ways while each side is restarted.
func TestEachOfAHundredIsThereOnceOverRestarts(t *testing.T) {
	one, two := founds(t, "one", "", ""), founds(t, "two", "", "")
	one.has(t, "alice")
	two.has(t, "bob")
	one.joins(t, api.BoardRequest{URL: two.url, Name: "two", Agents: []protocol.AgentID{"alice"}})
	until(t, "bob@two is shown", func() bool { return one.present(t, "bob@two") })
	var want []string
	for i := range 100 {
		switch i {
		case 33:
			two = two.again(t)
		case 66:
			one = one.again(t)
		}
		text := fmt.Sprintf("%02d", i)
		if _, err := one.send(t, "alice", "bob@two", "Report", text); err != nil {
			t.Fatal(err)
		}
		if _, err := two.send(t, "bob", "alice", "Report", text); err != nil {
			t.Fatal(err)
		}
		want = append(want, "Report:"+text)
	}
	until(t, "bob has all", func() bool { return len(two.texts(t, "bob", "alice")) >= 100 })
	until(t, "alice has all", func() bool { return len(one.texts(t, "alice", "bob@two")) >= 100 })
	until(t, "nothing waits for bob@two", func() bool {
		rows, err := one.n.store.Inbox("bob@two", journal.InboxQuery{})
		return err == nil && len(rows) == 0
	})
	for what, got := range map[string][]string{"bob": two.texts(t, "bob", "alice"), "alice": one.texts(t, "alice", "bob@two")} {
		if strings.Join(got, " ") != strings.Join(want, " ") {
			t.Errorf("%s was given %q", what, got)
		}
	}
}

// forward passes connections on, so that a board has another address.
func forward(t *testing.T, to string) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var open sync.WaitGroup
	t.Cleanup(func() { ln.Close(); open.Wait() })
	open.Go(func() {
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
			open.Go(func() { _, _ = io.Copy(far, near); far.Close() })
			open.Go(func() { _, _ = io.Copy(near, far); near.Close() })
		}
	})
	return "ws://" + ln.Addr().String() + "/ws"
}

// TestANodeDoesNotJoinItsOwnMesh: by its address it is refused at once, behind another one by what it says of itself.
func TestANodeDoesNotJoinItsOwnMesh(t *testing.T) {
	one := founds(t, "one", "", "")
	one.has(t, "alice")
	if _, err := one.n.JoinBoard(t.Context(), api.BoardRequest{URL: one.url, Agents: []protocol.AgentID{"alice"}}); !isCode(err, "same-mesh") {
		t.Errorf("own address: %v", err)
	}
	row := one.joins(t, api.BoardRequest{URL: forward(t, strings.TrimPrefix(one.Board, "http://")), Name: "self", Agents: []protocol.AgentID{"alice"}})
	if s := row.Seats[0]; s.State != api.SeatStopped || !strings.Contains(s.Why, "own mesh") {
		t.Errorf("another address: %+v", s)
	}
	st, err := one.n.Status(t.Context())
	if err != nil || len(st.Boards) != 1 || !strings.Contains(strings.Join(st.Warnings, "\n"), "own mesh") {
		t.Errorf("status does not say so: %v %+v", err, st.Warnings)
	}
}

// TestTwoBoardsThatJoinOneAnotherDoNotEcho: with every agent of both at the other's board nobody is listed twice removed,
// no guest is taken further, and one message is one message.
func TestTwoBoardsThatJoinOneAnotherDoNotEcho(t *testing.T) {
	one, two := founds(t, "one", "", ""), founds(t, "two", "", "")
	one.has(t, "alice")
	two.has(t, "bob")
	one.joins(t, api.BoardRequest{URL: two.url, Name: "two", All: true})
	until(t, "alice is at two", func() bool { return two.present(t, "alice") })
	two.joins(t, api.BoardRequest{URL: one.url, Name: "one", All: true})
	until(t, "each sees the other", func() bool { return one.present(t, "bob@two") && two.present(t, "alice@one") })
	if _, err := one.send(t, "alice", "bob@two", "Request", "hello"); err != nil {
		t.Fatal(err)
	}
	if _, err := two.send(t, "bob", "alice@one", "Request", "hello too"); err != nil {
		t.Fatal(err)
	}
	until(t, "bob has it", func() bool { return len(two.texts(t, "bob", "alice")) == 1 })
	until(t, "alice has it", func() bool { return len(one.texts(t, "alice", "bob")) == 1 })
	one, two = one.again(t), two.again(t)
	until(t, "each sees the other again", func() bool { return one.present(t, "bob@two") && two.present(t, "alice@one") })
	for _, m := range []*meshOf{one, two} {
		all, err := m.n.Agents(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range all {
			if strings.Count(string(a.ID), "@") > 1 || a.ID == "alice@two" || a.ID == "bob@one" {
				t.Errorf("%s lists %s", m.Name, a.ID)
			}
		}
		boards, err := m.n.Boards(t.Context())
		if err != nil || len(boards) != 1 || len(boards[0].Seats) != 1 {
			t.Errorf("%s has seats %+v, %v", m.Name, boards, err)
		}
	}
	if a, b := len(one.texts(t, "alice", "bob")), len(two.texts(t, "bob", "alice")); a != 1 || b != 1 {
		t.Errorf("alice has %d, bob %d", a, b)
	}
	if got := one.texts(t, "alice", "bob@two"); len(got) != 0 {
		t.Errorf("alice was given it twice: %q", got)
	}
}

// TestAKeyIsShownNowhereAndARefusalStops: a key that is not this agent's, and one that is revoked, end it for good, which
// status says; the string of a key is in no log, status or error.
func TestAKeyIsShownNowhereAndARefusalStops(t *testing.T) {
	one, two := founds(t, "one", "", ""), founds(t, "two", "", "")
	one.has(t, "alice")
	two.has(t, "main-agent")
	key, err := two.n.IssueKey(t.Context(), api.KeyRequest{Kind: "collab", Agent: "alice"})
	if err != nil {
		t.Fatal(err)
	}
	row := one.joins(t, api.BoardRequest{URL: two.url, Name: "two", Key: key.Secret, Agents: []protocol.AgentID{"alice"}, As: "mallory"})
	if s := row.Seats[0]; s.State != api.SeatStopped || !strings.Contains(s.Why, protocol.CodeIdentityMismatch) {
		t.Errorf("another's key: %+v", s)
	}
	row = one.joins(t, api.BoardRequest{URL: two.url, Name: "two", Key: key.Secret, Agents: []protocol.AgentID{"alice"}})
	if s := row.Seats[0]; s.State != api.SeatJoined || s.Role != "collab" || !row.Keyed {
		t.Fatalf("its own key: %+v", row)
	}
	until(t, "main there is shown", func() bool { return one.present(t, "main-agent@two") })
	one = one.again(t)
	until(t, "it is back after a restart", func() bool { return one.seatAt(t, "two").State == api.SeatJoined })
	if _, err := two.n.RevokeKey(t.Context(), key.Key.Ref, "immediate"); err != nil {
		t.Fatal(err)
	}
	until(t, "it stops", func() bool { return one.seatAt(t, "two").State == api.SeatStopped })
	st, err := one.n.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	shown, err := json.Marshal(st)
	if err != nil {
		t.Fatal(err)
	}
	if all := string(shown) + one.log.String(); strings.Contains(all, key.Secret) || !strings.Contains(all, "another key") {
		t.Errorf("the key is shown, or not what happened: %s", all)
	}
	if err := one.n.LeaveBoard(t.Context(), "two"); err != nil {
		t.Fatal(err)
	}
	if boards, err := one.n.Boards(t.Context()); err != nil || len(boards) != 0 {
		t.Errorf("after leaving: %v, %v", boards, err)
	}
	if one.present(t, "main-agent@two") {
		t.Error("its agents are still here")
	}
	if err := one.n.LeaveBoard(context.Background(), "two"); !isCode(err, protocol.CodeUnknownID) {
		t.Errorf("left twice: %v", err)
	}
}

// TestABoardHasItsQuota: what another board sends is booked, also what is refused. Beyond its bound nothing of it is kept, and
// it is answered with the reason; who leaves that board and joins it again begins anew.
func TestABoardHasItsQuota(t *testing.T) {
	one, two := founds(t, "one", "", ""), founds(t, "two", "", "")
	one.has(t, "alice")
	two.has(t, "bob")
	join := api.BoardRequest{URL: two.url, Name: "two", Agents: []protocol.AgentID{"alice"}}
	one.joins(t, join)
	who := protocol.PeerID(boardQuota("two"))
	booked := func() int64 {
		got, _ := one.n.outsideUsed.Load(who)
		bytes, _ := got.(int64)
		return bytes
	}
	answers := func(n int, what string) []string {
		t.Helper()
		until(t, what, func() bool { return len(two.texts(t, "bob", "alice")) == n })
		return two.texts(t, "bob", "alice")
	}
	if _, err := two.send(t, "bob", "alice", protocol.Delegate, strings.Repeat("x", 1<<20)); err != nil {
		t.Fatal(err)
	}
	answers(1, "the Delegate is refused")
	if got := booked(); got < 1<<20 || got > 1<<20+10_000 {
		t.Errorf("%d bytes booked for a refused MiB", got)
	}
	v, before := one.atBoard(t, "alice"), booked()
	word := &foreign.Message{From: "bob", Acks: []protocol.MsgID{"b-1"}, Frame: asterism.Frame{Type: asterism.TypeCustom, Name: "Request", MsgID: "b-1", AgentID: "bob", Value: raw(`{"text":"once"}`)}}
	v.take(word, nil)
	until(t, "it is taken", func() bool { return len(one.texts(t, "alice", "bob@two")) == 1 })
	taken := booked() - before
	one.n.outsideUsed.Store(who, int64(outsideBytesMax))
	v.take(word, nil) // a repeat is no more than it was: nobody is answered, see below
	if taken <= 0 {
		t.Errorf("%d bytes booked for a word", taken)
	}
	one.n.outsideUsed.Store(who, int64(outsideBytesMax-100))
	if _, err := two.send(t, "bob", "alice", "Request", "beyond"); err != nil {
		t.Fatal(err)
	}
	if got := answers(2, "what lies beyond the quota is refused"); !strings.HasPrefix(got[1], "BLOCKED") {
		t.Errorf("answered %q", got[1])
	}
	if got := one.texts(t, "alice", "bob@two"); len(got) != 1 {
		t.Errorf("taken: %q", got)
	}
	if err := one.n.LeaveBoard(t.Context(), "two"); err != nil {
		t.Fatal(err)
	}
	if raw, ok, err := one.n.store.Value(keyOutside + string(who)); err != nil || ok && len(raw) > 0 {
		t.Errorf("still booked: %s, %v", raw, err)
	}
	one.joins(t, join)
	if _, err := two.send(t, "bob", "alice", "Request", "again"); err != nil {
		t.Fatal(err)
	}
	until(t, "alice has it", func() bool { return len(one.texts(t, "alice", "bob@two")) == 2 })
	if got := two.texts(t, "bob", "alice"); len(got) != 2 {
		t.Errorf("bob is answered %q", got)
	}
}
