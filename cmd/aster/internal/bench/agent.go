package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aster-mesh/aster/node/link"
)

// bodyBytes is the size of a message's value.
const bodyBytes = 600

// answerWait is far above any answer.
const answerWait = 30 * time.Second

// agent is one client on /ws. It reads only what it counts, so that it costs little beside what is measured.
type agent struct {
	id    string
	conn  *link.Conn
	came  atomic.Int64 // bytes of frames
	ended chan struct{}
	why   error // to be read after ended
	stop  context.CancelFunc
}

// attach joins as an agent, or as a board with an empty id, and returns once it is accepted. each is called with every
// frame, in the read loop; nil: nobody looks.
func attach(ctx context.Context, url, id string, each func(frame []byte, at time.Time)) (*agent, error) {
	a, accepted, err := dial(ctx, url, id, each)
	if err != nil {
		return nil, err
	}
	select {
	case <-accepted:
		return a, nil
	case <-a.ended:
		return nil, fmt.Errorf("attach %q: %w", id, a.why)
	case <-time.After(answerWait):
		return nil, errors.Join(fmt.Errorf("attach %q: not accepted within %s", id, answerWait), a.close())
	}
}

// dial connects and says hello. accepted is closed when the hub has accepted it.
func dial(ctx context.Context, url, id string, each func(frame []byte, at time.Time)) (a *agent, accepted <-chan struct{}, err error) {
	ctx, cancel := context.WithCancel(ctx)
	conn, err := link.Dial(ctx, url, nil, link.Options{})
	if err != nil {
		cancel()
		return nil, nil, fmt.Errorf("attach %q: %w", id, err)
	}
	conn.Authenticated()
	a = &agent{id: id, conn: conn, ended: make(chan struct{}), stop: cancel}
	in := make(chan struct{})
	var once sync.Once
	go func() {
		defer close(a.ended)
		a.why = conn.Serve(ctx, func(frame []byte, _ bool) {
			at := time.Now()
			a.came.Add(int64(len(frame)))
			if each != nil {
				each(frame, at)
			}
			if bytes.Contains(frame, acceptedMark) || id == "" {
				once.Do(func() { close(in) })
			}
		})
	}()
	if id != "" {
		conn.Send([]byte(`{"type":"HELLO","agentId":"` + id + `","capabilities":["ack-layer"]}`))
	}
	return a, in, nil
}

var acceptedMark = []byte(`"name":"ConnectionInfo"`)

func (a *agent) close() error {
	a.stop()
	select {
	case <-a.ended:
		return nil
	case <-time.After(answerWait):
		return fmt.Errorf("the connection of %q does not end", a.id)
	}
}

// Messages are numbered; the number stands in the message's id, and is all that a receiver looks for.
const idMark = `b-`

var (
	msgMark = []byte(`"msgId":"` + idMark)
	ackMark = []byte(`"ackFor":"` + idMark)
	ackName = []byte(`"name":"AckProcessed"`)
)

// numberAfter reads the number behind mark; false: frame holds none.
func numberAfter(frame, mark []byte) (int64, bool) {
	_, rest, ok := bytes.Cut(frame, mark)
	if !ok {
		return 0, false
	}
	end := bytes.IndexByte(rest, '"')
	if end < 0 {
		return 0, false
	}
	n, err := strconv.ParseInt(string(rest[:end]), 10, 64)
	return n, err == nil
}

// way is a pair of agents between whom messages go, each acknowledged by its recipient.
type way struct {
	from, to *agent
	next     int64
	arrived  chan arrival // capacity windowMax: a message is at its recipient
	acked    chan int64   // capacity windowMax: the sender has heard that it was processed
}

type arrival struct {
	n  int64
	at time.Time
}

const windowMax = 1024

// openWay attaches both agents; they may be at different hubs. A way is used by one goroutine.
func openWay(ctx context.Context, fromURL, toURL, name string) (w *way, err error) {
	w = &way{arrived: make(chan arrival, windowMax), acked: make(chan int64, windowMax)}
	sender, receiver := name+"-sender", name+"-receiver"
	var self atomic.Pointer[agent]
	w.to, err = attach(ctx, toURL, receiver, func(frame []byte, at time.Time) {
		n, ok := numberAfter(frame, msgMark)
		if !ok {
			return
		}
		w.arrived <- arrival{n, at}
		if a := self.Load(); a != nil {
			a.conn.Send([]byte(`{"type":"CUSTOM","name":"AckProcessed","targetAgentId":"` + sender + `","value":{"ackFor":"` + idMark + strconv.FormatInt(n, 10) + `"}}`))
		}
	})
	if err != nil {
		return nil, err
	}
	self.Store(w.to)
	w.from, err = attach(ctx, fromURL, sender, func(frame []byte, _ time.Time) {
		if n, ok := numberAfter(frame, ackMark); ok && bytes.Contains(frame, ackName) {
			w.acked <- n
		}
	})
	if err != nil {
		return nil, errors.Join(err, w.to.close())
	}
	return w, nil
}

func (w *way) close() error { return errors.Join(w.from.close(), w.to.close()) }

var padding = strings.Repeat("x", bodyBytes-len(`{"text":""}`))

// send gives the next message to the sender's socket.
func (w *way) send() (int64, error) {
	w.next++
	n := strconv.FormatInt(w.next, 10)
	frame := `{"type":"CUSTOM","id":"f-` + n + `","name":"Request","targetAgentId":"` + w.to.id + `","msgId":"` + idMark + n + `","value":{"text":"` + padding + `"}}`
	if !w.from.conn.Send([]byte(frame)) {
		return 0, errors.New("the sender's connection has ended")
	}
	return w.next, nil
}

// once sends one message and waits until it is processed; the time is from sending to the recipient.
func (w *way) once() (time.Duration, error) {
	began := time.Now()
	n, err := w.send()
	if err != nil {
		return 0, err
	}
	var took time.Duration
	late := time.NewTimer(answerWait)
	defer late.Stop()
	for here, heard := false, false; !here || !heard; {
		select {
		case a := <-w.arrived:
			if a.n == n {
				took, here = a.at.Sub(began), true
			}
		case a := <-w.acked:
			heard = heard || a == n
		case <-w.from.ended:
			return 0, fmt.Errorf("the sender's connection ended: %w", w.from.why)
		case <-w.to.ended:
			return 0, fmt.Errorf("the recipient's connection ended: %w", w.to.why)
		case <-late.C:
			return 0, fmt.Errorf("message %d did not come through within %s", n, answerWait)
		}
	}
	return took, nil
}

// flood keeps window messages in flight for about d and returns how long and how many. A message is in flight until
// its sender has heard that it was processed.
func (w *way) flood(d time.Duration, window int) (took time.Duration, count int, lat samples, err error) {
	began := time.Now()
	sent := map[int64]time.Time{}
	late := time.NewTimer(answerWait + d)
	defer late.Stop()
	for flying := 0; ; {
		for ; flying < window && time.Since(began) < d; flying++ {
			at := time.Now()
			n, err := w.send()
			if err != nil {
				return 0, 0, nil, err
			}
			sent[n] = at
		}
		if flying == 0 && len(sent) == 0 {
			return time.Since(began), count, lat, nil
		}
		select {
		case a := <-w.arrived:
			if at, ok := sent[a.n]; ok {
				lat = append(lat, a.at.Sub(at))
				delete(sent, a.n)
			}
		case <-w.acked:
			flying--
			count++
		case <-late.C:
			return 0, 0, nil, fmt.Errorf("%d of %d messages did not come through within %s", flying, count+flying, answerWait)
		}
	}
}
