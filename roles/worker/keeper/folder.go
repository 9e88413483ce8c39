package keeper

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/api"
)

// The files of an attempt's folder, in the order in which they come to be. JSON files appear whole or not at all.
const (
	FileText     = "task.txt"      // the task's text, stdin of the command
	FileStart    = "start.json"    // Order: the attempt is accepted; by the worker
	FileTree     = "tree.json"     // repo.Tree: the work tree is ready; by the worker
	FileLock     = "lock"          // held by the keeper while it lives
	FileLaunch   = "launch.json"   // Launch: made once, by the keeper that runs it or the worker that voids it
	FileChild    = "child.json"    // Process: the command that runs now; by the keeper
	FileOutput   = "output"        // what the command printed, at most Order.OutputBytesMax
	FileProgress = "progress.json" // Progress, at most once a second; by the keeper
	FileCancel   = "cancel"        // somebody wants the run to end; by the worker
	FileBundle   = "result.bundle" // git bundle base..branch; by the keeper
	FileTail     = "output.tail"   // the last protocol.OutputTailBytesMax of output
	FileResult   = "result.json"   // Result: the end
	FileReported = "reported"      // the node has the final report on disk; by the worker
	FileLog      = "keeper.log"    // what the keeper says of its own troubles
	DirWork      = "work"          // the work tree, or the empty folder
	DirFiles     = "files"         // what was attached to the task; by the worker, before FileTree
)

// Outcomes of a final report.
const (
	Done        = "done"
	Failed      = "failed"
	Blocked     = "blocked"
	Interrupted = "interrupted"
	Cancelled   = "cancelled"
)

// Order is what one attempt is to do.
type Order struct {
	Task           protocol.TaskID   `json:"task"`
	Attempt        int               `json:"attempt"`
	From           protocol.AgentID  `json:"from"`
	To             protocol.AgentID  `json:"to"`
	Command        []string          `json:"command"`
	Accept         []string          `json:"accept,omitempty"`
	Wall           time.Duration     `json:"wallNanos"` // of the command and its accept commands together
	OutputBytesMax int64             `json:"outputBytesMax"`
	TokensMax      int64             `json:"tokensMax,omitempty"` // 0: no limit
	Author         string            `json:"author"`
	Repo           *Repository       `json:"repo,omitempty"`
	Files          int               `json:"files,omitempty"`    // how many lie in DirFiles when it begins
	Attached       []Attached        `json:"attached,omitempty"` // they, if they are put there when it gets its slot
	Env            map[string]string `json:"env,omitempty"`      // added to the command's environment; no secrets, this is a file
	Accepted       time.Time         `json:"accepted"`
}

// Attached names a file that goes with a task.
type Attached struct {
	Name   string `json:"name"`   // its sender's
	SHA256 string `json:"sha256"` // in hex
	Bytes  int64  `json:"bytes"`
}

// Repository is the one that the task names.
type Repository struct {
	Root   string `json:"root"`
	Head   string `json:"head"`
	Name   string `json:"name,omitempty"`
	Bundle string `json:"bundle,omitempty"`
}

// Launch settles who ran the attempt. Void says that nobody may: it ended before its command began.
type Launch struct {
	Keeper Process `json:"keeper"`
	Void   *Result `json:"void,omitempty"`
}

// Process names a process beyond its number, which the system gives away again.
type Process struct {
	PID   int    `json:"pid"`
	Begun string `json:"begun,omitempty"` // its start in the system's own units
	Boot  string `json:"boot,omitempty"`  // this start of the machine
}

// Progress is how far a run is.
type Progress struct {
	Stage       string `json:"stage"`
	Tail        string `json:"tail,omitempty"`
	OutputBytes int64  `json:"outputBytes"`
	Tokens      int64  `json:"tokens,omitempty"`
}

// Result is how an attempt ended.
type Result struct {
	Outcome     string            `json:"outcome"`
	Summary     string            `json:"summary"`
	Exit        *int              `json:"exit,omitempty"` // of the command; 128+n when signal n ended it; nil if it never ran to an end
	Started     time.Time         `json:"started,omitzero"`
	Ended       time.Time         `json:"ended,omitzero"`
	Duration    time.Duration     `json:"durationNanos,omitempty"`
	Diff        *api.Diff         `json:"diff,omitempty"`
	Commit      string            `json:"commit,omitempty"`
	Branch      string            `json:"branch,omitempty"`
	Base        string            `json:"base,omitempty"`
	Bundled     bool              `json:"bundled,omitempty"` // FileBundle is the result
	Tail        string            `json:"tail,omitempty"`    // last lines
	OutputBytes int64             `json:"outputBytes"`       // printed, also what was not kept
	Tokens      int64             `json:"tokens,omitempty"`
	Accepts     []Accept          `json:"accepts,omitempty"`
	Refusal     *protocol.Refusal `json:"refusal,omitempty"`
}

// Accept is how one accept command ended.
type Accept struct {
	Command string `json:"command"`
	Exit    int    `json:"exit"`
	Tail    string `json:"tail,omitempty"`
}

// ReadJSON reads dir/name into v. A file that is not there is fs.ErrNotExist.
func ReadJSON(dir, name string, v any) error {
	b, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		return err
	}
	if err := json.Unmarshal(b, v); err != nil {
		return fmt.Errorf("read %s: %w", filepath.Join(dir, name), err)
	}
	return nil
}

// WriteJSON puts v into dir/name, whole or not at all; when durable it is on stable storage on return.
func WriteJSON(dir, name string, v any, durable bool) error {
	b, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		return err
	}
	return WriteFile(dir, name, append(b, '\n'), durable)
}

// WriteFile is WriteJSON for bytes.
func WriteFile(dir, name string, b []byte, durable bool) error {
	tmp, err := os.CreateTemp(dir, "."+name+"-*")
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name()) // after the rename there is nothing to remove
	_, err = tmp.Write(b)
	if err == nil && durable {
		err = tmp.Sync()
	}
	if err := errors.Join(err, tmp.Close()); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	if err := os.Rename(tmp.Name(), filepath.Join(dir, name)); err != nil {
		return err
	}
	if durable {
		return SyncDir(dir)
	}
	return nil
}

// SyncDir puts a folder's names on stable storage. Windows has no such call and needs none.
func SyncDir(dir string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}

// Has says whether dir/name exists.
func Has(dir, name string) bool {
	_, err := os.Lstat(filepath.Join(dir, name))
	return err == nil
}

// Claim makes dir's launch file, durably, and says whether it was this caller that made it. Whoever makes it settles
// what becomes of the attempt; nobody makes it twice. The file may be found empty after a crash: it counts.
func Claim(dir string, l Launch) (bool, error) {
	f, err := os.OpenFile(filepath.Join(dir, FileLaunch), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	err = json.NewEncoder(f).Encode(l)
	if err := errors.Join(err, f.Sync(), f.Close(), SyncDir(dir)); err != nil {
		return true, fmt.Errorf("write %s: %w", FileLaunch, err)
	}
	return true, nil
}

// Held says whether a keeper lives over dir.
func Held(dir string) (bool, error) {
	unlock, err := lock(dir)
	if errors.Is(err, errHeld) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	unlock()
	return false, nil
}

var errHeld = errors.New("another keeper holds this attempt")

// SaveTail writes the last bytes of dir's output to its own file and returns its last lines. No output is no error.
func SaveTail(dir string) (lines string, err error) {
	f, err := os.Open(filepath.Join(dir, FileOutput))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return "", err
	}
	from := max(info.Size()-protocol.OutputTailBytesMax, 0)
	b, err := io.ReadAll(io.NewSectionReader(f, from, protocol.OutputTailBytesMax))
	if err != nil {
		return "", err
	}
	return lastLines(b), WriteFile(dir, FileTail, b, false)
}
