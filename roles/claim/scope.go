package claim

import (
	"path"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/aster-mesh/aster/protocol"
)

// Scope is what a claim covers: all below a path, or one contract. Two ways to write one place give equal scopes.
type Scope struct {
	contract bool
	name     string // folded; of a path without slashes at its ends, "" for everything
}

const (
	pathPrefix     = "path:"
	contractPrefix = "contract:"
)

// Parse reads "contract:NAME", or a path with or without "path:". Paths are relative to the repository, with either slash;
// case does not tell them apart, since there are systems where it does not.
func Parse(text string) (Scope, *protocol.Refusal) {
	name, contract := strings.CutPrefix(text, contractPrefix)
	if len(strings.TrimPrefix(text, pathPrefix)) > protocol.ClaimScopeBytesMax || !utf8.ValidString(text) || strings.ContainsFunc(text, unicode.IsControl) {
		return Scope{}, protocol.Refuse(protocol.CodeWrongType, "a scope is a text of at most %d bytes", "", protocol.ClaimScopeBytesMax)
	}
	if contract {
		if name = strings.TrimSpace(name); name == "" {
			return Scope{}, protocol.Refuse(protocol.CodeWrongType, "a contract has a name", "")
		}
		return Scope{contract: true, name: fold(name)}, nil
	}
	name = strings.ReplaceAll(strings.TrimPrefix(text, pathPrefix), `\`, "/")
	if name == "" {
		return Scope{}, protocol.Refuse(protocol.CodeWrongType, "a path is not empty", "for everything claim .")
	}
	name = path.Clean(name)
	if name == ".." || strings.HasPrefix(name, "../") {
		return Scope{}, protocol.Refuse(protocol.CodeWrongType, "%s leads out of the repository", "claim paths relative to its root", text)
	}
	if name = strings.Trim(name, "/"); name == "." {
		name = ""
	}
	return Scope{name: fold(name)}, nil
}

// fold is the form under which two names count as the same: simple case folding, letter by letter.
func fold(s string) string {
	return strings.Map(func(r rune) rune {
		least := r
		for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
			least = min(least, f)
		}
		return least
	}, s)
}

// String is what Parse reads as the same scope.
func (s Scope) String() string {
	if s.contract {
		return contractPrefix + lower(s.name)
	}
	if s.name == "" {
		return pathPrefix + "."
	}
	return pathPrefix + lower(s.name)
}

// lower is how people write what was folded. A letter whose small form is another letter's, too, or is longer, stays.
func lower(folded string) string {
	return strings.Map(func(r rune) rune {
		if small := unicode.ToLower(r); fold(string(small)) == string(r) && utf8.RuneLen(small) <= utf8.RuneLen(r) {
			return small
		}
		return r
	}, folded)
}

// Overlaps says whether one may touch what the other covers.
func (s Scope) Overlaps(o Scope) bool {
	if s.contract != o.contract {
		return false
	}
	if s.contract || s.name == o.name {
		return s.name == o.name
	}
	return covers(s.name, o.name) || covers(o.name, s.name)
}

func covers(dir, name string) bool { return dir == "" || strings.HasPrefix(name, dir+"/") }

// Scopes is what one claim covers.
type Scopes []Scope

// ParseAll reads the scopes of a claim, at least one.
func ParseAll(texts []string) (Scopes, *protocol.Refusal) {
	if len(texts) == 0 || len(texts) > protocol.ClaimScopesMax {
		return nil, protocol.Refuse(protocol.CodeWrongType, "a claim has 1 to %d scopes", "", protocol.ClaimScopesMax)
	}
	var out Scopes
	for _, t := range texts {
		s, no := Parse(t)
		if no != nil {
			return nil, no
		}
		out = append(out, s)
	}
	return out, nil
}

// Overlaps says whether any of them overlaps any of the others.
func (s Scopes) Overlaps(o Scopes) bool {
	for _, a := range s {
		for _, b := range o {
			if a.Overlaps(b) {
				return true
			}
		}
	}
	return false
}

// Texts is the one form of each.
func (s Scopes) Texts() []string {
	out := make([]string, len(s))
	for i := range s {
		out[i] = s[i].String()
	}
	return out
}
