package asterism

import (
	"strings"
	"unicode"

	"github.com/aster-mesh/aster/protocol"
)

// reserved are the words that a name may not begin with: an agent must not look like the hub or a person in charge
// (wire 3.2; the Korean ones mean the same).
var reserved = []string{
	"system", "server", "constellation", "board", "operator", "admin", "root", "security", "notice", "alert",
	"시스템", "서버", "보드", "운영자", "관리자", "루트", "보안", "공지", "알림", "경고",
}

// CleanName is the name under which an agent is shown: what its HELLO said without control, zero-width and direction
// characters, spaces collapsed, at most 80 characters. It is the id itself when nothing is left, when the name begins with
// a reserved word, or when it equals another live agent's id without regard to case (taken says so).
func CleanName(name string, id protocol.AgentID, taken func(protocol.AgentID) bool) string {
	var b strings.Builder
	runes, gap := 0, false
	for _, r := range name {
		if unicode.IsSpace(r) {
			gap = b.Len() > 0
			continue
		}
		if unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || r == unicode.ReplacementChar || !unicode.IsGraphic(r) {
			continue
		}
		if gap && runes < protocol.AgentNameRunesMax {
			b.WriteByte(' ')
			runes++
		}
		gap = false
		if runes == protocol.AgentNameRunesMax {
			break
		}
		b.WriteRune(r)
		runes++
	}
	clean := strings.TrimSpace(b.String())
	fold := strings.ToLower(clean)
	own := protocol.FoldAgentID(id)
	if clean == "" || protocol.AgentID(fold) != own && taken != nil && taken(protocol.AgentID(fold)) {
		return string(id)
	}
	for _, w := range reserved {
		if strings.HasPrefix(fold, w) {
			return string(id)
		}
	}
	return clean
}
