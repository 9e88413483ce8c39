package turn

import (
	"github.com/aster-mesh/aster/node/hub"
	"github.com/aster-mesh/aster/node/journal"
	"github.com/aster-mesh/aster/node/replica"
	"github.com/aster-mesh/aster/protocol"
)

// Batch is the one commit of a turn: its records, what the hub owes with them, and named values.
func Batch(entries []journal.Entry, rd *hub.Ready, values map[string][]byte) journal.Batch {
	b := journal.Batch{Entries: entries, Values: values, Left: rd.Left}
	for _, p := range rd.Inbox {
		b.Inbox = append(b.Inbox, journal.InboxPut{Agent: p.Agent, Log: p.Ref.Log, Seq: p.Ref.Seq})
	}
	for _, r := range rd.Renames {
		b.Renames = append(b.Renames, journal.InboxRename(r))
	}
	for _, t := range rd.Tiers {
		b.Tiers = append(b.Tiers, journal.TierPut{Log: t.Ref.Log, Seq: t.Ref.Seq, Tier: t.Tier, Agent: t.Agent, At: t.At, Wall: t.Wall, By: t.By, Reason: t.Reason})
	}
	return b
}

// TakenBackMax bounds how often one turn is tried on a full disk.
const TakenBackMax = 3

// Owes says whether a turn has anything to commit.
func Owes(entries []journal.Entry, rd *hub.Ready, values map[string][]byte) bool {
	return len(entries)+len(rd.Inbox)+len(rd.Tiers)+len(rd.Renames)+len(rd.Left)+len(values) > 0
}

// Commits says of each log what a commit added to it, in the order of their first records. from is who sent each.
func Commits(entries []journal.Entry, from map[protocol.LogID]protocol.PeerID) []replica.Commit {
	var out []replica.Commit
	at := map[protocol.LogID]int{}
	for i := range entries {
		rec := &entries[i].Record
		n, ok := at[rec.Log]
		if !ok {
			n = len(out)
			at[rec.Log] = n
			out = append(out, replica.Commit{Log: rec.Log, From: from[rec.Log], Quiet: true})
		}
		c := &out[n]
		c.Quiet = c.Quiet && rec.Kind == protocol.KindReceipts
		c.Seq, c.Hash, c.Bytes = rec.Seq, entries[i].Hash, c.Bytes+RecordBytes(rec)
	}
	return out
}

// RecordBytes is what a record weighs on a link: its body and about 120 bytes round it.
func RecordBytes(r *protocol.Record) int { return len(r.Body) + len(r.Sig) + 120 }

// signEveryBytes keeps what one signature covers small enough for a frame between nodes: whole commits travel.
const signEveryBytes = protocol.MeshFrameBytesMax / 4

// Chain completes drafts: each record's predecessor, which chain knows, and its hash. The last of each log is to be signed,
// which the store does while it writes.
func Chain(chain map[protocol.LogID]protocol.Hash, drafts []hub.Draft) []journal.Entry {
	out := make([]journal.Entry, len(drafts))
	last, unsigned := map[protocol.LogID]int{}, map[protocol.LogID]int{}
	for i := range drafts {
		rec := drafts[i].Record
		rec.Prev = chain[rec.Log]
		h := rec.Hash()
		chain[rec.Log] = h
		last[rec.Log] = i
		out[i] = journal.Entry{Record: rec, Hash: h, Envelope: drafts[i].Env, Void: drafts[i].Env == nil && rec.Kind == protocol.KindMessage}
		if unsigned[rec.Log] += RecordBytes(&rec); unsigned[rec.Log] > signEveryBytes {
			unsigned[rec.Log] = 0
			out[i].Sign = true
			delete(last, rec.Log)
		}
	}
	for _, i := range last {
		out[i].Sign = true
	}
	return out
}
