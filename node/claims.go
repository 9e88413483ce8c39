package node

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/aster-mesh/aster/node/hub"
	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/api"
	"github.com/aster-mesh/aster/roles/claim"
)

// sessionOf names a process: its id, its start and the boot that it runs in.
func sessionOf(pid int) (string, *protocol.Refusal) {
	start, ok := processStart(pid)
	if !ok {
		return "", protocol.Refuse(protocol.CodeUnknownID, "no process %d runs here", "name the process that is to hold the claim with --pid", pid)
	}
	return fmt.Sprintf("%d/%s/%s", pid, start, bootID()), nil
}

func sessionRuns(session string) bool {
	parts := strings.SplitN(session, "/", 3)
	pid, err := strconv.Atoi(parts[0])
	if err != nil || len(parts) != 3 || parts[2] != bootID() {
		return false
	}
	start, ok := processStart(pid)
	return ok && start == parts[1]
}

// Acquire implements web.Office: it returns the claim when main has granted it.
func (n *Node) Acquire(ctx context.Context, req api.ClaimRequest) (out api.Claim, err error) {
	session, no := sessionOf(req.PID)
	if no != nil {
		return out, no
	}
	agent, err := n.newSpeaker(ctx, req.Agent, req.New)
	if err != nil {
		return out, err
	}
	ctx, cancel := context.WithTimeout(ctx, askWait)
	defer cancel()
	type reply struct {
		claim claim.Claim
		no    *protocol.Refusal
	}
	answer := make(chan reply, 1)
	var forget func()
	giveUp := func() { // who asked hears that there is no claim: then there must be none
		_ = n.loop.post(n.ctx, func() {
			select {
			case r := <-answer:
				if r.no == nil {
					n.loop.office.Release(r.claim.ID)
				}
			default:
				forget()
			}
		})
	}
	err = n.loop.call(ctx, func() {
		l := n.loop
		if !l.inside() {
			answer <- reply{no: protocol.Refuse(protocol.CodeNotAllowed, "this node is outside: claims are of the inside", "")}
			return
		}
		if _, ok := l.core.Agent(agent); !ok {
			l.core.Step(l.now, hub.Declare{Agent: agent, Client: "cli"}) // its first use
		}
		c := claim.Claim{ID: string(newID()), Agent: agent, Home: n.home.peer, Session: session, Scopes: req.Scopes, Why: protocol.CutText(req.Why, protocol.ShortTextBytesMax)}
		forget = l.office.Acquire(c, func(c claim.Claim, no *protocol.Refusal) { answer <- reply{c, no} })
	})
	if err != nil {
		if forget != nil {
			giveUp()
		}
		return out, err
	}
	select {
	case r := <-answer:
		if r.no != nil {
			return out, r.no
		}
		return api.Claim{ID: r.claim.ID, Agent: r.claim.Agent, Home: r.claim.Home, NodeName: n.home.mesh.Name, Scopes: r.claim.Scopes, Why: r.claim.Why,
			Since: time.Now().UnixMilli(), Term: r.claim.Term.Number, Here: true, Left: (protocol.ClaimLease - protocol.ClaimStopsEarly).Milliseconds()}, nil
	case <-ctx.Done():
		giveUp()
		return out, protocol.Refuse(protocol.CodeNotAllowed, "main's node did not answer within %s", "aster main show says who it is; try again", askWait)
	}
}

// ReleaseClaim implements web.Office. A store without room refuses: then the claim is held as before.
func (n *Node) ReleaseClaim(ctx context.Context, id string) error {
	var no *protocol.Refusal
	var undone error
	err := n.loop.call(ctx, func() {
		if no = n.loop.office.Release(id); no == nil {
			n.loop.after = append(n.loop.after, func(err error) { undone = err })
		}
	})
	switch {
	case err != nil:
		return err
	case no != nil:
		return no
	}
	return undone
}
