package node

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/aster-mesh/aster/board/web"
	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/api"
)

// pageQueueMax is how many events may wait for one page or tail; a slower one is cut off and comes back by its cursor.
const pageQueueMax = 1024

// pages spreads what happens to everybody who watches. publish never blocks.
type pages struct {
	count atomic.Int32

	mu   sync.Mutex
	subs map[chan api.Event]bool
}

func newPages() *pages { return &pages{subs: map[chan api.Event]bool{}} }

// watched says whether anybody would see an event, so that nobody makes one for nothing.
func (p *pages) watched() bool { return p.count.Load() > 0 }

func (p *pages) publish(e api.Event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.subs {
		select {
		case c <- e:
		default:
			delete(p.subs, c)
			p.count.Add(-1)
			close(c)
		}
	}
}

func (p *pages) add() chan api.Event {
	c := make(chan api.Event, pageQueueMax)
	p.mu.Lock()
	p.subs[c] = true
	p.mu.Unlock()
	p.count.Add(1)
	return c
}

func (p *pages) drop(c chan api.Event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.subs[c] {
		delete(p.subs, c)
		p.count.Add(-1)
		close(c)
	}
}

// Subscribe gives past messages above since from the store, then what happens.
func (n *Node) Subscribe(ctx context.Context, since uint64) <-chan api.Event {
	live := n.pages.add()
	out := make(chan api.Event)
	n.wait.Add(1)
	go func() {
		defer n.wait.Done()
		defer close(out)
		defer n.pages.drop(live)
		last, ok := n.replay(ctx, since, out)
		if !ok {
			return
		}
		for {
			select {
			case e, open := <-live:
				if !open {
					return
				}
				if e.Type == "message" && e.Pos <= last {
					continue
				}
				select {
				case out <- e:
				case <-ctx.Done():
					return
				case <-n.done:
					return
				}
			case <-ctx.Done():
				return
			case <-n.done:
				return
			}
		}
	}()
	return out
}

// replay sends stored messages above since and returns the last position sent. Nothing is replayed for web.SinceNow.
func (n *Node) replay(ctx context.Context, since uint64, out chan<- api.Event) (uint64, bool) {
	if since == web.SinceNow {
		return 0, true
	}
	for {
		page, err := n.Messages(ctx, web.MessageQuery{After: since, Limit: web.MessagesMax})
		if err != nil {
			return since, false
		}
		if len(page) == 0 {
			return since, true
		}
		for i := range page {
			select {
			case out <- api.Event{Type: "message", Pos: page[i].Pos, Message: &page[i]}:
				since = page[i].Pos
			case <-ctx.Done():
				return since, false
			case <-n.done:
				return since, false
			}
		}
	}
}

// receiptTasksTold bounds what one receipt lets pages hear: it may speak of a whole inbox.
const receiptTasksTold = 100

// taskChanged tells pages of a task that a record moved.
func (l *loop) taskChanged(r *protocol.Record, env *protocol.Envelope) {
	if !l.n.pages.watched() {
		return
	}
	if r.Kind == protocol.KindReceipts {
		if body, err := protocol.DecodeBody[protocol.ReceiptsBody](r); err == nil {
			for _, id := range l.board.ReceiptTasks(body, receiptTasksTold) {
				l.publishTask(id)
			}
		}
		return
	}
	if env == nil {
		return
	}
	id := env.Re
	if env.Intent == protocol.Delegate {
		id = env.ID
	}
	switch env.Intent {
	case protocol.Delegate, protocol.WorkerReport, protocol.Cancel:
		l.publishTask(id)
	}
}

func (l *loop) publishTask(id protocol.TaskID) {
	if t, ok := l.board.Task(id); ok {
		l.n.pages.publish(api.Event{Type: "task", Task: &t})
	}
}
