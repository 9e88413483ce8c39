package aster_test

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// module is our own import path.
const module = "github.com/aster-mesh/aster"

// source is one text file of the repository.
type source struct {
	path string // slashes, from the root
	text string
	fset *token.FileSet
	file *ast.File // nil unless it is Go
}

func (s *source) dir() string          { return path.Dir(s.path) }
func (s *source) test() bool           { return strings.HasSuffix(s.path, "_test.go") }
func (s *source) line(p token.Pos) int { return s.fset.Position(p).Line }

// finding is one breach: where, and what to do about it.
type finding struct {
	line int
	what string
}

func at(line int, format string, args ...any) finding {
	return finding{line, fmt.Sprintf(format, args...)}
}

// rule looks at one file. bad are texts that it must object to, by path; good ones that it must let pass. A rule that
// objects to nothing would be no rule.
type rule struct {
	name  string
	check func(*source) []finding
	bad   []source
	good  []source
}

func rules() []rule { return slices.Concat(importRules, pureRules, shapeRules, wordRules) }

func TestEveryFileKeepsTheRulesOfTheHouse(t *testing.T) {
	files := tree(t)
	for _, r := range rules() {
		t.Run(r.name, func(t *testing.T) {
			for _, s := range files {
				for _, f := range r.check(s) {
					t.Errorf("%s:%d: %s", s.path, f.line, f.what)
				}
			}
		})
	}
}

func TestEveryRuleOfTheHouseCanFail(t *testing.T) {
	for _, r := range rules() {
		t.Run(r.name, func(t *testing.T) {
			if len(r.bad) == 0 {
				t.Error("no example of what it forbids")
			}
			for _, b := range r.bad {
				if len(r.check(parsed(t, b.path, b.text))) == 0 {
					t.Errorf("passes although it should not: %s\n%s", b.path, b.text)
				}
			}
			for _, g := range r.good {
				if got := r.check(parsed(t, g.path, g.text)); len(got) != 0 {
					t.Errorf("objects to %s: %v\n%s", g.path, got, g.text)
				}
			}
		})
	}
}

// TestEveryPackageSaysOnceWhatItIs: one package comment each, and it starts as go doc expects.
func TestEveryPackageSaysOnceWhatItIs(t *testing.T) {
	for dir, files := range packages(tree(t)) {
		var docs []string
		for _, s := range files {
			if s.file.Doc != nil && s.file.Doc.Text() != "" {
				docs = append(docs, s.path)
				name := s.file.Name.Name
				want := "Package " + name + " "
				if name == "main" {
					want = "Command " + path.Base(dir) + " "
				}
				if got := s.file.Doc.Text(); !strings.HasPrefix(got, want) {
					t.Errorf("%s: the package comment starts with %.30q, want %q", s.path, got, want)
				}
			}
		}
		if len(docs) != 1 {
			t.Errorf("%s has %d package comments %v, want one, in doc.go", dir, len(docs), docs)
		}
	}
}

// packages groups Go files by folder.
func packages(files []*source) map[string][]*source {
	out := map[string][]*source{}
	for _, s := range files {
		if s.file != nil {
			out[s.dir()] = append(out[s.dir()], s)
		}
	}
	return out
}

// textKinds are the files that people write.
var textKinds = []string{".go", ".js", ".css", ".html", ".md", ".toml", ".txt", ".sh", ".mod", ".yml", ".svg"}

// tree reads every text file of the repository, whatever system it is built for.
func tree(t *testing.T) []*source {
	t.Helper()
	files, err := readTree()
	if err != nil {
		t.Fatal(err)
	}
	if len(packages(files)) < 20 {
		t.Fatalf("only %d packages found: is this the root of the module?", len(packages(files)))
	}
	return files
}

var readTree = sync.OnceValues(func() ([]*source, error) {
	var files []*source
	err := filepath.WalkDir(".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name = filepath.ToSlash(name)
		if d.IsDir() {
			if name == ".git" || name == ".ci/cache" || name == "dist" {
				return filepath.SkipDir
			}
			return nil
		}
		if !d.Type().IsRegular() || !slices.Contains(textKinds, path.Ext(name)) && name != "Makefile" && !strings.HasPrefix(name, ".ci/") {
			return nil
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		s, err := parse(name, string(bytes.ReplaceAll(text, []byte("\r\n"), []byte("\n"))))
		files = append(files, s)
		return err
	})
	return files, err
})

func parse(name, text string) (*source, error) {
	s := &source{path: name, text: text, fset: token.NewFileSet()}
	if path.Ext(name) != ".go" {
		return s, nil
	}
	f, err := parser.ParseFile(s.fset, name, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, fmt.Errorf("parse: %w", err)
	}
	s.file = f
	return s, nil
}

func parsed(t *testing.T, name, text string) *source {
	t.Helper()
	s, err := parse(name, text)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// imports are a file's imports: path to the name that the file uses for it.
func (s *source) imports() map[string]string {
	out := map[string]string{}
	if s.file == nil {
		return out
	}
	for _, i := range s.file.Imports {
		p := strings.Trim(i.Path.Value, `"`)
		name := path.Base(p)
		if i.Name != nil {
			name = i.Name.Name
		}
		out[p] = name
	}
	return out
}

// importLine is where a file imports a path.
func (s *source) importLine(p string) int {
	for _, i := range s.file.Imports {
		if strings.Trim(i.Path.Value, `"`) == p {
			return s.line(i.Pos())
		}
	}
	return 0
}

// uses lists the places where a file names one of a standard package's members, under whatever name it imported it.
func (s *source) uses(pkg string, members ...string) []finding {
	name, ok := s.imports()[pkg]
	if !ok {
		return nil
	}
	var out []finding
	ast.Inspect(s.file, func(n ast.Node) bool {
		sel, ok := n.(*ast.SelectorExpr)
		if !ok || !slices.Contains(members, sel.Sel.Name) {
			return true
		}
		if id, ok := sel.X.(*ast.Ident); ok && id.Name == name {
			out = append(out, at(s.line(sel.Pos()), "%s.%s", pkg, sel.Sel.Name))
		}
		return true
	})
	return out
}
