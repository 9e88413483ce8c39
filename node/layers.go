package node

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/aster-mesh/aster/protocol/api"
)

// layerTime is how long one layer may take to say that it is well.
const layerTime = time.Second

// Layers implements web.Watched. Each layer is looked at in a goroutine of its own, so that one that hangs hides no other;
// such a goroutine ends when its layer does answer.
func (n *Node) Layers(ctx context.Context) []api.Layer {
	ctx, cancel := context.WithTimeout(ctx, layerTime)
	defer cancel()
	looks := []struct {
		name string
		look func(context.Context) (string, error)
	}{{"loop", n.lookAtLoop}, {"disk", n.lookAtDisk}, {"mesh", n.lookAtMesh}, {"gossip", n.lookAtGossip}, {"ready", n.lookAtReady}}
	type seen struct {
		detail string
		err    error
	}
	answers := make([]chan seen, len(looks))
	for i := range looks {
		answers[i] = make(chan seen, 1)
		go func() {
			detail, err := looks[i].look(ctx)
			answers[i] <- seen{detail, err}
		}()
	}
	out := make([]api.Layer, len(looks))
	for i := range looks {
		out[i].Name = looks[i].name
		s := seen{err: fmt.Errorf("no answer within %s", layerTime)}
		select {
		case s = <-answers[i]:
		case <-ctx.Done():
			select {
			case s = <-answers[i]: // in time, while another was waited for
			default:
			}
		}
		if out[i].OK, out[i].Detail = s.err == nil, s.detail; s.err != nil {
			out[i].Detail = s.err.Error()
		}
	}
	return out
}

// lookAtLoop asks for a turn, not for its commit: that is the disk's.
func (n *Node) lookAtLoop(ctx context.Context) (string, error) {
	began, turn := time.Now(), make(chan struct{})
	if err := n.loop.post(ctx, func() { close(turn) }); err != nil {
		return "", fmt.Errorf("%d inputs wait and it takes no more: %w", len(n.loop.jobs), err)
	}
	select {
	case <-turn:
		return "a turn within " + time.Since(began).Round(time.Millisecond).String(), nil
	case <-ctx.Done():
		return "", fmt.Errorf("no turn within %s, %d inputs wait", layerTime, len(n.loop.jobs))
	}
}

// lookAtDisk writes and syncs a file in the home, and asks whether the store has room.
func (n *Node) lookAtDisk(context.Context) (string, error) {
	f, err := os.CreateTemp(n.home.dir, ".look-*")
	if err != nil {
		return "", fmt.Errorf("the home cannot be written: %w", err)
	}
	defer os.Remove(f.Name())
	_, err = f.WriteString("aster")
	if err == nil {
		err = f.Sync()
	}
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return "", fmt.Errorf("the home cannot be written: %w", err)
	}
	if no := n.noRoom(); no != nil {
		return "", no
	}
	if why := n.store.Suspicion(); why != "" {
		return "", fmt.Errorf("the store may be damaged: %s", why)
	}
	used, _ := n.store.Size()
	return fmt.Sprintf("%d MB used", used>>20), nil
}

func (n *Node) lookAtMesh(context.Context) (string, error) {
	if len(n.mesh.Addrs()) == 0 {
		return "", fmt.Errorf("it listens nowhere")
	}
	return fmt.Sprintf("%d links", len(n.mesh.Links())), nil
}

func (n *Node) lookAtGossip(context.Context) (string, error) {
	if n.gossip == nil {
		return "an outside node takes no part", nil
	}
	alive := 0
	for _, word := range n.aliveness() {
		if word == "alive" {
			alive++
		}
	}
	return fmt.Sprintf("%d nodes alive", alive), nil
}

// lookAtReady: the node has come up, and takes what it is given.
func (n *Node) lookAtReady(context.Context) (string, error) {
	if f := n.fenced.Load(); f != nil {
		return "", f.refusal()
	}
	if !n.isUp.Load() {
		return "", fmt.Errorf("the node is starting")
	}
	return "", nil
}
