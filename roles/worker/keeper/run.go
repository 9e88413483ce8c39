package keeper

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

const (
	// grace is what a run gets between the polite and the hard end.
	grace = 5 * time.Second
	// lookEvery is how often limits and the cancel file are looked at.
	lookEvery = 100 * time.Millisecond
	// tellEvery is the shortest distance between two progress files.
	tellEvery = time.Second
	// drainWait is how long the output may stay open after everything that we could end has ended.
	drainWait = 2 * time.Second
)

// stop is why a run was ended before it ended by itself.
type stop struct {
	outcome string
	reason  string
	now     bool // no grace: it would only print more
}

// ended is how one command ended.
type ended struct {
	exit *int
	stop *stop
	fail error // it could not be started
}

// supervise runs one command in the work tree to its end, within what is left of the attempt's limits, and ends all that
// it forked.
func (k *keeper) supervise(cmd *exec.Cmd) ended {
	r, w, err := os.Pipe()
	if err != nil {
		return ended{fail: err}
	}
	defer r.Close()
	cmd.Dir, cmd.Env = k.tree.Work, k.environment()
	cmd.Stdout, cmd.Stderr = w, w
	k.tell(true)
	if s := k.look(); s != nil {
		w.Close()
		return ended{stop: s}
	}
	err = cmd.Start()
	w.Close()
	if err != nil {
		return ended{fail: err}
	}
	pid := cmd.Process.Pid
	if err := WriteJSON(k.dir, FileChild, describe(pid), false); err != nil {
		fmt.Fprintln(os.Stderr, "keeper:", err)
	}
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		k.drain(r)
	}()
	waited := make(chan struct{})
	go func() {
		defer close(waited)
		_ = cmd.Wait() // how it ended is in ProcessState
	}()
	why := k.watch(pid, waited)
	k.leftOver = endAll(pid)
	select {
	case <-drained:
	case <-time.After(drainWait):
		// Somebody escaped with the pipe (no subreaper here): we read no further.
		_ = r.SetReadDeadline(time.Now())
		<-drained
	}
	exit := exitCode(cmd)
	return ended{exit: &exit, stop: why}
}

// drain moves what the command prints into the sink, as fast as it prints: beyond the bound it costs a copy of 64 KiB.
func (k *keeper) drain(r io.Reader) {
	buf := make([]byte, 64<<10)
	for {
		n, err := r.Read(buf)
		k.sink.take(buf[:n])
		if err != nil {
			return
		}
	}
}

// watch waits until the command has ended and says why it was ended, if it was.
func (k *keeper) watch(pid int, waited <-chan struct{}) *stop {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		select {
		case <-waited:
			return k.late()
		case <-tick.C:
			reap(pid)
			if s := k.look(); s != nil {
				k.bringDown(pid, s, waited)
				return s
			}
			k.tell(false)
		}
	}
}

// late finds a bound that was passed between the last look and the end.
func (k *keeper) late() *stop {
	tokens, over := k.sink.quick()
	return k.printed(tokens, over)
}

func (k *keeper) printed(tokens int64, over bool) *stop {
	o := &k.order
	if over {
		return &stop{Failed, fmt.Sprintf("stopped: it printed more than %s", size(o.OutputBytesMax)), true}
	}
	if o.TokensMax > 0 && tokens > o.TokensMax {
		return &stop{Failed, fmt.Sprintf("stopped: it used %d tokens of %d", tokens, o.TokensMax), false}
	}
	return nil
}

// look says whether the run must end now, and why.
func (k *keeper) look() *stop {
	select {
	case sig := <-k.signals:
		return &stop{Interrupted, fmt.Sprintf("its keeper was told to end (%v)", sig), false}
	default:
	}
	if Has(k.dir, FileCancel) {
		return &stop{Cancelled, "cancelled", false}
	}
	if time.Since(k.started) > k.order.Wall {
		return &stop{Failed, fmt.Sprintf("stopped: it ran longer than %s", k.order.Wall), false}
	}
	return k.late()
}

func (k *keeper) bringDown(pid int, s *stop, waited <-chan struct{}) {
	if !s.now {
		terminateAll(pid)
		select {
		case <-waited:
			return
		case <-time.After(grace):
		}
	}
	for {
		killNow(pid)
		select {
		case <-waited:
			return
		case <-time.After(lookEvery):
		}
	}
}

// tell writes the progress file, at most once a second unless the stage is new.
func (k *keeper) tell(newStage bool) {
	if !newStage && time.Since(k.told) < tellEvery {
		return
	}
	k.told = time.Now()
	c := k.sink.counts()
	// Progress that cannot be written is no reason to end a run.
	_ = WriteJSON(k.dir, FileProgress, Progress{Stage: k.stage, Tail: c.tail, OutputBytes: c.bytes, Tokens: c.tokens}, false)
}

// runCommand runs the configured command with the task on its stdin.
func (k *keeper) runCommand() ended {
	k.stage = "running"
	argv := k.order.Command
	in, err := os.Open(filepath.Join(k.dir, FileText))
	if err != nil {
		return ended{fail: err}
	}
	defer in.Close()
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Stdin = in
	ownGroup(cmd)
	return k.supervise(cmd)
}

// missing says whether a start failed because there is nothing to run.
func missing(err error) bool {
	return errors.Is(err, exec.ErrNotFound) || errors.Is(err, os.ErrNotExist) || errors.Is(err, os.ErrPermission) || errors.Is(err, syscall.ENOEXEC)
}

func size(n int64) string {
	switch {
	case n >= 1<<20 && n%(1<<20) == 0:
		return fmt.Sprintf("%d MiB", n>>20)
	case n >= 1<<10 && n%(1<<10) == 0:
		return fmt.Sprintf("%d KiB", n>>10)
	}
	return fmt.Sprintf("%d bytes", n)
}
