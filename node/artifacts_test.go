package node

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/aster-mesh/aster/node/link"
	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/api"
	"github.com/aster-mesh/aster/protocol/asterism"
)

// content is bytes that no other call gives.
func content(seed uint64, bytes int) []byte {
	dice := rand.NewChaCha8([32]byte{byte(seed)})
	out := make([]byte, bytes)
	_, _ = dice.Read(out)
	return out
}

// ask sends a verb and returns the answer's value, or the code of a refusal.
func (c *client) ask(t testing.TB, name protocol.Intent, value map[string]any) (got map[string]any, code string) {
	t.Helper()
	id := string(newID())
	c.send(t, map[string]any{"type": "CUSTOM", "name": name, "msgId": id, "value": value})
	for deadline := time.After(20 * time.Second); ; {
		select {
		case f := <-c.frames:
			var v map[string]any
			_ = json.Unmarshal(f.Value, &v)
			if v["re_msgId"] == id {
				return v, ""
			}
			if f.Name == "ServerNotice" && v["msgId"] == id {
				return nil, fmt.Sprint(v["code"])
			}
		case <-deadline:
			t.Fatalf("no answer to %s within 20 s", name)
		}
	}
}

// give uploads pieces from one to another, all with a negative end.
func (c *client) give(t testing.TB, data []byte, from, to int) map[string]any {
	t.Helper()
	sum := asterism.HashOf(data)
	state, code := c.ask(t, asterism.ArtifactOffer, map[string]any{"artifact": sum, "size": len(data)})
	if code != "" || state["have"] != float64(from) {
		t.Fatalf("offer: %v %s, want to go on at %d", state, code, from)
	}
	if to < 0 {
		to = asterism.ChunkCount(int64(len(data)))
	}
	for i := from; i < to; i++ {
		piece := data[i*asterism.ArtifactChunkBytes:][:asterism.ChunkLength(int64(len(data)), i)]
		state, code = c.ask(t, asterism.ArtifactPut, map[string]any{"artifact": sum, "chunk_index": i, "data": piece, "sha256": asterism.HashOf(piece)})
		if code != "" {
			t.Fatalf("piece %d: %s", i, code)
		}
	}
	return state
}

// named is a value that names content at the hub.
func named(data []byte) map[string]any {
	return map[string]any{"attachments": []any{map[string]any{"name": "a.bin", "mime": "x/y", "size": len(data), "sha256": asterism.HashOf(data), "source": "hub"}}}
}

// take downloads what a message names.
func (c *client) take(t testing.TB, of string, data []byte) []byte {
	t.Helper()
	var got []byte
	for i := range asterism.ChunkCount(int64(len(data))) {
		piece, code := c.ask(t, asterism.ArtifactGet, map[string]any{"artifact": asterism.HashOf(data), "chunk_index": i, "of": of})
		raw, err := base64.StdEncoding.DecodeString(fmt.Sprint(piece["data"]))
		if code != "" || err != nil || piece["sha256"] != asterism.HashOf(raw) {
			t.Fatalf("piece %d: %s %v", i, code, err)
		}
		got = append(got, raw...)
	}
	return got
}

// TestUploadGoesOnAfterARestart: what is here of an attachment is there again after a cut and after the node's end, and only
// for who gave it.
func TestUploadGoesOnAfterARestart(t *testing.T) {
	data := content(1, 5*asterism.ArtifactChunkBytes+7)
	r := start(t, nil)
	w := r.attach(t, "worker")
	w.give(t, data, 0, 2)
	w.conn.Close(1000, "")
	w = r.attach(t, "worker")
	w.give(t, data, 2, 3)
	r.stop()
	r = start(t, func(c *Config) { c.Home = r.home })
	w, m := r.attach(t, "worker"), r.attach(t, "main-agent")
	m.give(t, data, 0, 0)
	if state := w.give(t, data, 3, -1); state["complete"] != true {
		t.Fatalf("after the last piece: %v", state)
	}
	r.stop()
	r = start(t, func(c *Config) { c.Home = r.home })
	w, m = r.attach(t, "worker"), r.attach(t, "main-agent")
	w.give(t, data, asterism.ChunkCount(int64(len(data))), -1) // it is known to be whole
	w.send(t, map[string]any{"type": "CUSTOM", "name": "Report", "msgId": "r1", "targetAgentId": "main-agent", "value": named(data)})
	m.next(t, "Report")
	if got := m.take(t, "r1", data); !bytes.Equal(got, data) {
		t.Errorf("%d bytes came, not those that were sent", len(got))
	}
}

// TestHalfUploadsAreBoundedAndSweptAndGiveWay: a client that begins 10,000 attachments has eight; many clients together have
// so many, and the one that rests longest gives way; what rests for a day goes.
func TestHalfUploadsAreBoundedAndSweptAndGiveWay(t *testing.T) {
	var n *Node
	r := start(t, func(c *Config) { c.probe = func(x *Node) { n = x } })
	one := []byte("x")
	refused := 0
	for i := range 10_000 {
		sum := asterism.HashOf(fmt.Append(nil, i))
		_, err := n.beginUpload(giverOf("greedy"), sum, 4)
		if err != nil {
			refused++
			continue
		}
		if _, err := n.addUpload(t.Context(), giverOf("greedy"), sum, 0, one); err != nil {
			t.Fatal(err)
		}
	}
	if len(n.store.Parts("")) != uploadsMax || refused != 10_000-uploadsMax {
		t.Errorf("%d halves, %d refused", len(n.store.Parts("")), refused)
	}
	w := r.attach(t, "greedy")
	if _, code := w.ask(t, asterism.ArtifactOffer, map[string]any{"artifact": asterism.HashOf(one), "size": 4}); code != asterism.CodeAttachmentQuota {
		t.Errorf("one more: %q", code)
	}
	if _, code := w.ask(t, asterism.ArtifactOffer, map[string]any{"artifact": asterism.HashOf(fmt.Append(nil, 0)), "size": 4, "discard": true}); code != "" {
		t.Errorf("discard: %q", code)
	}
	if _, code := w.ask(t, asterism.ArtifactOffer, map[string]any{"artifact": asterism.HashOf(one), "size": 4}); code != "" {
		t.Errorf("in the place of what was discarded: %q", code)
	}
	for i := range 1000 {
		_, err := n.beginUpload(fmt.Sprint("agent/", i), asterism.HashOf(one), 4)
		if full := len(n.store.Parts("")) >= uploadsAllMax; err != nil && !full {
			t.Fatalf("client %d: %v", i, err)
		}
	}
	if got := len(n.store.Parts("")); got != uploadsAllMax {
		t.Errorf("%d halves of all, at most %d", got, uploadsAllMax)
	}
	if _, err := n.store.SweepParts(time.Now().Add(-time.Minute)); err != nil || len(n.store.Parts("")) != uploadsAllMax {
		t.Errorf("what is new was swept: %v", err)
	}
	if gave, err := n.store.YieldPart(time.Now().Add(time.Hour)); !gave || err != nil || len(n.store.Parts("")) != uploadsAllMax-1 {
		t.Errorf("the oldest does not give way: %v", err)
	}
	n.sweep(t.Context(), time.Now().Add(uploadLife+time.Minute))
	if got := n.store.Parts(""); len(got) != 0 {
		t.Errorf("after a day: %+v", got)
	}
}

// TestSmallAttachmentsShutOutNoOther: who gives ever so many small ones is refused beyond some, or lets its own oldest go,
// and others give theirs.
func TestSmallAttachmentsShutOutNoOther(t *testing.T) {
	var n *Node
	start(t, func(c *Config) { c.probe = func(x *Node) { n = x } })
	give := func(owner, text string) (string, error) {
		sum := asterism.HashOf([]byte(text))
		_, err := n.beginUpload(owner, sum, int64(len(text)))
		if err == nil {
			_, err = n.addUpload(t.Context(), owner, sum, 0, []byte(text))
		}
		return sum, err
	}
	var sums []string
	for i := range uploadOwnMax {
		sum, err := give("agent/greedy", fmt.Sprint("small ", i))
		if err != nil {
			t.Fatal(err)
		}
		sums = append(sums, sum)
	}
	var no *protocol.Refusal
	if _, err := give("agent/greedy", "one more"); !errors.As(err, &no) || no.Code != asterism.CodeAttachmentQuota {
		t.Errorf("one more: %v", err)
	}
	if _, err := give("agent/other", "another's"); err != nil {
		t.Errorf("another: %v", err)
	}
	for _, sum := range sums {
		if err := n.store.SentPart("agent/greedy", sum); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 10 {
		if _, err := give("agent/greedy", fmt.Sprint("later ", i)); err != nil {
			t.Errorf("once they were sent: %v", err)
		}
	}
	if got := len(n.store.Parts("agent/greedy")); got != uploadOwnMax {
		t.Errorf("%d are remembered, at most %d", got, uploadOwnMax)
	}
	if !n.store.HasBlob(sums[0]) {
		t.Error("content that was sent went with what is remembered of it")
	}
}

// TestWhatNobodyNamesIsCountedAgainstWhoGaveIt: whole attachments count until a message that names them is taken.
func TestWhatNobodyNamesIsCountedAgainstWhoGaveIt(t *testing.T) {
	var n *Node
	start(t, func(c *Config) { c.probe = func(x *Node) { n = x } })
	for i := range 7 {
		if _, err := n.beginUpload("agent/w", asterism.HashOf(fmt.Append(nil, i)), protocol.BlobBytesMax); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := n.beginUpload("agent/w", asterism.HashOf(nil), protocol.BlobBytesMax); err != nil {
		t.Fatal(err) // the eighth, and just 512 MiB
	}
	if err := n.store.SentPart("agent/w", asterism.HashOf(nil)); err != nil {
		t.Fatal(err)
	}
	if err := n.store.DropPart("agent/w", asterism.HashOf(fmt.Append(nil, 0))); err != nil {
		t.Fatal(err)
	}
	if _, err := n.beginUpload("agent/w", asterism.HashOf([]byte("more")), protocol.BlobBytesMax); err != nil {
		t.Errorf("one was sent: %v", err)
	}
}

// TestContentThatNoRecordNamesIsSwept: what a refused message left goes after a day; what a record names stays, and what
// somebody is about to name.
func TestContentThatNoRecordNamesIsSwept(t *testing.T) {
	var n *Node
	r := start(t, func(c *Config) { c.probe = func(x *Node) { n = x } })
	w, m := r.attach(t, "worker"), r.attach(t, "main-agent")
	say := func(to, words string) {
		w.send(t, map[string]any{"type": "CUSTOM", "name": "Report", "msgId": to + words[:4], "targetAgentId": to, "value": map[string]any{"text": words}})
	}
	good, lost := "good"+strings.Repeat("g", 100_000), "lost"+strings.Repeat("l", 100_000)
	say("main-agent", good)
	m.next(t, "Report")
	say("nobody-of-this-name", lost)
	w.next(t, "RelayUnreachable")
	hash := func(words string) string { return asterism.HashOf([]byte(`{"text":"` + words + `"}`)) }
	data := content(2, 100)
	w.give(t, data, 0, -1)
	for what, sum := range map[string]string{"good": hash(good), "lost": hash(lost), "given": asterism.HashOf(data)} {
		if !n.store.HasBlob(sum) {
			t.Fatalf("%s is not on the disk: the test proves nothing", what)
		}
	}
	used, _ := n.store.Size()
	n.sweep(t.Context(), time.Now())
	if !n.store.HasBlob(hash(lost)) {
		t.Error("what is new was swept")
	}
	n.sweep(t.Context(), time.Now().Add(uploadLife+time.Minute))
	if !n.store.HasBlob(hash(good)) || n.store.HasBlob(hash(lost)) || n.store.HasBlob(asterism.HashOf(data)) {
		t.Errorf("named %v, refused %v, given and not sent %v", n.store.HasBlob(hash(good)), n.store.HasBlob(hash(lost)), n.store.HasBlob(asterism.HashOf(data)))
	}
	if now, _ := n.store.Size(); now > used-100_000 {
		t.Errorf("%d bytes were used, %d are now", used, now)
	}
	say("main-agent", "more"+lost) // a record behind the first sweep
	m.next(t, "Report")
	n.sweep(t.Context(), time.Now().Add(uploadLife+time.Minute))
	if !n.store.HasBlob(hash("more" + lost)) {
		t.Error("content of a newer record was swept")
	}
}

// TestALargeDeliveryHoldsUpItsOwnSocketAlone: while a large value is read, others get their mail, and behind it order holds.
// Guards: KD3.
func TestALargeDeliveryHoldsUpItsOwnSocketAlone(t *testing.T) {
	var n *Node
	r := start(t, func(c *Config) { c.probe = func(x *Node) { n = x } })
	m, w, x := r.attach(t, "main-agent"), r.attach(t, "worker"), r.attach(t, "other")
	for range readingMax {
		n.blobs.reading <- struct{}{} // the disk is slow
	}
	say := func(to, id string, bytes int) {
		m.send(t, map[string]any{"type": "CUSTOM", "name": "Report", "msgId": id, "targetAgentId": to, "value": map[string]any{"text": strings.Repeat("x", bytes)}})
	}
	say("worker", "large", 4<<20)
	say("worker", "small", 10)
	say("other", "beside", 10)
	if got := x.next(t, "Report"); got.MsgID != "beside" {
		t.Errorf("the other got %s", got.MsgID)
	}
	if got := len(w.frames); got > 0 {
		for range got {
			if f := <-w.frames; f.Name == "Report" {
				t.Errorf("%s came before the large one was read", f.MsgID)
			}
		}
	}
	for range readingMax {
		<-n.blobs.reading
	}
	if got := w.next(t, "Report"); got.MsgID != "large" || len(got.Value) < 4<<20 {
		t.Errorf("first came %s with %d bytes", got.MsgID, len(got.Value))
	}
	if got := w.next(t, "Report"); got.MsgID != "small" {
		t.Errorf("then %s", got.MsgID)
	}
}

// TestAFloodOfQuestionsEndsItsOwnSocketAlone: a client that asks for thousands of pieces and reads none is cut off; the
// others get theirs, and no heap of answers grows.
func TestAFloodOfQuestionsEndsItsOwnSocketAlone(t *testing.T) {
	var n *Node
	r := start(t, func(c *Config) { c.probe = func(x *Node) { n = x } })
	w, m := r.attach(t, "worker"), r.attach(t, "main-agent")
	data := content(6, 4*asterism.ArtifactChunkBytes)
	w.give(t, data, 0, -1)
	w.send(t, map[string]any{"type": "CUSTOM", "name": "Report", "msgId": "r1", "targetAgentId": "main-agent", "value": named(data)})
	m.next(t, "Report")
	ctx, cancel := context.WithCancel(t.Context())
	deaf, err := link.Dial(ctx, "ws"+r.Board[len("http"):]+"/ws", nil, link.Options{QueueBytes: 64 << 20, QueueWait: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	deaf.Authenticated()
	greeted, end, done := make(chan bool), make(chan bool), make(chan error, 1)
	go func() {
		done <- deaf.Serve(ctx, func(b []byte, _ bool) {
			if f, _ := asterism.Decode(b, 0); f.Name == "ConnectionInfo" {
				close(greeted)
				<-end // it reads no more
			}
		})
	}()
	deaf.Send([]byte(`{"type":"HELLO","agentId":"main-agent-2"}`))
	<-greeted
	w.send(t, map[string]any{"type": "CUSTOM", "name": "Report", "msgId": "r2", "targetAgentId": "main-agent-2", "value": named(data)})
	get := []byte(`{"type":"CUSTOM","name":"ArtifactGet","value":{"artifact":"` + asterism.HashOf(data) + `","chunk_index":0,"of":"r2"}}`)
	for range 2000 {
		deaf.Send(get)
	}
	for deadline := time.Now().Add(20 * time.Second); ; {
		if got := m.take(t, "r1", data); !bytes.Equal(got, data) {
			t.Fatal("other bytes came")
		}
		state, code := w.ask(t, asterism.ArtifactOffer, map[string]any{"artifact": asterism.HashOf(data), "size": len(data)})
		if code != "" || state["complete"] != true {
			t.Fatalf("%v %s", state, code)
		}
		m.send(t, map[string]any{"type": "CUSTOM", "name": "Ping", "targetAgentId": "worker", "value": map[string]any{}})
		w.next(t, "Ping")
		open := 0
		if err := n.loop.call(t.Context(), func() { open = len(n.loop.core.Conns("main-agent-2")) }); err != nil {
			t.Fatal(err)
		}
		if open == 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("it is still connected")
		}
	}
	cancel()
	close(end)
	<-done
}

// TestAttachmentCrossesNodesFromWhereItWasCutOff: the recipient's node goes on with the half that it has, checks the whole,
// and gives its receipt only then.
func TestAttachmentCrossesNodesFromWhereItWasCutOff(t *testing.T) {
	a, b, na, nb := pair(t, protocol.RoleLocal)
	w, m := b.attach(t, "worker"), a.attach(t, "main-agent")
	for deadline := time.Now().Add(20 * time.Second); ; {
		if all, err := na.Agents(t.Context()); err != nil || time.Now().After(deadline) {
			t.Fatalf("%v %v", all, err)
		} else if len(all) == 2 {
			break
		}
	}
	data := content(3, 8*asterism.ArtifactChunkBytes+1)
	sum := asterism.HashOf(data)
	m.give(t, data, 0, -1)
	ref := protocol.BlobRef{SHA256: sum, Bytes: int64(len(data))}
	half := func(piece []byte) {
		t.Helper()
		if _, err := nb.store.BeginPart(ownerMesh, sum, ref.Bytes); err != nil {
			t.Fatal(err)
		}
		if _, err := nb.store.AddPart(ownerMesh, sum, 0, piece); err != nil {
			t.Fatal(err)
		}
	}
	half(content(4, 1000)) // of something else, so that the end tells whether it was gone on with
	if err := nb.blobs.fetchOnce(t.Context(), na.home.peer, ref); err == nil || nb.store.HasBlob(sum) {
		t.Fatal("the half was not used, or not checked")
	}
	half(data[:3*asterism.ArtifactChunkBytes+5])
	m.send(t, map[string]any{"type": "CUSTOM", "name": "Delegate", "msgId": "d1", "targetAgentId": "worker", "value": named(data)})
	w.next(t, "Delegate")
	if !nb.store.HasBlob(sum) {
		t.Error("the message came before its attachment")
	}
	if got := w.take(t, "d1", data); !bytes.Equal(got, data) {
		t.Error("other bytes came")
	}
	if row, ok := nb.store.PartOf(ownerMesh, sum); ok {
		t.Errorf("left behind: %+v", row)
	}
}

// TestAFileOfThePersonReachesAnAgent: what the API puts in pieces goes along with its message by name, and by the message's
// address alone comes back.
func TestAFileOfThePersonReachesAnAgent(t *testing.T) {
	var n *Node
	r := start(t, func(c *Config) { c.probe = func(x *Node) { n = x } })
	w := r.attach(t, "worker")
	data := content(5, 3*asterism.ArtifactChunkBytes)
	sum, total := asterism.HashOf(data), int64(len(data))
	put := func(at int, piece []byte) api.Upload {
		t.Helper()
		got, err := n.PutPart(t.Context(), sum, int64(at), total, bytes.NewReader(piece))
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	put(0, data[:1000])
	if got := put(0, nil); got.Have != 1000 || got.Complete {
		t.Errorf("asked: %+v", got)
	}
	if _, err := n.PutPart(t.Context(), sum, 2000, total, bytes.NewReader(data[2000:])); err == nil {
		t.Error("a gap passes")
	}
	if got := put(500, data[500:]); !got.Complete {
		t.Errorf("at the end: %+v", got)
	}
	sent, err := n.Send(t.Context(), api.SendRequest{FromBoard: true, To: "worker", Intent: protocol.UserPrompt, Value: json.RawMessage(`{"text":"see"}`),
		Blobs: []protocol.BlobRef{{SHA256: sum, Bytes: total, Name: "a.bin"}}})
	if err != nil {
		t.Fatal(err)
	}
	if row, _ := n.store.PartOf(ownerPerson, sum); !row.Sent {
		t.Errorf("what was sent counts against the person: %+v", row)
	}
	if f := w.next(t, "UserPrompt"); !strings.Contains(string(f.Value), sum) {
		t.Errorf("the agent is not told of it: %s", f.Value)
	}
	if got := w.take(t, string(sent.MsgID), data); !bytes.Equal(got, data) {
		t.Error("other bytes came")
	}
	content, ref, err := n.Attachment(context.Background(), string(sent.MsgID), sum)
	if err != nil || ref.Name != "a.bin" || ref.Bytes != total {
		t.Fatalf("%+v %v", ref, err)
	}
	content.Close()
	if _, _, err := n.Attachment(context.Background(), string(sent.MsgID), asterism.HashOf(nil)); err == nil {
		t.Error("a message gives what it does not name")
	}
}

func TestHeadlineOfALargeValueNeedsItsBeginningAlone(t *testing.T) {
	long := strings.Repeat("äö\\n", 100_000)
	for value, want := range map[string]string{
		`{"text":"` + long + `"}`:                               "äö\näö",
		`{"data":"` + long + `","text":"late"}`:                 "",
		`{"n":1,"summary":"first","data":"` + long + `"}`:       "first",
		` "` + long + `"`:                                       "äö\näö",
		`{"a":{"text":"inner"},"title":"t","z":[` + long + `]}`: "t",
		`[1,2]`:                                  "",
		``:                                       "",
		`{"text":"` + strings.Repeat("x", 1<<20): "xxx",
		`{"text":"` + strings.Repeat("x", 7996) + `\u00e4` + long: "xxx",
	} {
		if got := headline(strings.NewReader(value)); !strings.HasPrefix(got, want) || want == "" && got != "" {
			t.Errorf("%.40s: %.40q, want %q", value, got, want)
		}
	}
}
