package aster_test

import (
	"go/ast"
	"go/token"
	"maps"
	"slices"
	"strings"
	"testing"
)

// mayImport says of each package which others of ours it imports: arrows point down and end at protocol, and the parts
// of a node meet in package node alone. A new package gets its row here, and its line in ARCHITECTURE.md.
var mayImport = map[string][]string{
	"protocol":          {},
	"protocol/api":      {"protocol"},
	"protocol/asterism": {"protocol"},
	"protocol/meshwire": {"protocol"},

	"roles":               {"protocol"},
	"roles/access":        {"protocol"},
	"roles/claim":         {"protocol"},
	"roles/cut":           {"protocol"},
	"roles/deadlock":      {"protocol"},
	"roles/election":      {"protocol"},
	"roles/keys":          {"protocol"},
	"roles/member":        {"protocol"},
	"roles/retain":        {"protocol"},
	"roles/room":          {"protocol"},
	"roles/worker":        {"protocol", "protocol/api", "roles/worker/keeper", "roles/worker/repo"},
	"roles/worker/keeper": {"protocol", "protocol/api", "roles/worker/repo"},
	"roles/worker/repo":   {"protocol", "protocol/api"},

	"board":     {"protocol", "protocol/api", "roles", "roles/cut", "roles/keys", "roles/member", "roles/room"},
	"board/web": {"protocol", "protocol/api", "roles/access"},

	"node/backup":  {},
	"node/bridge":  {"protocol"},
	"node/foreign": {"protocol", "protocol/asterism"},
	"node/gossip":  {"protocol"},
	"node/hub":     {"protocol", "roles", "roles/room"},
	"node/journal": {"protocol", "node/sim"}, // its tests: the store keeps the contract of its model
	"node/link":    {"protocol"},
	"node/mesh":    {"protocol"},
	"node/replica": {"protocol"},
	"node/trace":   {"protocol"},
	"node/webpush": {"protocol"},
	"node/turn":    {"board", "node/hub", "node/journal", "node/replica", "protocol", "protocol/meshwire", "roles/claim", "roles/cut", "roles/election", "roles/member"},
	// Tests alone use it. It holds the cores together as package node does, without a shell.
	"node/sim": {"board", "node/hub", "node/journal", "node/replica", "node/turn", "protocol", "protocol/meshwire", "roles", "roles/claim", "roles/cut", "roles/election", "roles/member"},
	"node": {"board", "board/web", "node/backup", "node/bridge", "node/foreign", "node/gossip", "node/hub", "node/journal", "node/link", "node/mesh", "node/replica", "node/trace", "node/turn", "node/webpush",
		"protocol", "protocol/api", "protocol/asterism", "protocol/meshwire", "roles", "roles/access", "roles/claim", "roles/cut", "roles/deadlock", "roles/election", "roles/keys", "roles/member", "roles/retain", "roles/room", "roles/worker",
		"spec", "spec/check"}, // its tests play the vectors

	"cmd/aster": {"cmd/aster/internal/bench", "cmd/aster/internal/client", "cmd/aster/internal/demo", "node",
		"protocol", "protocol/api", "roles/worker/keeper", "roles/worker/repo", "spec", "spec/check"},
	"cmd/aster/internal/client": {"protocol", "protocol/api"},
	"cmd/aster/internal/demo":   {"cmd/aster/internal/client", "protocol", "protocol/api"},
	// Of the inside it uses what a foreign agent, node or stranger would have to write anew, and reads what nodes left behind.
	"cmd/aster/internal/e2e":   {"cmd/aster/internal/client", "node/journal", "node/link", "node/mesh", "protocol", "protocol/api", "protocol/meshwire", "roles/member", "spec/check"},
	"cmd/aster/internal/bench": {anything}, // it may use what it measures

	"spec":              {"protocol"}, // its tests compare the catalogue
	"spec/check":        {"spec"},     // it runs against any hub, so it knows none
	"spec/check/double": {"node", "node/link", "protocol", "protocol/api", "protocol/asterism", "spec/check"},
	".":                 {},
}

const anything = "anything"

// owners are the modules that one package hides from all others, so that it can be replaced in one place.
var owners = map[string][]string{
	"github.com/hashicorp/memberlist":   {"node/gossip"},
	"github.com/libp2p/go-libp2p":       {"node/mesh"},
	"github.com/multiformats":           {"node/mesh"},
	"github.com/gorilla/websocket":      {"node/link", "board/web"},
	"github.com/vmihailenco/msgpack/v5": {"protocol/meshwire", "protocol/asterism"}, // the latter in tests, as a second opinion
	"github.com/oklog/run":              {"node"},
	"github.com/prometheus":             {"node"},
	"github.com/ncruces/go-sqlite3":     {"node/journal"},
	"github.com/fsnotify/fsnotify":      {"node/bridge", "cmd/aster"},
	"github.com/pelletier/go-toml/v2":   {"cmd/aster"},
	"github.com/spf13/cobra":            {"cmd/aster"},
	"golang.org/x/term":                 {"cmd/aster"},
	"github.com/yuin/goldmark":          {"board/web"},
	"rsc.io/qr":                         {"board/web"},
}

var importRules = []rule{
	{
		name: "imports point down and end at protocol", check: checkDirections,
		bad: []source{
			{path: "node/hub/x.go", text: "package hub\nimport \"" + module + "/node/journal\""},
			{path: "protocol/x.go", text: "package protocol\nimport \"" + module + "/roles\""},
			{path: "board/web/x_test.go", text: "package web\nimport \"" + module + "/node\""},
			{path: "novelty/x.go", text: "package novelty"},
		},
		good: []source{
			{path: "node/hub/x.go", text: "package hub\nimport \"" + module + "/protocol\""},
			{path: "node/journal/x_test.go", text: "package journal_test\nimport \"" + module + "/node/journal\""},
		},
	},
	{
		name: "a foreign module is known to its owner alone", check: checkOwners,
		bad: []source{
			{path: "node/x.go", text: "package node\nimport \"github.com/libp2p/go-libp2p/core/peer\""},
			{path: "board/x_test.go", text: "package board\nimport _ \"github.com/gorilla/websocket\""},
			{path: "node/mesh/x.go", text: "package mesh\nimport m \"github.com/vmihailenco/msgpack/v5/msgpcode\""},
		},
		good: []source{
			{path: "node/mesh/x.go", text: "package mesh\nimport \"github.com/libp2p/go-libp2p/core/peer\""},
			{path: "cmd/aster/internal/bench/x.go", text: "package bench\nimport \"github.com/gorilla/websocket\""},
		},
	},
	{
		name: "pure packages need the standard library alone", check: checkStandard,
		bad:  []source{{path: "protocol/x.go", text: "package protocol\nimport \"github.com/google/uuid\""}},
		good: []source{{path: "protocol/x.go", text: "package protocol\nimport \"encoding/json\""}},
	},
}

func checkDirections(s *source) []finding {
	if s.file == nil {
		return nil
	}
	allowed, known := mayImport[s.dir()]
	if !known {
		return []finding{at(1, "package %s has no row in mayImport (tidy_imports_test.go)", s.dir())}
	}
	var out []finding
	for p := range s.imports() {
		ours, is := strings.CutPrefix(p, module+"/")
		if !is || s.test() && ours == s.dir() || slices.Contains(allowed, ours) || slices.Contains(allowed, anything) {
			continue
		}
		out = append(out, at(s.importLine(p), "%s may not import %s", s.dir(), ours))
	}
	return out
}

func checkOwners(s *source) []finding {
	if s.dir() == "cmd/aster/internal/bench" {
		return nil
	}
	var out []finding
	for p := range s.imports() {
		for mod, dirs := range owners {
			if (p == mod || strings.HasPrefix(p, mod+"/")) && !slices.Contains(dirs, s.dir()) {
				out = append(out, at(s.importLine(p), "only %v may import %s", dirs, mod))
			}
		}
	}
	return out
}

// checkStandard spares the one pure package that is about a foreign encoding.
func checkStandard(s *source) []finding {
	if s.test() || !pure(s.dir()) || s.dir() == "protocol/meshwire" {
		return nil
	}
	var out []finding
	for p := range s.imports() {
		if first, _, _ := strings.Cut(p, "/"); strings.Contains(first, ".") && !strings.HasPrefix(p, module+"/") {
			out = append(out, at(s.importLine(p), "%s imports the standard library and our own packages alone, not %s", s.dir(), p))
		}
	}
	return out
}

// TestRulesOfImportAreAboutThingsThatExist keeps the tables from guarding names that nobody could import any more.
func TestRulesOfImportAreAboutThingsThatExist(t *testing.T) {
	files := tree(t)
	here := packages(files)
	for dir := range mayImport {
		if len(here[dir]) == 0 && dir != "cmd/aster/internal/bench" {
			t.Errorf("mayImport has a row for %s, where no package is", dir)
		}
	}
	used := map[string]map[string]bool{} // folder → what it imports
	for _, s := range files {
		if used[s.dir()] == nil {
			used[s.dir()] = map[string]bool{}
		}
		maps.Copy(used[s.dir()], importSet(s))
	}
	for mod, dirs := range owners {
		for _, dir := range dirs {
			found := false
			for p := range used[dir] {
				found = found || p == mod || strings.HasPrefix(p, mod+"/")
			}
			if !found && dir != "board/web" { // it may upgrade sockets itself, and lets node/link do it
				t.Errorf("%s owns %s and does not import it", dir, mod)
			}
		}
	}
}

func importSet(s *source) map[string]bool {
	out := map[string]bool{}
	for p := range s.imports() {
		out[p] = true
	}
	return out
}

// pure says which packages decide and never act; what they need of the world comes in as arguments. A new package below
// protocol or roles is one of them.
func pure(dir string) bool {
	switch dir {
	case "node/hub", "node/replica", "node/turn", "node/foreign", "board":
		return true
	}
	under := func(top string) bool { return dir == top || strings.HasPrefix(dir, top+"/") }
	return under("protocol") || under("roles") && !under("roles/worker")
}

// impure are imports that bring the world in.
var impure = []string{"context", "crypto/rand", "embed", "io/fs", "io/ioutil", "log", "math/rand", "net", "os", "path/filepath", "runtime",
	"sync", "syscall", "testing", "unsafe"}

// clocks are the members of package time that look at a clock or wait for one.
var clocks = []string{"Now", "Since", "Until", "After", "AfterFunc", "Sleep", "Tick", "NewTicker", "NewTimer"}

var pureRules = []rule{{
	name: "pure packages have no goroutine, channel, lock, clock, dice, file, socket or logger", check: checkPure,
	bad: []source{
		{path: "node/hub/x.go", text: "package hub\nfunc f() { go f() }"},
		{path: "node/hub/x.go", text: "package hub\nvar c chan int"},
		{path: "node/hub/x.go", text: "package hub\nfunc f() { select {} }"},
		{path: "node/replica/x.go", text: "package replica\nimport clock \"time\"\nvar t = clock.Now()"},
		{path: "board/x.go", text: "package board\nimport \"time\"\nvar f = time.AfterFunc"},
		{path: "roles/x.go", text: "package roles\nimport \"math/rand/v2\""},
		{path: "protocol/x.go", text: "package protocol\nimport . \"time\""},
		{path: "protocol/x.go", text: "package protocol\nimport \"log/slog\""},
		{path: "protocol/meshwire/x.go", text: "package meshwire\nimport \"sync/atomic\""},
		{path: "protocol/x.go", text: "package protocol\nfunc f() { println() }"},
		{path: "roles/novelty/x.go", text: "package novelty\nimport \"os\""},
		{path: "roles/x.go", text: "package roles\nimport \"net/http\""},
	},
	good: []source{
		{path: "roles/x.go", text: "package roles\nimport \"net/netip\""},
		{path: "node/hub/x.go", text: "package hub\nimport \"time\"\nfunc f(now time.Time) time.Time { return now.Add(time.Second) }"},
		{path: "node/x.go", text: "package node\nimport \"time\"\nvar t = time.Now()"},
		{path: "node/hub/x_test.go", text: "package hub\nimport \"os\""},
		{path: "roles/worker/x.go", text: "package worker\nimport \"os\""},
	},
}}

func checkPure(s *source) []finding {
	if s.file == nil || s.test() || !pure(s.dir()) {
		return nil
	}
	var out []finding
	for p, name := range s.imports() {
		for _, bad := range impure {
			if p != "net/netip" && (p == bad || strings.HasPrefix(p, bad+"/")) { // addresses as values, and no network
				out = append(out, at(s.importLine(p), "a pure package imports %s", p))
			}
		}
		if name == "." {
			out = append(out, at(s.importLine(p), "a dot import hides what is used"))
		}
	}
	for _, u := range s.uses("time", clocks...) {
		out = append(out, at(u.line, "%s: a pure package is told the time", u.what))
	}
	ast.Inspect(s.file, func(n ast.Node) bool {
		what := ""
		switch n := n.(type) {
		case *ast.GoStmt:
			what = "goroutine"
		case *ast.ChanType, *ast.SendStmt:
			what = "channel"
		case *ast.SelectStmt:
			what = "select"
		case *ast.UnaryExpr:
			if n.Op == token.ARROW {
				what = "receive"
			}
		case *ast.CallExpr:
			if id, ok := n.Fun.(*ast.Ident); ok && (id.Name == "print" || id.Name == "println") {
				what = "output"
			}
		}
		if what != "" {
			out = append(out, at(s.line(n.Pos()), "%s in a pure package", what))
		}
		return true
	})
	return out
}
