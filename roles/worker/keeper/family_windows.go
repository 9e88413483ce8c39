package keeper

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/windows"
)

// job holds this process and all it starts. Its only handle is ours, so all of them end with the keeper, however it
// ends.
var job windows.Handle

// Detach lets cmd outlive the console and the job of the process that started it.
func Detach(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{
		HideWindow:    true,
		CreationFlags: windows.CREATE_NEW_PROCESS_GROUP | windows.CREATE_NO_WINDOW,
	}
}

// adoptOrphans puts this process into a job that its descendants inherit and cannot leave.
func adoptOrphans() error {
	j, err := windows.CreateJobObject(nil, nil)
	if err != nil {
		return fmt.Errorf("create job: %w", err)
	}
	var info windows.JOBOBJECT_EXTENDED_LIMIT_INFORMATION
	info.BasicLimitInformation.LimitFlags = windows.JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE
	_, err = windows.SetInformationJobObject(j, windows.JobObjectExtendedLimitInformation, uintptr(unsafe.Pointer(&info)), uint32(unsafe.Sizeof(info)))
	if err != nil {
		return fmt.Errorf("limit job: %w", err)
	}
	if err := windows.AssignProcessToJobObject(j, windows.CurrentProcess()); err != nil {
		return fmt.Errorf("enter job: %w", err)
	}
	job = j
	return nil
}

func ownGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{HideWindow: true, CreationFlags: windows.CREATE_NEW_PROCESS_GROUP}
}

// shell runs an accept command as its author wrote it.
func shell(line string) []string { return []string{"cmd", "/d", "/s", "/c", line} }

// prepareShell hands the line over as it is: cmd.exe does not read the quoting that Go would add.
func prepareShell(cmd *exec.Cmd, line string) {
	cmd.SysProcAttr.CmdLine = `cmd /d /s /c "` + line + `"`
}

// jobPIDs lists the job's processes, this one not among them.
func jobPIDs() []uint32 {
	var list struct {
		assigned, listed uint32
		pids             [4096]uintptr
	}
	err := windows.QueryInformationJobObject(job, windows.JobObjectBasicProcessIdList, uintptr(unsafe.Pointer(&list)), uint32(unsafe.Sizeof(list)), nil)
	if err != nil && err != windows.ERROR_MORE_DATA {
		return nil
	}
	var out []uint32
	for _, pid := range list.pids[:min(int(list.listed), len(list.pids))] {
		if int(pid) != os.Getpid() {
			out = append(out, uint32(pid))
		}
	}
	return out
}

// terminateAll: there is no polite way that programs without a window hear; the hard end follows.
func terminateAll(int) {}

func killNow(int) {
	for _, pid := range jobPIDs() {
		if h, err := windows.OpenProcess(windows.PROCESS_TERMINATE, false, pid); err == nil {
			_ = windows.TerminateProcess(h, 1)
			_ = windows.CloseHandle(h)
		}
	}
}

func reap(int) {}

func endAll(pid int) int {
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		left := len(jobPIDs())
		if left == 0 || time.Now().After(deadline) {
			return left
		}
		killNow(pid)
	}
}

func exitCode(cmd *exec.Cmd) int { return cmd.ProcessState.ExitCode() }

// describe names pid so that it can be recognised later; a creation time is never given twice to one number.
func describe(pid int) Process {
	p := Process{PID: pid}
	h, err := windows.OpenProcess(windows.PROCESS_QUERY_LIMITED_INFORMATION, false, uint32(pid))
	if err != nil {
		return p
	}
	defer windows.CloseHandle(h)
	var begun, ended, kernel, user windows.Filetime
	if windows.GetProcessTimes(h, &begun, &ended, &kernel, &user) == nil {
		p.Begun = fmt.Sprint(begun.Nanoseconds())
	}
	return p
}

// Sweep has nothing to end: the job ended with the keeper.
func Sweep(string) {}
