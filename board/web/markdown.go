package web

import (
	"net/url"
	"strconv"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/text"

	"github.com/aster-mesh/aster/protocol"
)

// Bounds of a tree: what goes beyond is shown as plain text, whole.
const (
	markdownBytes = 16 << 10 // some inputs cost the square of their length
	markdownNodes = 5_000
	markdownDepth = 24
)

// markdownKinds are the only elements that a page makes of words of others.
var markdownKinds = map[string]bool{"p": true, "h": true, "ul": true, "ol": true, "li": true, "quote": true, "pre": true, "code": true, "em": true, "strong": true, "br": true, "hr": true, "link": true}

// words is a piece of a message's text: a text, or an element of an allowed kind.
type words struct {
	Kind string  `json:"k,omitempty"` // empty: Text
	Text string  `json:"t,omitempty"`
	Href string  `json:"h,omitempty"` // of a link: http or https
	Kids []words `json:"c,omitempty"`
}

// markdownWords parses what somebody wrote. Raw HTML stays text, pictures are their description, and links lead to http and
// https alone. nil: there is nothing but plain text, or too much.
func markdownWords(said string) []words {
	if len(said) > markdownBytes || !strings.ContainsAny(said, "*_`#>[-+0123456789~") {
		return nil
	}
	if protocol.Depth([]byte(strings.ReplaceAll(said, "\"", ""))) > protocol.NestingMax {
		return nil // brackets upon brackets
	}
	m := marking{source: []byte(said)}
	root := goldmark.DefaultParser().Parse(text.NewReader(m.source))
	out := m.kids(root, 0)
	if m.tooMuch || len(out) == 1 && out[0].Kind == "p" && plain(out[0].Kids) {
		return nil
	}
	return out
}

func plain(all []words) bool {
	for _, w := range all {
		if w.Kind != "" && w.Kind != "br" {
			return false
		}
	}
	return true
}

type marking struct {
	source  []byte
	nodes   int
	tooMuch bool
}

func (m *marking) kids(n ast.Node, depth int) (out []words) {
	if depth > markdownDepth {
		m.tooMuch = true
		return nil
	}
	for k := n.FirstChild(); k != nil; k = k.NextSibling() {
		if m.nodes++; m.nodes > markdownNodes {
			m.tooMuch = true
			return out
		}
		out = append(out, m.one(k, depth)...)
	}
	return out
}

// one is a node; kinds that are not allowed are what they hold.
func (m *marking) one(n ast.Node, depth int) []words {
	element := func(kind string) []words { return []words{{Kind: kind, Kids: m.kids(n, depth+1)}} }
	switch n := n.(type) {
	case *ast.Text:
		out := m.said(string(n.Value(m.source)))
		if n.HardLineBreak() || n.SoftLineBreak() {
			out = append(out, words{Kind: "br"})
		}
		return out
	case *ast.String:
		return []words{{Text: string(n.Value)}}
	case *ast.Paragraph:
		return element("p")
	case *ast.Heading:
		return element("h")
	case *ast.Blockquote:
		return element("quote")
	case *ast.ListItem:
		return element("li")
	case *ast.List:
		if n.IsOrdered() {
			return []words{{Kind: "ol", Text: strconv.Itoa(n.Start), Kids: m.kids(n, depth+1)}}
		}
		return element("ul")
	case *ast.ThematicBreak:
		return []words{{Kind: "hr"}}
	case *ast.CodeSpan:
		return element("code")
	case *ast.Emphasis:
		if n.Level > 1 {
			return element("strong")
		}
		return element("em")
	case *ast.CodeBlock, *ast.FencedCodeBlock, *ast.HTMLBlock:
		return []words{{Kind: "pre", Text: m.lines(n)}}
	case *ast.RawHTML:
		return []words{{Text: string(n.Segments.Value(m.source))}}
	case *ast.AutoLink:
		return []words{linkWords(string(n.URL(m.source)), []words{{Text: string(n.Label(m.source))}})}
	case *ast.Link:
		return []words{linkWords(string(n.Destination), m.kids(n, depth+1))}
	}
	return m.kids(n, depth+1)
}

func (m *marking) said(s string) []words {
	if s == "" {
		return nil
	}
	return []words{{Text: s}}
}

func (m *marking) lines(n ast.Node) string {
	all := n.Lines()
	var out strings.Builder
	for i := range all.Len() {
		line := all.At(i)
		out.Write(line.Value(m.source))
	}
	return strings.TrimSuffix(out.String(), "\n")
}

// linkWords is a link that says where it leads, or its words where it leads to no page.
func linkWords(to string, kids []words) words {
	u, err := url.Parse(to)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil {
		return words{Kind: "code", Kids: append(kids, words{Text: " (" + protocol.CutText(to, 200) + ")"})}
	}
	return words{Kind: "link", Href: u.String(), Kids: kids}
}
