package demo_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// typed is one command of a transcript with what is expected of it.
type typed struct {
	at   string // document and line
	host string // before the $; empty: no host named
	text string
	want []string
}

// transcripts are the console blocks of a document, each a list of commands.
func transcripts(t *testing.T, path string) [][]typed {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	prompt := regexp.MustCompile(`^([a-z0-9-]*)\$ (.*)$`)
	var out [][]typed
	inside := false
	for i, l := range strings.Split(string(raw), "\n") {
		switch at := prompt.FindStringSubmatch(l); {
		case l == "```console":
			inside = true
			out = append(out, nil)
		case strings.HasPrefix(l, "```"):
			inside = false
		case !inside:
		case at != nil:
			last := len(out) - 1
			out[last] = append(out[last], typed{at: fmt.Sprintf("%s:%d", filepath.Base(path), i+1), host: at[1], text: at[2]})
		default:
			block := out[len(out)-1]
			if len(block) == 0 {
				t.Fatalf("%s:%d: output before the first command", path, i+1)
			}
			last := &block[len(block)-1]
			last.want = append(last.want, l)
		}
	}
	return out
}

// shapes turns what varies into patterns: ids, commits, figures with their units, and what the document leaves out. A
// figure alone on its line, or behind "exit", is an exit code and holds as it is.
var shapes = regexp.MustCompile(`\.\.\.|\b[tm]-[0-9a-hjkmnp-tv-z]{5}\b|\bcommit [0-9a-f]{7}\b|\baster/[0-9a-hjkmnp-tv-z]{5}\b|\d[\d.,:]*( (?:ms|s|min|h)\b)?| {2,}`)

// ids remembers which id of the document is which of this run.
type ids map[string]string

// match compares a line by shape and learns the ids in it.
func (known ids) match(want, got string) bool {
	if strings.HasPrefix(want, "exit ") {
		return got == want
	}
	var names []string
	var pattern strings.Builder
	rest := want
	for {
		at := shapes.FindStringIndex(rest)
		if at == nil {
			break
		}
		pattern.WriteString(regexp.QuoteMeta(rest[:at[0]]))
		word := rest[at[0]:at[1]]
		rest = rest[at[1]:]
		switch {
		case word == "...":
			pattern.WriteString(`.*`)
		case strings.HasPrefix(word, "  "):
			pattern.WriteString(` {2,}`)
		case strings.HasPrefix(word, "commit "):
			pattern.WriteString(`commit [0-9a-f]{7}`)
		case word[0] >= '0' && word[0] <= '9' && strings.Contains(word, " "):
			pattern.WriteString(`\d[\d.,]* (?:ms|s|min|h)`)
		case word[0] >= '0' && word[0] <= '9':
			pattern.WriteString(`\d[\d.,:]*`)
		default:
			id := word[len(word)-5:]
			if actual, ok := known[id]; ok {
				pattern.WriteString(regexp.QuoteMeta(word[:len(word)-5] + actual))
				continue
			}
			names = append(names, id)
			pattern.WriteString(regexp.QuoteMeta(word[:len(word)-5]) + `([0-9a-hjkmnp-tv-z]{5})`)
		}
	}
	pattern.WriteString(regexp.QuoteMeta(rest))
	found := regexp.MustCompile(`^` + pattern.String() + `$`).FindStringSubmatch(got)
	if found == nil {
		return false
	}
	for i, name := range names {
		known[name] = found[i+1]
	}
	return true
}

// follow compares output with a transcript line by line. A line of three dots stands for any number of lines.
func (known ids) follow(want, got []string) error {
	if len(want) == 0 {
		if len(got) > 0 {
			return fmt.Errorf("not expected: %q", got[0])
		}
		return nil
	}
	if want[0] == "..." {
		for skip := range len(got) + 1 {
			try := ids{}
			for k, v := range known {
				try[k] = v
			}
			if try.follow(want[1:], got[skip:]) == nil {
				return known.follow(want[1:], got[skip:])
			}
		}
		return fmt.Errorf("after ... nothing fits %q", want[1:])
	}
	if len(got) == 0 {
		return fmt.Errorf("missing: %q", want[0])
	}
	if !known.match(want[0], got[0]) {
		return fmt.Errorf("got  %q\nwant %q", got[0], want[0])
	}
	return known.follow(want[1:], got[1:])
}

// actual puts this run's ids into a command of the document.
func (known ids) actual(command string) string {
	return regexp.MustCompile(`\b(?:[tm]-|aster/)[0-9a-hjkmnp-tv-z]{5}\b`).ReplaceAllStringFunc(command, func(word string) string {
		if id, ok := known[word[len(word)-5:]]; ok {
			return word[:len(word)-5] + id
		}
		return word
	})
}

func TestTranscriptsMatchByShapeOnly(t *testing.T) {
	for _, c := range []struct {
		want, got string
		ok        bool
	}{
		{"logged 0.4 ms, replicated 1.9 ms", "logged 12 ms, replicated 1.2 s", true},
		{"logged 0.4 ms, replicated 1.9 ms", "logged 12 ms, persisted 1.2 s", false},
		{"done in 3.1 s  +2 -1 cart/total.go  commit 3f9c2ab", "done in 901 ms    +2 -1 cart/total.go  commit 0000000", true},
		{"done in 3.1 s  +2 -1 cart/total.go  commit 3f9c2ab", "failed in 901 ms  +2 -1 cart/total.go  commit 0000000", false},
		{"done in 3.1 s  commit 3f9c2ab", "done in 901 ms", false},
		{"board  http://127.0.0.1:7878/...  (once)", "board  http://127.0.0.1:41234/open/x  (once)", true},
		{"exit 4", "exit 1", false},
		{"a  b", "a b", false},
	} {
		if got := (ids{}).match(c.want, c.got); got != c.ok {
			t.Errorf("%q against %q: %v, want %v", c.got, c.want, got, c.ok)
		}
	}
	known := ids{}
	if !known.match("t-7kq2m logged", "t-abcde logged") || known.match("t-7kq2m done", "t-fghjk done") || known.actual("fetch t-7kq2m") != "fetch t-abcde" {
		t.Errorf("an id is not the same one everywhere: %v", known)
	}
	if err := (ids{}).follow([]string{"a", "...", "c"}, []string{"a", "b", "b", "c"}); err != nil {
		t.Error(err)
	}
	for _, got := range [][]string{nil, {"a"}, {"a", "c", "d"}} {
		if (ids{}).follow([]string{"a", "...", "c"}, got) == nil {
			t.Errorf("%q passes", got)
		}
	}
}
