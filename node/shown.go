package node

import (
	"encoding/json"
	"slices"

	"github.com/aster-mesh/aster/node/hub"
	"github.com/aster-mesh/aster/node/link"
	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/api"
	"github.com/aster-mesh/aster/protocol/asterism"
)

// What may wait for a large value that is read; a board that would get more is closed, as one that reads too slowly is.
const (
	shownMax      = 4096
	shownBytesMax = protocol.LinkQueueBytesMax
)

// shown keeps what boards and pages see in order while a large value is read beside the loop. One is read at a time, so no
// more than one is held whole that cannot be shown yet. Owned by the loop.
type shown struct {
	behind []*showing // the first is being read; empty: nothing is
	bytes  int        // of frames behind it

	declared map[hub.Ref]json.RawMessage // values of declarations that are content, once they were read
	chart    json.RawMessage             // the newest that could be read
}

// showing is what boards and pages are to see next.
type showing struct {
	frame  []byte       // nil: pages alone see it
	boards []hub.ConnID // that were there when it was said
	except hub.ConnID

	large *protocol.Envelope // frame is to be made of it once its value is read
	ref   hub.Ref            // of large
	wall  int64
	told  *recentMessage // pages are told of it
}

// show lets boards and pages see something, behind what is on its way to them.
func (l *loop) show(w *showing) {
	if len(l.n.shown.behind) == 0 {
		if w.large == nil {
			l.shows(w)
			return
		}
	} else if l.n.shown.bytes += len(w.frame); len(l.n.shown.behind) >= shownMax || l.n.shown.bytes > shownBytesMax {
		l.n.shown.bytes -= len(w.frame)
		for _, id := range w.boards {
			if s := l.sockets[id]; s != nil {
				s.conn.Close(closeBehind, "too much waits to be shown")
			}
		}
		w.frame, w.boards, w.large = nil, nil, nil
	}
	l.n.shown.behind = append(l.n.shown.behind, w)
	if len(l.n.shown.behind) == 1 {
		l.read(w)
	}
}

// closeBehind is what the link closes with when a client reads too slowly: it comes back and is shown what is kept.
const closeBehind = 1013

// read makes the frame of the first that waits in a goroutine of its own; then it and what waits behind it is shown.
func (l *loop) read(w *showing) {
	boards := len(w.boards) > 0
	l.savers.Go(func() {
		var frame []byte
		var text string
		select {
		case l.n.blobs.reading <- struct{}{}:
			whole := *w.large
			text = l.n.textOf(w.large)
			if boards || protocol.Lookup(whole.Intent).Class == protocol.ClassDeclaration {
				if err := l.n.fill(&whole); err != nil {
					l.log.Error("value not readable", "err", err)
				}
			}
			if boards {
				frame = asterism.AppendDelivery(make([]byte, 0, len(whole.Value)+384), &whole, w.wall)
			}
			<-l.n.blobs.reading
			_ = l.post(l.n.ctx, func() { l.wasRead(w, &whole, frame, text) })
		case <-l.n.done:
		}
	})
}

func (l *loop) wasRead(w *showing, whole *protocol.Envelope, frame []byte, text string) {
	if w.told != nil {
		w.told.text = text
	}
	l.keepDeclared(w.ref, whole)
	w.frame, w.large = frame, nil
	l.shows(w)
	for l.n.shown.behind = l.n.shown.behind[1:]; len(l.n.shown.behind) > 0; l.n.shown.behind = l.n.shown.behind[1:] {
		next := l.n.shown.behind[0]
		if next.large != nil {
			l.read(next)
			return
		}
		l.n.shown.bytes -= len(next.frame)
		l.shows(next)
	}
	l.n.shown.behind, l.n.shown.bytes = nil, 0
}

// shows lets boards and pages see it now.
func (l *loop) shows(w *showing) {
	if w.told != nil && l.n.pages.watched() && !l.n.stands(w.told) {
		l.n.pages.publish(api.Event{Type: "message", Pos: w.told.pos, Message: l.messageOf(w.told)})
	}
	if w.frame == nil || len(w.boards) == 0 {
		return
	}
	p := link.Prepare(w.frame)
	for _, id := range w.boards {
		s := l.sockets[id]
		if s == nil || id == w.except || s.as != nil {
			continue
		}
		if s.undecided {
			if s.greets.Load() {
				s.held = nil // an agent is shown nothing of it
			} else {
				l.hold(s, p)
			}
			continue
		}
		s.conn.SendPrepared(p)
	}
}

func (l *loop) toBoards(frame []byte, except hub.ConnID) {
	if boards := l.core.Boards(); len(boards) > 0 {
		l.show(&showing{frame: frame, boards: slices.Clone(boards), except: except})
	}
}
