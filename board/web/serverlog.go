package web

import (
	"bytes"
	"context"
	"log"
	"log/slog"
)

// serverLog is what net/http says of its connections: strangers' broken ones, which are no news, and our own panics,
// which must be seen although the server lives on.
func serverLog(to *slog.Logger) *log.Logger { return log.New(complaint{to}, "", 0) }

type complaint struct{ to *slog.Logger }

func (c complaint) Write(line []byte) (int, error) {
	level := slog.LevelDebug
	if bytes.Contains(line, []byte("panic serving")) {
		level = slog.LevelError
	}
	c.to.Log(context.Background(), level, string(bytes.TrimSpace(line)))
	return len(line), nil
}
