package main

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/aster-mesh/aster/cmd/aster/internal/client"
	"github.com/aster-mesh/aster/protocol/api"
)

// statusTime is after how long a status that has not come is given up: the command answers within 3 s whatever is broken.
const statusTime = 2500 * time.Millisecond

// statusWithin asks for the status, and beside it how each layer is: what is broken is named when the status does not come.
func (a *app) statusWithin(ctx context.Context, c *client.Client) (api.Status, error) {
	ctx, cancel := context.WithTimeout(ctx, statusTime)
	defer cancel()
	type seen struct {
		layers []api.Layer
		err    error
	}
	look := make(chan seen, 1)
	looking, end := context.WithCancel(ctx)
	defer end()
	go func() {
		layers, err := c.Layers(looking)
		look <- seen{layers, err}
	}()
	s, err := c.Status(ctx)
	if err == nil {
		end()
		<-look
		return s, nil
	}
	if client.RefusalCode(err) != "" && client.RefusalCode(err) != client.CodeInternal && client.RefusalCode(err) != client.CodeNotReady {
		return s, err
	}
	got := <-look
	switch {
	case errors.Is(err, client.ErrNotRunning):
		return s, err
	case got.err != nil && client.RefusalCode(err) != "": // it answered, and its own word says more
		return s, err
	case got.err != nil:
		return s, failed("board port: no answer at %s within %s. See why: aster logs", c.Node().Board, statusTime)
	}
	var broken []string
	for _, l := range got.layers {
		if !l.OK {
			broken = append(broken, clean(l.Name)+": "+clean(l.Detail))
		}
	}
	if len(broken) == 0 && client.RefusalCode(err) != "" {
		return s, err
	}
	if len(broken) == 0 {
		return s, failed("the node is slow: no status within %s, though each of its layers answers. See why: aster logs", statusTime)
	}
	return s, failed("%s. See why: aster logs", strings.Join(broken, "\n"))
}
