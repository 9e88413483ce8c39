package hub

import (
	"cmp"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/aster-mesh/aster/protocol"
)

// Names of the selection exchange (wire 7.4): an agent asks people, one of them answers, and the asker's home decides
// which answer holds. It says so once, as SelectionExpired or SelectionResolved, and that record ends the question on
// every node.
const (
	selectionPrompt   protocol.Intent = "SelectionPrompt"
	selectionAnswer   protocol.Intent = "SelectionAnswer"
	selectionCancel   protocol.Intent = "SelectionCancel"
	selectionExpired  protocol.Intent = "SelectionExpired"
	selectionResolved protocol.Intent = "SelectionResolved"
)

// Clocks of questions, and how many are remembered.
const (
	clarifyWait    = 3600 * time.Second
	approvalWait   = 60 * time.Second
	promptsOpenMax = 64   // of one agent
	promptsKeptMax = 1000 // ended ones, so that a late answer hears why
	promptIDMax    = protocol.MsgIDBytesMax - 16
)

// Selected is a record of the exchange as a start reads it: oldest first.
type Selected struct {
	Ref Ref
	Env *protocol.Envelope
	At  time.Time // the author's wall clock
}

// promptKey names a question: ids are the asker's own.
type promptKey struct {
	asker protocol.AgentID // folded
	id    string
}

type prompt struct {
	promptKey
	name  protocol.AgentID // the asker as it is written
	ref   Ref              // of the question; zero: only its end has been heard of
	kind  string           // "clarify", "approval"; "" never expires
	until time.Time
	ended string // how; "" while it is open
}

// selectionValue is what the hub reads of every frame of the exchange.
type selectionValue struct {
	PromptID string            `json:"promptId"`
	Text     string            `json:"text"`
	Options  []json.RawMessage `json:"options"`
	Timeout  *struct {
		Kind    string   `json:"kind"`
		Seconds *float64 `json:"seconds"`
	} `json:"timeout"`
	SelectedLabels []string         `json:"selectedLabels"`
	FreeText       string           `json:"freeText"`
	Reason         string           `json:"reason"`
	AskedBy        protocol.AgentID `json:"askedBy"`
	Resolution     string           `json:"resolution"`
}

func selection(name protocol.Intent) bool {
	switch name {
	case selectionPrompt, selectionAnswer, selectionCancel, selectionExpired, selectionResolved:
		return true
	}
	return false
}

// actsOn says whether a name is a person's word on a question.
func actsOn(name protocol.Intent) bool { return name == selectionAnswer || name == selectionCancel }

// readSelection reads a value of the exchange, or says which field is wrong.
func readSelection(env *protocol.Envelope) (selectionValue, *protocol.Refusal) {
	var v selectionValue
	if env.ValueBlob != nil {
		return v, protocol.Refuse(protocol.CodeFrameTooLarge, "the value of %s has more than %d bytes", "", string(env.Intent), protocol.ValueBytesInline)
	}
	if err := json.Unmarshal(env.Value, &v); err != nil {
		var wrong *json.UnmarshalTypeError
		if errors.As(err, &wrong) && wrong.Field != "" {
			return v, protocol.Refuse(protocol.CodeWrongType, "value.%s of %s must not be a %s", "", wrong.Field, string(env.Intent), wrong.Value)
		}
		return v, protocol.Refuse(protocol.CodeWrongType, "the value of %s must be an object", "", string(env.Intent))
	}
	if len(v.PromptID) > promptIDMax || protocol.CheckMsgID(protocol.MsgID(v.PromptID)) != nil {
		return v, protocol.Refuse(protocol.CodeWrongType, "%s needs value.promptId, a text of 1 to %d bytes", "", string(env.Intent), promptIDMax)
	}
	return v, nil
}

// clock is how long a question stays open; no kind: for ever.
func (v *selectionValue) clock() (kind string, wait time.Duration, no *protocol.Refusal) {
	if v.Timeout == nil {
		return "", 0, nil
	}
	switch kind = v.Timeout.Kind; kind {
	case "clarify":
		wait = clarifyWait
	case "approval":
		wait = approvalWait
	default:
		return "", 0, protocol.Refuse(protocol.CodeWrongType, "value.timeout.kind must be clarify or approval", "")
	}
	if s := v.Timeout.Seconds; s != nil {
		if !(*s > 0 && *s <= protocol.MessageLife.Seconds()) {
			return "", 0, protocol.Refuse(protocol.CodeWrongType, "value.timeout.seconds must be above 0 and at most %d", "", int(protocol.MessageLife.Seconds()))
		}
		wait = time.Duration(*s * float64(time.Second))
	}
	return kind, wait, nil
}

// routeSelection checks a frame of the exchange and finds whom it is for: a question goes to boards alone, a person's
// answer to whoever asked, with or without a target (fault KC18). Nobody else's word reaches anybody.
func (c *Core) routeSelection(env *protocol.Envelope) *protocol.Refusal {
	v, no := readSelection(env)
	if no != nil {
		return no
	}
	switch env.Intent {
	case selectionPrompt:
		if env.From == "" {
			return protocol.Refuse(protocol.CodeNotAllowed, "agents ask and people answer", "use UserPrompt to ask an agent")
		}
		_, _, no = v.clock()
		return no
	case selectionAnswer, selectionCancel:
		if env.From != "" {
			return c.agentOnSelection(env, v.PromptID)
		}
		p, no := c.findPrompt(env.To, v.PromptID)
		if no == nil {
			env.To = p.name
		}
		return no
	}
	return nil // hub-only names are refused by admit
}

// agentOnSelection lets the asker alone withdraw its question; to the boards, which see it go.
func (c *Core) agentOnSelection(env *protocol.Envelope, id string) *protocol.Refusal {
	if env.Intent == selectionAnswer {
		return protocol.Refuse(protocol.CodeNotAllowed, "people answer at a board", "use Response")
	}
	if c.prompts[promptKey{protocol.FoldAgentID(env.From), id}] == nil {
		return protocol.Refuse(protocol.CodeNotAllowed, "%s asked nothing under the id %q: only who asked may cancel", "", string(env.From), id)
	}
	env.To = ""
	return nil
}

func (c *Core) findPrompt(asker protocol.AgentID, id string) (*prompt, *protocol.Refusal) {
	var open, ended *prompt
	for key, p := range c.prompts {
		switch {
		case key.id != id || asker != "" && key.asker != protocol.FoldAgentID(asker) || p.ref.Seq == 0:
		case p.ended != "":
			ended = p
		case open != nil:
			return nil, protocol.Refuse(protocol.CodeAmbiguousID, "several agents ask under the id %q", "say whom you answer: targetAgentId", id)
		default:
			open = p
		}
	}
	if open == nil {
		open = ended
	}
	if open == nil {
		return nil, protocol.Refuse(protocol.CodeUnknownID, "nobody asks anything under the id %q", "", id)
	}
	return open, nil
}

// admitSelection says why a frame of the exchange comes too late or too often, or nil.
func (c *Core) admitSelection(env *protocol.Envelope) *protocol.Refusal {
	v, no := readSelection(env)
	if no != nil {
		return no
	}
	switch env.Intent {
	case selectionPrompt:
		key := promptKey{protocol.FoldAgentID(env.From), v.PromptID}
		if p := c.prompts[key]; p != nil {
			return protocol.Refuse(protocol.CodeMsgIDReused, "the promptId %q stands for another question already", "use a new one: a late answer must not meet a new question", v.PromptID)
		}
		open := 0
		for k, p := range c.prompts {
			if k.asker == key.asker && p.ended == "" {
				open++
			}
		}
		if open >= promptsOpenMax {
			return protocol.Refuse(protocol.CodeTooMany, "%d questions of %s are open already", "cancel some with SelectionCancel", open, string(env.From))
		}
	case selectionAnswer, selectionCancel:
		asker := env.To
		if env.From != "" {
			asker = env.From
		}
		if p := c.prompts[promptKey{protocol.FoldAgentID(asker), v.PromptID}]; p != nil && p.ended != "" {
			return tooLate(v.PromptID, p.ended)
		}
	}
	return nil
}

func tooLate(id, ended string) *protocol.Refusal {
	return protocol.Refuse(protocol.CodeSelectionClosed, "the question %q is closed: %s", "", id, ended)
}

// selectionSaid follows up what was let in here: a question's clock starts, a decision is made if it is ours.
func (c *Core) selectionSaid(now time.Time, env *protocol.Envelope, ref Ref) {
	v, no := readSelection(env)
	if no != nil {
		return
	}
	switch env.Intent {
	case selectionPrompt:
		c.selectionSeen(ref, env, now)
	case selectionAnswer, selectionCancel:
		asker := env.To
		if env.From != "" {
			asker = env.From
		}
		c.decide(now, asker, v.PromptID, env)
	}
}

// decide ends an open question of an agent at home here: the first answer that its home takes holds (fault KC19).
func (c *Core) decide(now time.Time, asker protocol.AgentID, id string, by *protocol.Envelope) {
	p := c.prompts[promptKey{protocol.FoldAgentID(asker), id}]
	if p == nil || p.ended != "" || p.ref.Log.Peer != c.self {
		return
	}
	v, _ := readSelection(by)
	value := map[string]any{"promptId": id, "askedBy": p.name, "msgId": by.ID, "resolution": "answered"}
	if by.Intent == selectionCancel {
		value["resolution"] = "cancelled"
	}
	if v.Reason != "" {
		value["reason"] = protocol.CutText(v.Reason, protocol.ShortTextBytesMax)
	}
	if len(v.SelectedLabels) > 0 {
		value["selectedLabels"] = v.SelectedLabels
	}
	c.close(p, value["resolution"].(string))
	c.announce(now, p.ref.Log.Scope, protocol.Envelope{
		ID: protocol.MsgID("sel-res-" + id + "-" + p.mark()), Intent: selectionResolved, Re: by.ID, Value: protocol.EncodeBody(value),
	})
}

// tickSelections ends what ran out of time: a clarification proceeds by its default, an approval is denied.
func (c *Core) tickSelections(now time.Time) {
	var due []*prompt
	for _, p := range c.prompts {
		switch {
		case p.ended != "" || p.kind == "" || p.ref.Log.Peer != c.self:
		case now.Before(p.until):
			c.due(p.until)
		default:
			due = append(due, p)
		}
	}
	slices.SortFunc(due, func(a, b *prompt) int {
		return cmp.Or(a.until.Compare(b.until), strings.Compare(string(a.asker), string(b.asker)), strings.Compare(a.id, b.id))
	})
	for _, p := range due {
		resolution := "proceed-default"
		if p.kind == "approval" {
			resolution = "denied-fail-closed"
		}
		c.close(p, resolution)
		c.announce(now, p.ref.Log.Scope, protocol.Envelope{
			ID: protocol.MsgID("sel-exp-" + p.id), Frame: "sel-exp-" + p.id + "-" + p.mark(), To: p.name, Intent: selectionExpired,
			Value: protocol.EncodeBody(map[string]any{"promptId": p.id, "kind": p.kind, "resolution": resolution, "expiredAt": now.UnixMilli()}),
		})
	}
}

// mark tells questions of two agents under one id apart: clients drop a frame whose id they have seen.
func (k promptKey) mark() string {
	return protocol.IdentityOf(k.asker, protocol.MsgID(k.id)).String()[:6]
}

func (c *Core) close(p *prompt, how string) {
	p.ended = how
	c.promptsEnded = append(c.promptsEnded, p.promptKey)
	if len(c.promptsEnded) > promptsKeptMax {
		delete(c.prompts, c.promptsEnded[0])
		c.promptsEnded = c.promptsEnded[1:]
	}
}

// announce logs a message of the node itself and lets it out: to its target here, and to every board.
func (c *Core) announce(now time.Time, scope protocol.Scope, env protocol.Envelope) {
	env.Source = protocol.SourceServer
	ref := c.author.add(&c.ready, now, scope, protocol.KindMessage, protocol.EncodeBody(&env), &env)
	c.out(Copy{Ref: ref, Env: &env})
	c.out(TierReached{Ref: ref, Tier: protocol.Logged})
	if a := c.home(env.To); a != nil {
		c.deliverHere(now, a, ref, &env, scope, time.Time{})
	}
}

// tellAgent logs a message of the node itself to an agent here, and shows it to nobody else.
func (c *Core) tellAgent(now time.Time, env protocol.Envelope) {
	env.Source = protocol.SourceServer
	if a := c.home(env.To); a != nil {
		ref := c.author.add(&c.ready, now, protocol.ScopeInside, protocol.KindMessage, protocol.EncodeBody(&env), &env)
		c.deliverHere(now, a, ref, &env, protocol.ScopeInside, time.Time{})
	}
}

// selectionSeen notes questions and their ends, of any node. It says whether the record counts: only an asker's home
// speaks for it, and only its home ends its questions.
func (c *Core) selectionSeen(ref Ref, env *protocol.Envelope, at time.Time) bool {
	v, no := readSelection(env)
	if no != nil {
		return false
	}
	asker := env.From
	switch {
	case env.Intent == selectionExpired:
		asker = env.To
	case env.Intent == selectionResolved:
		asker = v.AskedBy
	case env.Intent != selectionPrompt:
		return true
	}
	a := c.find(asker)
	if a == nil || !c.livesAt(asker, ref.Log.Peer) {
		return false
	}
	key := promptKey{protocol.FoldAgentID(asker), v.PromptID}
	p := c.prompts[key]
	if p == nil {
		p = &prompt{promptKey: key, name: a.bind.Agent}
		c.prompts[key] = p
	}
	switch {
	case env.Intent != selectionPrompt:
		if env.Source != protocol.SourceServer {
			return false
		}
		if p.ended == "" {
			c.close(p, cmp.Or(v.Resolution, "expired"))
		}
	case p.ref.Seq == 0:
		kind, wait, _ := v.clock()
		p.ref, p.kind, p.until = ref, kind, at.Add(wait)
		if p.ended == "" && kind != "" && ref.Log.Peer == c.self {
			c.due(p.until)
		}
	}
	return true
}

// selectionArrived judges an answer from another node for an agent at home here; a refusal goes back as a receipt.
func (c *Core) selectionArrived(env *protocol.Envelope) *protocol.Refusal {
	v, no := readSelection(env)
	switch {
	case no != nil:
		return no
	case !actsOn(env.Intent):
		return nil
	case env.From != "" || env.Source != protocol.SourceBoard:
		return protocol.Refuse(protocol.CodeNotAllowed, "people answer at a board", "use Response")
	}
	p := c.prompts[promptKey{protocol.FoldAgentID(env.To), v.PromptID}]
	if p == nil {
		return protocol.Refuse(protocol.CodeUnknownID, "%s asks nothing under the id %q", "", string(env.To), v.PromptID)
	}
	if p.ended != "" {
		return tooLate(v.PromptID, p.ended)
	}
	return nil
}
