package turn

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/aster-mesh/aster/node/journal"
	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/roles/cut"
)

// momentsCheckpoint is the name of what a store keeps of how long it has held its records.
const momentsCheckpoint = "moments"

// MomentStore keeps moments. What it gives is its own: positions of one store mean nothing in another.
type MomentStore interface {
	Position() uint64
	Checkpoint(name string) (pos uint64, data []byte, ok bool, err error)
	SaveCheckpoint(name string, pos uint64, data []byte) error
}

// NoteMoment keeps that a store holds now what it holds, if it is time for it, and returns all that it noted so. A store without room
// notes nothing.
func NoteMoment(store MomentStore, now time.Time, age time.Duration) ([]cut.Moment, error) {
	pos := store.Position()
	_, raw, ok, err := store.Checkpoint(momentsCheckpoint)
	if err != nil {
		return nil, fmt.Errorf("read moments: %w", err)
	}
	var moments []cut.Moment
	if ok && json.Unmarshal(raw, &moments) != nil {
		moments = nil // it is noted anew
	}
	moments, noted := cut.Note(moments, now, age, pos)
	if !noted {
		return moments, nil
	}
	err = store.SaveCheckpoint(momentsCheckpoint, pos, protocol.EncodeBody(moments))
	if errors.Is(err, journal.ErrFull) {
		err = nil
	}
	if err != nil {
		return nil, fmt.Errorf("keep moments: %w", err)
	}
	return moments, nil
}
