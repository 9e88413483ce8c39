package client

import (
	"context"

	"github.com/aster-mesh/aster/protocol/api"
)

// Boards lists the boards that the node has joined.
func (c *Client) Boards(ctx context.Context) ([]api.Board, error) {
	var out struct {
		Boards []api.Board `json:"boards"`
	}
	err := c.call(ctx, get("boards"), nil, &out)
	return out.Boards, err
}

// JoinBoard joins a board; it returns when the board has answered, or after some seconds.
func (c *Client) JoinBoard(ctx context.Context, req api.BoardRequest) (out api.Board, err error) {
	err = c.call(ctx, post("boards"), req, &out)
	return out, err
}

// LeaveBoard gives a board up, by its address or its name here.
func (c *Client) LeaveBoard(ctx context.Context, which string) error {
	return c.call(ctx, post("boards", "leave"), api.BoardLeave{URL: which}, nil)
}
