package bridge

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/aster-mesh/aster/protocol"
)

const (
	inboxFile = "inbox.jsonl"
	// markFile keeps the last position beside the inbox, for an agent that empties its inbox.
	markFile = ".inbox-pos"
	// inboxBytesMax is when the inbox becomes inbox.1.jsonl; inboxPartsMax of those are kept (fault B37).
	inboxBytesMax = 16 << 20
	inboxPartsMax = 4
	// unreadPerTurn and turnBytesMax bound what one turn holds in memory.
	unreadPerTurn = 64
)

// Item is one message for an agent, as Unread returns it.
type Item struct {
	Pos      uint64 // grows with each message of the agent's inbox
	At       int64  // author's wall clock, ms since 1970
	Envelope protocol.Envelope
}

// inboxLine is one line of inbox.jsonl: the four old keys first, then the whole envelope (fault B36).
type inboxLine struct {
	At     string          `json:"at"`
	Name   protocol.Intent `json:"name"`
	Value  json.RawMessage `json:"value"`
	Source protocol.Source `json:"source"`

	Pos       uint64             `json:"pos"`
	MsgID     protocol.MsgID     `json:"msgId"`
	Agent     protocol.AgentID   `json:"agentId,omitempty"`
	AgentName string             `json:"agentName,omitempty"`
	AgentRole protocol.Role      `json:"agentRole,omitempty"`
	Target    protocol.AgentID   `json:"targetAgentId,omitempty"`
	Room      protocol.RoomID    `json:"room,omitempty"`
	Context   string             `json:"contextId,omitempty"`
	Parent    string             `json:"parentId,omitempty"`
	Thread    string             `json:"threadId,omitempty"`
	Run       string             `json:"runId,omitempty"`
	Channel   string             `json:"channel,omitempty"`
	Re        protocol.MsgID     `json:"re,omitempty"`
	ValueBlob *protocol.BlobRef  `json:"valueBlob,omitempty"`
	Blobs     []protocol.BlobRef `json:"blobs,omitempty"`
	Files     []inboxAttached    `json:"files,omitempty"`
	Hops      []protocol.AgentID `json:"hops,omitempty"`
	Trace     string             `json:"traceparent,omitempty"`
	// Store names the node's store that Pos belongs to: positions of one that was rebuilt begin anew.
	Store string `json:"store,omitempty"`
}

// inboxAttached says how to have a file that came with a message: content stays in the node's store until somebody wants it.
type inboxAttached struct {
	Name  string `json:"name"`
	Mime  string `json:"mime,omitempty"`
	Use   string `json:"use,omitempty"`
	Bytes int64  `json:"bytes"`
	Get   string `json:"get"`
}

func attachedTo(e *protocol.Envelope) (out []inboxAttached) {
	id := string(e.ID)
	if strings.Trim(id, "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-") != "" || strings.HasPrefix(id, "-") {
		id = protocol.ShortID(e.ID) // a sender's words must not become a command
	}
	for _, b := range e.Blobs {
		out = append(out, inboxAttached{b.Name, b.Mime, b.Use, b.Bytes, "aster show " + id + " --save DIR"})
	}
	return out
}

func encodeItem(it Item, store string) []byte {
	e := it.Envelope
	value := json.RawMessage(protocol.TameNumbers(e.Value))
	if len(value) == 0 {
		value = json.RawMessage("null")
	}
	return append(protocol.EncodeBody(inboxLine{
		At: isoTime(time.UnixMilli(it.At)), Name: e.Intent, Value: value, Source: e.Source,
		Pos: it.Pos, MsgID: e.ID, Agent: e.From, AgentName: e.FromName, AgentRole: e.FromRole, Target: e.To, Room: e.Room,
		Context: e.Context, Parent: e.Parent, Thread: e.Thread, Run: e.Run, Channel: e.Channel, Re: e.Re,
		ValueBlob: e.ValueBlob, Blobs: e.Blobs, Files: attachedTo(&e), Hops: e.Hops, Trace: e.Trace, Store: store,
	}), '\n')
}

// inbox writes one agent's file. Owned by the bridge's loop.
type inbox struct {
	agent protocol.AgentID
	dir   string
	cfg   *Config

	store string   // name of the node's store; "" until it was asked
	f     *os.File // nil: not open, and nothing below is known
	size  int64
	pos   uint64 // of the last message in the file, or in a part before it
	// there are the messages in the files, while it is not known up to which position of this store they reach.
	there map[protocol.Digest]bool
	// step, when set, is called between writes and may end them: tests put a crash there.
	step func(string) error
}

func (b *inbox) path() string { return filepath.Join(b.dir, inboxFile) }

// deliver writes what is unread behind the last position. more: there may be further ones.
func (b *inbox) deliver(ctx context.Context) (more bool, err error) {
	defer func() {
		if err != nil {
			err = errors.Join(err, b.close()) // what is in the file is read back at the next turn
		}
	}()
	if err := b.nameStore(ctx); err != nil {
		return false, err
	}
	if err := b.open(); err != nil {
		return false, err
	}
	items, err := b.cfg.Unread(b.agent, b.pos, unreadPerTurn)
	if err != nil {
		return false, fmt.Errorf("read the mail of %s: %w", b.agent, err)
	}
	if len(items) == 0 {
		return false, b.settle()
	}
	if b.size >= inboxBytesMax {
		if err := b.rotate(); err != nil {
			return false, err
		}
	}
	var batch []byte
	pos := b.pos
	for _, it := range items {
		if it.Pos > pos && !b.there[it.Envelope.Identity()] {
			batch = append(batch, encodeItem(it, b.store)...)
		}
		pos = max(pos, it.Pos)
	}
	if err := b.write(batch, pos); err != nil {
		return false, err
	}
	if len(items) < unreadPerTurn {
		return false, b.settle()
	}
	return true, nil
}

// nameStore asks the node's store for its name, and gives it one the first time. A store that was set aside and rebuilt
// has lost it, and with it the meaning of every position in our files.
func (b *inbox) nameStore(ctx context.Context) error {
	if b.store != "" {
		return nil
	}
	key := "bridge/inbox/" + string(b.agent)
	name := b.cfg.Cursor(key)
	if len(name) == 0 {
		var dice [8]byte
		_, _ = rand.Read(dice[:]) // crypto/rand never fails
		name = []byte(hex.EncodeToString(dice[:]))
		if err := b.cfg.Submit(ctx, b.agent, Line{}, key, name); err != nil {
			return fmt.Errorf("name the store: %w", err)
		}
	}
	b.store = string(name)
	return nil
}

// settle ends the comparison by message with files of another store: from here on the position alone says it.
func (b *inbox) settle() error {
	if b.there == nil {
		return nil
	}
	if err := b.note(); err != nil {
		return err
	}
	b.there = nil
	return nil
}

// write appends whole lines, makes them durable, and only then notes the position: a note may lag behind the file, and
// never runs ahead of it.
func (b *inbox) write(batch []byte, pos uint64) error {
	if err := b.pause("write"); err != nil {
		return err
	}
	if _, err := b.f.Write(batch); err != nil {
		return fmt.Errorf("write inbox: %w", err)
	}
	if err := b.pause("sync"); err != nil {
		return err
	}
	if err := b.f.Sync(); err != nil {
		return fmt.Errorf("sync inbox: %w", err)
	}
	b.size, b.pos = b.size+int64(len(batch)), pos
	if b.there != nil {
		return nil // settle notes it, when everything was compared
	}
	if err := b.pause("mark"); err != nil {
		return err
	}
	return b.note()
}

func (b *inbox) pause(step string) error {
	if b.step == nil {
		return nil
	}
	return b.step(step)
}

func (b *inbox) note() error {
	next := filepath.Join(b.dir, markFile+".new")
	f, err := openPlain(next, os.O_CREATE|os.O_TRUNC|os.O_WRONLY)
	if err != nil {
		return fmt.Errorf("note inbox position: %w", err)
	}
	_, err = fmt.Fprintf(f, "%d %s\n", b.pos, b.store)
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(next, filepath.Join(b.dir, markFile))
	}
	if err != nil {
		return fmt.Errorf("note inbox position: %w", err)
	}
	return nil
}

func (b *inbox) close() error {
	if b.f == nil {
		return nil
	}
	err := b.f.Close()
	b.f = nil
	return err
}

// open makes the file ready to append, unless it is already and is still the one that has the name.
func (b *inbox) open() error {
	if b.f != nil {
		if b.stillOurs() {
			return nil
		}
		if err := b.close(); err != nil {
			return fmt.Errorf("close inbox: %w", err)
		}
	}
	known := b.pos
	f, err := openPlain(b.path(), os.O_CREATE|os.O_RDWR|os.O_APPEND)
	if err != nil {
		return fmt.Errorf("open inbox: %w", err)
	}
	size, pos, err := b.recoverTail(f)
	if err != nil {
		return errors.Join(err, f.Close())
	}
	for part := 1; pos == 0 && part <= inboxPartsMax; part++ {
		if pos, err = b.lastPosOf(b.part(part)); err != nil {
			return errors.Join(err, f.Close())
		}
	}
	noted, same, err := b.noted()
	if err == nil && !same {
		err = b.readThere()
	}
	if err != nil {
		return errors.Join(err, f.Close())
	}
	b.f, b.size, b.pos = f, size, max(pos, noted, known)
	return nil
}

// stillOurs says that nobody emptied, changed or replaced the file since the last write.
func (b *inbox) stillOurs() bool {
	held, err := b.f.Stat()
	if err != nil || held.Size() != b.size {
		return false
	}
	named, err := os.Lstat(b.path())
	return err == nil && os.SameFile(held, named)
}

func (b *inbox) part(n int) string {
	return filepath.Join(b.dir, fmt.Sprintf("inbox.%d.jsonl", n))
}

// rotate moves the file away. Parts move up to the first free number only, so that a rotation which a crash cut short
// and which begins again loses nothing.
func (b *inbox) rotate() error {
	if err := b.close(); err != nil {
		return fmt.Errorf("close inbox: %w", err)
	}
	free := 1
	for free < inboxPartsMax {
		if _, err := os.Lstat(b.part(free)); errors.Is(err, fs.ErrNotExist) {
			break
		}
		free++
	}
	for n := free; n > 1; n-- {
		if err := b.pause(fmt.Sprintf("rotate %d", n)); err != nil {
			return err
		}
		if err := os.Rename(b.part(n-1), b.part(n)); err != nil {
			return fmt.Errorf("rotate inbox: %w", err)
		}
	}
	if err := b.pause("rotate 1"); err != nil {
		return err
	}
	if err := os.Rename(b.path(), b.part(1)); err != nil {
		return fmt.Errorf("rotate inbox: %w", err)
	}
	return b.open()
}
