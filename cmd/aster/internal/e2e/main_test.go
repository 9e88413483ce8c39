package e2e

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// long asks for the full numbers of the acceptance (make survive); without it they fit into a pipeline.
var long = os.Getenv("ASTER_LONG") != ""

// seed is that of every plan made by dice; ASTER_SEED chooses another.
func seed(t *testing.T) uint64 {
	t.Helper()
	n := uint64(1)
	if text := os.Getenv("ASTER_SEED"); text != "" {
		if _, err := fmt.Sscan(text, &n); err != nil {
			t.Fatalf("ASTER_SEED=%s: %v", text, err)
		}
	}
	t.Logf("seed %d (ASTER_SEED)", n)
	return n
}

func TestMain(m *testing.M) {
	flag.Parse()
	if testing.Short() {
		fmt.Println("acceptance tests are skipped by -short")
		os.Exit(0)
	}
	code := m.Run()
	if built != "" && built != os.Getenv("ASTER_BIN") {
		_ = os.RemoveAll(filepath.Dir(built)) // a temporary folder; the system clears what is left
	}
	os.Exit(code)
}

// built is the binary that commands run, nodeBuilt the one that nodes run: under the race detector they differ, since it
// watches nodes, and a command would take a second to start with it.
var built, nodeBuilt string

// build makes the binaries once. ASTER_BIN names another to test, such as a released one.
var build = sync.OnceValue(func() error {
	if built = os.Getenv("ASTER_BIN"); built != "" {
		nodeBuilt = built
		return nil
	}
	dir, err := os.MkdirTemp("", "aster-e2e-")
	if err != nil {
		return err
	}
	built = filepath.Join(dir, "aster")
	nodeBuilt = built
	if err := goBuild(built); err != nil || !raced {
		return err
	}
	nodeBuilt = filepath.Join(dir, "aster-race")
	return goBuild(nodeBuilt, "-race")
})

func goBuild(path string, flags ...string) error {
	args := append(append([]string{"build", "-o", path}, flags...), "github.com/aster-mesh/aster/cmd/aster")
	out, err := exec.Command("go", args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("build aster: %w\n%s", err, out)
	}
	return nil
}

// patience is how long a test waits for what has no promised time of its own. Only a failing test waits so long.
const patience = 60 * time.Second

// promised stretches a promised duration where the race detector slows everything down, and where other tests share the
// machine: there a process may stand still for a second. With ASTER_LONG=1 the test has the machine for itself.
func promised(d time.Duration) time.Duration {
	switch {
	case raced:
		return 5 * d
	case os.Getenv("ASTER_LONG") == "":
		return 3 * d
	}
	return d
}

// eventually asks again and again until cond says true. cond also says how things stand, for the failure.
func eventually(t *testing.T, within time.Duration, what string, cond func() (ok bool, stands string)) time.Duration {
	t.Helper()
	began := time.Now()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		ok, stands := cond()
		if ok {
			return time.Since(began)
		}
		if time.Since(began) > within {
			t.Fatalf("%s: not within %s: %s", what, within, stands)
		}
		<-tick.C
	}
}

// instant lets d pass: the moment of a blow is part of a seeded plan, not a wait for something.
func instant(d time.Duration) {
	if d > 0 {
		<-time.After(d)
	}
}

// result is one finished command.
type result struct {
	code   int
	stdout string
	stderr string
}

func (r result) String() string {
	return fmt.Sprintf("exit %d\nstdout: %s\nstderr: %s", r.code, r.stdout, r.stderr)
}

// command runs argv and waits for it, at most patience.
func command(t *testing.T, stdin string, argv ...string) result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	var out, errs strings.Builder
	cmd.Stdout, cmd.Stderr, cmd.Stdin = &out, &errs, strings.NewReader(stdin)
	cmd.WaitDelay = time.Second
	err := cmd.Run()
	if ctx.Err() != nil && t.Context().Err() == nil {
		t.Fatalf("%s hangs\nstdout: %s\nstderr: %s", strings.Join(argv, " "), out.String(), errs.String())
	}
	if cmd.ProcessState == nil {
		t.Fatalf("%s: %v", strings.Join(argv, " "), err)
	}
	return result{cmd.ProcessState.ExitCode(), out.String(), errs.String()}
}
