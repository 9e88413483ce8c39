//go:build unix

package e2e

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/aster-mesh/aster/cmd/aster/internal/client"
	"github.com/aster-mesh/aster/node/journal"
	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/api"
)

// copies is the mesh of TestCopiedHome: a node that stays, and one whose home is copied again and again.
type copies struct {
	t        *testing.T
	rng      *rand.Rand
	ada, bee *node
	all      []*node // that ever ran

	count  atomic.Int64
	mu     sync.Mutex
	logged []protocol.MsgID // acknowledged by whichever node
}

// TestCopiedHome copies a node's home at seeded moments of traffic and starts the copy alone, and beside the original, while
// the other node runs, is gone, or the original sleeps: no number is ever written twice, nothing acknowledged is lost, and
// where two starts meet both persons are told within 10 s and the older one refuses by name.
func TestCopiedHome(t *testing.T) {
	moments := 4
	if long {
		moments = 50
	}
	s := &copies{t: t, rng: rand.New(rand.NewPCG(seed(t), 4))}
	mesh := meshOf(t, nil, "ada", "bee")
	s.ada, s.bee, s.all = mesh[0], mesh[1], mesh
	s.ada.declare("ann")
	s.bee.declare("bob")
	s.ada.knows("bob")
	s.bee.knows("ann")
	ways := []func(*node){s.beside, s.alone, s.unseen, s.asleep}
	for i := range moments {
		began := time.Now()
		c := s.duplicate(i)
		ways[i%len(ways)](c)
		s.back(c)
		t.Logf("moment %d: %s", i, time.Since(began).Round(time.Millisecond))
	}
	s.arrived(s.ada)
	if long { // its former starts' logs come back with a comparison or two
		s.arrived(s.bee)
	}
	for _, n := range s.all {
		n.kill()
	}
	s.numbers()
	t.Logf("%d moments, %d messages", moments, len(s.logged))
}

// speak logs a few messages at a node, for both agents, until it refuses as fenced or stop is closed.
func (s *copies) speak(n *node, stop <-chan struct{}) (refused error) {
	for {
		select {
		case <-stop:
			return nil
		case <-time.After(3 * time.Millisecond): // some hundred a second: the copies are to meet in traffic, not in a flood
		}
		id := protocol.MsgID(fmt.Sprintf("c%05d", s.count.Add(1)))
		to, from := protocol.AgentID("bob"), protocol.AgentID("ann")
		if n != s.ada {
			to, from = "ann", "bob"
		}
		ctx, cancel := context.WithTimeout(s.t.Context(), patience)
		_, err := n.api().Send(ctx, api.SendRequest{From: from, To: to, Intent: protocol.Request, Value: text(string(id)), MsgID: id})
		cancel()
		if err != nil {
			return err
		}
		s.mu.Lock()
		s.logged = append(s.logged, id)
		s.mu.Unlock()
	}
}

// traffic runs f while the nodes speak.
func (s *copies) traffic(f func(), nodes ...*node) {
	stop := make(chan struct{})
	var wait sync.WaitGroup
	for _, n := range nodes {
		wait.Go(func() {
			if err := s.speak(n, stop); err != nil && client.RefusalCode(err) != protocol.CodeFenced && !errors.Is(err, client.ErrNotRunning) {
				s.t.Errorf("%s: %v", n.name, err)
			}
		})
	}
	f()
	close(stop)
	wait.Wait()
}

// duplicate copies bee's home file by file at some moment of traffic; what it gets need not fit together.
func (s *copies) duplicate(i int) *node {
	s.t.Helper()
	c := newNode(s.t, "bee", "")
	c.name = fmt.Sprintf("copy %d", i)
	s.traffic(func() {
		instant(time.Duration(s.rng.IntN(200)) * time.Millisecond)
		must(s.t, copyTree(s.bee.home, c.home))
	}, s.ada, s.bee)
	s.all = append(s.all, c)
	return c
}

func copyTree(from, to string) error {
	return filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		rel, relErr := filepath.Rel(from, path)
		switch {
		case errors.Is(err, fs.ErrNotExist): // a file that was there a moment ago
			return nil
		case err != nil || relErr != nil:
			return errors.Join(err, relErr)
		case d.IsDir():
			return os.MkdirAll(filepath.Join(to, rel), 0o700)
		case !d.Type().IsRegular() || rel == "node.json":
			return nil
		}
		raw, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		} else if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(to, rel), raw, 0o600)
	})
}

// beside starts the copy while all run.
func (s *copies) beside(c *node) {
	s.traffic(func() {
		began := time.Now()
		c.up("")
		s.told(c, began)
	}, s.ada, s.bee)
	s.traffic(func() { instant(50 * time.Millisecond) }, c)
}

// alone starts the copy in place of the original.
func (s *copies) alone(c *node) {
	s.bee.kill()
	c.up("")
	c.linked(1)
	s.traffic(func() { instant(100 * time.Millisecond) }, s.ada, c)
	if st := c.mustStatus(); len(st.Copies) > 0 && st.Copies[0].This {
		s.t.Errorf("the copy alone is fenced: %+v", st.Copies)
	}
}

// unseen lets both run and speak while nobody is there through whom they could meet.
func (s *copies) unseen(c *node) {
	s.ada.kill()
	c.up("")
	s.traffic(func() { instant(100 * time.Millisecond) }, s.bee, c)
	s.ada.up("")
	s.told(c, time.Now())
}

// asleep stops the original's process while the copy begins.
func (s *copies) asleep(c *node) {
	must(s.t, s.bee.cmd.Process.Signal(syscall.SIGSTOP))
	c.up("")
	c.linked(1)
	s.traffic(func() { instant(100 * time.Millisecond) }, c)
	must(s.t, s.bee.cmd.Process.Signal(syscall.SIGCONT))
	s.told(c, time.Now())
}

// told waits until the older start refuses and both persons know.
func (s *copies) told(c *node, since time.Time) {
	s.t.Helper()
	eventually(s.t, patience, "both persons are told", func() (bool, string) {
		older, err1 := s.bee.status()
		newer, err2 := c.status()
		ok := len(older.Copies) == 1 && older.Copies[0].This && len(newer.Copies) == 1 && !newer.Copies[0].This
		return ok, fmt.Sprint(older.Copies, err1, newer.Copies, err2)
	})
	if took := time.Since(since); took > promised(10*time.Second) {
		s.t.Errorf("both were told after %s, want at most 10 s", took)
	} else {
		s.t.Logf("both were told after %s", took.Round(time.Millisecond))
	}
	if err := s.speak(s.bee, nil); client.RefusalCode(err) != protocol.CodeFenced {
		s.t.Errorf("the older start says %v", err)
	}
	if r := s.bee.run("doctor"); !strings.Contains(r.stdout, "--reclaim") {
		s.t.Errorf("doctor says nothing of it: %s", r)
	}
}

// back ends the copy, once the mesh has what it said, and lets the original go on.
func (s *copies) back(c *node) {
	s.t.Helper()
	s.arrived(s.ada, c)
	c.kill()
	s.bee.kill()
	s.bee.up("", "--reclaim")
	s.bee.linked(1)
	if st := s.bee.mustStatus(); len(st.Copies) > 0 {
		s.t.Errorf("taken back it still says %+v", st.Copies)
	}
}

// arrived waits until a node has all that was acknowledged; of by, if given, only what that node has itself.
func (s *copies) arrived(at *node, by ...*node) {
	s.t.Helper()
	s.mu.Lock()
	ids := append([]protocol.MsgID{}, s.logged...)
	s.mu.Unlock()
	for _, id := range ids {
		if len(by) > 0 {
			if _, err := by[0].api().Message(s.t.Context(), string(id)); err != nil {
				continue
			}
		}
		eventually(s.t, patience, fmt.Sprintf("%s has %s", at.name, id), func() (bool, string) {
			_, err := at.api().Message(s.t.Context(), string(id))
			return err == nil, fmt.Sprint(err)
		})
	}
}

// numbers reads all stores: what two of them hold under one number of one log is the same, and an inbox holds a message once.
func (s *copies) numbers() {
	type number struct {
		log protocol.LogID
		seq uint64
	}
	seen := map[number]protocol.Hash{}
	for _, n := range s.all {
		store, err := journal.Open(filepath.Join(n.home, "journal"), journal.Options{BytesMax: 1 << 30})
		must(s.t, err)
		heads, err := store.Heads()
		must(s.t, err)
		for _, h := range heads {
			for next := uint64(1); next <= h.Seq; {
				recs, err := store.Range(h.Log, next, 1<<20)
				must(s.t, err)
				for i := range recs {
					key := number{h.Log, recs[i].Seq}
					if old, ok := seen[key]; ok && old != recs[i].Hash() {
						s.t.Errorf("number %d of %s was written twice", key.seq, key.log)
					}
					seen[key] = recs[i].Hash()
				}
				next += uint64(len(recs))
			}
		}
		must(s.t, store.Close())
	}
	s.t.Logf("%d numbers in %d homes", len(seen), len(s.all))
}
