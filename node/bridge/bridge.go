package bridge

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/aster-mesh/aster/protocol"
	"github.com/fsnotify/fsnotify"
)

// Config wires a bridge to its node. Submit, Keep, Cursor and Unread are called from Run's goroutine only.
type Config struct {
	// Dir holds a folder for each agent (FolderOf). It is made 0700 if absent.
	Dir string
	// Submit commits a line of an agent's outbox and, in the same transaction, the cursor behind it; a line of KindNone
	// is a cursor alone. A *protocol.Refusal other than disk-full and rate is final: the line goes to the file of
	// rejected ones. After any other error the same line comes again, with the same MsgID.
	Submit func(ctx context.Context, agent protocol.AgentID, line Line, cursorKey string, cursor []byte) error
	// Keep stores the content of a file that a line names, durably, until Submit has the line. disk-full makes the line wait.
	Keep func(ctx context.Context, r io.Reader) (protocol.BlobRef, error)
	// Cursor returns what Submit last committed under key; nil when there is none.
	Cursor func(key string) []byte
	// Unread returns at most limit messages of the agent's inbox with Pos > afterPos, in the order of Pos. A value that
	// is a blob may be put into Envelope.Value.
	Unread func(agent protocol.AgentID, afterPos uint64, limit int) ([]Item, error)
	Log    *slog.Logger // nil: discarded
	// Rescan is how often everything is looked at again without a hint, in case the system lost one; 0 means 30 s.
	Rescan time.Duration
}

// rescanEvery: a lost hint costs at most this. A rescan costs two stat calls an agent.
const rescanEvery = 30 * time.Second

// The shortest and longest wait before something that went wrong is tried again.
const (
	retryFirst = time.Second
	retryMax   = 30 * time.Second
	// toldFirst is the shortest wait where a refusal says how long.
	toldFirst = 10 * time.Millisecond
)

// Bridge serves the files of the agents of one node.
type Bridge struct {
	cfg  Config
	log  *slog.Logger
	wake chan struct{} // capacity 1: asked holds what it is about

	// Guarded by mu.
	mu    sync.Mutex
	asked map[protocol.AgentID]wish

	// Owned by Run.
	boxes map[protocol.AgentID]*box
	byDir map[string]*box
}

// wish is what callers asked for since the loop last looked.
type wish struct{ enable, disable, mail bool }

// box is one agent's folder. Owned by Run.
type box struct {
	out             outbox
	in              inbox
	outDue, mailDue bool
	trouble         string // last one that was logged, so that it is logged once
}

// New returns a bridge without agents. It touches no file.
func New(cfg Config) *Bridge {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Rescan <= 0 {
		cfg.Rescan = rescanEvery
	}
	return &Bridge{
		cfg: cfg, log: cfg.Log.With("part", "bridge"), wake: make(chan struct{}, 1),
		asked: map[protocol.AgentID]wish{}, boxes: map[protocol.AgentID]*box{}, byDir: map[string]*box{},
	}
}

// Enable makes the agent's folder and serves it from now on: its outbox is read from the stored cursor (from the start
// the first time) and its inbox gets what is unread. Enabling twice is once. ErrForeign: the folder is not ours.
func (b *Bridge) Enable(agent protocol.AgentID) error {
	if err := protocol.CheckAgentID(agent); err != nil {
		return err
	}
	if err := makeFolder(FolderOf(b.cfg.Dir, agent)); err != nil {
		return err
	}
	b.ask(agent, func(w *wish) { w.enable, w.disable = true, false })
	return nil
}

// Disable stops serving the agent. Its files stay.
func (b *Bridge) Disable(agent protocol.AgentID) {
	b.ask(agent, func(w *wish) { w.enable, w.disable = false, true })
}

// Notify says that the agent may have new mail. It is cheap, never blocks, and is nothing for an agent without folder.
func (b *Bridge) Notify(agent protocol.AgentID) { b.ask(agent, func(w *wish) { w.mail = true }) }

func (b *Bridge) ask(agent protocol.AgentID, change func(*wish)) {
	b.mu.Lock()
	w := b.asked[agent]
	change(&w)
	b.asked[agent] = w
	b.mu.Unlock()
	select {
	case b.wake <- struct{}{}:
	default: // the loop has not looked yet
	}
}

// Run serves until ctx ends and returns its error, or why the system's file watch could not be had. Call it once.
func (b *Bridge) Run(ctx context.Context) error {
	watch, err := fsnotify.NewWatcher()
	if err != nil {
		return fmt.Errorf("watch files: %w", err)
	}
	defer watch.Close()
	defer func() {
		for _, x := range b.boxes {
			x.in.close()
		}
	}()
	rescan := time.NewTicker(b.cfg.Rescan)
	defer rescan.Stop()
	retry := time.NewTimer(time.Hour)
	retry.Stop()
	wait := retryFirst
	for {
		more, failed, told := b.turn(ctx)
		switch {
		case failed && told > 0:
			retry.Reset(min(wait, told))
			wait = min(2*wait, retryMax)
		case failed:
			retry.Reset(wait)
			wait = min(2*wait, retryMax)
		case told > 0:
			retry.Reset(told)
			wait = retryFirst
		case !more:
			wait = retryFirst
		}
		if more && ctx.Err() == nil {
			b.drain(watch)
			continue
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-b.wake:
			b.heed(watch)
		case e := <-watch.Events:
			b.hint(e)
		case err := <-watch.Errors:
			b.log.Warn("file watch lost hints; looking at everything", "err", err)
			b.everything(watch)
		case <-rescan.C:
			b.everything(watch)
		case <-retry.C: // what is due is still marked
		}
	}
}

// drain takes what waits without blocking, so that a busy agent does not make the watch overflow.
func (b *Bridge) drain(watch *fsnotify.Watcher) {
	for {
		select {
		case <-b.wake:
			b.heed(watch)
		case e := <-watch.Events:
			b.hint(e)
		default:
			return
		}
	}
}

// heed does what callers asked for.
func (b *Bridge) heed(watch *fsnotify.Watcher) {
	b.mu.Lock()
	asked := b.asked
	b.asked = map[protocol.AgentID]wish{}
	b.mu.Unlock()
	for agent, w := range asked {
		x := b.boxes[agent]
		switch {
		case w.disable && x != nil:
			if err := watch.Remove(x.out.dir); err != nil && !errors.Is(err, fsnotify.ErrNonExistentWatch) {
				b.log.Warn("stop watching", "agent", agent, "err", err)
			}
			x.in.close()
			delete(b.boxes, agent)
			delete(b.byDir, x.out.dir)
		case w.enable && x == nil:
			b.add(watch, agent)
		case w.mail && x != nil:
			x.mailDue = true
		}
	}
}

func (b *Bridge) add(watch *fsnotify.Watcher, agent protocol.AgentID) {
	dir := FolderOf(b.cfg.Dir, agent)
	x := &box{
		out: outbox{agent: agent, dir: dir, cfg: &b.cfg, log: b.log}, in: inbox{agent: agent, dir: dir, cfg: &b.cfg},
		outDue: true, mailDue: true,
	}
	b.boxes[agent], b.byDir[dir] = x, x
	b.watchBox(watch, x)
}

func (b *Bridge) watchBox(watch *fsnotify.Watcher, x *box) {
	err := makeFolder(x.out.dir)
	if err == nil {
		err = watch.Add(x.out.dir)
	}
	if err != nil {
		b.complain(x, fmt.Errorf("watch %s: %w", x.out.dir, err))
	}
}

// hint marks what an event is about. Our own writing to the inbox raises events too, which are about nothing.
func (b *Bridge) hint(e fsnotify.Event) {
	if x := b.byDir[filepath.Dir(e.Name)]; x != nil && strings.HasPrefix(filepath.Base(e.Name), outboxFile[:len("outbox")]) {
		if filepath.Base(e.Name) != rejectedFile {
			x.outDue = true
		}
	}
}

func (b *Bridge) everything(watch *fsnotify.Watcher) {
	for _, x := range b.boxes {
		b.watchBox(watch, x) // the folder may have been replaced
		x.outDue, x.mailDue = true, true
	}
}

// turn gives each agent that is due one turn. more: some are still due; failed: some could not go on and nobody knows when
// they can; told: after how long the first of those can that were told so, 0 for none.
func (b *Bridge) turn(ctx context.Context) (more, failed bool, told time.Duration) {
	for _, x := range b.boxes {
		if ctx.Err() != nil {
			return false, false, 0
		}
		var errs [2]error
		if x.outDue {
			var again bool
			again, errs[0] = x.out.scan(ctx)
			x.outDue = again || errs[0] != nil
			more = more || again
		}
		if x.mailDue {
			var again bool
			again, errs[1] = x.in.deliver(ctx)
			x.mailDue = again || errs[1] != nil
			more = more || again
		}
		if err := errors.Join(errs[:]...); err != nil {
			after := toldWait(errs[0])
			if after == 0 || errs[1] != nil {
				failed = failed || ctx.Err() == nil
			} else if told == 0 || after < told {
				told = after
			}
			if after > 0 && errs[1] == nil {
				b.once(x, protocol.CodeRate, err) // its words say another wait each time
			} else {
				b.complain(x, err)
			}
		} else if !x.outDue && !x.mailDue {
			x.trouble = ""
		}
	}
	return more, failed, told
}

// toldWait is how long a refusal says to wait, within bounds, or 0: whoever pays by time must not wait longer each time.
func toldWait(err error) time.Duration {
	var why *protocol.Refusal
	if !errors.As(err, &why) || why.RetryMs <= 0 {
		return 0
	}
	return min(max(time.Duration(min(why.RetryMs, retryMax.Milliseconds()))*time.Millisecond, toldFirst), retryMax)
}

func (b *Bridge) complain(x *box, err error) { b.once(x, err.Error(), err) }

// once logs err unless the last that was logged is the same by its key.
func (b *Bridge) once(x *box, key string, err error) {
	if key != x.trouble {
		x.trouble = key
		b.log.Warn("agent files", "agent", x.out.agent, "err", err)
	}
}
