package protocol

// Intent is the name of a message: Delegate, WorkerReport, … Unknown names are allowed and always wake (wire 4.2).
type Intent string

// Names that aster itself reads or writes. The whole catalogue is in the table below.
const (
	Delegate     Intent = "Delegate"
	WorkerReport Intent = "WorkerReport"
	WorkerAck    Intent = "WorkerAck"
	Request      Intent = "Request"
	Response     Intent = "Response"
	Report       Intent = "Report"
	Cancel       Intent = "Cancel"
	UserPrompt   Intent = "UserPrompt"
	Ack          Intent = "Ack"
	AckProcessed Intent = "AckProcessed"
	ServerNotice Intent = "ServerNotice"
	Ping         Intent = "Ping"
	Pong         Intent = "Pong"
	AgentText    Intent = "AgentText" // the joined utterance of a TEXT_MESSAGE stream
	ToolCall     Intent = "ToolCall"  // the joined TOOL_CALL stream
)

// Class groups intents by what the hub does with them (wire 4.2).
type Class string

const (
	ClassTransport   Class = "transport"   // acks: never wake unless they carry content
	ClassProbe       Class = "probe"       // Ping, Pong: the agent answers
	ClassLiveness    Class = "liveness"    // dropped by the hub
	ClassHandshake   Class = "handshake"   // between hub and client
	ClassNotice      Class = "notice"      // for everybody to see
	ClassBoard       Class = "board"       // directed at boards
	ClassDeclaration Class = "declaration" // the latest one of its sender is kept and shown
	ClassKeyAdmin    Class = "key-admin"
	ClassTelemetry   Class = "telemetry" // observation: never wakes, never kept
	ClassA2A         Class = "a2a"       // agent to agent: always wakes
	ClassRun         Class = "run"       // run streams: kept joined
	ClassUnknown     Class = "unknown"   // wakes: fail safe
)

// Keeping says whether an intent enters the journal (DESIGN 4 Kept or live).
type Keeping string

const (
	Kept    Keeping = "kept"
	Live    Keeping = "live"    // goes over the links, dropped first under load
	Dropped Keeping = "dropped" // the hub answers or ignores it; nobody else sees it
)

// IntentInfo is one row of the catalogue.
type IntentInfo struct {
	Name       Intent
	Class      Class
	Keeping    Keeping
	Wakes      bool
	Escalation bool // needs judgement or a stronger model; unknown names do
	HubOnly    bool // only the hub may send it (fault B13)
}

func rows(class Class, keeping Keeping, wakes, escalation, hubOnly bool, names ...Intent) []IntentInfo {
	out := make([]IntentInfo, 0, len(names))
	for _, n := range names {
		out = append(out, IntentInfo{n, class, keeping, wakes, escalation, hubOnly})
	}
	return out
}

// catalogue is the one table of names (wire 4.2, 4.3). spec/ is checked against it.
var catalogue = func() map[Intent]IntentInfo {
	all := map[Intent]IntentInfo{}
	for _, group := range [][]IntentInfo{
		rows(ClassTransport, Dropped, false, false, false, AckProcessed, "AckCumulative", "AckPolicyUpdate"),
		rows(ClassTransport, Dropped, false, false, true, Ack),
		rows(ClassTransport, Dropped, true, true, true, "RelayUnreachable"),
		rows(ClassTransport, Dropped, false, false, false, "ArtifactOffer", "ArtifactPut", "ArtifactGet"),
		rows(ClassTransport, Dropped, false, false, true, "ArtifactState", "ArtifactPiece"),
		rows(ClassProbe, Kept, true, false, false, Ping, Pong),
		rows(ClassLiveness, Dropped, false, false, false, "Heartbeat", "PersistentAdapterSmoke"),
		rows(ClassLiveness, Live, false, false, false, "Typing"),
		rows(ClassHandshake, Dropped, false, false, true, "SERVER_HELLO", "AgentList", "History", "ConnectionInfo", "ConnectionRejected"),
		rows(ClassHandshake, Dropped, false, false, false, "HELLO"),
		rows(ClassHandshake, Kept, false, false, false, "AgentHello", "OnboardAck"),
		rows(ClassNotice, Kept, false, false, false, ServerNotice),
		rows(ClassBoard, Kept, false, false, false, "Status", "UserPromptAccepted", "ConnectionRestored", "EditMessage", "WorkerInboxReceived"),
		rows(ClassBoard, Dropped, false, false, true, "MainChanged", "ChannelHistory", "HistoryCleared"),
		rows(ClassBoard, Dropped, false, false, false, "RequestChannelHistory", "ArchiveChannel", "DeleteChannelHistory", "CloseChannel"),
		rows(ClassDeclaration, Kept, false, false, false, "CommandManifest", "OpsState", "CapabilityManifest", "CorporateChart", "RoleState", "SeatTelemetry", "EchoModeState"),
		rows(ClassBoard, Dropped, false, false, true, "RoomCreated", "RoomJoined", "RoomLeft", "RoomClosed", "RoomYield", "RoomFloor",
			"RoomStall", "RoomArtifacts", "RoomGuard"),
		rows(ClassBoard, Dropped, false, false, false, "RoomCreate", "RoomJoin", "RoomLeave", "RoomClose", "RoomArtifactsUpdate",
			"RequestRoomArtifacts"),
		rows(ClassKeyAdmin, Dropped, false, false, true, "KeyIssued", "KeyListResult", "KeyRevoked", "KeyLabeled", "KeyRenewed", "KeyError", "AgentNameChanged", "UpstreamKeyIssued", "CollabKeyIssued"),
		rows(ClassKeyAdmin, Dropped, true, true, true, "KeyRevokePending", "KeyExpiringSoon"),
		rows(ClassTelemetry, Live, false, false, false, "SubagentStatus", "WorkflowStatus", "AgentActivity"),
		rows(ClassA2A, Kept, true, false, false, UserPrompt, "Command", Cancel, WorkerReport, WorkerAck, Report, "ReviewSLAAck",
			"PRRequest", "PRDraftReady", "PRReviewAck", "PRMergeAck", "PRMergeRejected", "PRStatusUpdate", "PRRequestRejected"),
		rows(ClassA2A, Kept, true, true, false, Delegate, Request, Response, "Reply", "Handoff", "ArtifactHandoff", "Priority",
			"OperatorFeedback", "HandoffReady", "DONE", "BLOCKED", "NEEDS_HUMAN", "BlockerManifest", "BlockerNudge",
			"DeadlockProbe", "PreemptRequest", "PreemptForce", "MediationProposal", "MediationAck", "EscalationRequest",
			"EscalationSurfaced", "PRMergeRequest", "DECISION_REQUEST", "DECISION_RESPONSE", "DECISION_DEFER",
			"DECISION_REJECT_FRAMING", "HyperbriefCard", "SpecGapReport", "SpecGapCode", "Proposal", "ReturnPackage",
			"TaskEnvelope", "Attachment", "ArtifactManifest", "ArtifactChunk", "ArtifactComplete",
			"SelectionPrompt", "SelectionAnswer", "SelectionCancel"),
		rows(ClassA2A, Kept, true, true, true, "ClaimLost", "HandoffRequested", "SelectionExpired", "SelectionResolved"),
		rows(ClassRun, Kept, true, false, false, AgentText),
		rows(ClassRun, Kept, false, false, false, ToolCall, "RUN_STARTED", "RUN_FINISHED", "RUN_ERROR", "STEP_STARTED", "STEP_FINISHED"),
		rows(ClassRun, Live, false, false, false, "TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_END",
			"TOOL_CALL_START", "TOOL_CALL_ARGS", "TOOL_CALL_END", "TOOL_CALL_RESULT", "STATE_SNAPSHOT", "STATE_DELTA"),
	} {
		for _, row := range group {
			all[row.Name] = row
		}
	}
	return all
}()

// Lookup returns the row of a name. A name that is not in the catalogue is kept, wakes, and counts as an escalation.
func Lookup(name Intent) IntentInfo {
	if row, ok := catalogue[name]; ok {
		return row
	}
	return IntentInfo{Name: name, Class: ClassUnknown, Keeping: Kept, Wakes: true, Escalation: true}
}

// Catalogue returns a copy of all rows, in no order.
func Catalogue() []IntentInfo {
	out := make([]IntentInfo, 0, len(catalogue))
	for _, row := range catalogue {
		out = append(out, row)
	}
	return out
}

// Wakes says whether e should wake agent self: it is addressed to self and its name is not a noise name (wire 4.2).
//
// In a room it wakes whom it names, and all with a Delegate (wire 7.1).
func Wakes(e *Envelope, self AgentID) bool {
	if e.Room != "" {
		return FoldAgentID(e.From) != FoldAgentID(self) && !e.NoWake && (e.Intent == Delegate || e.Names(self) && Lookup(e.Intent).Wakes)
	}
	return e.To == self && e.From != self && !e.NoWake && Lookup(e.Intent).Wakes
}
