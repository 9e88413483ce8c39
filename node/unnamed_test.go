package node

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/aster-mesh/aster/protocol"
)

// TestSilentSocketsOfOnesOwnGiveWay: a program of the node's own user that opens sockets without end and says nothing loses
// those that were silent for longest. Who has said something, be it as a board, is let be, and an agent is let in at any time.
func TestSilentSocketsOfOnesOwnGiveWay(t *testing.T) {
	var n *Node
	r := start(t, func(c *Config) { c.probe = func(x *Node) { n = x } })
	board, agent := r.watch(t), r.attach(t, "before")
	board.send(t, map[string]any{"type": "CUSTOM", "name": "UserPrompt", "targetAgentId": "before", "msgId": "p1", "value": map[string]any{"text": "hello"}})
	agent.next(t, "UserPrompt") // the board has spoken
	token := r.come(t, "?token="+n.token)
	var silent []*keyed
	for range protocol.UnnamedMax + 8 {
		silent = append(silent, r.come(t, ""))
	}
	for i, c := range silent {
		if i < 9 { // beside the board there is room for one less
			select {
			case <-c.conn.Done():
			case <-time.After(60 * time.Second):
				t.Fatalf("socket %d was silent for longest and is there", i)
			}
		} else if closed(c.conn.Done()) {
			t.Errorf("socket %d was closed", i)
		}
	}
	after := r.attach(t, "after")
	agent.send(t, map[string]any{"type": "CUSTOM", "name": "Request", "targetAgentId": "after", "msgId": "m1", "value": map[string]any{}})
	after.next(t, "Request")
	for name, c := range map[string]*client{"the board that spoke": board, "the agent": agent, "a person's": &token.client} {
		if closed(c.conn.Done()) {
			t.Errorf("%s gave way", name)
		}
	}
}

// TestThePastIsReadOnceForAllWhoCome: boards that connect at once share one reading, which began after each of them came.
func TestThePastIsReadOnceForAllWhoCome(t *testing.T) {
	const crowd = 50
	var p boardPast
	var all sync.WaitGroup
	begun, first := make(chan struct{}), make(chan struct{})
	all.Go(func() {
		p.get(func(*boardRead) { close(begun); <-first })
	})
	<-begun
	var mu sync.Mutex
	reads := 0
	for range crowd {
		all.Go(func() {
			p.get(func(*boardRead) { mu.Lock(); reads++; mu.Unlock() })
		})
	}
	for joined := func() int {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.next == nil {
			return 0
		}
		return p.next.joined
	}; joined() < crowd-1; {
		<-time.After(time.Millisecond)
	}
	close(first)
	all.Wait()
	if reads != 1 {
		t.Error(fmt.Sprint(reads, " readings for those who came while another ran, want 1"))
	}
}
