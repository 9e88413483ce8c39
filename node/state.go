package node

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"github.com/aster-mesh/aster/node/hub"
	"github.com/aster-mesh/aster/protocol"
)

// State implements web.Viewer: the state document, which main's home publishes and every node serves.
func (n *Node) State(context.Context) ([]byte, error) {
	if d := n.document.Load(); d != nil {
		return []byte(d.Text), nil
	}
	return nil, nil
}

// showState serves the document that the board holds now.
func (l *loop) showState() { l.n.document.Store(l.board.Document()) }

// stateLook is how often the file is looked at: what the contract promises (wire 1.1).
const stateLook = 500 * time.Millisecond

// stateFile is what is known of the watched file.
type stateFile struct {
	path string
	mod  time.Time
	size int64
}

// watchState publishes each valid content of the state document while main lives here. A broken one changes nothing: the
// last good one is served, and status says what is wrong.
func (n *Node) watchState(ctx context.Context) error {
	f := stateFile{path: n.statePath()}
	looks := time.NewTicker(stateLook)
	defer looks.Stop()
	for {
		if err := n.lookAtState(ctx, &f); err != nil && ctx.Err() == nil {
			n.log.Error("state document not looked at", "err", err)
			n.warnings.set(warnState, "the state document cannot be looked at ("+err.Error()+"). Mend the rights of "+f.path)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-looks.C:
		}
	}
}

// statePath is where the watched file is.
func (n *Node) statePath() string { return cmp.Or(n.cfg.State, n.home.path("state.json")) }

// lookAtState reads the file when it changed. What is being written is not yet JSON, or comes out the same once more.
func (n *Node) lookAtState(ctx context.Context, f *stateFile) error {
	info, err := os.Stat(f.path)
	if errors.Is(err, fs.ErrNotExist) {
		f.mod, f.size = time.Time{}, 0
		n.warnings.clear(warnState)
		return nil
	}
	if err != nil {
		return fmt.Errorf("look at %s: %w", f.path, err)
	}
	if info.ModTime().Equal(f.mod) && info.Size() == f.size {
		return nil
	}
	text, why := readState(f.path)
	mine := false
	if err := n.loop.call(ctx, func() { mine = n.loop.publishState(text, why, info.ModTime()) }); err != nil {
		return err
	}
	if mine { // else main may come here, and the file is looked at anew
		f.mod, f.size = info.ModTime(), info.Size()
	}
	return nil
}

// readState returns the file's content, or why it is no state document.
func readState(path string) (text, why string) {
	file, err := os.Open(path)
	if err != nil {
		return "", err.Error()
	}
	defer file.Close()
	raw, err := io.ReadAll(io.LimitReader(file, protocol.StateBytesMax+1))
	switch {
	case err != nil:
		return "", err.Error()
	case len(raw) > protocol.StateBytesMax:
		return "", fmt.Sprintf("it has more than %d bytes", protocol.StateBytesMax)
	}
	var object map[string]json.RawMessage
	if err := json.Unmarshal(raw, &object); err != nil {
		return "", err.Error()
	}
	if object == nil {
		return "", "it is null"
	}
	return string(raw), ""
}

// warnState is the kind of the warning that speaks of the file.
const warnState = "state"

// publishState makes a record of a new content, if main lives here; false: it does not. A file older than what another
// node published since is a left-over of an earlier term.
func (l *loop) publishState(text, why string, written time.Time) bool {
	if l.mainPeer() != l.n.home.peer {
		l.n.warnings.clear(warnState)
		return false
	}
	if why != "" {
		l.warn(warnState, "the state document is not readable ("+why+"): the last good one is served. Mend "+l.n.statePath()+": one JSON object, written whole; it is read again by itself")
		return true
	}
	l.n.warnings.clear(warnState)
	d := l.board.Document()
	if d != nil && (d.Text == text || d.By != l.n.home.peer && written.UnixMilli() < d.Wall) {
		return true
	}
	body := protocol.EncodeBody(protocol.StateBody{Text: text})
	if len(body) > protocol.RecordBytesMax-4096 {
		l.warn(warnState, "the state document is too large for a record: the last one is served")
		return true
	}
	l.core.Step(l.now, hub.Author{Scope: protocol.ScopeInside, Kind: protocol.KindState, Body: body})
	return true
}
