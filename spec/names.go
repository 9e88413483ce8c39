package spec

import (
	"fmt"
	"strings"
)

// Name is one row of the catalogue.
type Name struct {
	Name, Class, Direction, Keeping string
	Wakes, Escalation, HubOnly      bool
	Fields                          []string
}

// Catalogue returns the rows of catalogue.txt in its order.
func Catalogue() ([]Name, error) {
	raw, err := papers.ReadFile("catalogue.txt")
	if err != nil {
		return nil, fmt.Errorf("read catalogue: %w", err)
	}
	return parseCatalogue(string(raw))
}

func parseCatalogue(text string) ([]Name, error) {
	var out []Name
	seen := map[string]bool{}
	for n, line := range strings.Split(text, "\n") {
		if line == "" || line[0] == '#' {
			continue
		}
		f := strings.Fields(line)
		if len(f) < 8 {
			return nil, fmt.Errorf("catalogue.txt:%d: %d columns, at least 8", n+1, len(f))
		}
		if seen[f[0]] {
			return nil, fmt.Errorf("catalogue.txt:%d: %s stands twice", n+1, f[0])
		}
		seen[f[0]] = true
		row := Name{Name: f[0], Class: f[1], Direction: f[2], Keeping: f[3], Fields: f[7:]}
		for _, c := range []struct {
			word, yes, no string
			into          *bool
		}{{f[4], "wakes", "quiet", &row.Wakes}, {f[5], "escalation", "routine", &row.Escalation}, {f[6], "hub", "anyone", &row.HubOnly}} {
			if c.word != c.yes && c.word != c.no {
				return nil, fmt.Errorf("catalogue.txt:%d: %q is neither %s nor %s", n+1, c.word, c.yes, c.no)
			}
			*c.into = c.word == c.yes
		}
		out = append(out, row)
	}
	return out, nil
}
