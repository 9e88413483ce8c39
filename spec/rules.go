package spec

import (
	"embed"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

//go:embed rules.md faults.md catalogue.txt differences.txt vectors/*.txtar fixtures/*.txtar
var papers embed.FS

// Rule is one behaviour of the contract.
type Rule struct {
	ID     string   // such as DLV-3
	Text   string   // one paragraph, without the id
	Faults []string // numbers of known faults that the rule forbids, such as B7 or KC6
	Tests  []string // tests that show it where no vector can: DIR.TestName, or a play's name
}

// Chapter is the id's part before the number.
func (r *Rule) Chapter() string { chapter, _, _ := strings.Cut(r.ID, "-"); return chapter }

var (
	ruleLine  = regexp.MustCompile(`^- \*\*([A-Z]{3}-[0-9]+)\*\* (.*)$`)
	against   = regexp.MustCompile(`\bAgainst ([BK][A-G]?[0-9]+(?:, [BK][A-G]?[0-9]+)*)\.`)
	shownBy   = regexp.MustCompile("\\bShown by ((?:`[^`]+`(?:, )?)+)\\.")
	inQuotes  = regexp.MustCompile("`([^`]+)`")
	faultName = regexp.MustCompile(`\b[BK][A-G]?[0-9]+\b`)
)

// Rules returns all rules in the order of rules.md.
func Rules() ([]Rule, error) {
	raw, err := papers.ReadFile("rules.md")
	if err != nil {
		return nil, fmt.Errorf("read rules: %w", err)
	}
	return parseRules(string(raw))
}

func parseRules(text string) ([]Rule, error) {
	var out []Rule
	open := false // the last line belongs to a rule
	seen := map[string]bool{}
	for n, line := range strings.Split(text, "\n") {
		switch m := ruleLine.FindStringSubmatch(line); {
		case m != nil:
			if seen[m[1]] {
				return nil, fmt.Errorf("rules.md:%d: %s stands twice", n+1, m[1])
			}
			seen[m[1]], open = true, true
			out = append(out, Rule{ID: m[1], Text: m[2]})
		case strings.HasPrefix(line, "- **"):
			return nil, fmt.Errorf("rules.md:%d: a rule begins with - **ABC-1** and a space", n+1)
		case open && strings.HasPrefix(line, "  "):
			out[len(out)-1].Text += " " + strings.TrimSpace(line)
		default:
			open = false
		}
	}
	for i := range out {
		r := &out[i]
		for _, m := range against.FindAllStringSubmatch(r.Text, -1) {
			r.Faults = append(r.Faults, strings.Split(m[1], ", ")...)
		}
		for _, m := range shownBy.FindAllStringSubmatch(r.Text, -1) {
			for _, q := range inQuotes.FindAllStringSubmatch(m[1], -1) {
				r.Tests = append(r.Tests, q[1])
			}
		}
		slices.SortFunc(r.Faults, byFault)
	}
	return out, nil
}

// byFault orders fault numbers as their lists do: letters, then the number.
func byFault(a, b string) int {
	la, lb := strings.TrimRight(a, "0123456789"), strings.TrimRight(b, "0123456789")
	if la != lb {
		return strings.Compare(la, lb)
	}
	if len(a) != len(b) {
		return len(a) - len(b)
	}
	return strings.Compare(a, b)
}
