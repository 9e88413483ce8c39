package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"mime"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/aster-mesh/aster/cmd/aster/internal/client"
	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/api"
)

// attach gives files to the node. A person sees how far each is; a pipe nothing.
func (a *app) attach(ctx context.Context, c *client.Client, files []string) (out []protocol.BlobRef, err error) {
	for _, path := range files {
		ref, err := a.attachOne(ctx, c, path)
		if err != nil {
			return nil, err
		}
		out = append(out, ref)
	}
	return out, nil
}

func (a *app) attachOne(ctx context.Context, c *client.Client, path string) (protocol.BlobRef, error) {
	var none protocol.BlobRef
	fi, err := os.Stat(path) // before it is opened: to open a named pipe waits for a writer
	if err != nil {
		return none, usage("--attach: %s", err)
	}
	if !fi.Mode().IsRegular() {
		return none, usage("--attach %s: only a file can go along, not a folder, pipe or device", clean(path))
	}
	if ofHome(a.home, path) {
		return none, usage("--attach %s: this file is the node's own, and goes to nobody: copy what matters of it elsewhere", clean(path))
	}
	f, err := os.Open(path)
	if err != nil {
		return none, usage("--attach: %s", err)
	}
	defer f.Close()
	name := filepath.Base(path)
	var progress func(have, of int64)
	if onTerminal(a.stderr) {
		progress = func(have, of int64) {
			end := ""
			if have == of {
				end = "\n"
			}
			fmt.Fprintf(a.stderr, "\r%s  %s of %s%s", clean(name), bytesText(have), bytesText(of), end)
		}
	}
	return c.PutFile(ctx, name, mime.TypeByExtension(filepath.Ext(name)), f, progress)
}

// ofHome says whether a file is one that the node keeps for itself: its keys and lists, its store, or an agent's mail. What agents
// and tasks made in their folders is theirs.
func ofHome(home, path string) bool {
	home, err := filepath.EvalSymlinks(home)
	if err != nil {
		return false
	}
	if path, err = filepath.Abs(path); err == nil {
		path, err = filepath.EvalSymlinks(path)
	}
	if err != nil {
		return false
	}
	if abs, err := filepath.Abs(home); err == nil {
		home = abs
	}
	rel, err := filepath.Rel(home, path)
	if err != nil || !filepath.IsLocal(rel) {
		return false
	}
	first, rest, below := strings.Cut(filepath.ToSlash(rel), "/")
	name := strings.ToLower(filepath.Base(rel))
	mail := strings.HasSuffix(name, ".jsonl") && (strings.HasPrefix(name, "inbox.") || strings.HasPrefix(name, "outbox."))
	return !below || first == "journal" || first == "agents" && strings.Count(rest, "/") == 1 && mail
}

// attached says whether somebody attached a file: git bundles and outputs have commands of their own.
func attached(e protocol.Envelope) bool {
	return slices.ContainsFunc(e.Blobs, func(b protocol.BlobRef) bool { return b.Use == "" })
}

// saved is one line of show --save --json.
type saved struct {
	Path   string `json:"path"`
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
}

// saveAttachments puts what a message has into a folder, under names that its sender cannot make anything else of, and
// never over a file that is there.
func (a *app) saveAttachments(ctx context.Context, c *client.Client, m api.Message, dir string) error {
	if len(m.Envelope.Blobs) == 0 {
		return failed("%s has nothing attached", idOf(m.Envelope.Intent, m.Short))
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("make the folder: %w", err)
	}
	for i, b := range m.Envelope.Blobs {
		content, err := c.Attachment(ctx, string(m.Envelope.ID), b.SHA256)
		if err != nil {
			return err
		}
		path, err := saveAs(dir, protocol.FileName(b.Name, i), b.SHA256, content)
		if err != nil {
			return err
		}
		if a.json {
			if err := a.emit(saved{path, b.Bytes, b.SHA256}); err != nil {
				return err
			}
			continue
		}
		a.say("%s  %s", clean(path), bytesText(b.Bytes))
	}
	return nil
}

// saveAs writes content under name, or name-2, … where that is taken; what is not of its hash does not stay.
func saveAs(dir, name, sha string, content io.ReadCloser) (path string, err error) {
	defer content.Close()
	var f *os.File
	ending := filepath.Ext(name)
	for n := 1; ; n++ {
		path = filepath.Join(dir, name)
		if n > 1 {
			path = filepath.Join(dir, strings.TrimSuffix(name, ending)+"-"+strconv.Itoa(n)+ending)
		}
		f, err = os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
		if !errors.Is(err, fs.ErrExist) || n == 1000 {
			break
		}
	}
	if err != nil {
		return "", fmt.Errorf("save attachment: %w", err)
	}
	h := sha256.New()
	_, err = io.Copy(io.MultiWriter(f, h), io.LimitReader(content, protocol.BlobBytesMax+1))
	err = errors.Join(err, f.Close())
	if err == nil && hex.EncodeToString(h.Sum(nil)) != sha {
		err = errors.New("what came is not what was sent")
	}
	if err != nil {
		return "", errors.Join(fmt.Errorf("save attachment: %w", err), os.Remove(path))
	}
	return path, nil
}
