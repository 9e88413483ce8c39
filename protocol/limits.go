package protocol

import "time"

// Every bound of the system, with its reason. Sizes are bytes.
const (
	// FrameBytesMax is the largest message on /ws: the contract's own 16 MiB.
	FrameBytesMax = 16 << 20
	// FrameBytesMaxStranger holds until somebody has authenticated: nobody needs more to say who they are.
	FrameBytesMaxStranger = 256 << 10
	// StrangersMax is how many sockets may be open that nobody has authenticated on: with FrameBytesMaxStranger 64 MiB of them.
	StrangersMax = 256
	// UnnamedMax is how many sockets may be open that say no HELLO and need none: of the node's own user, and as many of people. Boards
	// are a handful; what one may have waiting (LinkQueueBytesMax) bounds what they hold.
	UnnamedMax = 64
	// HubFrameBytesMax is the largest frame that the hub itself makes: the Python client library refuses 1 MiB.
	HubFrameBytesMax = 1 << 20
	// MeshFrameBytesMax is the largest frame between nodes; checked before a byte of it is decoded.
	MeshFrameBytesMax = 1 << 20
	// RecordBytesMax leaves room for the frame round a record.
	RecordBytesMax = 512 << 10
	// ValueBytesInline is the largest value kept inside a record; a larger one becomes a blob (DESIGN 10).
	ValueBytesInline = 64 << 10
	// BlobBytesMax is the largest attachment.
	BlobBytesMax = 64 << 20
	// BlobChunkBytes is one piece of a blob on a stream between nodes.
	BlobChunkBytes = 256 << 10
	// NestingMax is the deepest array or object that any decoder follows (40 KB of brackets killed the old hub, KA8).
	NestingMax = 64
	// GossipPacketBytesMax is one gossip packet.
	GossipPacketBytesMax = 4 << 10

	AgentIDBytesMax   = 128
	AgentNameRunesMax = 80
	MsgIDBytesMax     = 200
	IntentBytesMax    = 64

	// NodesMax is how many nodes a mesh serves with full push.
	NodesMax = 64
	// AgentsMax is how many agents a mesh lists; 2,000 on one node are measured.
	AgentsMax = 10_000

	// GuestAgentsMax is how many agents a member outside may have: AgentList goes to everybody, whole. Its own node refuses one
	// more.
	GuestAgentsMax = 256
	// GuestNamesMax is how many names of it every node remembers, those that were given back too, whatever its program does: of
	// more the ones that it spoke of longest ago give way.
	GuestNamesMax = 2 * GuestAgentsMax

	// SenderPerSecond and PairPerSecond are how many messages one sender, and one to the same recipient, may say for long; the
	// bursts what either may say at once. One counts for each 64 KiB begun. A node takes some 10,000 a second in all, an agent
	// that thinks says a few a minute: who is refused is a program that has run away. Config may say otherwise.
	SenderPerSecond = 1_000
	SenderBurst     = 10_000
	PairPerSecond   = 500
	PairBurst       = 5_000
	// StormTurns is how often two agents may answer each other before a person is told and waking them is spaced out: by
	// StormSpace, then twice that after StormStep more turns, and so on up to StormSpaceMax. A person's word to either, or
	// StormOver without a word between them, begins anew. An echo between two agents ran for ten hours and 398 messages (U46).
	StormTurns    = 60
	StormStep     = 10
	StormSpace    = 15 * time.Second
	StormSpaceMax = 5 * time.Minute
	StormOver     = 15 * time.Minute

	// InboxItemsMax is how many unread messages an inbox holds, and InboxBytesMax how many bytes of them. Of either a sender may have
	// InboxShare; one more is refused to it, and nothing is dropped. One that is alone has 1,000, the next one 500.
	InboxItemsMax = 2_000
	InboxBytesMax = 128 << 20
	// InboxWarnPercent is how much of its share a sender has used when people are told, if InboxWarnFrom messages wait or an
	// eighth of the bytes: a few from a newcomer to an inbox that others fill are nothing new.
	InboxWarnPercent = 80
	InboxWarnFrom    = 100

	// LinkQueueBytesMax is what may wait for one slow socket or peer before it is closed with 1013.
	LinkQueueBytesMax = 8 << 20
	// LinkQueueWait closes the same for time.
	LinkQueueWait = 10 * time.Second
	// PingEvery and PingDead: a link is pinged every 5 s and dead after 12 (DESIGN 5).
	PingEvery = 5 * time.Second
	PingDead  = 12 * time.Second

	// HopsMax is the longest chain of Delegates (U46).
	HopsMax = 8

	// RedeliverEvery and RedeliverTries: three tries, 30 s apart, on one connection (wire 5.2).
	RedeliverEvery = 30 * time.Second
	RedeliverTries = 3
	// QueuedNoticeAfter is when the sender hears that its recipient is absent (DESIGN 6).
	QueuedNoticeAfter = 10 * time.Minute
	// MessageLife is how long a message waits before it expires, and how long its id is remembered.
	MessageLife = 30 * 24 * time.Hour

	// PassOnAfter is how long a linked peer may lack a record of a third node before we pass it on.
	PassOnAfter = 250 * time.Millisecond
	// CompareEvery is the period of the comparison of version vectors.
	CompareEvery = 15 * time.Second
	// PushBacklogBytes is how far a peer may be behind before it is served from the store.
	PushBacklogBytes = 1 << 20

	// BaseWordsMax is how many words that a base holds count in one log, which is one start of a node, and BaseWordMarksMax how
	// many logs they may name together: a node says one a day at most and names some fifty logs each time, so that is three years
	// without a restart. Every board keeps those that hold nowhere, since their answers may still come.
	BaseWordsMax     = 1 << 10
	BaseWordMarksMax = 1 << 16
	// BaseAnswersMax is how many answers to proposals of bases count in one log, BaseAnswersToOneMax how many of them to one node's.
	// One a day is due. Who proposes without end, and is answered every quarter of an hour, uses up its own part alone.
	BaseAnswersMax      = 1 << 12
	BaseAnswersToOneMax = 1 << 10

	// CommitRecordsMax bounds what one signature and one sync cover.
	CommitRecordsMax = 256

	// InviteLife is the default life of an invite, CertLife of a certificate, CertRenewFrom when it may be renewed.
	InviteLife    = time.Hour
	InviteLifeMax = 30 * 24 * time.Hour // one that nobody uses for so long was lost, and whoever finds it is not whom it was for
	CertLife      = 90 * 24 * time.Hour
	CertRenewFrom = 30 * 24 * time.Hour
	// ClockGrace is what a certificate or key is given for clocks that differ.
	ClockGrace = 10 * time.Minute
	// ClockDoubt marks a time with "~" on the board.
	ClockDoubt = 60 * time.Second
	// CertChainMax is the longest chain from a member to the mesh key.
	CertChainMax = 16

	// KeysActiveMax is how many keys of the contract may be valid at once (wire 3.8).
	KeysActiveMax = 32
	// KeyLife is a key's life when its issuer names none; KeyLifeMax the longest that can be named.
	KeyLife    = 14 * 24 * time.Hour
	KeyLifeMax = 100 * 365 * 24 * time.Hour
	// KeyGrace is how long sessions of a key go on that was revoked for their end.
	KeyGrace = 5 * time.Minute
	// KeyWarning is how long before a key's end its holder hears of it, and every KeyWarnAgain from then on.
	KeyWarning   = 3 * 24 * time.Hour
	KeyWarnAgain = 24 * time.Hour

	// LiveEvery is the shortest distance between two coalesced live frames of one source.
	LiveEvery = 100 * time.Millisecond
	// PresenceSettles is how long presence must hold before it becomes a record.
	PresenceSettles = 5 * time.Second

	// ShortTextBytesMax bounds texts that are shown in a row (summaries, reasons).
	ShortTextBytesMax = 2_000
	// OutputTailBytesMax is the tail of a run's output that its report carries as an attachment.
	OutputTailBytesMax = 64 << 10
)

// Who is main (DESIGN 5). A successor is there within 10 s of the main's death: MainSilence, at most ElectionSpread, and
// two rounds of questions even if one of them is in vain.
const (
	// BeatEvery is the period of the main's word to the other nodes: five may be lost before anybody doubts it. It
	// costs 120 bytes a second and node.
	BeatEvery = time.Second
	// MainSilence is how long who heard the main gives nobody else a vote.
	MainSilence = 5 * time.Second
	// MainLease is how long the main counts on a voter's answer, from when it asked. It is shorter than MainSilence, which
	// the voter counts from when it was asked, so a main stops before another can be elected, unless one of their clocks
	// runs a tenth faster than the other.
	MainLease = 4500 * time.Millisecond
	// ElectionSpread is how far apart candidates begin, by chance: an exchange between nodes far apart takes 0.3 s.
	ElectionSpread = 1500 * time.Millisecond
	// RoundWait is how long a candidate waits for answers, and up to as long again by chance before it asks anew.
	RoundWait = 600 * time.Millisecond
	// HandoffWait is how long a main that was asked to hand over may take to be ready (wire 3.7).
	HandoffWait = 10 * time.Second
	// VoterAbsence is how long a voter is silent before the main proposes to go on without its vote: longer than a reboot.
	VoterAbsence = 10 * time.Minute
)

// Claims (DESIGN 5).
const (
	// ClaimLease is the longest lease of a claim, and so how long a new main waits for members that are silent.
	ClaimLease = 5 * time.Minute
	// ClaimRenewEvery is how often a holder's node renews: four tries may be lost.
	ClaimRenewEvery = time.Minute
	// ClaimStopsEarly is how long before its lease's end a holder stops: what clocks of two machines drift apart in
	// ClaimLease at a hundredth of its length, and two seconds for what it is at.
	ClaimStopsEarly = 5 * time.Second
	// ClaimScopesMax is how many prefixes and contracts one claim names; ClaimScopeBytesMax the longest of them.
	ClaimScopesMax     = 32
	ClaimScopeBytesMax = 512
	// ClaimsPerNodeMax is how many claims the agents of one node hold at once: one frame tells a new main of all of them.
	ClaimsPerNodeMax = 256
	// SessionBytesMax bounds what names a holder's process: pid, start and boot.
	SessionBytesMax = 128
)
