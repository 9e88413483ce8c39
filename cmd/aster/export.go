package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/aster-mesh/aster/cmd/aster/internal/client"
	"github.com/aster-mesh/aster/node"
	"github.com/aster-mesh/aster/protocol/api"
	"github.com/spf13/cobra"
)

func exportCommand(a *app) *cobra.Command {
	var meshKey bool
	cmd := &cobra.Command{
		Use: "export FILE", Short: "Write this home into one file, while its node runs or not", Args: cobra.ExactArgs(1),
		Long: `Write the home into FILE, a gzipped tar: its keys, its place in the mesh, its settings, and the store with every message as
of one moment. Whoever has FILE can run as this node and read all of it, so it is made for you alone (mode 0600); keep it like
a key. aster import FILE makes the home again, here or elsewhere. What the node did after the export comes back from the
other nodes.

With --mesh-key only the mesh key is written, and leaves the home: the mesh goes on without it.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if meshKey {
				return a.takeMeshKey(args[0])
			}
			return a.export(cmd.Context(), args[0])
		},
	}
	cmd.Flags().BoolVar(&meshKey, "mesh-key", false, "put only the mesh key into FILE, out of the home")
	return cmd
}

func importCommand(a *app) *cobra.Command {
	var meshKey bool
	cmd := &cobra.Command{
		Use: "import FILE", Short: "Make a home of an exported file; nothing is ever overwritten", Args: cobra.ExactArgs(1),
		Long: `Make the home (--home, ASTER_HOME or the default, which must be empty or absent) of a file that aster export wrote. Every part
is checked before anything is put in its place. The node goes on under its name: start it with aster up. Before it gives out
mail it asks the others what it did after the export. If the original still runs, the one started last goes on and the other
stops writing; both are told.

With --mesh-key a mesh key that was put away comes back into the home.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if meshKey {
				return a.giveMeshKey(args[0])
			}
			return a.importHome(cmd.Context(), args[0])
		},
	}
	cmd.Flags().BoolVar(&meshKey, "mesh-key", false, "bring only a mesh key back, into the home that is here")
	return cmd
}

// export writes the home; a file that is there already, or half of one, is never left.
func (a *app) export(ctx context.Context, path string) (err error) {
	if err := checkHome(a.home); err != nil {
		return err
	}
	if path == "-" {
		return refused("an export holds private keys, so it is never written to a terminal or a pipe. Name a file: %s FILE", a.typed("export"))
	}
	if within(path, a.home) {
		return refused("%s lies in the home itself. Choose a place outside of it", tilde(path))
	}
	copied, done, err := a.copyStore(ctx)
	if err != nil {
		return err
	}
	defer done()
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return failed("%s exists already. Name another file", tilde(path))
	}
	if err != nil {
		return fmt.Errorf("write export: %w", err)
	}
	x, err := node.Export(ctx, a.home, copied, version(), f)
	err = errors.Join(err, f.Sync(), f.Close())
	if err != nil {
		if left := os.Remove(path); left != nil {
			a.talk("%s is not whole: remove it", tilde(path))
		}
		return a.otherHolds(err)
	}
	x.File, _ = filepath.Abs(path)
	if a.json {
		return a.emit(x)
	}
	a.say("%s: %s as of %s, %s in %s (%s)", tilde(path), clean(x.Name), dayText(x.At), plural(int(x.Records), "record", "records"),
		plural(x.Parts, "part", "parts"), bytesText(x.Bytes))
	a.talk("private: it holds this node's keys and all of its messages (mode 0600). Whoever has it can run as this node")
	if x.MeshKey {
		a.talk("the mesh key is inside too. To keep it apart: aster export --mesh-key FILE")
	}
	if x.Fenced {
		a.talk("this home was fenced: a newer start of it ran elsewhere. An import of it stays fenced until aster up --reclaim")
	}
	if x.Damage != "" {
		a.talk("the store was damaged (%s); what could be read was taken. See what is missing: aster doctor", clean(x.Damage))
	}
	if len(x.Left) > 0 {
		a.talk("not in it: %s", clean(strings.Join(x.Left, ", ")))
	}
	a.talk("put it back: aster --home DIR import %s", tilde(path))
	return nil
}

// within says whether a file would lie in a folder.
func within(path, dir string) bool {
	at, err1 := filepath.EvalSymlinks(filepath.Dir(path))
	at, err2 := filepath.Abs(at)
	home, err3 := filepath.EvalSymlinks(dir)
	return err1 == nil && err2 == nil && err3 == nil && (at == home || strings.HasPrefix(at, home+string(os.PathSeparator)))
}

// copyStore asks a running node for a copy of its store; nil if no node runs here. done removes it, if nobody has.
func (a *app) copyStore(ctx context.Context) (c *api.StoreCopy, done func(), err error) {
	n, err := client.Open(a.home)
	if errors.Is(err, client.ErrNotRunning) || errors.Is(err, fs.ErrNotExist) {
		return nil, func() {}, nil
	}
	if err != nil {
		return nil, nil, err
	}
	defer n.Close()
	if _, here := a.running(ctx); !here {
		return nil, func() {}, nil // a file that a killed node left, or a copy's; the lock says it for certain
	}
	got, err := n.CopyStore(ctx)
	if err != nil {
		return nil, nil, err
	}
	return &got, func() { _ = os.RemoveAll(got.Dir) }, nil
}

// otherHolds says what a home that is held by a node which does not answer means.
func (a *app) otherHolds(err error) error {
	var held *node.RunningError
	if errors.As(err, &held) {
		return failed("the node of this home runs (pid %d) and does not answer. See why: %s. Or end it and try again: %s", held.File.PID, a.typed("logs"), a.typed("down"))
	}
	return err
}

func (a *app) importHome(ctx context.Context, path string) error {
	if a.home == "" {
		return checkHome(a.home)
	}
	f, err := os.Open(path)
	if err != nil {
		return failed("%s", err)
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && info.IsDir() {
		return refused("%s is a folder. Name the file that aster export wrote", tilde(path))
	}
	x, err := node.Import(ctx, f, a.home)
	if err != nil {
		return err
	}
	if a.json {
		return a.emit(x)
	}
	a.say("%s: %s as of %s, %s, every part checked", tilde(x.Home), clean(x.Name), dayText(x.At), plural(int(x.Records), "record", "records"))
	if x.Fenced {
		a.talk("this home was fenced when it was exported: start it with %s --reclaim to go on here", a.typed("up"))
	}
	a.talk("start it: %s. One home is for one node at a time: if the original still runs, the one started last goes on, the other stops writing, and both say so", a.typed("up --detach"))
	return nil
}

func dayText(ms int64) string { return time.UnixMilli(ms).Local().Format("2006-01-02 15:04:05") }

func (a *app) takeMeshKey(path string) error {
	if err := checkHome(a.home); err != nil {
		return err
	}
	mesh, err := node.TakeMeshKey(a.home, path)
	if err != nil {
		return err
	}
	if a.json {
		return a.emit(map[string]string{"mesh": mesh, "file": path})
	}
	a.say("%s: the mesh key of %s, and no longer in this home", tilde(path), mesh)
	a.talk("keep it offline (mode 0600). The mesh goes on without it: inside nodes invite, renew and revoke one another. " +
		"Only a founder that is alone for 60 days needs it, and says so. Bring it back: aster import --mesh-key FILE")
	return nil
}

func (a *app) giveMeshKey(path string) error {
	if err := checkHome(a.home); err != nil {
		return err
	}
	mesh, err := node.GiveMeshKey(a.home, path)
	if err != nil {
		return err
	}
	if a.json {
		return a.emit(map[string]string{"mesh": mesh, "home": a.home})
	}
	a.say("the mesh key of %s is back in %s", mesh, tilde(a.home))
	a.talk("%s still holds it: keep or remove it", tilde(path))
	return nil
}
