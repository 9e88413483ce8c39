package gossip

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"github.com/aster-mesh/aster/protocol"
)

// diagnostics turns memberlist's lines ("[WARN] memberlist: …") into ours. A line about a peer's mistake comes as often
// as the peer likes, so there is a bound on them, and a count of what it kept back.
type diagnostics struct {
	log       *slog.Logger
	suspected func(protocol.PeerID)
	limit     *rate.Limiter
	kept      atomic.Int64
}

const (
	linesPerSec  = 1
	linesBurst   = 20
	lineBytesMax = 500
)

func newDiagnostics(log *slog.Logger, suspected func(protocol.PeerID)) *diagnostics {
	return &diagnostics{log: log, suspected: suspected, limit: rate.NewLimiter(linesPerSec, linesBurst)}
}

// Write takes one line; memberlist calls it with a whole one.
func (d *diagnostics) Write(line []byte) (int, error) {
	level, text := slog.LevelInfo, string(bytes.TrimSpace(line))
	for _, l := range []struct {
		tag   string
		level slog.Level
	}{{"[DEBUG] ", slog.LevelDebug}, {"[INFO] ", slog.LevelInfo}, {"[WARN] ", slog.LevelWarn}, {"[ERR] ", slog.LevelWarn}} {
		if rest, ok := strings.CutPrefix(text, l.tag); ok {
			level, text = l.level, rest
			break
		}
	}
	text = strings.TrimPrefix(text, "memberlist: ")
	if peer, ok := suspicion(text); ok {
		d.suspected(peer)
	}
	if !d.log.Enabled(context.Background(), level) {
		return len(line), nil
	}
	if !d.limit.AllowN(time.Now(), 1) {
		d.kept.Add(1)
		return len(line), nil
	}
	args := []any{"detail", protocol.CutText(text, lineBytesMax)}
	if n := d.kept.Swap(0); n > 0 {
		args = append(args, "kept_back", n)
	}
	d.log.Log(context.Background(), level, "memberlist", args...)
	return len(line), nil
}

// suspicion reads the one line that says what no hook of memberlist does: our own probe of a node failed. A test holds
// the wording of the version we use.
func suspicion(text string) (protocol.PeerID, bool) {
	rest, ok := strings.CutPrefix(text, "Suspect ")
	if !ok {
		return "", false
	}
	name, ok := strings.CutSuffix(rest, " has failed, no acks received")
	return protocol.PeerID(name), ok
}
