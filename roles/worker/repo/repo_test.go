package repo

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/aster-mesh/aster/protocol"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func sh(t *testing.T, dir, line string) string {
	t.Helper()
	cmd := exec.Command("sh", "-ec", line)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_AUTHOR_NAME=t", "GIT_AUTHOR_EMAIL=t@t.invalid", "GIT_COMMITTER_NAME=t", "GIT_COMMITTER_EMAIL=t@t.invalid")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", line, err, out)
	}
	return strings.TrimSpace(string(out))
}

func newRepo(t *testing.T, content string) (dir, head string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "shop")
	sh(t, ".", "git init -q -b main "+dir)
	head = sh(t, dir, "echo "+content+" > a.txt; git add .; git commit -q -m start; git rev-parse HEAD")
	return dir, head
}

func refusal(t *testing.T, err error, code string) string {
	t.Helper()
	var r *protocol.Refusal
	if !errors.As(err, &r) || r.Code != code {
		t.Fatalf("got %v, want a refusal %s", err, code)
	}
	return r.Error()
}

func TestDescribe(t *testing.T) {
	dir, first := newRepo(t, "one")
	second := sh(t, dir, "git commit -q --allow-empty -m two; mkdir sub; git rev-parse HEAD")
	bare := filepath.Join(t.TempDir(), "shop.git")
	sh(t, ".", "git clone -q --bare "+dir+" "+bare)
	for _, at := range []string{dir, filepath.Join(dir, "sub"), bare} {
		root, head, name, err := Describe(at)
		if err != nil || root != first || head != second || name != "shop" {
			t.Errorf("Describe(%s) = %s, %s, %s, %v", at, root, head, name, err)
		}
	}
	shallow := filepath.Join(t.TempDir(), "shallow")
	sh(t, ".", "git clone -q --depth 1 file://"+dir+" "+shallow)
	_, _, _, err := Describe(shallow)
	if said := refusal(t, err, protocol.CodeRepoMismatch); !strings.Contains(said, "fetch --unshallow") {
		t.Error(said)
	}
	refusal(t, BundleBase(shallow, "", filepath.Join(t.TempDir(), "b")), protocol.CodeRepoMismatch)
	empty := t.TempDir()
	if _, _, _, err := Describe(empty); err == nil || !strings.Contains(err.Error(), "is not a git repository") {
		t.Errorf("plain folder: %v", err)
	}
	sh(t, empty, "git init -q")
	if _, _, _, err := Describe(empty); err == nil || !strings.Contains(err.Error(), "has no commit yet") {
		t.Errorf("empty repository: %v", err)
	}
}

func TestBundleIsBoundedAndWholeOrNotThere(t *testing.T) {
	dir, head := newRepo(t, "one")
	sh(t, dir, "head -c 300000 /dev/urandom > big; git add .; git commit -q -m big")
	out := filepath.Join(t.TempDir(), "b")
	said := refusal(t, writeBundle(context.Background(), dir, out, 100_000, "HEAD"), protocol.CodeFrameTooLarge)
	if !strings.Contains(said, "leave the bundle out") {
		t.Error(said)
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(out), "*")); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
	// A commit below HEAD: its private ref is gone afterwards.
	if err := BundleBase(dir, head, out); err != nil {
		t.Fatal(err)
	}
	if refs := sh(t, dir, "git for-each-ref refs/aster"); refs != "" {
		t.Errorf("refs left behind: %s", refs)
	}
	if err := BundleBase(dir, strings.Repeat("0", 40), out); err == nil {
		t.Error("a commit that is not there was bundled")
	}
}

// attempt makes a change on a base and returns its bundle and commit.
func attempt(t *testing.T, local string) (Tree, Saved) {
	t.Helper()
	work := filepath.Join(t.TempDir(), "work")
	ctx := context.Background()
	tree, err := Prepare(ctx, Plan{Task: "t1", Attempt: 1, Work: work, Local: local})
	if err != nil {
		t.Fatal(err)
	}
	sh(t, work, "echo more >> a.txt")
	saved, err := Finish(ctx, tree, Save{Author: "w <1>", Message: "more", Bundle: work + ".bundle"})
	if err != nil {
		t.Fatal(err)
	}
	return tree, saved
}

func TestFetchRefusesAnotherRootNamingBoth(t *testing.T) {
	dir, head := newRepo(t, "one")
	other, otherHead := newRepo(t, "two")
	_, saved := attempt(t, dir)
	said := refusal(t, Fetch(other, saved.Bundle, saved.Commit, "refs/heads/aster/x"), protocol.CodeRepoMismatch)
	if !strings.Contains(said, head[:12]) || !strings.Contains(said, otherHead[:12]) {
		t.Errorf("%q names not both %s and %s", said, head, otherHead)
	}
	said = refusal(t, sameRoot(t.Context(), other, head), protocol.CodeRepoMismatch)
	if !strings.Contains(said, head[:12]) || !strings.Contains(said, otherHead[:12]) {
		t.Errorf("%q names not both %s and %s", said, head, otherHead)
	}
	if err := sameRoot(t.Context(), dir, otherHead+","+head); err != nil {
		t.Errorf("one common root is enough: %v", err)
	}
	refusal(t, sameRoot(t.Context(), dir, ""), protocol.CodeRepoMismatch)
}

func TestFetchNeverOverwritesOtherWork(t *testing.T) {
	dir, _ := newRepo(t, "one")
	clone := filepath.Join(t.TempDir(), "clone")
	sh(t, ".", "git clone -q "+dir+" "+clone)
	_, saved := attempt(t, dir)
	for range 2 { // a second time changes nothing
		if err := Fetch(clone, saved.Bundle, saved.Commit, "refs/heads/aster/x"); err != nil {
			t.Fatal(err)
		}
	}
	mine := sh(t, clone, "git checkout -q -b aster/y; git commit -q --allow-empty -m mine; git checkout -q main; git rev-parse aster/y")
	err := Fetch(clone, saved.Bundle, saved.Commit, "refs/heads/aster/y")
	if err == nil || !strings.Contains(err.Error(), "is here already and names "+Short(mine)) {
		t.Errorf("got %v", err)
	}
	if got := sh(t, clone, "git rev-parse aster/y"); got != mine {
		t.Error("the branch was moved")
	}
	for _, bad := range []string{"", "-x", "refs/heads/a..b", "refs/heads/x:y"} {
		if err := Fetch(clone, saved.Bundle, saved.Commit, bad); err == nil {
			t.Errorf("ref %q was taken", bad)
		}
	}
	if err := Fetch(clone, saved.Bundle, "HEAD", "refs/heads/aster/z"); err == nil {
		t.Error("a revision that is no commit id was taken")
	}
	write := filepath.Join(t.TempDir(), "torn")
	sh(t, ".", "head -c 150 "+saved.Bundle+" > "+write)
	fresh := filepath.Join(t.TempDir(), "fresh")
	sh(t, ".", "git clone -q --single-branch --branch main "+dir+" "+fresh)
	if err := Fetch(fresh, write, saved.Commit, "refs/heads/aster/z"); err == nil {
		t.Error("a torn bundle was taken")
	}
}

func TestHooksSigningAndOtherBranchesAreLeftAlone(t *testing.T) {
	dir, head := newRepo(t, "one")
	ran := filepath.Join(t.TempDir(), "ran")
	for _, hook := range []string{"post-checkout", "pre-commit", "commit-msg", "reference-transaction"} {
		path := filepath.Join(dir, ".git", "hooks", hook)
		if err := os.WriteFile(path, []byte("#!/bin/sh\ntouch "+ran+"\nexit 1\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	sh(t, dir, "git config commit.gpgSign true; git config user.signingKey nobody; git config author.name Owner")
	t.Setenv("GIT_DIR", "/elsewhere")
	tree, saved := attempt(t, dir)
	t.Setenv("GIT_DIR", filepath.Join(dir, ".git"))
	if _, err := os.Stat(ran); err == nil {
		t.Error("a hook ran")
	}
	if got := sh(t, dir, "git log -1 --format='%an <%ae> %s' "+saved.Commit); got != "w 1 <w--1-@aster.invalid> more" {
		t.Errorf("commit by %q", got)
	}
	if got := sh(t, dir, "git rev-parse main"); got != head {
		t.Error("main was moved")
	}
	if err := Remove(context.Background(), tree); err != nil {
		t.Fatal(err)
	}
	if got := sh(t, dir, "git rev-parse "+tree.Branch); got != saved.Commit {
		t.Error("the branch went with the work tree")
	}
}

func TestLocksOfAKilledGitDoNotKeepTheWorkFromBeingCommitted(t *testing.T) {
	dir, _ := newRepo(t, "one")
	work := filepath.Join(t.TempDir(), "work")
	tree, err := Prepare(context.Background(), Plan{Task: "t1", Attempt: 1, Work: work, Local: dir})
	if err != nil {
		t.Fatal(err)
	}
	sh(t, work, `echo more >> a.txt
touch $(git rev-parse --git-path index.lock) $(git rev-parse --git-path HEAD.lock) $(git rev-parse --git-path refs/heads/`+tree.Branch+`.lock)`)
	saved, err := Finish(context.Background(), tree, Save{Author: "w", Message: "more", Bundle: work + ".bundle"})
	if err != nil || saved.Commit == "" {
		t.Errorf("%+v, %v", saved, err)
	}
}

func TestPrepareWaitsForAGitThatOutlivedItsNode(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no lock to inherit; see hold_windows.go")
	}
	dir, _ := newRepo(t, "one")
	work := filepath.Join(t.TempDir(), "work")
	ctx, release, err := hold(context.Background(), work+".lock")
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	short, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	if _, err := Prepare(short, Plan{Task: "t1", Attempt: 1, Work: work, Local: dir}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("beside another: %v", err)
	}
	// The node ends and closes its file; the git that it started has one of its own.
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	cmd := command(ctx, dir, nil, "hash-object", "--stdin")
	cmd.Stdin = r
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	release()
	if _, again, err := hold(short, work+".lock"); err == nil {
		again()
		t.Error("the lock is free while git runs")
	}
	w.Close()
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	if _, err := Prepare(context.Background(), Plan{Task: "t1", Attempt: 1, Work: work, Local: dir}); err != nil {
		t.Error(err)
	}
}

func TestRunThatDeletesItsGitIsNamedAndTouchesNobodyElse(t *testing.T) {
	around, head := newRepo(t, "around")
	dir, _ := newRepo(t, "one")
	work := filepath.Join(around, "work")
	tree, err := Prepare(context.Background(), Plan{Task: "t1", Attempt: 1, Work: work, Local: dir})
	if err != nil {
		t.Fatal(err)
	}
	sh(t, work, "rm .git; echo x > x")
	if _, err := Finish(context.Background(), tree, Save{Author: "w", Message: "m", Bundle: work + ".bundle"}); err == nil {
		t.Error("no error")
	}
	if got := sh(t, around, "git rev-parse HEAD; git diff --cached --name-only"); got != head {
		t.Errorf("the repository around it: %s", got)
	}
}

func TestBundleWithAGitFolderInItsTreeIsRefused(t *testing.T) {
	dir, _ := newRepo(t, "one")
	bad := sh(t, dir, `blob=$(echo evil | git hash-object -w --stdin)
tree=$(printf "100644 blob $blob\tconfig\n" | git mktree)
top=$(printf "040000 tree $tree\t.git\n" | git mktree)
git commit-tree -m bad $top`)
	out := filepath.Join(t.TempDir(), "b")
	if err := BundleBase(dir, bad, out); err != nil {
		t.Fatal(err)
	}
	work := filepath.Join(t.TempDir(), "work")
	_, err := Prepare(context.Background(), Plan{Task: "t", Attempt: 1, Work: work, Named: true, Head: bad, Bundle: out})
	if said := refusal(t, err, protocol.CodeBadFrame); !strings.Contains(strings.ToLower(said), "dotgit") {
		t.Error(said)
	}
}

func FuzzParseHeader(f *testing.F) {
	id := strings.Repeat("a", 40)
	f.Add("# v2 git bundle\n-" + id + " subject\n" + id + " refs/heads/main\n\nPACK")
	f.Add("# v3 git bundle\n@object-format=sha1\n" + id + " HEAD\n\n")
	f.Add("# v2 git bundle\n" + strings.Repeat("x", 5000))
	f.Fuzz(func(t *testing.T, text string) {
		h, err := parseHeader(strings.NewReader(text))
		if err != nil {
			return
		}
		for _, id := range h.needs {
			if !isCommitID(id) {
				t.Errorf("prerequisite %q", id)
			}
		}
		for id := range h.heads {
			if !isCommitID(id) {
				t.Errorf("head %q", id)
			}
		}
		if h.bytes > int64(len(text)) || !strings.HasSuffix(text[:h.bytes], "\n\n") {
			t.Errorf("the pack is said to begin at %d of %d", h.bytes, len(text))
		}
	})
}
