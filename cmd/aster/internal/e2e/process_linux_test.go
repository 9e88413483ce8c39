package e2e

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
)

// dieWithUs binds a node to the test: nothing is left over by a test binary that was killed.
func dieWithUs() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }

// starter is a thread that lives as long as the tests: what dies with its parent dies with the thread that started it.
var starter = sync.OnceValue(func() chan func() {
	jobs := make(chan func())
	go func() {
		runtime.LockOSThread()
		for job := range jobs {
			job()
		}
	}()
	return jobs
})

func startProcess(cmd *exec.Cmd) error {
	done := make(chan error, 1)
	starter() <- func() { done <- cmd.Start() }
	return <-done
}

// tidyRuns ends what runs of this home are still alive, found by the folder that they work in.
func (n *node) tidyRuns() {
	procs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return
	}
	for _, p := range procs {
		line, _ := os.ReadFile(filepath.Join(p, "cmdline"))
		cwd, _ := os.Readlink(filepath.Join(p, "cwd"))
		var pid int
		if _, err := fmt.Sscan(filepath.Base(p), &pid); err != nil || pid == os.Getpid() {
			continue
		}
		if bytes.Contains(line, []byte(n.home+"/runs")) || strings.HasPrefix(cwd, n.home+"/runs") {
			_ = syscall.Kill(pid, syscall.SIGKILL) // it may have ended by itself
		}
	}
}
