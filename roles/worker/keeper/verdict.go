package keeper

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/api"
	"github.com/aster-mesh/aster/roles/worker/repo"
)

// exitBlocked is EX_TEMPFAIL of sysexits: it cannot be done now, somebody has to act first.
const exitBlocked = 75

// sayBlocked begins the last line of a run that is blocked, whatever it exits with; the reason follows.
const sayBlocked = "ASTER_BLOCKED:"

// run takes the attempt from the command to its outcome: command, commit, accept commands. What the command left is
// committed before the accept commands run, so that what these write is no part of the result, and also when the run
// failed or was ended, so that its work can be looked at.
func (k *keeper) run() Result {
	e := k.runCommand()
	r := k.verdict(e)
	r.Tail = k.sink.counts().tail
	k.save(&r)
	if r.Outcome == Done {
		k.accept(&r)
	}
	return r
}

func (k *keeper) verdict(e ended) Result {
	r := Result{Exit: e.exit}
	said := lastLine(k.sink.counts().tail)
	reason, blocked := strings.CutPrefix(said, sayBlocked)
	switch {
	case e.fail != nil && missing(e.fail):
		r.Outcome, r.Summary = Failed, fmt.Sprintf("the runner cannot be run: %v: mend [worker] command", e.fail)
	case e.fail != nil:
		r.Outcome, r.Summary = Failed, fmt.Sprintf("the runner did not start: %v", e.fail)
	case e.stop != nil:
		r.Outcome, r.Summary = e.stop.outcome, e.stop.reason
	case blocked:
		r.Outcome, r.Summary = Blocked, "blocked: "+strings.TrimSpace(reason)
	case *e.exit == exitBlocked:
		r.Outcome, r.Summary = Blocked, "blocked (exit code 75): "+said
	case *e.exit != 0:
		r.Outcome, r.Summary = Failed, fmt.Sprintf("exit code %d", *e.exit)
		if said != "" {
			r.Summary += ": " + said
		}
	default:
		r.Outcome = Done
	}
	return r
}

func (k *keeper) save(r *Result) {
	k.stage = "committing"
	k.tell(true)
	Save(k.dir, k.order, k.tree, r)
}

// Save commits and bundles what the run in tree left and says so in r. A result that cannot be kept turns done into
// failed. The worker calls it for a run whose keeper is gone.
func Save(dir string, o Order, tree repo.Tree, r *Result) {
	saved, err := repo.Finish(context.Background(), tree, repo.Save{
		Author:  o.Author,
		Message: message(dir, o, r.Outcome),
		Bundle:  filepath.Join(dir, FileBundle),
	})
	r.Commit, r.Branch, r.Diff, r.Bundled = saved.Commit, saved.Branch, saved.Diff, saved.Bundle != ""
	r.Base = tree.Base
	what := changed(saved.Diff, tree.Base != "")
	switch {
	case err != nil:
		if r.Outcome == Done {
			r.Outcome = Failed
		}
		what = "its work could not be committed: " + err.Error()
	case saved.TooLarge != nil && o.Repo != nil:
		if r.Outcome == Done {
			r.Outcome = Failed
		}
		r.Refusal = saved.TooLarge
		what = "the result is too large to travel; it is on branch " + saved.Branch + " of the worker's repository"
	}
	if r.Summary == "" {
		r.Summary = what
	} else if saved.Commit != "" || err != nil {
		r.Summary += "; " + what
	}
}

func changed(d *api.Diff, repository bool) string {
	switch {
	case !repository:
		return "done"
	case d == nil:
		return "no change, so no commit"
	case d.Files == 1:
		return fmt.Sprintf("+%d -%d %s", d.Added, d.Removed, strings.Join(d.Paths, ""))
	}
	return fmt.Sprintf("+%d -%d in %d files", d.Added, d.Removed, d.Files)
}

// message is the commit's: the task's first line, and where it came from.
func message(dir string, o Order, outcome string) string {
	subject := strings.TrimSpace(firstLine(dir))
	if subject == "" {
		subject = "task " + protocol.ShortID(o.Task)
	}
	if outcome != Done {
		subject = "unfinished: " + subject
	}
	return fmt.Sprintf("%s\n\nAster-Task: %s\nAster-Attempt: %d\nAster-From: %s\n", cut(subject, 72), o.Task, o.Attempt, o.From)
}

// accept runs the accept commands, all of them, and settles the outcome.
func (k *keeper) accept(r *Result) {
	var failed []Accept
	for i, line := range k.order.Accept {
		k.stage = fmt.Sprintf("accept %d of %d: %s", i+1, len(k.order.Accept), cut(line, 100))
		k.sink.mark()
		argv := shell(line)
		cmd := exec.Command(argv[0], argv[1:]...)
		ownGroup(cmd)
		prepareShell(cmd, line)
		e := k.supervise(cmd)
		if e.stop != nil {
			r.Outcome, r.Summary = e.stop.outcome, fmt.Sprintf("%s, in accept %d of %d: %s", e.stop.reason, i+1, len(k.order.Accept), cut(line, 100))
			return
		}
		a := Accept{Command: line, Exit: -1, Tail: k.sink.counts().tail}
		if e.fail != nil {
			a.Tail = e.fail.Error()
		} else {
			a.Exit = *e.exit
		}
		r.Accepts = append(r.Accepts, a)
		if a.Exit != 0 {
			failed = append(failed, a)
		}
	}
	if len(failed) == 0 {
		switch n := len(k.order.Accept); n {
		case 0:
		case 1:
			r.Summary += "; passed: " + cut(k.order.Accept[0], 100)
		default:
			r.Summary += fmt.Sprintf("; all %d accept commands passed", n)
		}
		return
	}
	r.Outcome = Failed
	said := lastLine(failed[0].Tail)
	if said == "" {
		said = fmt.Sprintf("exit code %d", failed[0].Exit)
	}
	r.Summary = fmt.Sprintf("%d of %d failed: %s: %s", len(failed), len(k.order.Accept), cut(failed[0].Command, 100), said)
}
