package protocol

import "strings"

// InboxShare is how much of a bound of an inbox one sender may have unread beside what the others have: half of what they
// leave. So no sender takes all of it, many come to like shares, and whoever comes next has room.
func InboxShare(bound, others int) int { return max(bound-others, 0) / 2 }

// AckAll is the command that empties an inbox of what one sender has in it; from is empty for people, or when it is not known.
func AckAll(agent, from AgentID) string {
	if from == "" {
		return "aster ack --all --agent " + Typed(agent)
	}
	return "aster ack --from " + Typed(from) + " --agent " + Typed(agent)
}

// Typed is an id as one types it in a shell.
func Typed(id AgentID) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("._-@:", r)
	}
	if strings.IndexFunc(string(id), func(r rune) bool { return !plain(r) }) < 0 {
		return string(id)
	}
	return "'" + strings.ReplaceAll(string(id), "'", `'\''`) + "'"
}
