package bench

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
)

// frugalGC is GOGC of a node whose memory is looked at closely: it collects whenever a tenth was added.
const frugalGC = 10

// heldBytes is what the node's last collection found in use. Resident memory is no measure of it: it counts what nobody holds
// any more and what the collector keeps for later. The runtime says when it collects next, a tenth above what it found.
func (n *node) heldBytes(ctx context.Context) (int64, error) {
	who := n.client.Node()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(who.Board, "/")+"/metrics", nil)
	if err != nil {
		return 0, fmt.Errorf("ask for metrics: %w", err)
	}
	req.Header.Set("Authorization", "Bearer "+who.Token)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, fmt.Errorf("ask for metrics: %w", err)
	}
	defer res.Body.Close()
	for lines := bufio.NewScanner(res.Body); lines.Scan(); {
		if text, ok := strings.CutPrefix(lines.Text(), "go_memstats_next_gc_bytes "); ok {
			goal, err := strconv.ParseFloat(text, 64)
			return int64(goal * 100 / (100 + frugalGC)), err
		}
	}
	return 0, errors.New("the node's metrics do not say when it collects next")
}
