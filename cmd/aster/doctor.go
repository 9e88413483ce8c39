package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/aster-mesh/aster/cmd/aster/internal/client"
	"github.com/aster-mesh/aster/node"
	"github.com/aster-mesh/aster/protocol/api"
	"github.com/aster-mesh/aster/roles/worker/repo"
	"github.com/spf13/cobra"
)

// finding is what one check found. A bad one has a code for programs and one command that mends it.
type finding struct {
	Check  string `json:"check"`
	OK     bool   `json:"ok"`
	Code   string `json:"code,omitempty"`
	Detail string `json:"detail,omitempty"`
	Fix    string `json:"fix,omitempty"`
}

func fine(check, format string, args ...any) finding {
	return finding{Check: check, OK: true, Detail: fmt.Sprintf(format, args...)}
}

func bad(check, code, fix, format string, args ...any) finding {
	return finding{Check: check, Code: code, Fix: fix, Detail: fmt.Sprintf(format, args...)}
}

func doctorCommand(a *app) *cobra.Command {
	var bundle string
	var repair, accept, compare bool
	cmd := &cobra.Command{
		Use: "doctor", Short: "Check everything; each fault has one code and one command that mends it", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if accept {
				if err := checkHome(a.home); err != nil {
					return err
				}
				if err := node.AcceptLoss(a.home); err != nil {
					return err
				}
			}
			if repair {
				if err := a.repairStore(cmd.Context()); err != nil || bundle == "" {
					return err
				}
			}
			if compare {
				if err := a.compareBoards(cmd.Context()); err != nil {
					return err
				}
			}
			found := a.examine(cmd.Context())
			if bundle != "" {
				if err := a.writeBundle(cmd.Context(), bundle, found); err != nil {
					return err
				}
				a.talk("wrote %s: look through it before you give it away", tilde(bundle))
			}
			return a.findings(found)
		},
	}
	cmd.Flags().StringVar(&bundle, "bundle", "", "also write a support bundle (tar.gz) without tokens, keys and messages")
	cmd.Flags().BoolVar(&repair, "repair", false, "mend a damaged store: keep what verifies, set the rest aside, get it again from other nodes")
	cmd.Flags().BoolVar(&compare, "compare", false, "have the nodes of the inside compare their boards now")
	cmd.Flags().BoolVar(&accept, "accept-loss", false, "say no more that a damaged store lost everything; what was set aside stays")
	return cmd
}

func (a *app) findings(found []finding) error {
	var rows [][]string
	wrong := 0
	for _, f := range found {
		f.Fix = a.pasteable(f.Fix)
		row := []string{"ok", f.Check, f.Detail}
		if !f.OK {
			wrong++
			row[0], row[2] = f.Code, f.Detail+". Mend it: "+f.Fix
		}
		rows = append(rows, row)
		if a.json {
			if err := a.emit(f); err != nil {
				return err
			}
		}
	}
	if !a.json {
		table(a.stdout, rows...)
	}
	if wrong > 0 {
		return &exit{code: exitFailed}
	}
	return nil
}

// examine runs every check that can be run; those that need a node are left out when none answers.
func (a *app) examine(ctx context.Context) []finding {
	found := []finding{a.examineHome()}
	cfg, err := settle(a.home, nil)
	if err != nil {
		found = append(found, bad("config", "config-bad", a.configFix(err), "%s", oneLine(err)))
	} else {
		found = append(found, fine("config", "%s", configText(cfg)))
		found = append(found, examineWorker(cfg)...)
	}
	found = append(append(found, examineEnvironment(os.Environ())...), examineGit(ctx), examineClock())
	c, s, running := a.examineNode(ctx)
	found = append(found, running)
	if c == nil {
		left, known := node.DiskLeft(a.home)
		return append(append(found, a.examineStore(ctx, nil)...), examineFree(left, known)...)
	}
	defer c.Close()
	found = append(found, a.examineStore(ctx, c)...)
	found = append(append(append(found, examineAccess(s)...), examineState(s)...), append(append(examineCompared(s), examineTrace(s)...), examineMembers(s)...)...)
	return append(found, examineBoard(s), examineMesh(ctx, s), examineDisk(s), examineRetention(s), examineVersion(s), examineCopies(s))
}

// configFix says where a wrong value stands: in the environment or in the file.
func (a *app) configFix(err error) string {
	for _, s := range settings {
		if strings.Contains(err.Error(), s.env+": ") {
			return "change " + s.env + ", or unset it"
		}
	}
	return "edit " + tilde(filepath.Join(a.home, configFile))
}

func oneLine(err error) string { return clean(err.Error()) }

func (a *app) examineHome() finding {
	if err := checkHome(a.home); err != nil {
		what, fix, _ := strings.Cut(err.Error(), ". ")
		_, fix, _ = strings.Cut(fix, ": ")
		return bad("home", "home-rights", fix, "%s", clean(what))
	}
	if _, err := os.Stat(a.home); err != nil {
		return bad("home", "home-absent", "aster up", "%s does not exist", tilde(a.home))
	}
	return fine("home", "%s", tilde(a.home))
}

func configText(cfg settled) string {
	given := 0
	for _, from := range cfg.source {
		if from != "default" {
			given++
		}
	}
	return plural(given, "setting", "settings") + " given, the rest default"
}

func examineWorker(cfg settled) []finding {
	if len(cfg.Worker.Command) == 0 {
		return nil
	}
	var found []finding
	name := cfg.Worker.Command[0]
	if path, err := exec.LookPath(name); err != nil {
		found = append(found, bad("worker", "worker-missing", "install "+clean(name)+" or change command in "+configFile, "there is no program %q", clean(name)))
	} else {
		found = append(found, fine("worker", "%s", tilde(path)))
	}
	if cfg.Worker.Repo == "" {
		return found
	}
	if _, head, _, err := repo.Describe(cfg.Worker.Repo); err != nil {
		return append(found, bad("worker repo", "repo-bad", "change repo in "+configFile, "%s", oneLine(err)))
	} else {
		return append(found, fine("worker repo", "%s at %s", tilde(cfg.Worker.Repo), repo.Short(head)))
	}
}

func examineGit(ctx context.Context) finding {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, "git", "--version").Output()
	if err != nil {
		return bad("git", "git-missing", "install git", "git does not run, so no results can travel")
	}
	return fine("git", "%s", strings.TrimPrefix(clean(string(out)), "git version "))
}

// examineClock notices only a clock that is certainly wrong; members' certificates are checked by it.
func examineClock() finding {
	now := time.Now()
	if now.Year() < 2025 || now.Year() >= 2200 {
		return bad("clock", "clock-wrong", "set this machine's clock", "it says %s", now.Format(time.DateOnly))
	}
	return fine("clock", "%s", now.Format("2006-01-02 15:04:05 MST"))
}

func (a *app) examineNode(ctx context.Context) (*client.Client, api.Status, finding) {
	c, err := client.Open(a.home)
	var s api.Status
	if err == nil {
		ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
		defer cancel()
		if s, err = c.Status(ctx); err == nil {
			return c, s, fine("node", "%s, pid %d", clean(s.Name), s.PID)
		}
		c.Close()
	}
	switch {
	case errors.Is(err, client.ErrNotRunning) && c != nil && alive(c.Node().PID):
		return nil, s, bad("node", "node-silent", "aster logs", "pid %d exists and does not answer at %s", c.Node().PID, c.Node().Board)
	case errors.Is(err, client.ErrNotRunning):
		return nil, s, bad("node", "not-running", "aster up --detach", "no node runs here")
	case errors.Is(err, context.DeadlineExceeded):
		return nil, s, bad("node", "node-silent", "aster logs", "the node does not answer within 5 s")
	}
	return nil, s, bad("node", "node-bad", "aster logs", "%s", oneLine(err))
}

// examineAccess says that the lists of who may come in cannot be read; nil: they can, or there are none.
func examineAccess(s api.Status) []finding {
	for _, w := range s.Warnings {
		if strings.HasPrefix(w, "access.json ") {
			return []finding{bad("access", "access-bad", "edit access.json in the home: it holds within a second", "%s", clean(w))}
		}
	}
	return nil
}

// examineTrace says that the collector of spans does not take them; nil: it does, or there is none.
func examineTrace(s api.Status) []finding {
	for _, w := range s.Warnings {
		if what, fix, ok := strings.Cut(w, ". "); ok && strings.HasPrefix(w, "spans do not reach ") {
			return []finding{bad("trace", "trace-silent", clean(fix), "%s", clean(what))}
		}
	}
	return nil
}

// examineMembers names members whose admission stands in no record.
func examineMembers(s api.Status) (found []finding) {
	for _, w := range s.Warnings {
		if what, fix, ok := strings.Cut(w, "et it in anew: "); ok && strings.HasPrefix(w, "no record says that ") {
			found = append(found, bad("members", "half-member", clean(fix), "%s", clean(what[:max(strings.LastIndex(what, ". "), 0)])))
		}
	}
	return found
}

func examineBoard(s api.Status) finding { return fine("board", "%s", s.Board) }

// examineMesh connects to the node's own mesh port, as another node would.
func examineMesh(ctx context.Context, s api.Status) finding {
	for _, addr := range s.Listen {
		parts := strings.Split(addr, "/") // "", "ip4", HOST, "tcp", PORT, …
		if len(parts) < 5 || parts[3] != "tcp" || parts[1] != "ip4" && parts[1] != "ip6" {
			continue
		}
		ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
		conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", net.JoinHostPort(parts[2], parts[4]))
		cancel()
		if err != nil {
			return bad("mesh port", "mesh-port", "aster down, then aster up --detach", "nothing answers at %s", clean(addr))
		}
		conn.Close()
		reach := "this network"
		if s.Loopback {
			reach = "this machine only"
		}
		return fine("mesh port", "%s, open to %s; %s", clean(addr), reach, meshText(s))
	}
	return bad("mesh port", "mesh-closed", "aster down, then aster up --detach", "the node listens nowhere for other nodes")
}

func examineDisk(s api.Status) finding {
	switch {
	case s.DiskShort:
		return bad("disk", "disk-full", "free space on the disk of the home: the node goes on by itself", "new messages are refused: the disk itself is full; %s are used here", bytesText(s.Disk))
	case s.DiskFull:
		return bad("disk", "disk-full", "raise [store] bytes_max in "+configFile, "new messages are refused for want of room; %s are used here", bytesText(s.Disk))
	case s.DiskMax > 0 && s.Disk > s.DiskMax/10*9:
		return bad("disk", "disk-nearly-full", "raise [store] bytes_max in "+configFile, "%s of %s are used", bytesText(s.Disk), bytesText(s.DiskMax))
	}
	return fine("disk", "%s used", bytesText(s.Disk))
}

// examineRetention names a member that keeps content here from leaving while room is short.
func examineRetention(s api.Status) finding {
	for _, h := range s.Retention.Held {
		if h.Member != "" && s.DiskMax > 0 && s.Disk > s.DiskMax/10*9 {
			return bad("retention", "member-holds", "start that node, or if it will not come back: aster member revoke "+clean(h.Member),
				"%s of attachments wait for %s, which has not got them", bytesText(h.Bytes), clean(h.Member))
		}
	}
	return fine("retention", "attachments %s; %s", retentionText(s), historyText(s))
}

func examineVersion(s api.Status) finding {
	if s.Version != version() {
		return bad("version", "version-differs", "aster down, then aster up --detach", "the node runs %s, this program is %s", clean(s.Version), version())
	}
	return fine("version", "%s", version())
}

// examineCopies says when a home was copied and both ran.
func examineCopies(s api.Status) finding {
	for _, c := range s.Copies {
		switch {
		case c.This:
			return bad("identity", "fenced", "aster down here, or to go on here: aster up --replace --reclaim", "a copy of this home was started later: this one writes nothing more")
		case c.Peer == s.Peer:
			return bad("identity", "home-copied", "aster down in the copy's home"+copyPlace(c), "a copy of this home was running and has stopped writing")
		}
	}
	for _, c := range s.Copies {
		return bad("identity", "home-copied", "aster down in the home that was started first"+copyPlace(c), "%s runs from two homes", clean(c.Node))
	}
	return fine("identity", "no home was copied, as far as is known here")
}

func copyPlace(c api.Copy) string {
	if c.Host == "" {
		return ""
	}
	return ": " + clean(c.Host) + " " + clean(c.Home)
}
