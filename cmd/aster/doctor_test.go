package main

import (
	"archive/tar"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/api"
	"github.com/aster-mesh/aster/roles/worker/repo"
)

func TestDoctorGivesEachFaultOneCodeAndOneCommand(t *testing.T) {
	port, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer port.Close()
	_, open, _ := net.SplitHostPort(port.Addr().String())
	f := newFake(t, map[string]any{"GET /status": api.Status{Name: "devbox", PID: 1, Version: "other", Listen: []string{"/ip4/127.0.0.1/tcp/" + open}, DiskFull: true,
		Warnings: []string{"access.json is not readable (unexpected end): only this machine is let in", "spans do not reach http://127.0.0.1:9: 3 dropped. Start it",
			"no record says that mac-mini is a member: ada, which let it in, is not linked. If that node has lost it too, let it in anew: aster invite, then on mac-mini: aster down"},
		Compared: &api.Compared{Records: 40, Digest: "ab", Alike: []string{"devbox", "ada"}, Differ: []string{"ben"}},
		Copies:   []api.Copy{{Peer: "12D3", Node: "devbox", This: true}}}, "GET /store": api.StoreHealth{Missing: []api.MissingRecords{{Log: "l", Node: "ada", From: 3, To: 5}}}})
	writeConfig(t, f.home, "[worker]\ncommand = [\"no-such-program\"]\nrepo = \"/no/such/repo\"\n")
	got := f.type_(t, "", "doctor", "--json")
	codes := map[string]string{}
	for line := range strings.Lines(got.out) {
		var x finding
		if err := json.Unmarshal([]byte(line), &x); err != nil {
			t.Fatal(err)
		}
		if x.OK == (x.Code != "") || x.OK == (x.Fix != "") {
			t.Errorf("%+v: a fault needs a code and a command, the rest neither", x)
		}
		codes[x.Check] = x.Code
	}
	want := map[string]string{"home": "", "config": "", "worker": "worker-missing", "worker repo": "repo-bad", "git": "", "clock": "", "node": "", "access": "access-bad", "trace": "trace-silent", "members": "half-member", "boards": "boards-differ", "board": "", "mesh port": "", "disk": "disk-full", "retention": "", "store": "records-missing", "identity": "fenced", "version": "version-differs"}
	for check, code := range want {
		if have, ok := codes[check]; !ok || have != code {
			t.Errorf("%s: %q (found %v), want %q", check, have, ok, code)
		}
	}
	if got.code != 1 || len(codes) != len(want) {
		t.Errorf("exit %d, checks %v", got.code, codes)
	}
}

// TestDoctorNamesThePlaceOfABadSetting: who set a variable is not sent to the file.
func TestDoctorNamesThePlaceOfABadSetting(t *testing.T) {
	f := newFake(t, map[string]any{"GET /status": api.Status{Name: "devbox"}, "GET /store": api.StoreHealth{}})
	t.Setenv("ASTER_BOARDS_COMPARE", "12h")
	if got := f.type_(t, "", "doctor"); !strings.Contains(got.out, "change ASTER_BOARDS_COMPARE, or unset it") || strings.Contains(got.out, "edit ") {
		t.Errorf("got %s", got.out)
	}
	os.Unsetenv("ASTER_BOARDS_COMPARE")
	writeConfig(t, f.home, "[boards]\ncompare = \"12h\"\n")
	if got := f.type_(t, "", "doctor"); !strings.Contains(got.out, "edit ") {
		t.Errorf("got %s", got.out)
	}
}

func TestASupportBundleHoldsNoSecret(t *testing.T) {
	f := newFake(t, map[string]any{"GET /status": api.Status{Name: "devbox"}, "GET /peers": map[string]any{"peers": []api.Peer{}}, "GET /store": api.StoreHealth{}})
	secrets := []string{"aster1-AbCdEf", "lk-0123456789ab", "tok3n", "s3cret", "hunter2", "sesame"}
	writeConfig(t, f.home, "[worker]\ncommand = [\"claude\", \"--api-key\", \"s3cret\"]\n[trace]\nendpoint = \"http://127.0.0.1:9/sesame\"\n")
	log := "time=1 msg=joined with=aster1-AbCdEf\nurl=/ws?key=lk-0123456789ab\nAuthorization: Bearer tok3n\nticket: hunter2\nerr=\"Post http://127.0.0.1:9/sesame/v1/traces: refused\"\nmsg=fine part=hub\n"
	if err := os.WriteFile(filepath.Join(f.home, logName), []byte(log), 0o600); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "bundle.tar.gz")
	got := f.type_(t, "", "doctor", "--bundle", path)
	names := map[string]bool{}
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err, got)
	}
	defer file.Close()
	zip, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	for in := tar.NewReader(zip); ; {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(in)
		if err != nil {
			t.Fatal(err)
		}
		names[h.Name] = true
		for _, s := range append(secrets, fakeToken) {
			if strings.Contains(string(body), s) {
				t.Errorf("%s holds %q", h.Name, s)
			}
		}
		if h.Name == "aster/log.txt" && !strings.Contains(string(body), "msg=fine part=hub") {
			t.Errorf("the log lost what is no secret: %s", body)
		}
	}
	for _, want := range []string{"aster/build.json", "aster/doctor.json", "aster/config.json", "aster/status.json", "aster/peers.json", "aster/log.txt"} {
		if !names[want] {
			t.Errorf("no %s in %v", want, names)
		}
	}
	if again := f.type_(t, "", "doctor", "--bundle", path); again.code != 1 || !strings.Contains(again.err, "exists already") {
		t.Errorf("a file was overwritten: %+v", again)
	}
}

func git(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_AUTHOR_NAME=t", "GIT_AUTHOR_EMAIL=t@t", "GIT_COMMITTER_NAME=t", "GIT_COMMITTER_EMAIL=t@t")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

func TestFetchBringsTheCommitIntoTheCloneOnABranchOfItsOwn(t *testing.T) {
	origin := t.TempDir()
	git(t, origin, "init", "-q", "-b", "main")
	if err := os.WriteFile(filepath.Join(origin, "a.txt"), []byte("one\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	git(t, origin, "add", ".")
	git(t, origin, "commit", "-q", "-m", "one")
	clone := t.TempDir()
	git(t, clone, "clone", "-q", origin, ".")
	if err := os.WriteFile(filepath.Join(origin, "a.txt"), []byte("two\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	git(t, origin, "commit", "-q", "-am", "two")
	commit := git(t, origin, "rev-parse", "HEAD")
	bundle := filepath.Join(t.TempDir(), "b")
	if err := repo.BundleBase(origin, commit, bundle); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(bundle)
	if err != nil {
		t.Fatal(err)
	}
	id := protocol.TaskID("0190f5a2-7b3c-7def-8123-456789abcdef")
	task := api.Task{ID: id, Short: protocol.ShortID(id), State: api.TaskDone, Commit: commit, Result: &protocol.BlobRef{SHA256: strings.Repeat("a", 64)}}
	f := newFake(t, map[string]any{"GET /tasks/{id}": task, "GET /blobs/{sha}": rawAnswer(content)})
	t.Chdir(clone)
	for range 2 { // twice is once
		got := f.type_(t, "", "task", "fetch", "t-"+task.Short)
		if want := "t-" + task.Short + " is on branch aster/" + task.Short + ", commit " + commit[:7] + "\n"; got.code != 0 || got.out != want {
			t.Fatalf("exit %d, %q %q, want %q", got.code, got.out, got.err, want)
		}
	}
	if text := git(t, clone, "show", "aster/"+task.Short+":a.txt"); text != "two" {
		t.Errorf("the branch holds %q", text)
	}
	if text := git(t, clone, "show", "HEAD:a.txt"); text != "one" {
		t.Errorf("fetch moved HEAD to %q", text)
	}
	t.Chdir(t.TempDir())
	if got := f.type_(t, "", "task", "fetch", "t-"+task.Short); got.code == 0 || !strings.Contains(got.err, "cd CLONE && aster") || strings.Contains(got.err, "git init") {
		t.Errorf("outside a clone: %+v", got)
	}
}
