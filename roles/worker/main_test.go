package worker

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/aster-mesh/aster/roles/worker/keeper"
)

// The test binary is also the keeper and the runners: real processes without a second binary.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 {
		switch os.Args[1] {
		case "keeper":
			os.Exit(keeper.Main(os.Args[2:]))
		case "keeper-dies":
			os.Exit(3)
		case "keeper-slow":
			// A keeper that the node started and that is only scheduled once the test lets it.
			waitForFile(filepath.Join(os.Args[2], "go"))
			os.Exit(keeper.Main(os.Args[3:]))
		case "node":
			nodeUntilKilled(os.Args[2], os.Args[3], os.Args[4])
		case "runner":
			runner(os.Args[2], os.Args[3:])
			os.Exit(0)
		}
	}
	goleak.VerifyTestMain(m)
}

// runner plays a coding agent. Every start leaves a line in the file named first in args: the ledger.
func runner(verb string, args []string) {
	ledger, err := os.OpenFile(args[0], os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	must(err)
	fmt.Fprintf(ledger, "%s-%s\n", os.Getenv("ASTER_TASK_ID"), os.Getenv("ASTER_TASK_ATTEMPT"))
	switch verb {
	case "write":
		task, err := io.ReadAll(os.Stdin)
		must(err)
		must(os.WriteFile("a.txt", []byte("one\nTWO\nthree\nfour\n"), 0o600))
		fmt.Printf("asked: %s\nall written\n", task)
	case "commit":
		must(os.WriteFile("own.txt", []byte("own\n"), 0o600))
		must(exec.Command("git", "checkout", "-q", "-b", "elsewhere").Run())
		must(exec.Command("git", "add", ".").Run())
		must(exec.Command("git", "-c", "user.name=r", "-c", "user.email=r@r.invalid", "commit", "-q", "-m", "mine").Run())
		must(os.WriteFile("rest.txt", []byte("rest\n"), 0o600))
	case "nothing":
		fmt.Println("nothing to do")
	case "exit":
		fmt.Println("cannot multiply")
		os.Exit(len(args[1]))
	case "blocked":
		fmt.Println("ASTER_BLOCKED: which tax table?")
	case "hang":
		fmt.Println("thinking")
		waitForFile(args[1])
		must(os.WriteFile("late.txt", []byte("late\n"), 0o600))
		fmt.Println("thought")
	case "fork":
		// Twice away: a session of its own, its parent gone, the environment kept; it writes its pid.
		must(exec.Command("sh", "-c", "setsid sh -c 'echo $$ > "+args[1]+"; exec sleep 600' >/dev/null 2>&1 &").Run())
		waitForFile(args[1])
	case "yes":
		must(os.MkdirAll("x", 0o700))
		out := bufio.NewWriterSize(os.Stdout, 1<<20)
		line := strings.Repeat("y\n", 1<<10)
		for range 1 << 19 { // 1 GiB
			if _, err := out.WriteString(line); err != nil {
				os.Exit(1)
			}
		}
	case "tokens":
		for i := range 100 {
			fmt.Printf(`{"type":"assistant","message":{"id":"m%d","usage":{"input_tokens":10,"output_tokens":90}}}`+"\n", i)
		}
		waitForFile(args[1])
	case "files":
		dir := os.Getenv("ASTER_TASK_FILES")
		if dir == "" {
			fmt.Println("none")
			return
		}
		found, err := os.ReadDir(dir)
		must(err)
		for _, f := range found {
			content, err := os.ReadFile(filepath.Join(dir, f.Name()))
			must(err)
			fmt.Printf("%s=%s\n", f.Name(), content)
		}
	case "env":
		for _, kv := range os.Environ() {
			fmt.Println(kv)
		}
		here, _ := os.Getwd()
		fmt.Println("cwd=" + here)
		top, err := exec.Command("git", "rev-parse", "--show-toplevel").Output()
		fmt.Printf("git=%s%v\n", top, err != nil)
		must(os.WriteFile("made.txt", []byte("x"), 0o600))
	}
}

// waitForFile is how processes of the tests wait for one another: 60 s, then they give up loudly.
func waitForFile(path string) {
	for range 6000 {
		if _, err := os.Stat(path); err == nil {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	must(fmt.Errorf("waited in vain for %s", path))
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "runner:", err)
		os.Exit(99)
	}
}
