package client

import (
	"context"
	"fmt"
	"net/url"
	"time"

	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/api"
)

// WaitTier returns the message when it has the tier, a RefusedError when it was refused before it had it, and ErrTimedOut
// otherwise. The node counts the time.
func (c *Client) WaitTier(ctx context.Context, id string, tier protocol.Tier, within time.Duration) (out api.Message, err error) {
	err = c.call(ctx, get("messages", id).with(url.Values{"wait": {string(tier)}, "timeout": {within.String()}}), nil, &out)
	if err != nil {
		return out, err
	}
	var no *RefusedError
	for _, t := range out.Tiers {
		switch t.Tier {
		case tier:
			return out, nil
		case protocol.Refused:
			no = &RefusedError{t.Reason}
		}
	}
	if no == nil {
		return out, fmt.Errorf("the node answered a wait for %s before it came", tier)
	}
	return out, no
}

// RefusedError says that a message was logged, and refused where it was to go.
type RefusedError struct{ Reason string }

func (e *RefusedError) Error() string { return "refused: " + e.Reason }
