package node

import (
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"

	"github.com/aster-mesh/aster/node/bridge"
	"github.com/aster-mesh/aster/node/hub"
	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/asterism"
)

// lineEnvelope is what an outbox line says, as a message. Not keep: the line is not for the journal.
func (n *Node) lineEnvelope(agent protocol.AgentID, line bridge.Line) (env protocol.Envelope, keep bool, err error) {
	env = protocol.Envelope{ID: line.MsgID, To: line.To, Re: line.Re, NoWake: line.NoWake, Trace: line.Trace}
	text := func(name, s string) json.RawMessage { return protocol.EncodeBody(map[string]string{name: s}) }
	switch line.Kind {
	case bridge.KindNone:
		return env, false, nil
	case bridge.KindSay:
		env.Intent, env.Value = protocol.AgentText, text("text", line.Text)
	case bridge.KindRunStart:
		env.Intent, env.Run, env.Value = "RUN_STARTED", line.Run, text("runId", line.Run)
	case bridge.KindRunFinish:
		env.Intent, env.Run, env.Value = "RUN_FINISHED", line.Run, protocol.EncodeBody(map[string]json.RawMessage{"outcome": orNull(line.Outcome)})
	case bridge.KindStep:
		env.Intent, env.Value = "STEP_STARTED", text("stepName", line.Text)
	case bridge.KindStepDone:
		env.Intent, env.Value = "STEP_FINISHED", text("stepName", line.Text)
	case bridge.KindTool:
		env.Intent, env.Value = protocol.ToolCall, text("toolCallName", line.Text)
	case bridge.KindFrame:
		return n.lineFrame(agent, line)
	case bridge.KindMessage:
		env.Intent, env.Value, env.Blobs = line.Intent, asterism.WithAttachments(line.Value, line.Blobs), line.Blobs
	}
	return env, true, nil
}

// lineFrame reads a whole frame of the contract, under the same rules as one from a socket.
func (n *Node) lineFrame(agent protocol.AgentID, line bridge.Line) (protocol.Envelope, bool, error) {
	f, no := asterism.Decode(line.Frame, protocol.FrameBytesMax)
	if no != nil {
		return protocol.Envelope{}, false, no
	}
	if protocol.Lookup(f.Intent()).Keeping != protocol.Kept && !hub.RoomVerb(f.Intent()) {
		return protocol.Envelope{}, false, protocol.Refuse(protocol.CodeUnknownIntent, "%s is not for an outbox", "write what is to be kept: messages, steps, runs", string(f.Intent()))
	}
	env, no := f.Envelope(asterism.Sender{ID: agent, Source: protocol.SourceAgent}, line.MsgID)
	if no != nil {
		return protocol.Envelope{}, false, no
	}
	return env, true, nil
}

// keepAttached implements bridge.Config.Keep. What no record comes to name is swept like all such content.
func (n *Node) keepAttached(ctx context.Context, r io.Reader) (protocol.BlobRef, error) {
	return n.PutBlob(ctx, r, "")
}

func orNull(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 {
		return json.RawMessage("null")
	}
	return raw
}

// enableFiles serves the folders of agents: the node's own, and every agent whose folder somebody made.
func (n *Node) enableFiles() {
	agents := map[protocol.AgentID]bool{}
	_ = n.loop.call(n.ctx, func() {
		agents[n.loop.own()] = true
		for _, p := range n.loop.core.Presences(n.loop.now) {
			if _, err := os.Stat(bridge.FolderOf(n.home.path("agents"), p.Agent)); err == nil {
				agents[p.Agent] = true
			}
		}
	})
	entries, err := os.ReadDir(n.home.path("agents"))
	if err == nil {
		for _, e := range entries {
			if id := protocol.AgentID(e.Name()); e.IsDir() && protocol.CheckAgentID(id) == nil && bridge.FolderOf(n.home.path("agents"), id) == filepath.Join(n.home.path("agents"), e.Name()) {
				agents[id] = true
			}
		}
	}
	for id := range agents {
		n.beginFolder(id)
		if err := n.bridge.Enable(id); err != nil {
			n.log.Warn("agent's folder not served", "agent", id, "err", err)
		}
	}
}

// beginFolder makes an agent of a folder that somebody made and no node has served yet, so that others can write to it before
// it has said anything. One that was served stays as it is: its agent may have been forgotten, or live elsewhere now.
func (n *Node) beginFolder(id protocol.AgentID) {
	dir := bridge.FolderOf(n.home.path("agents"), id)
	if !isThere(dir) || isThere(filepath.Join(dir, "inbox.jsonl")) {
		return
	}
	var known bool
	err := n.loop.call(n.ctx, func() { _, known = n.loop.core.Agent(id) })
	if err == nil && !known {
		_, err = n.loop.ask(n.ctx, func(t hub.Token) hub.Input { return hub.Declare{Agent: id, Client: "files", Token: t} })
	}
	if err != nil {
		n.log.Warn("agent's folder is no agent yet", "agent", id, "err", err)
	}
}
