package keeper

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/roles/worker/repo"
)

// What the keeper says on stdout, once, as soon as it is settled who runs the attempt.
const (
	SaidLaunched = "launched" // this process runs it
	SaidTaken    = "taken"    // another one does, or did, or nobody may
)

// lockPatience outlasts those who only look whether the lock is held.
const lockPatience = 3 * time.Second

// Main runs the attempt whose folder args names and returns the exit code of the process: 0 when a result is written or
// another keeper has the attempt, 1 when it could do neither (said on stderr), 2 for wrong arguments. It must be called
// from a process of its own: it becomes the parent of everything below it.
func Main(args []string) int {
	if len(args) != 1 {
		fmt.Fprintln(os.Stderr, "usage: keeper FOLDER (started by the node, not by hand)")
		return 2
	}
	// The command is killed when the thread that started it ends (Linux): this one stays.
	runtime.LockOSThread()
	dir, err := filepath.Abs(args[0])
	if err == nil {
		err = keep(dir)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "keeper:", err)
		return 1
	}
	return 0
}

func keep(dir string) error {
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, syscall.SIGTERM, os.Interrupt)
	signal.Ignore(syscall.SIGHUP, syscall.SIGPIPE)

	k := &keeper{dir: dir, signals: signals}
	if err := ReadJSON(dir, FileStart, &k.order); err != nil {
		return err
	}
	if err := ReadJSON(dir, FileTree, &k.tree); err != nil {
		return err
	}
	unlock, err := lockWithin(dir, lockPatience)
	if errors.Is(err, errHeld) {
		say(SaidTaken)
		return nil
	}
	if err != nil {
		return fmt.Errorf("lock attempt: %w", err)
	}
	defer unlock()
	mine, err := Claim(dir, Launch{Keeper: describe(os.Getpid())})
	if !mine {
		say(SaidTaken)
		return err
	}
	if err != nil {
		// Ours, but perhaps not durable: running it now could mean running it again after a power cut.
		return err
	}
	say(SaidLaunched)
	if k.sink, err = openSink(dir, k.order.OutputBytesMax); err != nil {
		return err
	}
	if err := adoptOrphans(); err != nil {
		fmt.Fprintln(os.Stderr, "keeper: what the command leaves running cannot be held:", err)
	}
	k.started = time.Now()
	return k.end(k.run())
}

func say(word string) {
	fmt.Println(word)
	// The reader hangs up now; nothing may be written there again.
	_ = os.Stdout.Close()
}

func lockWithin(dir string, patience time.Duration) (func(), error) {
	for deadline := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		unlock, err := lock(dir)
		if !errors.Is(err, errHeld) || Has(dir, FileLaunch) || time.Now().After(deadline) {
			return unlock, err
		}
	}
}

// keeper is one attempt in this process. Only the main goroutine touches it; the sink guards itself.
type keeper struct {
	dir     string
	order   Order
	tree    repo.Tree
	signals <-chan os.Signal

	sink     *sink
	started  time.Time
	stage    string
	told     time.Time // last progress
	leftOver int       // processes that could not be ended
}

// environment is the keeper's own without git's variables and without the node's settings, which may hold an invite.
func (k *keeper) environment() []string {
	var env []string
	for _, kv := range repo.CleanEnv(os.Environ()) {
		name, _, _ := strings.Cut(kv, "=")
		if !strings.HasPrefix(strings.ToUpper(name), "ASTER_") && name != "PWD" {
			env = append(env, kv)
		}
	}
	o, files := &k.order, ""
	if o.Files > 0 {
		files = filepath.Join(k.dir, DirFiles)
	}
	for name, value := range o.Env {
		env = append(env, name+"="+value)
	}
	return append(env,
		"ASTER_TASK_ID="+string(o.Task),
		"ASTER_TASK_SHORT="+protocol.ShortID(o.Task),
		"ASTER_TASK_ATTEMPT="+strconv.Itoa(o.Attempt),
		"ASTER_TASK_FROM="+string(o.From),
		"ASTER_TASK_TEXT_FILE="+filepath.Join(k.dir, FileText),
		"ASTER_TASK_FILES="+files,
		markOf(k.dir),
		"ASTER_TASK_BASE="+k.tree.Base,
		"ASTER_TASK_BRANCH="+k.tree.Branch,
		"PWD="+k.tree.Work,
		// A run in an empty folder must not find the repository that the home happens to lie in.
		"GIT_CEILING_DIRECTORIES="+k.dir,
	)
}

// markOf is the variable by which a process can be told to belong to an attempt.
func markOf(dir string) string { return "ASTER_TASK_DIR=" + filepath.Join(dir, DirWork) }

// end writes the result; a disk that is full for a moment must not turn a finished run into an interrupted one.
func (k *keeper) end(r Result) error {
	k.sink.mark()
	c := k.sink.counts()
	_ = k.sink.file.Close()
	r.Started, r.Ended = k.started, time.Now()
	r.Duration = r.Ended.Sub(r.Started)
	r.Base = k.tree.Base
	r.OutputBytes, r.Tokens = c.bytes, c.tokens
	if c.lost != nil {
		r.Summary += " (output was lost: " + c.lost.Error() + ")"
	}
	if k.leftOver > 0 {
		r.Summary += fmt.Sprintf(" (%d processes that it left could not be ended)", k.leftOver)
	}
	r.Summary = cut(r.Summary, protocol.ShortTextBytesMax/4)
	var err error
	for try := range 30 {
		if try > 0 {
			time.Sleep(time.Second)
		}
		if _, e := SaveTail(k.dir); e != nil {
			err = e
			continue
		}
		if err = WriteJSON(k.dir, FileResult, r, true); err == nil {
			return nil
		}
	}
	return fmt.Errorf("write result: %w", err)
}
