package double

import (
	"encoding/json"
	"time"

	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/asterism"
)

// question is what an agent asks people.
type question struct {
	by   protocol.AgentID
	over bool
}

const codeClosed = "selection-closed"

// selection takes a word about a question; it says whether the word goes on as a message.
func (c *conn) selection(f *asterism.Frame, env *protocol.Envelope) bool {
	h := c.h
	var v struct {
		PromptID string `json:"promptId"`
		Timeout  *struct {
			Kind    string  `json:"kind"`
			Seconds float64 `json:"seconds"`
		} `json:"timeout"`
	}
	if json.Unmarshal(f.Value, &v) != nil || v.PromptID == "" || v.Timeout != nil && v.Timeout.Kind != "approval" && v.Timeout.Kind != "clarify" {
		c.refuse(f.MsgID, protocol.Refuse(protocol.CodeWrongType, "value.promptId and value.timeout are not understood", ""))
		return false
	}
	q, by := h.questions[v.PromptID], c.speaker()
	switch f.Intent() {
	case "SelectionPrompt":
		if by == nil || q != nil {
			return true
		}
		h.questions[v.PromptID] = &question{by: by.id}
		if v.Timeout != nil {
			h.clock.after(time.Duration(v.Timeout.Seconds*float64(time.Second)), func() { h.expired(v.PromptID, v.Timeout.Kind) })
		}
		return true
	case "SelectionAnswer":
		if by != nil {
			c.refuse(f.MsgID, protocol.Refuse(protocol.CodeNotAllowed, "people answer", ""))
			return false
		}
	case "SelectionCancel":
		if by != nil && (q == nil || q.by != by.id) {
			c.refuse(f.MsgID, protocol.Refuse(protocol.CodeNotAllowed, "it is another's question", ""))
			return false
		}
	}
	if q == nil {
		return true
	}
	if q.over && h.fault != "KC19" {
		c.refuse(f.MsgID, protocol.Refuse(codeClosed, "it is answered", ""))
		return false
	}
	q.over = true
	if env.To = q.by; h.fault == "KC18" && f.TargetAgentID == "" {
		env.To = h.main
	}
	if h.fault != "KC19" {
		how := map[protocol.Intent]string{"SelectionAnswer": "answered", "SelectionCancel": "cancelled"}[f.Intent()]
		h.toBoards(h.made("SelectionResolved", map[string]any{"promptId": v.PromptID, "resolution": how}), nil)
	}
	return true
}

// made is a frame of the hub's own for boards.
func (h *hub) made(name protocol.Intent, v any) []byte {
	raw, _ := json.Marshal(v)
	return h.enc.Custom(h.clock.now(), asterism.Custom{Name: name, Value: raw})
}

// expired ends a question whose clock ran out: an approval is denied, a clarification goes on without an answer.
func (h *hub) expired(id, kind string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	q := h.questions[id]
	if q.over {
		return
	}
	q.over = true
	how := map[string]string{"approval": "denied-fail-closed", "clarify": "proceed-default"}[kind]
	raw, _ := json.Marshal(map[string]any{"promptId": id, "kind": kind, "resolution": how, "expiredAt": h.clock.now().UnixMilli()})
	env := protocol.Envelope{ID: protocol.MsgID("sel-exp-" + id), Source: protocol.SourceServer, To: q.by, Intent: "SelectionExpired", Value: raw}
	h.toBoards(h.copyFor(&env), nil)
	if a := h.agent(q.by); a != nil {
		h.post(a, &letter{env: env})
	}
}

// declares keeps what an agent says of itself; what breaks a limit or a right is refused.
func (c *conn) declares(f *asterism.Frame) bool {
	h, by := c.h, c.session.Sender()
	no := protocol.CheckDeclaration(f.Intent(), by.ID, f.Value)
	if no == nil && f.Intent() == "CorporateChart" && by.ID != "" && !h.leads(by.ID) {
		no = protocol.Refuse(protocol.CodeNotAllowed, "the chart is main's to declare", "")
	}
	if no != nil {
		c.refuse(f.MsgID, no)
		return false
	}
	if h.declared[f.Intent()] == nil {
		h.declared[f.Intent()] = map[string]json.RawMessage{}
	}
	of := string(by.ID)
	if item := protocol.DeclaredItem(f.Intent(), f.Value); item != "" {
		of = item
	}
	h.declared[f.Intent()][of] = f.Value
	return true
}

// setMain asks the agent that is main to hand over, or does it when it is ready.
func (c *conn) setMain(f *asterism.Frame) {
	h, by := c.h, c.speaker()
	var v struct {
		AgentID protocol.AgentID `json:"agentId"`
		Reason  string           `json:"reason"`
	}
	_ = json.Unmarshal(f.Value, &v)
	to := h.agent(v.AgentID)
	switch {
	case by != nil && !h.leads(by.id):
		c.keyError(f, "PERMISSION_DENIED", "who is main is the owner's to say")
		return
	case to == nil || to.conn == nil || to.conn.key.outside():
		c.keyError(f, "INVALID_BOUND_AGENT", "nobody could follow")
		return
	}
	h.next = to.id
	raw, _ := json.Marshal(map[string]any{"to": to.id, "reason": v.Reason})
	if a := h.agent(h.main); a != nil {
		h.post(a, &letter{env: protocol.Envelope{ID: h.id(), Source: protocol.SourceServer, To: a.id, Intent: "HandoffRequested", Value: raw}})
	}
	h.clock.after(10*time.Second, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.handOver(to.id)
	})
}

// handOver makes the agent main that was named, once.
func (h *hub) handOver(to protocol.AgentID) {
	if h.next != to || to == "" {
		return
	}
	former := h.agent(h.main)
	h.main, h.next = to, ""
	for _, a := range []*agent{former, h.agent(to)} {
		if a == nil || a.conn == nil {
			continue
		}
		role := h.roleOf(a)
		a.conn.session.SetRole(role)
		a.conn.link.Send(h.enc.ConnectionInfo(h.clock.now(), asterism.ConnectionInfo{AgentID: a.id, Role: role, Surface: "agent", MayManageKeys: role == protocol.RoleMain, MayRelayTargeted: true, Keyed: a.conn.key != nil}))
	}
	h.roster()
	h.toBoards(h.enc.MainChanged(h.clock.now(), to), nil)
}

// ready is a word of HandoffReady.
func (c *conn) ready(f *asterism.Frame) {
	if by := c.speaker(); c.h.fault != "KB19" && c.h.fault != "B14" && (by == nil || !c.h.leads(by.id)) {
		c.refuse(f.MsgID, protocol.Refuse(protocol.CodeNotAllowed, "only main steps down", ""))
		return
	}
	c.h.handOver(c.h.next)
}
