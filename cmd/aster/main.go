package main

import (
	"context"
	"errors"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/aster-mesh/aster/node"
)

func main() {
	// The first signal ends what runs; with the second the system's own rule holds again, so it ends at once.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	os.Exit(run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// run runs one command and returns its exit code. What is data goes to stdout, what is talk to stderr.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	return runWith(ctx, node.Run, args, stdin, stdout, stderr)
}

// runNode is node.Run; tests put another in its place.
type runNode func(context.Context, node.Config) error

func runWith(ctx context.Context, up runNode, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	a := &app{runNode: up, stdin: stdin, stdout: stdout, stderr: stderr}
	root := newRoot(a)
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if ctx.Err() != nil && errors.Is(err, context.Cause(ctx)) && !a.following {
		err = &exit{code: exitFailed, text: "interrupted"}
	} else if ctx.Err() != nil && errors.Is(err, context.Cause(ctx)) {
		err = nil // a person ended what would have gone on for ever
	}
	return a.end(err)
}
