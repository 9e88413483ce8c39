package roles

import "github.com/aster-mesh/aster/protocol"

// act groups the intents that share one row of rights.
type act string

const (
	// actDirect tells the target what to do: handing it work, speaking as its person, stopping or reordering its work.
	// The four go together, because whoever could do one of them could do the others by another name.
	actDirect act = "direct"
	// actAnswer answers a question that was put to a person, or ends it. Who asked takes its question back at its own home.
	actAnswer act = "answer"
	// actStepDown is the sitting main's word that a hand-over may go on.
	actStepDown act = "step-down"
	// actChart declares who fills which post for everybody.
	actChart act = "chart"
	// actTalk is all the rest, unknown names included: it asks, answers or informs, and binds nobody.
	actTalk act = "talk"
)

var acts = map[protocol.Intent]act{
	protocol.Delegate:   actDirect,
	"Handoff":           actDirect,
	protocol.UserPrompt: actDirect,
	"OperatorFeedback":  actDirect,
	protocol.Cancel:     actDirect,
	"Command":           actDirect,
	"Priority":          actDirect,
	"PreemptForce":      actDirect,
	"SelectionAnswer":   actAnswer,
	"SelectionCancel":   actAnswer,
	"HandoffReady":      actStepDown,
	"CorporateChart":    actChart,
}

func actOf(name protocol.Intent) act {
	if a, ok := acts[name]; ok {
		return a
	}
	return actTalk
}

const (
	mainRole = protocol.RoleMain
	local    = protocol.RoleLocal
	upstream = protocol.RoleUpstream
	collab   = protocol.RoleCollab
	peer     = protocol.RolePeer
	board    = protocol.RoleBoard
)

type row map[protocol.Role][]protocol.Role // sender → targets

var everybody = []protocol.Role{mainRole, local, upstream, collab, peer, board}

// table is the whole of DESIGN 5 "Who may delegate". A person at a board of the inside directs the inside and, owning
// the node that main directs it from, the upstream too: refusing that would only add a hop through main. Nobody
// directs collab and peer, who belong to other projects, nor a person.
var table = map[act]row{
	actDirect: {
		mainRole: {mainRole, local, upstream},
		local:    {mainRole, local},
		upstream: {mainRole},
		collab:   {},
		peer:     {},
		board:    {mainRole, local, upstream},
	},
	actAnswer: {
		mainRole: {}, local: {}, upstream: {}, collab: {}, peer: {},
		board: everybody,
	},
	actStepDown: {
		mainRole: everybody,
		local:    {}, upstream: {}, collab: {}, peer: {}, board: {},
	},
	actChart: {
		mainRole: everybody,
		local:    {}, upstream: {}, collab: {}, peer: {},
		board: everybody,
	},
	actTalk: {
		mainRole: everybody, local: everybody, upstream: everybody, collab: everybody, peer: everybody, board: everybody,
	},
}

// May says whether an agent of role sender may send an intent to one of role target: nil, or a refusal that names
// what to do instead. A person is of role board; so is the target of a message to nobody in particular while there is
// no main. Roles are those that hold now (Speaking), never those that a client claims. Names that only the node sends
// are refused to everybody. That the target can be reached at all is MayReach's.
func May(sender protocol.Role, intent protocol.Intent, target protocol.Role) *protocol.Refusal {
	if !sender.Known() || !target.Known() {
		return protocol.Refuse(protocol.CodeWrongRole, "there is no role %q", "roles are main, local, upstream, collab, peer and board", unknownOf(sender, target))
	}
	if protocol.Lookup(intent).HubOnly {
		return protocol.Refuse(protocol.CodeReservedName, "%s is said by the node alone", "use a name of your own", intent)
	}
	a := actOf(intent)
	for _, t := range table[a][sender] {
		if t == target {
			return nil
		}
	}
	return protocol.Refuse(protocol.CodeNotAllowed, "%s may not send %s to %s", instead(a, sender, target), title(sender), intent, title(target))
}

func unknownOf(a, b protocol.Role) protocol.Role {
	if a.Known() {
		return b
	}
	return a
}

// instead names the way that is open.
func instead(a act, sender, target protocol.Role) string {
	switch {
	case a == actAnswer:
		return "people answer at a board; use Response"
	case a == actStepDown:
		return "only the sitting main steps down; use Request"
	case a == actChart:
		return "main or a person declares it; use Request to main"
	case target == board:
		return "a person is asked, not directed: use Request or NEEDS_HUMAN"
	case sender == local && target == upstream, sender == upstream && target == local:
		return "use Request, or delegate to main, which may pass it on"
	}
	return "use Request"
}

func title(r protocol.Role) string {
	if r == board {
		return "a person"
	}
	return "an agent of role " + string(r)
}

// Speaking is the role in which an agent or a person of a node speaks. A node admitted from outside lends its own role
// to all who speak through it, its person included, so that nobody gains by claiming more; inside, claimed holds (main
// is a term: the caller passes it only for the agent that the term names).
func Speaking(node, claimed protocol.Role) protocol.Role {
	if !node.Inside() {
		return node
	}
	return claimed
}
