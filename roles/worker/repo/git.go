package repo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"
)

// gitWait bounds one call of git: a clone of 64 MiB takes seconds, a hung filter or file system must not take a slot.
const gitWait = 2 * time.Minute

// gitOutputMax bounds what git may answer on stdout; the longest we read are lists of refs and changed paths.
const gitOutputMax = 8 << 20

// always stands before every subcommand: no hooks, no signing prompts, no background work in somebody's repository, and no
// transport at all (bundles are read by unbundle).
var always = []string{
	"core.hooksPath=/dev/null", "core.fsmonitor=false", "core.quotePath=false",
	"commit.gpgSign=false", "gc.auto=0", "maintenance.auto=false", "advice.detachedHead=false",
	"protocol.allow=never",
}

// command returns git on dir with a clean environment: a node started from a hook has GIT_DIR set to something else.
func command(ctx context.Context, dir string, env []string, args ...string) *exec.Cmd {
	argv := []string{"-C", dir}
	for _, c := range always {
		argv = append(argv, "-c", c)
	}
	cmd := exec.CommandContext(ctx, "git", append(argv, args...)...)
	cmd.Env = append(CleanEnv(os.Environ()), "GIT_TERMINAL_PROMPT=0", "LC_ALL=C")
	cmd.Env = append(cmd.Env, env...)
	cmd.ExtraFiles = inherited(ctx)
	cmd.WaitDelay = 5 * time.Second
	return cmd
}

// CleanEnv returns env without git's own variables.
func CleanEnv(env []string) []string {
	out := make([]string, 0, len(env))
	for _, kv := range env {
		if !strings.HasPrefix(strings.ToUpper(kv), "GIT_") {
			out = append(out, kv)
		}
	}
	return out
}

// failure is git's no: the exit code and what it said.
type failure struct {
	verb string
	exit int
	said string
}

func (f *failure) Error() string {
	if f.said == "" {
		return fmt.Sprintf("git %s: exit code %d", f.verb, f.exit)
	}
	return fmt.Sprintf("git %s: %s", f.verb, f.said)
}

// git runs one subcommand and returns its stdout without the last line end.
func git(ctx context.Context, dir string, args ...string) (string, error) {
	return gitEnv(ctx, dir, nil, args...)
}

func gitEnv(ctx context.Context, dir string, env []string, args ...string) (string, error) {
	return gitFed(ctx, dir, env, nil, args...)
}

// gitFed is git with something on its stdin, which may be nil.
func gitFed(ctx context.Context, dir string, env []string, in io.Reader, args ...string) (string, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, gitWait, fmt.Errorf("git %s took longer than %s", args[0], gitWait))
	defer cancel()
	cmd := command(ctx, dir, env, args...)
	stdout, stderr := &bounded{max: gitOutputMax}, &bounded{max: 4 << 10, cut: true}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = in, stdout, stderr
	err := cmd.Run()
	if err == nil {
		return strings.TrimSuffix(stdout.buf.String(), "\n"), nil
	}
	if ctx.Err() != nil {
		return "", context.Cause(ctx)
	}
	if errors.Is(err, exec.ErrNotFound) {
		return "", errors.New("git is not installed here, or not in PATH")
	}
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return "", &failure{args[0], exit.ExitCode(), lastWords(stderr.buf.String())}
	}
	return "", fmt.Errorf("git %s: %w", args[0], err)
}

// exitOf returns the exit code that git answered with, or -1.
func exitOf(err error) int {
	var f *failure
	if errors.As(err, &f) {
		return f.exit
	}
	return -1
}

// lastWords keeps what git says last: the reason comes after its progress and hints.
func lastWords(s string) string {
	lines := strings.Split(strings.TrimSpace(s), "\n")
	if len(lines) > 3 {
		lines = lines[len(lines)-3:]
	}
	for i, line := range lines {
		line = strings.TrimPrefix(strings.TrimSpace(line), "fatal: ")
		lines[i] = strings.TrimPrefix(line, "error: ")
	}
	return strings.Join(lines, "; ")
}

// bounded keeps the first max bytes; more is an error, or dropped when cut is set.
type bounded struct {
	buf bytes.Buffer
	max int
	cut bool
}

var errTooMuch = errors.New("more output than the bound")

func (b *bounded) Write(p []byte) (int, error) {
	room := b.max - b.buf.Len()
	if len(p) <= room {
		return b.buf.Write(p)
	}
	if !b.cut {
		return 0, errTooMuch
	}
	b.buf.Write(p[:max(room, 0)])
	return len(p), nil
}
