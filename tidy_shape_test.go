package aster_test

import (
	"fmt"
	"go/ast"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

const (
	fileLinesMax = 400 // past that, look for the second idea
	testLinesMax = 500 // stories in a row are read one at a time
	funcLinesMax = 70  // one screen
	taleLinesMax = 90  // a test that tells one story
)

// longFiles and longFuncs are the exceptions, each with its argument. The number is what it may have and may only fall:
// an exception that is no longer needed fails the test.
var longFiles = map[string]int{
	"node/link/link_test.go": 523, // one story a function over one pipe
}

var longFuncs = map[string]int{
	"cmd/aster/words_test.go TestWordsAndExitCodes": 200, // a table of commands, their words and exit codes

	"cmd/aster/internal/bench/joins.go joins": 76, // one measurement: what is timed stays in one place

}

// vagueNames say nothing about what is inside.
var vagueNames = []string{"util", "utils", "types", "manager", "managers", "helper", "helpers", "common", "misc", "base", "data"}

var shapeRules = []rule{
	{
		name: "a file holds one idea", check: checkFileLength,
		bad: []source{
			{path: "node/x.go", text: "package node\n" + strings.Repeat("\n", fileLinesMax)},
			{path: "node/x_test.go", text: "package node\n" + strings.Repeat("\n", testLinesMax)},
		},
		good: []source{{path: "node/x_test.go", text: "package node\n" + strings.Repeat("\n", fileLinesMax)}},
	},
	{
		name: "a function fits one screen", check: checkFuncLength,
		bad: []source{{path: "node/x.go", text: "package node\nfunc f() {\n" + strings.Repeat("\n", funcLinesMax) + "}"}},
	},
	{
		name: "a file is named for a behaviour", check: checkFileName,
		bad:  []source{{path: "node/utils.go", text: "package node"}, {path: "node/types_test.go", text: "package node"}, {path: "node/common/x.go", text: "package common"}},
		good: []source{{path: "node/redeliver.go", text: "package node"}},
	},
	{
		name: "tests sleep in bubbles or while they wait for a condition", check: checkSleep,
		bad: []source{
			{path: "node/x_test.go", text: "package node\nimport \"time\"\nfunc TestX() { time.Sleep(1) }"},
			{path: "node/x_test.go", text: "package node\nimport (\"time\"; \"testing/synctest\")\nfunc TestX() { time.Sleep(1); synctest.Test(nil, func() {}) }"},
		},
		good: []source{
			{path: "node/x_test.go", text: "package node\nimport (\"time\"; \"testing/synctest\")\nfunc TestX() { synctest.Test(nil, func() { time.Sleep(1) }) }"},
			{path: "node/x_test.go", text: "package node\nimport \"time\"\nfunc until(f func() bool) { for !f() { time.Sleep(1) } }"},
		},
	},
	{
		name: "only main ends the process", check: checkExit,
		bad: []source{
			{path: "node/x.go", text: "package node\nimport \"os\"\nfunc f() { os.Exit(1) }"},
			{path: "node/x.go", text: "package node\nimport \"log\"\nfunc f() { log.Fatalln() }"},
		},
		good: []source{{path: "cmd/aster/main.go", text: "package main\nimport \"os\"\nfunc main() { os.Exit(1) }"}},
	},
	{
		name: "nothing is wired behind one's back", check: checkInit,
		bad:  []source{{path: "node/x.go", text: "package node\nfunc init() {}"}},
		good: []source{{path: "node/x.go", text: "package node\ntype t int\nfunc (t) init() {}"}},
	},
	{
		name: "errors are lower case and say what, not that it failed", check: checkErrors,
		bad: []source{
			{path: "node/x.go", text: "package node\nimport \"errors\"\nvar e = errors.New(\"Open it\")"},
			{path: "node/x.go", text: "package node\nimport \"fmt\"\nvar e = fmt.Errorf(\"failed to open: %w\", nil)"},
			{path: "node/x.go", text: "package node\nimport \"errors\"\nvar e = errors.New(\"no room.\")"},
		},
		good: []source{{path: "node/x.go", text: "package node\nimport \"errors\"\nvar e = errors.New(\"HELLO is missing\")"}},
	},
}

func checkFileLength(s *source) []finding {
	if s.file == nil {
		return nil
	}
	lines, allowed := strings.Count(s.text, "\n"), fileLinesMax
	if s.test() {
		allowed = testLinesMax
	}
	if n, ok := longFiles[s.path]; ok {
		usual := allowed
		allowed = n
		if lines <= usual {
			return []finding{at(1, "%d lines: it needs no exception in longFiles any more", lines)}
		}
	}
	if lines > allowed {
		return []finding{at(lines, "%d lines, at most %d", lines, allowed)}
	}
	return nil
}

func checkFuncLength(s *source) []finding {
	if s.file == nil {
		return nil
	}
	var out []finding
	for _, d := range s.file.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok {
			continue
		}
		lines, allowed := s.line(f.End())-s.line(f.Pos())+1, funcLinesMax
		if s.test() {
			allowed = taleLinesMax
		}
		if n, ok := longFuncs[s.path+" "+f.Name.Name]; ok {
			usual := allowed
			allowed = n
			if lines <= usual {
				out = append(out, at(s.line(f.Pos()), "%s has %d lines: it needs no exception in longFuncs any more", f.Name.Name, lines))
			}
		}
		if lines > allowed {
			out = append(out, at(s.line(f.Pos()), "%s has %d lines, at most %d", f.Name.Name, lines, allowed))
		}
	}
	return out
}

func checkFileName(s *source) []finding {
	stem := strings.TrimSuffix(strings.TrimSuffix(path.Base(s.path), path.Ext(s.path)), "_test")
	for _, part := range append(strings.Split(s.dir(), "/"), stem) {
		if slices.Contains(vagueNames, part) {
			return []finding{at(1, "%q says nothing about what is inside", part)}
		}
	}
	return nil
}

// checkSleep lets a helper sleep where its file knows bubbles: the tests that call it are in one.
func checkSleep(s *source) []finding {
	if s.file == nil || !s.test() {
		return nil
	}
	bubbles := s.imports()["testing/synctest"]
	var out []finding
	for _, d := range s.file.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok || bubbles != "" && !strings.HasPrefix(f.Name.Name, "Test") {
			continue
		}
		var allowed []ast.Node // bubbles and loops of this function
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.ForStmt, *ast.RangeStmt:
				allowed = append(allowed, n)
			case *ast.CallExpr:
				if sel, ok := n.Fun.(*ast.SelectorExpr); ok && fmt.Sprint(sel.X, ".", sel.Sel) == "synctest.Test" {
					allowed = append(allowed, n)
				}
			}
			return true
		})
		ast.Inspect(f, func(n ast.Node) bool {
			sel, ok := n.(*ast.SelectorExpr)
			if !ok || fmt.Sprint(sel.X, ".", sel.Sel) != "time.Sleep" {
				return true
			}
			if !slices.ContainsFunc(allowed, func(a ast.Node) bool { return a.Pos() <= n.Pos() && n.End() <= a.End() }) {
				out = append(out, at(s.line(n.Pos()), "a sleep hopes; wait for a condition, or use testing/synctest"))
			}
			return true
		})
	}
	return out
}

func checkExit(s *source) []finding {
	if s.file == nil || s.test() || s.path == "cmd/aster/main.go" {
		return nil
	}
	return append(s.uses("os", "Exit"), s.uses("log", "Fatal", "Fatalf", "Fatalln", "Panic", "Panicf", "Panicln")...)
}

func checkInit(s *source) []finding {
	if s.file == nil {
		return nil
	}
	var out []finding
	for _, d := range s.file.Decls {
		if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil && f.Name.Name == "init" {
			out = append(out, at(s.line(f.Pos()), "no init functions: wire it in node.Run or main"))
		}
	}
	return out
}

func checkErrors(s *source) []finding {
	if s.file == nil || s.test() {
		return nil
	}
	var out []finding
	ast.Inspect(s.file, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok || len(call.Args) == 0 {
			return true
		}
		sel, ok := call.Fun.(*ast.SelectorExpr)
		if !ok || !slices.Contains([]string{"errors.New", "fmt.Errorf"}, fmt.Sprint(sel.X, ".", sel.Sel)) {
			return true
		}
		lit, ok := call.Args[0].(*ast.BasicLit)
		if !ok {
			return true
		}
		text, err := strconv.Unquote(lit.Value)
		if err != nil {
			return true
		}
		first, n1 := utf8.DecodeRuneInString(text)
		second, _ := utf8.DecodeRuneInString(text[n1:])
		switch {
		case unicode.IsUpper(first) && !unicode.IsUpper(second) && second != '_':
			out = append(out, at(s.line(lit.Pos()), "an error begins in lower case: %q", text))
		case strings.HasSuffix(text, ".") || strings.HasSuffix(text, "\n"):
			out = append(out, at(s.line(lit.Pos()), "an error is no sentence: %q", text))
		case strings.Contains(strings.ToLower(text), "fail"+"ed to"):
			out = append(out, at(s.line(lit.Pos()), "an error names the act and the object: %q", text))
		}
		return true
	})
	return out
}

// words are what no file may say, with what to say instead. hints are looked for first: expressions are slow.
var words = []struct {
	hints   []string
	pattern *regexp.Regexp
	instead string
}{
	{[]string{"TO" + "DO", "FIX" + "ME", "XX" + "X", "HA" + "CK"}, regexp.MustCompile(`\b(TO` + `DO|FIX` + `ME|XX` + `X|HA` + `CK)\b`), "do it now, or open an issue"},
	{[]string{"/wo" + "rk/", "/ro" + "ot/"}, regexp.MustCompile(`(^|[^\w.])/(wo` + `rk|ro` + `ot)/`), "no path of somebody's machine"},
	{[]string{"opy" + "right", "SP" + "DX", "icen"}, regexp.MustCompile(`(?i)\b(copy` + `right \(c\)|SP` + `DX-License|licen[sc]ed under)`),
		"LICENSE says it once for all files; foreign code does not come in"},
	{[]string{"pki" + "ll", "kill" + "all"}, regexp.MustCompile(`\b(pki` + `ll|kill` + `all)\b`), "end a process by its own number"},
	{[]string{"chmod"}, regexp.MustCompile(`\bchmod (-R )?0?777\b`), "a home belongs to its owner"},
}

var wordRules = []rule{{
	name: "some words are not said", check: checkWords,
	bad: []source{
		{path: "README.md", text: "TO" + "DO: write this"},
		{path: "node/x.go", text: "package node // see /wo" + "rk/x"},
		{path: "board/web/static/x.js", text: "// Copy" + "right (c) somebody"},
		{path: ".ci/run", text: "pki" + "ll aster"},
	},
	good: []source{{path: "x.md", text: "network/root/share and mktemp XX" + "XXXX"}},
}}

func checkWords(s *source) []finding {
	var out []finding
	for _, w := range words {
		if !slices.ContainsFunc(w.hints, func(h string) bool { return strings.Contains(s.text, h) }) {
			continue
		}
		for i, line := range strings.Split(s.text, "\n") {
			if m := w.pattern.FindString(line); m != "" {
				out = append(out, at(i+1, "%q: %s", strings.TrimSpace(m), w.instead))
			}
		}
	}
	return out
}

// TestExceptionsNameWhatExists keeps the two lists short.
func TestExceptionsNameWhatExists(t *testing.T) {
	have := map[string]bool{}
	for _, s := range tree(t) {
		have[s.path] = true
		if s.file == nil {
			continue
		}
		for _, d := range s.file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok {
				have[s.path+" "+f.Name.Name] = true
			}
		}
	}
	for name := range longFiles {
		if !have[name] {
			t.Errorf("longFiles names %s, which is not there", name)
		}
	}
	for name := range longFuncs {
		if !have[name] {
			t.Errorf("longFuncs names %s, which is not there", name)
		}
	}
}
