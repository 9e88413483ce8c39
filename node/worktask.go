package node

import (
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

// delegateValue is what a runner reads of a Delegate's value.
type delegateValue struct {
	Task    string   `json:"task"`
	Text    string   `json:"text"`
	Accept  []string `json:"accept"`
	Attempt int      `json:"attempt"`
	Repo    *struct {
		Root string `json:"root"`
		Head string `json:"head"`
		Name string `json:"name"`
	} `json:"repo"`
}

// task reads a Delegate. Its base bundle is copied out of the store, since a run may outlive this process.
func (r *runner) task(ctx context.Context, env *protocol.Envelope) (worker.Task, error) {
	whole := *env
	if err := r.n.fill(&whole); err != nil {
		return worker.Task{}, err
	}
	var v delegateValue
	if err := json.Unmarshal(whole.Value, &v); err != nil {
		v = delegateValue{}
	}
	t := worker.Task{ID: env.ID, Attempt: max(v.Attempt, 1), From: env.From, To: r.agent, Text: v.Task, Accept: v.Accept, Env: traceEnv(env)}
	if t.Text == "" {
		t.Text = v.Text
	}
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
	if v.Repo != nil {
		t.Repo = &worker.RepoSpec{Root: v.Repo.Root, Head: v.Repo.Head, Name: v.Repo.Name}
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
