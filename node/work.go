package node

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aster-mesh/aster/node/hub"
	"github.com/aster-mesh/aster/node/journal"
	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/api"
	"github.com/aster-mesh/aster/roles/worker"
)

// runner connects the configured worker to its agent's inbox: Delegates go in, WorkerReports come out.
type runner struct {
	n     *Node
	w     *worker.Worker
	agent protocol.AgentID
	wake  chan struct{} // capacity 1: there may be new mail
	conn  hub.ConnID    // set before the loop knows of it
	gate  sync.Mutex    // held while a task is taken from the inbox, and while the agent moves

	retry atomic.Bool // a peer has linked: what is delayed is tried now
	full  atomic.Bool // as many tasks as may wait do: what is unread is looked at again when one has moved on

	// Guarded by gate.
	delayed  map[protocol.MsgID]*delayed // Delegates that stay unread for now
	fetching int                         // for how many of them what they need is fetched

	// Owned by run.
	told map[protocol.TaskID]toldProgress
}

// toldProgress is the last progress report of a task. A stage is told at once, more of the same every progressEvery: each
// report is a record for ever.
type toldProgress struct {
	stage string
	at    time.Time
}

const progressEvery = 15 * time.Second

// waitingMax bounds the tasks that wait for a slot, each of which has a folder. Further ones stay in the inbox, whose bound
// tells their senders.
const waitingMax = 100

// attached is how the runner's agent is present.
func (r *runner) attached(t hub.Token) hub.Input {
	return hub.Attach{Conn: r.conn, Agent: r.agent, Client: "worker", Wakes: "its runner", Role: protocol.RoleLocal, Token: t}
}

// run feeds the worker until ctx ends. The runs themselves outlive it.
func (r *runner) run(ctx context.Context) error {
	ended := make(chan error, 1)
	go func() { ended <- r.w.Run(ctx) }()
	defer func() { <-ended }()
	r.take(ctx)
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-r.wake:
			r.take(ctx)
		case rep := <-r.w.Reports():
			if err := r.report(ctx, rep); err != nil && ctx.Err() == nil {
				r.n.log.Error("report not sent", "part", "worker", "msg", rep.Task, "err", err)
			}
			if r.full.Swap(false) {
				r.take(ctx)
			}
		}
	}
}

// take starts what is unread. The start is durable before the message counts as processed, and an attempt that was
// started before is only acknowledged again.
func (r *runner) take(ctx context.Context) {
	r.gate.Lock()
	defer r.gate.Unlock()
	if r.n.fenced.Load() != nil {
		return // the newer start serves its mail
	}
	rows, err := r.n.store.Inbox(r.agent, journal.InboxQuery{})
	if err != nil {
		r.n.log.Error("inbox not readable", "part", "worker", "err", err)
		return
	}
	if r.retry.Swap(false) {
		for _, d := range r.delayed {
			d.again = time.Time{}
		}
	}
	unread := map[protocol.MsgID]*protocol.Envelope{} // the Delegates of this inbox that were not started
	for i := range rows {
		if ctx.Err() != nil {
			return
		}
		env := r.n.inNames(&rows[i].Message)
		if env.Room != "" && !env.Names(r.agent) {
			continue // said to others in a room
		}
		switch env.Intent {
		case protocol.Delegate:
			if !r.start(ctx, env) {
				unread[env.ID] = env
			}
		case protocol.Cancel:
			r.cancel(ctx, env, unread)
		}
	}
	for id := range r.delayed {
		if unread[id] == nil {
			r.forget(id)
		}
	}
}

// start says whether a Delegate needs no more: it was started, or refused by name. What may pass leaves it unread.
func (r *runner) start(ctx context.Context, env *protocol.Envelope) (settled bool) {
	if d := r.delayed[env.ID]; d != nil && time.Now().Before(d.again) {
		return false
	}
	if r.w.Waiting() >= waitingMax && r.w.Started(env.ID, max(valueOf[int](env.Value, "attempt"), 1), env.From) == nil {
		r.full.Store(true)
		return false
	}
	here, err := r.bring(ctx, env)
	if !here && err == nil {
		return false
	}
	if err == nil {
		err = r.begin(ctx, env)
	}
	return r.settle(ctx, env, err)
}

// settle does what follows from how a start went.
func (r *runner) settle(ctx context.Context, env *protocol.Envelope, err error) (settled bool) {
	var refusal *protocol.Refusal
	switch {
	case err != nil && ctx.Err() != nil:
		return false // the node stops: the Delegate is unread and starts at the next start
	case err == nil, errors.Is(err, worker.ErrStarted):
		r.processed(ctx, env)
		return true
	case errors.As(err, &refusal) && refusal.Code != protocol.CodeDiskFull && refusal.Code != protocol.CodeFenced:
		r.n.log.Error("task not started", "part", "worker", "msg", env.ID, "err", err)
		return r.end(ctx, env, worker.Failed, err.Error(), refusal.Code)
	}
	r.delay(env, err)
	return false
}

func (r *runner) begin(ctx context.Context, env *protocol.Envelope) error {
	task, err := r.task(ctx, env)
	if err == nil {
		err = r.w.Start(task)
	}
	return err
}

// end reports a Delegate that is not started, for good.
func (r *runner) end(ctx context.Context, env *protocol.Envelope, outcome, summary, code string) bool {
	value := api.ReportValue{ReMsgID: env.ID, Unit: protocol.ShortID(env.ID), Status: "blocked", Outcome: outcome, Summary: summary, Attempt: 1, Refusal: code}
	if err := r.say(ctx, env.From, env.ID, finalID(env.ID, 1), value, nil); err != nil {
		return false
	}
	r.processed(ctx, env)
	return true
}

// cancel ends a task that runs here, or a Delegate that came before and was not started yet.
func (r *runner) cancel(ctx context.Context, env *protocol.Envelope, unread map[protocol.MsgID]*protocol.Envelope) {
	id := env.Re
	if id == "" {
		id = protocol.MsgID(valueOf[string](env.Value, "for"))
	}
	if d := unread[id]; d != nil {
		if !r.end(ctx, d, worker.Cancelled, "cancelled before it began", "") {
			return
		}
		delete(unread, id)
	} else if err := r.w.Cancel(id); err != nil && !errors.Is(err, worker.ErrNotRunning) {
		r.n.log.Error("task not cancelled", "part", "worker", "msg", id, "err", err)
		return
	}
	r.processed(ctx, env)
}

// processed is the agent's own word: its runner has taken the message up.
func (r *runner) processed(ctx context.Context, env *protocol.Envelope) {
	_, err := r.n.loop.ask(ctx, func(t hub.Token) hub.Input {
		return hub.Acked{Agent: r.agent, Of: env.ID, From: env.From, Processed: true, Token: t}
	})
	if err != nil && ctx.Err() == nil {
		r.n.log.Debug("acknowledgement refused", "part", "worker", "msg", env.ID, "err", err)
	}
}

// report turns what the worker says into a WorkerReport. A final one is settled at the worker only when it is durable
// here; its id is made from task and attempt, so that a repeat after a crash is the same message.
func (r *runner) report(ctx context.Context, rep worker.Report) error {
	v := api.ReportValue{
		ReMsgID: rep.Task, Unit: protocol.ShortID(rep.Task), Status: "in_progress", Summary: rep.Summary, Attempt: rep.Attempt,
		Stage: rep.Stage, Tail: rep.Tail, Exit: rep.Exit, Millis: rep.Duration.Milliseconds(), Diff: rep.Diff,
		Commit: rep.Commit, Branch: rep.Branch, Base: rep.Base, Bytes: rep.OutputBytes, Tokens: rep.Tokens,
	}
	if v.Summary == "" {
		v.Summary = rep.Stage
	}
	if last := r.told[rep.Task]; !rep.Final && last.stage == rep.Stage && time.Since(last.at) < progressEvery {
		return nil
	}
	r.told[rep.Task] = toldProgress{rep.Stage, time.Now()}
	if rep.Final {
		delete(r.told, rep.Task)
	}
	state := protocol.StateWorking
	id := newID()
	var blobs []protocol.BlobRef
	if rep.Final {
		state, id = protocol.StateIdle, finalID(rep.Task, rep.Attempt)
		v.Outcome, v.Status = rep.Outcome, "blocked"
		if rep.Outcome == worker.Done {
			v.Status = "done"
		}
		if rep.Commit != "" {
			v.Refs = []string{rep.Commit}
		}
		if rep.Refusal != nil {
			v.Refusal = rep.Refusal.Code
		}
		var err error
		if blobs, err = r.attach(ctx, rep); err != nil {
			return err
		}
	}
	_ = r.n.loop.post(ctx, func() {
		r.n.loop.core.Step(r.n.loop.now, hub.Doing{Agent: r.agent, State: state, Text: doingText(&rep)})
	})
	if err := r.say(ctx, rep.From, rep.Task, id, v, blobs); err != nil {
		return err
	}
	if rep.Final {
		r.w.Reported(rep.Task, rep.Attempt)
	}
	return nil
}

func doingText(rep *worker.Report) string {
	if rep.Final {
		return ""
	}
	return "t-" + protocol.ShortID(rep.Task) + " " + rep.Stage
}

// finalID names the final report of an attempt: the same one for ever.
func finalID(task protocol.TaskID, attempt int) protocol.MsgID {
	d := protocol.IdentityOf("", protocol.MsgID(fmt.Sprintf("%s/%d/final", task, attempt)))
	return protocol.MsgID("wr-" + d.String())
}

func (r *runner) attach(ctx context.Context, rep worker.Report) ([]protocol.BlobRef, error) {
	var out []protocol.BlobRef
	for _, f := range []struct{ path, use, name, mime string }{
		{rep.Bundle, "result", "result.bundle", "application/x-git-bundle"},
		{rep.Output, "output", "output.txt", "text/plain"},
	} {
		if f.path == "" {
			continue
		}
		in, err := os.Open(f.path)
		if errors.Is(err, os.ErrNotExist) {
			continue // reported and tidied before
		}
		if err != nil {
			return nil, fmt.Errorf("attach %s: %w", f.use, err)
		}
		ref, err := r.n.store.PutBlob(ctx, in, "")
		if err = errors.Join(err, in.Close()); err != nil {
			return nil, fmt.Errorf("attach %s: %w", f.use, err)
		}
		if ref.Bytes == 0 {
			continue
		}
		ref.Use, ref.Name, ref.Mime = f.use, f.name, f.mime
		out = append(out, ref)
	}
	return out, nil
}

// say logs a report. Who delegated and is gone does not stop it: it then goes to nobody in particular, for the boards.
func (r *runner) say(ctx context.Context, to protocol.AgentID, re, id protocol.MsgID, v api.ReportValue, blobs []protocol.BlobRef) error {
	env := protocol.Envelope{ID: id, To: to, Intent: protocol.WorkerReport, Value: protocol.EncodeBody(v), Re: re, Blobs: blobs}
	_, err := r.n.loop.ask(ctx, func(t hub.Token) hub.Input { return r.n.loop.said(hub.Say{As: r.agent, Env: env, Token: t}) })
	var refusal *protocol.Refusal
	if !errors.As(err, &refusal) {
		return err
	}
	switch refusal.Code {
	case protocol.CodeMsgIDReused:
		return nil // the same attempt's final report is in the log already
	case protocol.CodeFenced:
		return err // the next start of this home tells it
	case protocol.CodeInboxFull, protocol.CodeDiskFull, protocol.CodeRate:
		r.n.later(5*time.Second, func() { notify(r.wake) })
		return err
	}
	env.To = ""
	_, err = r.n.loop.ask(ctx, func(t hub.Token) hub.Input { return r.n.loop.said(hub.Say{As: r.agent, Env: env, Token: t}) })
	return err
}

func notify(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Tasks implements web.Viewer.
func (n *Node) Tasks(ctx context.Context) (out []api.Task, err error) {
	err = n.loop.call(ctx, func() { out = n.loop.board.Tasks() })
	return out, err
}

// Task implements web.Viewer.
func (n *Node) Task(ctx context.Context, id string) (api.Task, error) {
	m, err := n.resolve(id)
	if err != nil {
		return api.Task{}, err
	}
	var t api.Task
	var ok bool
	if err := n.loop.call(ctx, func() { t, ok = n.loop.board.Task(m.Envelope.ID) }); err != nil {
		return t, err
	}
	if !ok {
		return t, protocol.Refuse(protocol.CodeUnknownID, "%s is a %s, not a Delegate", "aster task list shows Delegates", shortOf(&m.Envelope), string(m.Envelope.Intent))
	}
	if n.replicatedHas(m.Log, m.Seq) {
		t.Tiers = addTier(t.Tiers, api.TierAt{Tier: protocol.Replicated})
		sortTiers(t.Tiers)
	}
	t.Reports, err = n.reportsOn(m.Envelope.ID, 0)
	return t, err
}

const reportsShown = 100

// reportsOn are the newest reports on a task, oldest first; until is a hybrid time, 0 for all.
func (n *Node) reportsOn(task protocol.MsgID, until protocol.HLC) (out []api.Message, err error) {
	reports, err := n.store.Messages(journal.Query{Re: task, Intent: protocol.WorkerReport, Until: until, Limit: reportsShown, Newest: true})
	if err != nil {
		return nil, err
	}
	for i := len(reports) - 1; i >= 0; i-- {
		out = append(out, n.message(&reports[i]))
	}
	return out, nil
}

// CancelTask implements web.Mail: a person asks the worker to stop.
func (n *Node) CancelTask(ctx context.Context, id string) (api.Task, error) {
	t, err := n.Task(ctx, id)
	if err != nil {
		return t, err
	}
	if t.State.Final() {
		return t, protocol.Refuse(protocol.CodeNotAllowed, "%s is %s already", "", t.Short, string(t.State))
	}
	_, err = n.Send(ctx, api.SendRequest{
		FromBoard: true, To: t.To, Intent: protocol.Cancel, Re: t.ID,
		Value: protocol.EncodeBody(map[string]string{"for": string(t.ID), "reason": "cancelled by a person"}),
	})
	if err != nil {
		return t, err
	}
	return n.Task(ctx, id)
}
