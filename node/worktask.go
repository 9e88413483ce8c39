package node

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/roles/worker"
)

// repoValue is what a Delegate says of the repository that its task is for.
type repoValue struct {
	Root string `json:"root"`
	Head string `json:"head"`
	Name string `json:"name"`
}

// acceptOf are the commands that decide whether a task is done: a list of texts, or one text. What is neither is refused: a
// check that its sender asked for must not be left out in silence.
func acceptOf(value json.RawMessage) ([]string, error) {
	raw := valueOf[json.RawMessage](value, "accept")
	var list []string
	var one string
	switch {
	case len(raw) == 0 || json.Unmarshal(raw, &list) == nil:
		return list, nil
	case json.Unmarshal(raw, &one) == nil:
		return []string{one}, nil
	}
	return nil, protocol.Refuse(protocol.CodeWrongType, "value.accept of the Delegate is neither a command nor a list of commands", `write "accept":["make test"], or leave it out`)
}

// task reads a Delegate. Its base bundle is copied out of the store, since a run may outlive this process.
func (r *runner) task(ctx context.Context, env *protocol.Envelope) (worker.Task, error) {
	whole := *env
	if err := r.n.fill(&whole); err != nil {
		return worker.Task{}, err
	}
	accept, err := acceptOf(whole.Value)
	if err != nil {
		return worker.Task{}, err
	}
	t := worker.Task{ID: env.ID, Attempt: max(valueOf[int](whole.Value, "attempt"), 1), From: env.From, To: r.agent, Accept: accept, Env: traceEnv(env)}
	t.Text = cmp.Or(valueOf[string](whole.Value, "task"), valueOf[string](whole.Value, "text"))
	if t.Text == "" {
		t.Text = whole.Text(protocol.ValueBytesInline)
	}
	if t.Text == "" {
		return t, protocol.Refuse(protocol.CodeBadFrame, "the Delegate says nothing to do", `put it into value.task`)
	}
	for _, b := range env.Blobs {
		if b.Use == "" {
			t.Files = append(t.Files, worker.File{Name: b.Name, SHA256: b.SHA256, Bytes: b.Bytes})
		}
	}
	if repo := valueOf[*repoValue](whole.Value, "repo"); repo != nil {
		t.Repo = &worker.RepoSpec{Root: repo.Root, Head: repo.Head, Name: repo.Name}
		for _, b := range env.Blobs {
			if b.Use == useBase {
				path, err := r.copyBlob(b)
				if err != nil {
					return t, err
				}
				t.Repo.Bundle = path
			}
		}
	}
	return t, ctx.Err()
}

func (r *runner) copyBlob(b protocol.BlobRef) (string, error) {
	in, _, err := r.n.store.OpenBlob(b.SHA256)
	if err != nil {
		return "", fmt.Errorf("base bundle: %w", err)
	}
	defer in.Close()
	dir := r.n.home.path("bundles")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("base bundle: %w", err)
	}
	path := filepath.Join(dir, b.SHA256+".bundle")
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	out, err := os.CreateTemp(dir, ".new-*")
	if err != nil {
		return "", fmt.Errorf("base bundle: %w", err)
	}
	_, err = io.Copy(out, in)
	if err = errors.Join(err, out.Sync(), out.Close()); err == nil {
		err = os.Rename(out.Name(), path)
	}
	if err != nil {
		return "", errors.Join(fmt.Errorf("base bundle: %w", err), os.Remove(out.Name()))
	}
	return path, nil
}
