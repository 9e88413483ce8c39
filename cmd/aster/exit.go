package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/aster-mesh/aster/cmd/aster/internal/client"
	"github.com/aster-mesh/aster/protocol"
)

// The exit codes are part of the contract (DESIGN 8).
const (
	exitOK         = 0
	exitFailed     = 1
	exitUsage      = 2
	exitNotRunning = 3
	exitRefused    = 4
	exitTimedOut   = 5
)

// exit is an error that knows its code. An empty text was said already.
type exit struct {
	code int
	text string
}

func (e *exit) Error() string { return e.text }

func refused(format string, args ...any) error {
	return &exit{exitRefused, fmt.Sprintf(format, args...)}
}

func failed(format string, args ...any) error {
	return &exit{exitFailed, fmt.Sprintf(format, args...)}
}

func usage(format string, args ...any) error {
	return &exit{exitUsage, fmt.Sprintf(format, args...)}
}

// ran marks an error of a command that began to work; all others are mistakes of usage that cobra found.
type ran struct{ error }

func (r ran) Unwrap() error { return r.error }

// end says why and returns the exit code.
func (a *app) end(err error) int {
	if err == nil {
		return exitOK
	}
	code, text := a.explain(err)
	if text != "" {
		fmt.Fprintln(a.stderr, a.pasteable(text))
	}
	return code
}

func (a *app) explain(err error) (code int, text string) {
	var own *exit
	var no *protocol.Refusal
	var began ran
	switch {
	case errors.As(err, &own):
		return own.code, own.text
	case errors.Is(err, client.ErrNotRunning):
		return exitNotRunning, fmt.Sprintf("no node runs here (home %s). Start it: %s", tilde(a.home), a.typed("up"))
	case errors.Is(err, client.ErrTimedOut), errors.Is(err, context.DeadlineExceeded):
		return exitTimedOut, "timed out"
	case errors.As(err, &no) && (no.Code == client.CodeInternal || no.Code == client.CodeNotReady):
		return exitFailed, clean(no.Error())
	case errors.As(err, &no):
		return exitRefused, clean(no.Error())
	case errors.Is(err, client.ErrLost):
		return exitFailed, "the node went away before it answered. See why: aster logs"
	case !errors.As(err, &began):
		return exitUsage, strings.TrimSuffix(err.Error(), "\n") + "\n" + a.usageHint
	}
	return exitFailed, err.Error()
}

// tilde writes a path below the user's own folder as people do.
func tilde(path string) string {
	own, err := os.UserHomeDir()
	if err != nil || own == "" || own == string(os.PathSeparator) {
		return path
	}
	if rest, ok := strings.CutPrefix(path, own+string(os.PathSeparator)); ok {
		return "~" + string(os.PathSeparator) + rest
	}
	return path
}
