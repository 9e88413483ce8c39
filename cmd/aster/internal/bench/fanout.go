package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/aster-mesh/aster/protocol"
)

// crowd is many sockets that a broadcast goes to, and who speaks to them.
type crowd struct {
	speaker *agent
	pad     string
	boards  []*agent
	next    int64
	want    atomic.Int64 // number of the broadcast under way
	here    atomic.Int64 // how many have it
	last    chan time.Time
}

var stepMark = []byte(`"stepName":"` + idMark)

// gather opens n sockets beside those that are there.
func (c *crowd) gather(ctx context.Context, url string, n int) error {
	for len(c.boards) < n {
		b, err := attach(ctx, url, "", c.look)
		if err != nil {
			return err
		}
		c.boards = append(c.boards, b)
	}
	return nil
}

func (c *crowd) look(frame []byte, at time.Time) {
	if n, ok := numberAfter(frame, stepMark); ok && n == c.want.Load() && c.here.Add(1) == int64(len(c.boards)) {
		c.last <- at
	}
}

// once says one thing to all; the time is from saying it to the last socket that reads it.
func (c *crowd) once() (time.Duration, error) {
	c.next++
	c.here.Store(0)
	c.want.Store(c.next)
	frame := `{"type":"STEP_STARTED","id":"s-` + strconv.FormatInt(c.next, 10) + `","msgId":"s-` + strconv.FormatInt(c.next, 10) + `","stepName":"` + idMark + strconv.FormatInt(c.next, 10) + `","message":"` + c.pad + `"}`
	began := time.Now()
	if !c.speaker.conn.Send([]byte(frame)) {
		return 0, errors.New("the speaker's connection has ended")
	}
	late := time.NewTimer(answerWait)
	defer late.Stop()
	select {
	case at := <-c.last:
		return at.Sub(began), nil
	case <-late.C:
		return 0, fmt.Errorf("%d of %d sockets have broadcast %d after %s", c.here.Load(), len(c.boards), c.next, answerWait)
	}
}

func (c *crowd) close() error {
	var err error
	for _, b := range append(c.boards, c.speaker) {
		err = errors.Join(err, b.close())
	}
	return err
}

func openCrowd(ctx context.Context, url string) (*crowd, error) {
	c := &crowd{last: make(chan time.Time, 1), pad: padding}
	var err error
	c.speaker, err = attach(ctx, url, "speaker", nil)
	return c, err
}

func (b *Bench) fanout(ctx context.Context) (rows []Row, err error) {
	b.say("fanout: starting a bare server and a node")
	hub, err := b.startBare(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, hub.end()) }()
	n, err := b.startNode(ctx, "fan", "")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, n.stop()) }()
	theirs, err := openCrowd(ctx, hub.addr.URL)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, theirs.close()) }()
	ours, err := openCrowd(ctx, n.url())
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, ours.close()) }()
	raw, err := openDisk(b.Dir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, raw.close()) }()
	sync := &side{once: raw.once}
	for _, size := range []int{50, 200, 500} {
		b.say("fanout: 1 to %d sockets", size)
		if err := errors.Join(theirs.gather(ctx, hub.addr.Fan, size), ours.gather(ctx, n.url(), size)); err != nil {
			return rows, err
		}
		sync.got = nil
		bare, node := &side{once: theirs.once}, &side{once: ours.once}
		if err := interleave(b.For, 0, sync, bare, node); err != nil {
			return rows, err
		}
		row := Row{Bench: "fanout", Case: fmt.Sprintf("1 to %d, last socket", size), Value: node.got.p50(), Unit: "ms", P99: node.got.p99(),
			Raw: []Raw{{"bare prepared frames", bare.got.p50(), "ms"}, {"bare p99", bare.got.p99(), "ms"}, {"fdatasync", sync.got.p50(), "ms"}}}
		if size == 500 {
			row.Bar, row.Rule = 1.5*bare.got.p50(), "1.5 × bare"
			row.Note = "each broadcast is on the disk before the first socket gets it"
		}
		rows = append(rows, row.judge())
	}
	stalled, err := b.stall(ctx)
	rows = append(rows, stalled...)
	if err != nil {
		return rows, err
	}
	joined, err := b.joins(ctx)
	return append(rows, joined...), err
}

// stallBoards and stallBytes fill the queue of a socket that does not read within some hundred broadcasts.
const (
	stallBoards = 50
	stallBytes  = 32 << 10
	heldEvery   = 8 // broadcasts between two looks at what the node holds
)

// stall speaks to sockets of which one more stops reading: what the others see of it, and what it costs the node.
func (b *Bench) stall(ctx context.Context) (rows []Row, err error) {
	b.say("fanout: one socket stops reading")
	frugal := *b
	frugal.env = []string{fmt.Sprintf("GOGC=%d", frugalGC)}
	n, err := frugal.startNode(ctx, "stall", "")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, n.stop()) }()
	c, err := openCrowd(ctx, n.url())
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, c.close()) }()
	c.pad = strings.Repeat("x", stallBytes)
	if err := c.gather(ctx, n.url(), stallBoards); err != nil {
		return nil, err
	}
	speak := func() (got samples, most int64, err error) {
		for i := range 2 * protocol.LinkQueueBytesMax / stallBytes {
			took, err := c.once()
			if err != nil {
				return nil, 0, err
			}
			got = append(got, took)
			if i%heldEvery > 0 {
				continue
			}
			now, err := n.heldBytes(ctx)
			if err != nil {
				return nil, 0, err
			}
			most = max(most, now)
		}
		return got, most, nil
	}
	if _, _, err := speak(); err != nil { // a young process still grows
		return nil, err
	}
	before, reading, err := speak()
	if err != nil {
		return nil, err
	}
	conn, err := silent(ctx, n.url())
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	got, stalled, err := speak()
	if err != nil {
		return nil, err
	}
	rows = append(rows, Row{Bench: "fanout", Case: fmt.Sprintf("1 to %d, 32 KiB, one more does not read", stallBoards), Value: got.p50(), Unit: "ms", P99: got.p99(),
		Raw:  []Raw{{"all read", before.p50(), "ms"}, {"all read p99", before.p99(), "ms"}},
		Note: fmt.Sprintf("%d broadcasts; a queue ends at %d MiB or when its oldest has waited %s", len(got), protocol.LinkQueueBytesMax>>20, protocol.LinkQueueWait)}.judge())
	return append(rows, Row{Bench: "fanout", Case: "memory that the one holds, at most", Value: max(float64(stalled-reading), 0) / (1 << 20), Unit: "MiB",
		Bar: float64(protocol.LinkQueueBytesMax+stallBytes) / (1 << 20), Rule: "its queue, and the frame over which it ends",
		Note: "in use after the node's collections, less the most while all read"}.judge()), nil
}

// silent opens a socket and never reads from it. Its buffers are small, so that the node's queue is what fills.
func silent(ctx context.Context, url string) (net.Conn, error) {
	host := strings.TrimSuffix(strings.TrimPrefix(url, "ws://"), "/ws")
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", host)
	if err != nil {
		return nil, fmt.Errorf("open a silent socket: %w", err)
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetReadBuffer(4096) // a larger one only makes it wait longer
	}
	_, err = io.WriteString(conn, "GET /ws HTTP/1.1\r\nHost: "+host+"\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n")
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open a silent socket: %w", err), conn.Close())
	}
	return conn, nil
}
