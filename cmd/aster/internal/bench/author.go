package bench

import (
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/aster-mesh/aster/node/journal"
	"github.com/aster-mesh/aster/protocol"
)

// author writes records as a node does: chained, the last of each commit signed.
type author struct {
	key   ed25519.PrivateKey
	log   protocol.LogID
	seq   uint64
	prev  protocol.Hash
	clock protocol.Clock
}

func newAuthor(key ed25519.PrivateKey) *author {
	a := &author{key: key}
	start := protocol.Start{At: a.clock.Next(time.Now()), Rand: 1}
	a.log = protocol.LogID{Peer: protocol.PeerIDOf(key.Public().(ed25519.PublicKey)), Start: start, Scope: protocol.ScopeInside}
	return a
}

// homeKey reads a home's key.
func homeKey(home string) (ed25519.PrivateKey, error) {
	raw, err := os.ReadFile(filepath.Join(home, "node.key"))
	if err != nil {
		return nil, fmt.Errorf("read the home's key: %w", err)
	}
	seed, err := base64.StdEncoding.DecodeString(strings.TrimSpace(string(raw)))
	if err != nil || len(seed) != ed25519.SeedSize {
		return nil, fmt.Errorf("the home's key has %d bytes", len(seed))
	}
	return ed25519.NewKeyFromSeed(seed), nil
}

func (a *author) entry(kind protocol.Kind, body any, env *protocol.Envelope) journal.Entry {
	now := time.Now()
	a.seq++
	r := protocol.Record{Log: a.log, Seq: a.seq, Prev: a.prev, At: a.clock.Next(now), Wall: now.UnixMilli(), Kind: kind, Body: protocol.EncodeBody(body)}
	a.prev = r.Hash()
	return journal.Entry{Record: r, Hash: a.prev, Envelope: env}
}

// message is a message of 600 bytes.
func (a *author) message(from, to protocol.AgentID) journal.Entry {
	return a.messageAs(protocol.RoleLocal, from, to)
}

func (a *author) messageAs(role protocol.Role, from, to protocol.AgentID) journal.Entry {
	env := &protocol.Envelope{ID: protocol.MsgID(uuid.Must(uuid.NewV7()).String()), From: from, FromRole: role, Source: protocol.SourceAgent,
		To: to, Intent: protocol.Request, Value: json.RawMessage(`{"text":"` + padding + `"}`)}
	return a.entry(protocol.KindMessage, env, env)
}

// commit signs the batch's last record and writes the batch.
func (a *author) commit(j *journal.Journal, b journal.Batch) error {
	b.Entries[len(b.Entries)-1].Record.Sign(a.key)
	_, err := j.Commit(b)
	return err
}

// indexed waits until the journal has caught up with itself, which is some 10,000 records a second on a calm machine.
func indexed(ctx context.Context, j *journal.Journal, records int) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- j.Run(ctx) }()
	err := untilWithin(ctx, startWait+time.Duration(records)*time.Millisecond, "the index is behind", func() (bool, error) { return j.Indexed(), nil })
	cancel()
	return errors.Join(err, <-ended)
}
