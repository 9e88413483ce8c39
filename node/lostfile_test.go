package node

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aster-mesh/aster/node/journal"
)

// folderOf lists what is in a folder, with sizes of the files at its top.
func folderOf(t *testing.T, dir string) string {
	t.Helper()
	var out []string
	err := filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if i, err := e.Info(); err == nil && e.Name() != "lock" && !e.IsDir() {
			out = append(out, strings.TrimPrefix(path, dir)+i.ModTime().String())
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(out, "\n")
}

// TestAUsedHomeThatLostWhoItIsIsNotBegunAnew: a mesh of its own over the records of another would be silent damage, and so
// would another node that goes on with the words of the one that others know.
func TestAUsedHomeThatLostWhoItIsIsNotBegunAnew(t *testing.T) {
	r := start(t, nil)
	r.stop()
	refused := func(missing string, files ...string) {
		t.Helper()
		kept := map[string][]byte{}
		for _, name := range files {
			raw, err := os.ReadFile(filepath.Join(r.home, name))
			if err := errors.Join(err, os.Remove(filepath.Join(r.home, name))); err != nil {
				t.Fatal(err)
			}
			kept[name] = raw
		}
		before := folderOf(t, r.home)
		for range 2 {
			err := Run(t.Context(), Config{Home: r.home, Log: slog.New(slog.DiscardHandler)})
			if err == nil || !strings.Contains(err.Error(), missing+" is missing") || !strings.Contains(err.Error(), "import FILE") || !strings.Contains(err.Error(), "--home DIR") {
				t.Fatalf("started without %s: %v", files, err)
			}
		}
		if after := folderOf(t, r.home); after != before {
			t.Errorf("written:\n%s\nbefore:\n%s", after, before)
		}
		for name, raw := range kept {
			if err := os.WriteFile(filepath.Join(r.home, name), raw, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	refused("mesh.json", "mesh.json")
	refused("node.key", "node.key")
	refused("node.key", "node.key", "mesh.json")
	if err := os.Rename(filepath.Join(r.home, "journal"), filepath.Join(r.home, "kept")); err != nil {
		t.Fatal(err)
	}
	refused("node.key", "node.key")
	if err := os.Rename(filepath.Join(r.home, "kept"), filepath.Join(r.home, "journal")); err != nil {
		t.Fatal(err)
	}
	start(t, func(c *Config) { c.Home = r.home }).stop()
}

// TestAFirstStartThatWasCutIsBegunAgain: by a kill, or by an invite that was refused.
func TestAFirstStartThatWasCutIsBegunAgain(t *testing.T) {
	r := start(t, nil) // a home of the shape that the others here use
	r.stop()
	for _, name := range []string{"mesh.json", "mesh.key", "journal"} {
		if err := os.RemoveAll(filepath.Join(r.home, name)); err != nil {
			t.Fatal(err)
		}
	}
	store, err := journal.Open(filepath.Join(r.home, "journal"), journal.Options{})
	if err == nil {
		err = store.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	start(t, func(c *Config) { c.Home = r.home }).stop()
}
