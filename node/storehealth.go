package node

import (
	"slices"
	"strings"

	"github.com/aster-mesh/aster/node/journal"
	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/api"
)

// storeHealth completes h with what became of damage that a store was opened with or met since.
func storeHealth(store *journal.Journal, h api.StoreHealth, names map[protocol.PeerID]string) api.StoreHealth {
	r := store.Recovery()
	if r.Reason != "" {
		h.Reason = strings.TrimPrefix(h.Reason+"; "+r.Reason, "; ")
	}
	for _, path := range r.SetAside {
		if !slices.Contains(h.SetAside, path) {
			h.SetAside = append(h.SetAside, path)
		}
	}
	h.Salvaged = max(h.Salvaged, r.Salvaged)
	h.Missing = nil
	missing := func(log protocol.LogID, from, to uint64) {
		if k := len(h.Missing) - 1; k >= 0 && h.Missing[k].Log == log.String() && h.Missing[k].To+1 == from {
			h.Missing[k].To = to
			return
		}
		h.Missing = append(h.Missing, api.MissingRecords{Log: log.String(), Node: names[log.Peer], From: from, To: to})
	}
	bad, err := store.Damaged()
	if err != nil {
		h.Faults = append(h.Faults, api.StoreFault{Code: journal.FaultRecord, What: err.Error()})
	}
	for _, l := range bad {
		missing(l.Log, l.From, l.To)
	}
	heads := map[protocol.LogID]uint64{}
	all, err := store.Heads()
	if err != nil {
		h.Faults = append(h.Faults, api.StoreFault{Code: journal.FaultRecord, What: err.Error()})
	}
	for _, head := range all {
		heads[head.Log] = head.Seq
	}
	for _, l := range r.Lost {
		if !l.Held && heads[l.Log] < l.To {
			missing(l.Log, max(l.From, heads[l.Log]+1), l.To)
		}
	}
	h.Contents = store.DamagedBlobs()
	return h
}
