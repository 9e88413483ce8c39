package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"strings"

	"github.com/aster-mesh/aster/node"
	"github.com/aster-mesh/aster/protocol/api"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// detachedEnv tells the child that it was started by up --detach: it says on stdout, once and as JSON, how it went.
const detachedEnv = "ASTER_DETACHED"

// outcome is what a detached child says: that it is ready, that another runs, or why it ended.
type outcome struct {
	api.Ready
	Code int    `json:"code,omitempty"`
	Text string `json:"text,omitempty"`
}

// childArgs repeats this command for the child. The invite goes by a pipe: arguments are for everyone to read.
func childArgs(cmd *cobra.Command, o upOptions) []string {
	args := []string{"up"}
	cmd.Flags().Visit(func(f *pflag.Flag) {
		switch list, many := f.Value.(pflag.SliceValue); {
		case f.Name == "detach" || f.Name == "join" || f.Name == "json" || f.Name == "home":
		case many:
			for _, v := range list.GetSlice() {
				args = append(args, "--"+f.Name+"="+v)
			}
		default:
			args = append(args, "--"+f.Name+"="+f.Value.String())
		}
	})
	if o.join != "" {
		args = append(args, "--join=-")
	}
	return args
}

// detach runs the node in a process of its own session and returns when that is ready or has ended.
func (a *app) detach(ctx context.Context, args []string, invite string, announce func(api.Ready) error) error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program: %w", err)
	}
	file := newLogFile(a.home)
	defer file.Close()
	if err := file.open(); err != nil {
		return err
	}
	child := exec.Command(self, append(args, "--home="+a.home)...)
	child.Env = append(os.Environ(), detachedEnv+"=1")
	child.Dir = a.home // so that it holds no folder of the caller's
	child.Stderr = file.f
	child.SysProcAttr = ownSession()
	if invite != "" {
		child.Stdin = strings.NewReader(invite + "\n")
	}
	said, err := child.StdoutPipe()
	if err != nil {
		return fmt.Errorf("start the node: %w", err)
	}
	if err := child.Start(); err != nil {
		return fmt.Errorf("start the node: %w", err)
	}
	heard := make(chan outcome, 1)
	go func() {
		var got outcome
		if json.NewDecoder(said).Decode(&got) != nil {
			got = outcome{Code: exitFailed, Text: "the node ended before it was ready. See why: aster logs"}
		}
		heard <- got
	}()
	select {
	case <-ctx.Done():
		return errors.Join(context.Cause(ctx), child.Process.Kill())
	case got := <-heard:
		return a.heardOf(child, got, announce)
	}
}

func (a *app) heardOf(child *exec.Cmd, got outcome, announce func(api.Ready) error) error {
	switch {
	case got.Event == "ready":
		return errors.Join(announce(got.Ready), child.Process.Release())
	case got.Event == "running":
		return errors.Join(a.already(got.PID, false), child.Process.Release())
	}
	_ = child.Wait() // its exit code says less than it did
	return &exit{got.Code, got.Text}
}

// background is the child's side. Its stdin and stdout belong to the parent, which leaves.
func (a *app) background(ctx context.Context, cfg node.Config) error {
	if err := os.Unsetenv(detachedEnv); err != nil { // what the node starts is not detached by us
		return fmt.Errorf("prepare environment: %w", err)
	}
	file := newLogFile(a.home)
	defer file.Close()
	cfg.Log = slog.New(newPacedLog(logHandler(file, slog.LevelInfo)))
	ready := false
	err := a.serve(ctx, cfg, func(r api.Ready) error {
		ready = true
		err := a.emit(outcome{Ready: r})
		if c, ok := a.stdout.(io.Closer); ok {
			err = errors.Join(err, c.Close()) // nobody reads on
		}
		return err
	})
	var other *node.RunningError
	switch {
	case ready || err == nil:
		return err
	case errors.As(err, &other):
		return a.emit(outcome{Ready: api.Ready{Event: "running", PID: other.File.PID}})
	}
	code, text := a.explain(ran{err})
	return errors.Join(a.emit(outcome{Ready: api.Ready{Event: "failed"}, Code: code, Text: text}), err)
}
