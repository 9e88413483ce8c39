package web

import (
	"encoding/json"
	"net/url"
	"strings"
	"testing"
)

func TestMarkdownBecomesAllowedKindsOnly(t *testing.T) {
	for said, want := range map[string]string{
		"plain words":                   `null`,
		"two *lines*\nof **it**":        `[{"k":"p","c":[{"t":"two "},{"k":"em","c":[{"t":"lines"}]},{"k":"br"},{"t":"of "},{"k":"strong","c":[{"t":"it"}]}]}]`,
		"# Head\n\n- a\n- `b`":          `[{"k":"h","c":[{"t":"Head"}]},{"k":"ul","c":[{"k":"li","c":[{"t":"a"}]},{"k":"li","c":[{"k":"code","c":[{"t":"b"}]}]}]}]`,
		"```go\nx := 1\n```":            `[{"k":"pre","t":"x := 1"}]`,
		"- <script>x</script>":          `[{"k":"ul","c":[{"k":"li","c":[{"k":"pre","t":"\u003cscript\u003ex\u003c/script\u003e"}]}]}]`,
		"[x](javascript:alert(1))":      `[{"k":"p","c":[{"k":"code","c":[{"t":"x"},{"t":" (javascript:alert(1))"}]}]}]`,
		"[x](http://a.example/b)":       `[{"k":"p","c":[{"k":"link","h":"http://a.example/b","c":[{"t":"x"}]}]}]`,
		"![alt *x*](http://a.example)":  `[{"k":"p","c":[{"t":"alt "},{"k":"em","c":[{"t":"x"}]}]}]`,
		strings.Repeat("> ", 100) + "x": `null`,
	} {
		raw, err := json.Marshal(markdownWords(said))
		if err != nil {
			t.Fatal(err)
		}
		if string(raw) != want {
			t.Errorf("%.40q: %s\nwant %s", said, raw, want)
		}
	}
}

// FuzzMarkdown: whatever somebody writes, the tree is small, of allowed kinds, and its links lead to pages.
func FuzzMarkdown(f *testing.F) {
	for _, s := range corpus {
		f.Add(s)
	}
	f.Add("# a\n> *b* [c](http://d.example) `e`\n1. f\n   - g\n\n```\nh\n```\n---\n![i](j)")
	f.Add(strings.Repeat("[", 500) + strings.Repeat("](x)", 500))
	f.Add(strings.Repeat("*a _b ", 300))
	f.Fuzz(func(t *testing.T, said string) {
		count := 0
		var look func(all []words, depth int)
		look = func(all []words, depth int) {
			if depth > markdownDepth+2 {
				t.Fatalf("%d deep", depth)
			}
			for _, w := range all {
				count++
				if w.Kind != "" && !markdownKinds[w.Kind] {
					t.Fatalf("kind %q", w.Kind)
				}
				if u, err := url.Parse(w.Href); w.Href != "" && (err != nil || u.Scheme != "http" && u.Scheme != "https") {
					t.Fatalf("a link to %q", w.Href)
				}
				look(w.Kids, depth+1)
			}
		}
		look(markdownWords(said), 0)
		if count > 3*markdownNodes {
			t.Fatalf("%d pieces", count)
		}
	})
}
