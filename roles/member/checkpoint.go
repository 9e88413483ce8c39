package member

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/aster-mesh/aster/protocol"
)

// ErrBadRoster says that bytes are not an encoded roster.
var ErrBadRoster = errors.New("bad roster")

type writeImage struct {
	Log  string        `json:"log"`
	Seq  uint64        `json:"seq"`
	At   protocol.HLC  `json:"at"`
	Wall int64         `json:"wall"`
	Kind protocol.Kind `json:"kind"`
	Body []byte        `json:"body"`
}

type canonical struct {
	Mesh    MeshID                           `json:"mesh"`
	Members []Member                         `json:"members"`
	Cuts    map[protocol.PeerID]canonicalCut `json:"cuts"`
	Invites map[string]protocol.PeerID       `json:"invites"`
	Term    protocol.TermBody                `json:"term"`
	Voters  protocol.VotersBody              `json:"voters"`
	Terms   map[string]canonicalCut          `json:"terms"` // what each counts of the one before
}

type canonicalCut struct {
	At   protocol.HLC      `json:"at"`
	Logs map[string]uint64 `json:"logs"`
}

// Canonical returns what counts, as bytes that are equal for equal sets of records that count.
func (r *Roster) Canonical() []byte {
	c := canonical{
		Mesh: r.mesh, Members: r.Members(), Cuts: map[protocol.PeerID]canonicalCut{},
		Invites: map[string]protocol.PeerID{}, Term: r.Term(), Voters: r.Voters(), Terms: map[string]canonicalCut{},
	}
	for t, of := range r.terms {
		c.Terms[t.String()+" "+string(t.Peer)+" after "+of.prev.String()+" "+string(of.prev.Peer)] = canonicalCut{Logs: texts(of.cuts)}
	}
	for p, of := range r.cuts.of {
		c.Cuts[p] = canonicalCut{of.at, texts(of.logs)}
	}
	for id, w := range r.invites {
		c.Invites[id] = w.invite.Peer
	}
	return protocol.EncodeBody(c)
}

func texts(cuts map[protocol.LogID]uint64) map[string]uint64 {
	out := make(map[string]uint64, len(cuts))
	for log, seq := range cuts {
		out[log.String()] = seq
	}
	return out
}

// Encode returns all that the roster keeps, for a checkpoint.
func (r *Roster) Encode() []byte {
	all := make([]*write, 0, len(r.writes))
	for _, w := range r.writes {
		all = append(all, w)
	}
	slices.SortFunc(all, (*write).compare)
	images := make([]writeImage, len(all))
	for i, w := range all {
		images[i] = writeImage{w.log.String(), w.seq, w.at, w.wall, w.kind, w.body}
	}
	return protocol.EncodeBody(images)
}

// DecodeRoster reads what Encode wrote, or says ErrBadRoster.
func DecodeRoster(mesh MeshID, text []byte) (*Roster, error) {
	var images []writeImage
	if err := json.Unmarshal(text, &images); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrBadRoster, err)
	}
	r := NewRoster(mesh)
	for _, w := range images {
		log, err := protocol.ParseLogID(w.Log)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrBadRoster, err)
		}
		if !r.Apply(&protocol.Record{Log: log, Seq: w.Seq, At: w.At, Wall: w.Wall, Kind: w.Kind, Body: w.Body}) {
			return nil, fmt.Errorf("%w: %s seq %d is no record of membership", ErrBadRoster, w.Log, w.Seq)
		}
	}
	return r, nil
}
