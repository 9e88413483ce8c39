//go:build unix

package bridge

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/aster-mesh/aster/protocol"
)

func TestNoAgentIDLeavesTheFolderOrSharesAnother(t *testing.T) {
	seen := map[string]protocol.AgentID{}
	for _, id := range []protocol.AgentID{
		"claude-shop", "a.b", ".", "..", ".hidden", "con", "con.txt", "COM1", "a b", "a:b", "a%20b", "ä", "trailing.", "~",
		protocol.AgentID(strings.Repeat("ä", 64)), protocol.AgentID(strings.Repeat("ö", 64)),
	} {
		name := folderName(id)
		if name == "" || strings.HasPrefix(name, ".") || strings.ContainsAny(name, `/\: `) || len(name) > folderBytesMax || filepath.Base(name) != name {
			t.Errorf("folderName(%q) = %q", id, name)
		}
		if other, ok := seen[strings.ToLower(name)]; ok {
			t.Errorf("%q and %q share the folder %q", id, other, name)
		}
		seen[strings.ToLower(name)] = id
	}
	if got := folderName("claude-shop"); got != "claude-shop" {
		t.Errorf("a plain id became %q", got)
	}
}

func TestLinksPipesAndFoldersAreRefusedByName(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "secret")
	put(t, secret, `{"say":"not yours"}`+"\n")
	for name, lay := range map[string]func(path string) error{
		"a symbolic link": func(path string) error { return os.Symlink(secret, path) },
		"a named pipe":    func(path string) error { return syscall.Mkfifo(path, 0o600) },
		"a folder":        func(path string) error { return os.Mkdir(path, 0o700) },
	} {
		for _, file := range []string{outboxFile, inboxFile} {
			l := newLedger()
			b, dir := desk(t, l)
			if err := lay(filepath.Join(dir, file)); err != nil {
				t.Fatal(err)
			}
			l.mail = letters(1, 1)
			var err error
			if file == outboxFile {
				_, err = b.outboxOf(agent).scan(t.Context())
			} else {
				_, err = b.inboxOf(t, agent).deliver(t.Context())
			}
			if !errors.Is(err, ErrForeign) || !strings.Contains(err.Error(), name) || !strings.Contains(err.Error(), file) {
				t.Errorf("%s as %s: %v", name, file, err)
			}
			if len(l.said()) > 0 {
				t.Errorf("%s as %s was read", name, file)
			}
		}
	}
	if text := read(t, secret); strings.Count(text, "\n") != 1 {
		t.Errorf("the file behind the link was written to: %q", text)
	}
}

func TestAFolderThatIsALinkIsRefused(t *testing.T) {
	b := New(newLedger().config(t.TempDir()))
	if err := os.Symlink(t.TempDir(), FolderOf(b.cfg.Dir, agent)); err != nil {
		t.Fatal(err)
	}
	if err := b.Enable(agent); !errors.Is(err, ErrForeign) {
		t.Fatalf("Enable: %v", err)
	}
}

func TestFoldersAndFilesAreTheirUsersAlone(t *testing.T) {
	l := newLedger()
	b, dir := desk(t, l)
	l.mail = letters(1, 1)
	if err := deliverAll(b.inboxOf(t, agent)); err != nil {
		t.Fatal(err)
	}
	add(t, filepath.Join(dir, outboxFile), "bad\n")
	scanAll(t, b.outboxOf(agent))
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has mode %04o", e.Name(), info.Mode().Perm())
		}
	}
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("folder: %v, %v", info.Mode(), err)
	}
}
