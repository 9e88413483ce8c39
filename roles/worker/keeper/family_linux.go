package keeper

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const prSetChildSubreaper = 36

// adoptOrphans makes this process the parent of whatever its descendants leave behind, so that nothing forks away.
func adoptOrphans() error {
	if _, _, errno := syscall.RawSyscall(syscall.SYS_PRCTL, prSetChildSubreaper, 1, 0); errno != 0 {
		return errno
	}
	return nil
}

// ownGroup gives the command its own process group. The system kills it should the keeper's thread end: Main holds that
// thread for life.
func ownGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

type stat struct {
	pid, parent int
	zombie      bool
	begun       string
}

// readStat parses /proc/PID/stat: "pid (name) state ppid …", where the name may hold anything; field 22 is the start
// in clock ticks since boot.
func readStat(pid int) (stat, bool) {
	b, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return stat{}, false
	}
	end := bytes.LastIndexByte(b, ')')
	if end < 0 {
		return stat{}, false
	}
	f := strings.Fields(string(b[end+1:]))
	if len(f) < 20 {
		return stat{}, false
	}
	parent, err := strconv.Atoi(f[1])
	return stat{pid, parent, f[0] == "Z", f[19]}, err == nil
}

func allStats() []stat {
	names, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	var out []stat
	for _, n := range names {
		if pid, err := strconv.Atoi(n.Name()); err == nil {
			if s, ok := readStat(pid); ok {
				out = append(out, s)
			}
		}
	}
	return out
}

// descendants of this process, itself not among them.
func descendants() []stat {
	children := map[int][]stat{}
	for _, s := range allStats() {
		children[s.parent] = append(children[s.parent], s)
	}
	var out []stat
	seen := map[int]bool{os.Getpid(): true}
	for todo := []int{os.Getpid()}; len(todo) > 0; todo = todo[1:] {
		for _, s := range children[todo[0]] {
			if !seen[s.pid] {
				seen[s.pid] = true
				out = append(out, s)
				todo = append(todo, s.pid)
			}
		}
	}
	return out
}

// terminateAll asks everything below this process to end, whatever group it moved to.
func terminateAll(pid int) {
	terminate(pid)
	for _, s := range descendants() {
		_ = syscall.Kill(s.pid, syscall.SIGTERM)
	}
}

// endAll kills everything below this process and reaps it; the commands that we wait for must have been waited for. It
// returns how many are left when the patience of 10 s is over (asleep in the kernel, or of another user).
func endAll(int) int {
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		reap(0)
		left := descendants()
		if len(left) == 0 || time.Now().After(deadline) {
			return len(left)
		}
		for _, s := range left {
			_ = syscall.Kill(s.pid, syscall.SIGKILL)
		}
	}
}

// killNow is the hard end of a running command with all below it; somebody else waits for the command itself.
func killNow(pid int) {
	killGroup(pid)
	for _, s := range descendants() {
		_ = syscall.Kill(s.pid, syscall.SIGKILL)
	}
}

// reap collects orphans that ended, except the command that somebody waits for.
func reap(except int) {
	if except == 0 {
		for {
			pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil)
			if pid <= 0 || err != nil {
				return
			}
		}
	}
	self := os.Getpid()
	for _, s := range allStats() {
		if s.parent == self && s.zombie && s.pid != except {
			_, _ = syscall.Wait4(s.pid, nil, syscall.WNOHANG, nil)
		}
	}
}

// describe names pid so that it can be recognised later.
func describe(pid int) Process {
	p := Process{PID: pid}
	if s, ok := readStat(pid); ok {
		p.Begun = s.begun
	}
	if b, err := os.ReadFile("/proc/sys/kernel/random/boot_id"); err == nil {
		p.Boot = strings.TrimSpace(string(b))
	}
	return p
}

// Sweep ends what a run left when its keeper is gone: the command's group, and every process whose environment says that
// it belongs to the attempt in dir, which also finds what moved to a session of its own.
func Sweep(dir string) {
	var child Process
	if ReadJSON(dir, FileChild, &child) == nil && child.PID > 1 && describe(child.PID) == child {
		killGroup(child.PID)
	}
	mark := []byte("\x00" + markOf(dir) + "\x00")
	for deadline := time.Now().Add(5 * time.Second); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		found := false
		for _, s := range allStats() {
			env, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(s.pid), "environ"))
			if err == nil && s.pid != os.Getpid() && bytes.Contains(append([]byte{0}, env...), mark) {
				found = syscall.Kill(s.pid, syscall.SIGKILL) == nil || found
			}
		}
		if !found {
			return
		}
	}
}
