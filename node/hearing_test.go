package node

import "testing"

// TestANodeThatStopsWhileItJudgesAHelloEndsWell: the connection's end and the judgement do not meet in one session.
func TestANodeThatStopsWhileItJudgesAHelloEndsWell(t *testing.T) {
	for name, begun := range map[string]bool{"not begun": false, "begun": true} {
		t.Run(name, func(t *testing.T) {
			var n *Node
			r := start(t, func(c *Config) { c.probe = func(x *Node) { n = x } })
			board := r.watch(t)
			guests := []*client{r.dial(t), r.dial(t), r.dial(t)}
			for _, c := range guests {
				c.next(t, "SERVER_HELLO")
			}
			// The loop is held up until the HELLOs wait behind it and the node stops.
			entered, gate := make(chan struct{}), make(chan struct{})
			if err := n.loop.post(t.Context(), func() { close(entered); <-gate }); err != nil {
				t.Fatal(err)
			}
			<-entered
			for i, c := range guests {
				c.send(t, map[string]any{"type": "HELLO", "agentId": string(rune('a' + i))})
			}
			until(t, "the HELLOs wait", func() bool { return len(n.loop.jobs) >= len(guests) })
			if begun {
				close(gate)
			}
			n.stop(errStopping)
			if !begun {
				<-n.done
				close(gate)
			}
			r.stop()
			_ = board
		})
	}
}
