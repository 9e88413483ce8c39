package journal

import (
	"crypto/ed25519"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"

	"github.com/aster-mesh/aster/protocol"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv("ASTER_TEST_JOURNAL_CHILD"); dir != "" {
		commitUntilKilled(dir)
	}
	if args := os.Getenv(childLeaves); args != "" {
		leaveUntilKilled(args)
	}
	if args := os.Getenv(childRebases); args != "" {
		rebaseUntilKilled(args)
	}
	goleak.VerifyTestMain(m)
}

// thorough chooses between the whole sweep (ASTER_LONG=1, a few minutes) and a sample of it that differs by nothing but
// size.
func thorough(long, quick int) int {
	if os.Getenv("ASTER_LONG") != "" {
		return long
	}
	return quick
}

// author writes logs as a node would.
type author struct {
	key  ed25519.PrivateKey
	log  protocol.LogID
	seq  uint64
	prev protocol.Hash
	at   protocol.HLC
	owes bool // every other step leaves its signature to the store
}

// newAuthor makes an author from a seed; start tells its logs apart.
func newAuthor(seed byte, start uint64) *author {
	raw := make([]byte, ed25519.SeedSize)
	raw[0] = seed
	key := ed25519.NewKeyFromSeed(raw)
	at := protocol.HLC(1_780_000_000_000 << 16)
	return &author{key: key, at: at, log: protocol.LogID{
		Peer:  protocol.PeerIDOf(key.Public().(ed25519.PublicKey)),
		Start: protocol.Start{At: at, Rand: start}, Scope: protocol.ScopeInside,
	}}
}

// add returns the next record of the log; the last of a commit is signed.
func (a *author) add(kind protocol.Kind, body []byte, sign bool) Entry {
	a.seq++
	a.at++
	r := protocol.Record{Log: a.log, Seq: a.seq, Prev: a.prev, At: a.at, Wall: 1_780_000_000_000 + int64(a.seq), Kind: kind, Body: body}
	a.prev = r.Hash()
	if sign {
		r.Sign(a.key)
	}
	return Entry{Record: r, Hash: a.prev}
}

func (a *author) say(env protocol.Envelope) Entry {
	e := a.add(protocol.KindMessage, protocol.EncodeBody(env), true)
	e.Envelope = &env
	return e
}

func message(from, to, id, text string) protocol.Envelope {
	value, _ := json.Marshal(map[string]string{"text": text})
	return protocol.Envelope{
		ID: protocol.MsgID(id), From: protocol.AgentID(from), To: protocol.AgentID(to), Source: protocol.SourceAgent,
		Intent: "Note", Value: value,
	}
}

// note is a message n of a conversation between a and b.
func note(n int) protocol.Envelope {
	return message("anna", "ben", fmt.Sprintf("019a0000-0000-7000-8000-%012x", n), fmt.Sprintf("this is message number %d", n))
}

func open(t testing.TB, dir string, o Options) *Journal {
	t.Helper()
	j, err := Open(dir, o)
	if err != nil {
		t.Fatalf("Open: %v", err)
	}
	t.Cleanup(func() { j.Close() })
	return j
}

func commit(t testing.TB, j *Journal, b Batch) uint64 {
	t.Helper()
	pos, err := j.Commit(b)
	if err != nil {
		t.Fatalf("Commit: %v", err)
	}
	return pos
}

func tempDir(t testing.TB) string { return filepath.Join(t.TempDir(), "journal") }
