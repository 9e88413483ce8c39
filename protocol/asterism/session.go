package asterism

import (
	"github.com/aster-mesh/aster/protocol"
)

// Close codes of the contract.
const (
	CloseKey      = 4003 // the key alone decided: expired or revoked
	CloseRejected = 4403 // a HELLO was refused; the reason is the code
)

// Opening is what is known of a connection before its first frame.
type Opening struct {
	// Keyed: the URL carried a key that holds so far. Nothing is shown before a good HELLO (faults B28, KB10).
	Keyed bool
	// Board: it may act as a board without HELLO (a person's session, or the node's own user). Not together with Keyed.
	Board bool
	// Rejected: the key alone, or its absence, already decides. It is then said before SERVER_HELLO, the only form from
	// which every client backs off.
	Rejected *Rejection
	// Surface is "agent" when empty.
	Surface string
	IP      string
}

// Verdict says what becomes of the frame that was given to a Session.
type Verdict uint8

const (
	// Nothing: the frame is done with; what there is to say is in Say.
	Nothing Verdict = iota
	// Pass: the frame is a message of Sender.
	Pass
	// Judge: the frame is a HELLO of good shape; the caller decides by Accept or Reject before the next frame.
	Judge
)

// SayKind names a frame to send on the connection.
type SayKind uint8

const (
	SayHello    SayKind = iota // SERVER_HELLO
	SayRoster                  // AgentList
	SayHistory                 // History, unless it is empty
	SayInfo                    // ConnectionInfo: Info
	SayRejected                // ConnectionRejected: Rejection
	SayRefused                 // the error frame: Refusal, MsgID
)

// Say is one frame to send.
type Say struct {
	Kind      SayKind
	Info      ConnectionInfo
	Rejection Rejection
	Refusal   *protocol.Refusal
	MsgID     protocol.MsgID
}

// Outcome is what a Session wants: frames to send in order, then, with a code above 0, a close.
type Outcome struct {
	Verdict     Verdict
	Say         []Say
	Close       int
	CloseReason string
}

// Accepted is what the hub grants to a HELLO.
type Accepted struct {
	Name          string // from CleanName
	Role          protocol.Role
	Keyed         bool
	MayManageKeys bool
}

type phase uint8

const (
	undecided phase = iota
	judging
	agent
	board
	ended
)

// Session is what one connection is: undecided, an agent for life after its HELLO, or a board for life after its first
// other frame. Once it has ended it passes nothing more, also not what stood in the same segment (fault KB4).
type Session struct {
	opening    Opening
	phase      phase
	sender     Sender
	hello      Frame
	info       ConnectionInfo
	stateGiven bool
}

// NewSession begins a connection and says what to send first.
func NewSession(o Opening) (*Session, Outcome) {
	s := &Session{opening: o}
	if o.Rejected != nil {
		r := *o.Rejected
		code, reason := CloseRejected, r.Code
		switch r.Code {
		case "key-expired":
			code, reason = CloseKey, "key expired"
		case "key-revoked":
			code, reason = CloseKey, "key revoked"
		}
		return s, s.reject(r, code, reason)
	}
	out := Outcome{Say: []Say{{Kind: SayHello}}}
	if o.Board && !o.Keyed {
		out.Say = append(out.Say, s.state()...)
	}
	return s, out
}

// state gives roster and history once a connection; the roster comes first, since roles order the dashboard's tabs.
func (s *Session) state() []Say {
	if s.stateGiven {
		return nil
	}
	s.stateGiven = true
	return []Say{{Kind: SayRoster}, {Kind: SayHistory}}
}

// Sender is who speaks on the connection; its Source is empty until that is known.
func (s *Session) Sender() Sender { return s.sender }

// Hello is the HELLO that was accepted or is being judged.
func (s *Session) Hello() *Frame { return &s.hello }

// Agent says whether an accepted HELLO holds.
func (s *Session) Agent() bool { return s.phase == agent }

// Watches says whether the connection may be shown traffic that is not addressed to it: it is a board, or may be one.
func (s *Session) Watches() bool {
	return s.phase == board || s.phase == undecided && s.opening.Board && !s.opening.Keyed
}

// Ended says that a close was decided.
func (s *Session) Ended() bool { return s.phase == ended }

// Frame takes the next frame of the connection.
func (s *Session) Frame(f *Frame) Outcome {
	switch {
	case s.phase == ended:
		return Outcome{}
	case s.phase == judging:
		return s.refuse(f, protocol.Refuse(protocol.CodeNotHello, "the HELLO before this frame is still being judged", ""))
	case f.Hello():
		return s.introduce(f)
	case s.phase == undecided && !s.Watches():
		return s.refuse(f, protocol.Refuse(protocol.CodeNotHello, "the first frame must be a HELLO with an agentId", ""))
	}
	if s.phase == undecided {
		s.phase = board
		s.sender = Sender{Role: protocol.RoleBoard, Source: protocol.SourceBoard}
	}
	if no := f.Reserved(); no != nil {
		return s.refuse(f, no)
	}
	return Outcome{Verdict: Pass}
}

func (s *Session) introduce(f *Frame) Outcome {
	switch {
	case s.phase == agent && f.AgentID == s.sender.ID:
		return Outcome{Say: []Say{{Kind: SayInfo, Info: s.info}, {Kind: SayRoster}}} // some introduce themselves again, and wait for an answer
	case s.phase == agent:
		return s.refuse(f, protocol.Refuse(protocol.CodeSecondHello, "this connection is %s for life", "open another connection for another agent", s.sender.ID))
	case s.phase == board:
		return s.refuse(f, protocol.Refuse(protocol.CodeSecondHello, "this connection has spoken as a board", "open another connection for the agent"))
	case f.AgentID == "":
		return s.Reject(Rejection{Code: protocol.CodeNoAgentID, Reason: "the HELLO has no agentId", Hint: "set agentId and connect again"})
	}
	if err := protocol.CheckAgentID(f.AgentID); err != nil {
		return s.Reject(Rejection{Code: protocol.CodeBadAgentID, Reason: err.Error()})
	}
	s.phase, s.hello = judging, *f
	// It is kept for the life of the connection, and need not hold on to the bytes that it came in.
	h := &s.hello
	h.Value, h.Extra, h.Outcome, h.Args, h.Result, h.Display = nil, nil, nil, nil, nil, nil
	return Outcome{Verdict: Judge}
}

// Bad answers a frame that did not decode. The connection goes on.
func (s *Session) Bad(no *protocol.Refusal) Outcome {
	if s.phase == ended {
		return Outcome{}
	}
	return Outcome{Say: []Say{{Kind: SayRefused, Refusal: no}}}
}

func (s *Session) refuse(f *Frame, no *protocol.Refusal) Outcome {
	return Outcome{Say: []Say{{Kind: SayRefused, Refusal: no, MsgID: protocol.MsgID(f.MsgID)}}}
}

// Accept makes the HELLO that is being judged the connection's identity. The hub tells the others by a new AgentList.
func (s *Session) Accept(a Accepted) Outcome {
	if s.phase != judging {
		return Outcome{}
	}
	s.phase = agent
	s.sender = Sender{ID: s.hello.AgentID, Name: a.Name, Role: a.Role, Source: protocol.SourceAgent}
	info := ConnectionInfo{
		AgentID: s.hello.AgentID, Role: a.Role, Surface: s.surface(), MayManageKeys: a.MayManageKeys,
		MayRelayTargeted: true, Keyed: a.Keyed, Tiers: s.hello.Can(CapTiers),
	}
	s.info = info
	return Outcome{Say: append([]Say{{Kind: SayInfo, Info: info}}, s.state()...)}
}

func (s *Session) surface() string {
	if s.hello.MCPProxy {
		return "mcp"
	}
	if s.opening.Surface != "" {
		return s.opening.Surface
	}
	return "agent"
}

// Recall lets the connection go on under another id: its agent is called so from now on.
func (s *Session) Recall(id protocol.AgentID) {
	if s.phase == agent {
		s.sender.ID, s.info.AgentID = id, id
	}
}

// SetRole follows a change of main.
func (s *Session) SetRole(r protocol.Role) {
	if s.phase == agent {
		s.sender.Role, s.info.Role = r, r
	}
}

// Reject refuses the HELLO that is being judged and ends the session with 4403.
func (s *Session) Reject(r Rejection) Outcome {
	if s.phase == ended {
		return Outcome{}
	}
	return s.reject(r, CloseRejected, r.Code)
}

// Revoke ends the session since its key or membership ended: ConnectionRejected, then 4003.
func (s *Session) Revoke(r Rejection, closeReason string) Outcome {
	if s.phase == ended {
		return Outcome{}
	}
	return s.reject(r, CloseKey, closeReason)
}

func (s *Session) reject(r Rejection, code int, reason string) Outcome {
	if r.Surface == "" {
		r.Surface = s.surface()
	}
	if r.IP == "" {
		r.IP = s.opening.IP
	}
	if r.AgentID == "" {
		r.AgentID = string(s.hello.AgentID)
	}
	r.PriorStateDelivered = s.stateGiven
	s.phase = ended
	return Outcome{Say: []Say{{Kind: SayRejected, Rejection: r}}, Close: code, CloseReason: reason}
}

// End ends the session without a word: it was replaced, or its socket is gone. Nothing passes after it.
func (s *Session) End() { s.phase = ended }
