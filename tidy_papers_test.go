package aster_test

import (
	"go/ast"
	"io/fs"
	"maps"
	"os"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// pins are versions that something depends on, with what. exact ones may not move at all.
var pins = []struct {
	module, version string
	exact           bool
	why             string
}{
	{"github.com/vmihailenco/msgpack/v5", "v5.3.6", true, "v5.4 lost its limit on slices: five bytes make it allocate gigabytes"},
	{"github.com/quic-go/quic-go", "v0.64.1", true, "v0.65 does not compile with the webtransport that libp2p imports"},
	{"github.com/hashicorp/memberlist", "v0.7.0", false, "its Transport seam is what node/gossip builds on"},
	{"github.com/libp2p/go-libp2p", "v0.52.0", false, "node/mesh is written against it"},
	{"github.com/pion/dtls/v3", "v3.1.15", false, "GO-2026-6165"},
	{"github.com/pion/stun/v3", "v3.1.7", false, "GO-2026-6163"},
}

// required reads the require lines of a go.mod: module to version.
func required(mod string) map[string]string {
	out := map[string]string{}
	for _, line := range strings.Split(mod, "\n") {
		if f := strings.Fields(strings.TrimPrefix(strings.TrimSpace(line), "require ")); len(f) >= 2 && strings.HasPrefix(f[1], "v") {
			out[f[0]] = f[1]
		}
	}
	return out
}

// pinned says what is wrong with a go.mod.
func pinned(mod string) []string {
	var out []string
	have := required(mod)
	for _, p := range pins {
		got, ok := have[p.module]
		switch {
		case !ok:
			out = append(out, p.module+" is not required any more: does the rule still guard something?")
		case p.exact && got != p.version || older(got, p.version):
			out = append(out, p.module+" "+got+", want "+p.version+": "+p.why)
		}
	}
	for _, line := range strings.Split(mod, "\n") {
		if word, _, _ := strings.Cut(strings.TrimSpace(line), " "); word == "replace" || word == "exclude" {
			out = append(out, word+": go install refuses a module that has one")
		}
	}
	return out
}

func older(a, b string) bool {
	x, y := strings.Split(strings.TrimPrefix(a, "v"), "."), strings.Split(strings.TrimPrefix(b, "v"), ".")
	for i := range min(len(x), len(y)) {
		n, _ := strconv.Atoi(x[i])
		m, _ := strconv.Atoi(y[i])
		if n != m {
			return n < m
		}
	}
	return false
}

func TestPinnedModulesStayPinned(t *testing.T) {
	raw, err := os.ReadFile("go.mod")
	if err != nil {
		t.Fatal(err)
	}
	mod := string(raw)
	for _, wrong := range pinned(mod) {
		t.Error("go.mod: " + wrong)
	}
	for mod := range owners {
		found := false
		for have := range required(string(raw)) {
			found = found || have == mod || strings.HasPrefix(have, mod+"/")
		}
		if !found {
			t.Errorf("go.mod does not require %s, which a rule of import guards", mod)
		}
	}
	for _, bad := range []string{
		strings.Replace(mod, "msgpack/v5 v5.3.6", "msgpack/v5 v5.4.1", 1), strings.Replace(mod, "memberlist v0.7.0", "memberlist v0.6.9", 1),
		strings.Replace(mod, "dtls/v3 v3.1.15", "dtls/v3 v3.1.9", 1), mod + "\nreplace a => b\n", mod + "\nexclude a v1.0.0\n",
	} {
		if len(pinned(bad)) == 0 {
			t.Errorf("a go.mod passes that should not:\n%s", bad)
		}
	}
	if _, err := os.Stat("vendor"); err == nil {
		t.Error("vendor: modules come from the module cache, checked by go.sum")
	}
}

// decoders read what somebody else wrote: a peer, a client, a person's editor, a disk. Each has a fuzz test.
var decoders = map[string]string{ // decoder → its fuzz test
	"board/web/markdown.go:markdownWords":         "FuzzMarkdown",
	"roles/access/rules.go:Parse":                 "FuzzParse",
	"roles/claim/scope.go:Parse":                  "FuzzParse",
	"roles/claim/holder.go:NewHolder":             "FuzzNewHolder",
	"roles/election/kept.go:decodeKept":           "FuzzDecodeKept",
	"protocol/api/report.go:ReadReport":           "FuzzReadReport",
	"protocol/envelope.go:dense":                  "FuzzContentIgnoresSpaceAlone",
	"protocol/ids.go:PeerID.PublicKey":            "FuzzPeerID",
	"protocol/trace.go:ParseTraceParent":          "FuzzTraceParent",
	"protocol/record.go:ParseLogID":               "FuzzParseLogID",
	"protocol/record.go:VerifyCommits":            "FuzzVerifyCommits",
	"protocol/asterism/decode.go:Decode":          "FuzzDecode",
	"protocol/asterism/msgpack.go:FromMsgpack":    "FuzzFromMsgpack",
	"protocol/asterism/streams.go:Streams.Add":    "FuzzStreams",
	"protocol/asterism/artifact.go:ParseOffer":    "FuzzArtifactValues",
	"protocol/asterism/artifact.go:ParsePut":      "FuzzArtifactValues",
	"protocol/asterism/artifact.go:ParseGet":      "FuzzArtifactValues",
	"protocol/asterism/artifact.go:NamedIn":       "FuzzArtifactValues",
	"protocol/asterism/inlined.go:WithoutInlined": "FuzzArtifactValues",
	"board/web/blob.go:parseContentRange":         "FuzzContentRange",
	"board/web/session.go:sessions.read":          "FuzzSession",
	"board/web/push.go:pushes.read":               "FuzzKeptPushes",
	"node/webpush/where.go:checkEndpoint":         "FuzzSubscription",
	"node/webpush/seal.go:ReadKeys":               "FuzzSubscription",
	"protocol/meshwire/codec.go:Decode":           "FuzzDecode",
	"node/figures.go:decodeFigures":               "FuzzFigures",
	"node/mesh/mdns.go:readMDNS":                  "FuzzReadMDNS",
	"roles/keys/parse.go:ParseIssue":              "FuzzParseIssue",
	"roles/keys/ring.go:DecodeRing":               "FuzzDecodeRing",
	"roles/member/cert.go:ParseChain":             "FuzzParseChain",
	"roles/member/invite.go:ParseInvite":          "FuzzParseInvite",
	"roles/member/admission.go:DecodeJoinRequest": "FuzzDecodeAdmission",
	"roles/member/admission.go:DecodeJoinAnswer":  "FuzzDecodeAdmission",
	"roles/worker/repo/header.go:parseHeader":     "FuzzParseHeader",
	"roles/worker/keeper/usage.go:usage.add":      "FuzzUsage",
	"node/backup/archive.go:Read":                 "FuzzRead",
	"node/bridge/line.go:ParseLine":               "FuzzParseLine",
	"node/foreign/session.go:Session.Frame":       "FuzzSession",
	"node/gossip/transport.go:readPacket":         "FuzzPacket",
	"node/journal/frame.go:readBatch":             "FuzzReadBatch",
	"node/journal/beside.go:readBases":            "FuzzReadBases",
	"node/journal/search.go:Journal.Search":       "FuzzSearchWords",
	"node/journal/words.go:eachText":              "FuzzTextsOfAValue",
	"node/link/conn.go:Conn.Serve":                "FuzzServe",
	"node/mesh/hello.go:decodeHello":              "FuzzHello",
	"board/checkpoint.go:decodeImage":             "FuzzDecodeImage",
	"board/snapshot.go:DecodeSnapshot":            "FuzzDecodeSnapshot",
	"spec/check/frame.go:readMessage":             "FuzzReadMessage",
	"spec/check/msgpack.go:unpacked":              "FuzzUnpacked",
	"protocol/depth.go:Depth":                     "FuzzDepth",
	"protocol/number.go:WildNumber":               "FuzzNumbers",
}

func TestWhateverReadsForeignBytesIsFuzzed(t *testing.T) {
	files := tree(t)
	here := declared(files)
	fuzzed := map[string]string{} // folder:Fuzz… → its file
	for _, s := range files {
		if s.file == nil || !s.test() {
			continue
		}
		for _, d := range s.file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil && strings.HasPrefix(f.Name.Name, "Fuzz") {
				fuzzed[s.dir()+":"+f.Name.Name] = s.path
				body := s.text[s.fset.Position(f.Pos()).Offset:s.fset.Position(f.End()).Offset]
				seeds, _ := fs.Glob(os.DirFS(s.dir()), "testdata/fuzz/"+f.Name.Name+"/*")
				if !strings.Contains(body, ".Add(") && len(seeds) == 0 {
					t.Errorf("%s: %s has no seed", s.path, f.Name.Name)
				}
			}
		}
	}
	for decoder, fuzz := range decoders {
		if !here[decoder] {
			t.Errorf("decoders names %s, which is not there", decoder)
		}
		if dir := path.Dir(decoder); fuzzed[dir+":"+fuzz] == "" {
			t.Errorf("%s has no %s beside it", decoder, fuzz)
		}
	}
	named := slices.Collect(maps.Values(decoders))
	for key, file := range fuzzed {
		if _, fuzz, _ := strings.Cut(key, ":"); !slices.Contains(named, fuzz) {
			t.Errorf("%s: decoders does not say what %s guards", file, fuzz)
		}
	}
}

// declared are the functions, methods and types of the Go files: path:Name or path:Type.Method.
func declared(files []*source) map[string]bool {
	out := map[string]bool{}
	for _, s := range files {
		if s.file == nil {
			continue
		}
		for _, d := range s.file.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				name := d.Name.Name
				if d.Recv != nil {
					of := d.Recv.List[0].Type
					if star, ok := of.(*ast.StarExpr); ok {
						of = star.X
					}
					if id, ok := of.(*ast.Ident); ok {
						name = id.Name + "." + name
					}
				}
				out[s.path+":"+name] = true
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					switch spec := spec.(type) {
					case *ast.TypeSpec:
						out[s.path+":"+spec.Name.Name] = true
					case *ast.ValueSpec:
						for _, id := range spec.Names {
							out[s.path+":"+id.Name] = true
						}
					}
				}
			}
		}
	}
	return out
}

// Quoted names in a map: a path of this repository, perhaps with what is declared there.
var (
	quoted   = regexp.MustCompile("`([^`\n]+)`")
	pathLike = regexp.MustCompile(`^(\.ci|board|cmd|docs|examples|node|protocol|roles|spec)(/[\w.*{},-]+)*/?(:[\w.]+)?$`)
	rootFile = regexp.MustCompile(`^([A-Z]+\.md|Makefile|LICENSE|\w+_test\.go|go\.mod|doc\.go)(:[\w.]+)?$`)
)

// untrue lists what a map says and the tree does not have.
func untrue(text string, exists func(string) bool, here map[string]bool) []string {
	var out []string
	for _, m := range quoted.FindAllStringSubmatch(text, -1) {
		name := m[1]
		if !pathLike.MatchString(name) && !rootFile.MatchString(name) {
			continue
		}
		file, decl, has := strings.Cut(strings.TrimSuffix(name, "/"), ":")
		if !exists(file) {
			out = append(out, name+": no such file")
		} else if has && !here[file+":"+decl] {
			out = append(out, name+": declares no such thing")
		}
	}
	return out
}

func TestTheMapIsTrue(t *testing.T) {
	files := tree(t)
	here := declared(files)
	exists := func(name string) bool {
		if strings.ContainsAny(name, "*") {
			found, err := fs.Glob(os.DirFS("."), name)
			return err == nil && len(found) > 0
		}
		_, err := os.Stat(name)
		return err == nil
	}
	papers := []string{"ARCHITECTURE.md", "TESTING.md"}
	decisions, err := fs.Glob(os.DirFS("."), "spec/decisions/*.md")
	if err != nil || len(decisions) == 0 {
		t.Errorf("no decisions: %v", err)
	}
	for _, name := range append(papers, decisions...) {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Error(err)
			continue
		}
		for _, wrong := range untrue(string(text), exists, here) {
			t.Errorf("%s: %s", name, wrong)
		}
		if name != "ARCHITECTURE.md" {
			continue
		}
		for dir := range packages(files) {
			if !strings.Contains(string(text), "`"+dir+"`") && dir != "." {
				t.Errorf("%s does not mention the package `%s`", name, dir)
			}
		}
	}
	for _, bad := range []string{"`node/gone.go`", "`node/run.go:Walk`", "`GONE.md`"} {
		if len(untrue(bad, exists, here)) == 0 {
			t.Errorf("a map passes that names %s", bad)
		}
	}
}

// TestNamedTestsExist: what TESTING.md names as package `TestName` is there.
func TestNamedTestsExist(t *testing.T) {
	text, err := os.ReadFile("TESTING.md")
	if err != nil {
		t.Fatal(err)
	}
	there := map[string]bool{}
	for _, f := range tree(t) {
		for _, m := range testDecl.FindAllStringSubmatch(f.text, -1) {
			there[path.Dir(f.path)+"."+m[1]] = true
		}
	}
	named := testNamed.FindAllStringSubmatch(string(text), -1)
	if len(named) < 36 {
		t.Errorf("only %d tests are named", len(named))
	}
	for _, m := range named {
		if !there[m[1]+"."+m[2]] {
			t.Errorf("%s.%s is not there", m[1], m[2])
		}
	}
}

var (
	testDecl  = regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	testNamed = regexp.MustCompile("([a-z0-9/]+) `(Test\\w+)`")
)

// TestDecisionsHaveTheirThreeParts and a number that no other has; README lists each.
func TestDecisionsHaveTheirThreeParts(t *testing.T) {
	names, err := fs.Glob(os.DirFS("spec/decisions"), "[0-9]*.md")
	if err != nil {
		t.Fatal(err)
	}
	index, err := os.ReadFile("spec/decisions/README.md")
	if err != nil {
		t.Fatal(err)
	}
	numbers := map[string]string{}
	for _, name := range names {
		text, err := os.ReadFile("spec/decisions/" + name)
		if err != nil {
			t.Fatal(err)
		}
		for _, part := range []string{"# ", "\n## Context\n", "\n## Decision\n", "\n## Consequences\n"} {
			if !strings.Contains(string(text), part) {
				t.Errorf("%s has no %q", name, strings.TrimSpace(part))
			}
		}
		number, _, _ := strings.Cut(name, "-")
		if other := numbers[number]; other != "" {
			t.Errorf("%s and %s have one number", name, other)
		}
		numbers[number] = name
		if !strings.Contains(string(index), "("+name+")") {
			t.Errorf("spec/decisions/README.md does not list %s", name)
		}
	}
}

// TestPapersPointSomewhere: a link to a file of this repository leads to one.
func TestPapersPointSomewhere(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^)#\s]+)`)
	for _, s := range tree(t) {
		if path.Ext(s.path) != ".md" {
			continue
		}
		for _, m := range link.FindAllStringSubmatch(s.text, -1) {
			if to := m[1]; !strings.Contains(to, "://") {
				if _, err := os.Stat(path.Join(s.dir(), to)); err != nil {
					t.Errorf("%s points to %s, which is not there", s.path, to)
				}
			}
		}
	}
}

// TestCIRunsWhatTheReadmeSays keeps CI's last step the very command that a reader is told to type.
func TestCIRunsWhatTheReadmeSays(t *testing.T) {
	readme, err1 := os.ReadFile("README.md")
	ci, err2 := os.ReadFile(".ci/run")
	if err1 != nil || err2 != nil {
		t.Fatal(err1, err2)
	}
	const command = "go test ./..."
	if !strings.Contains(string(readme), "\n$ "+command+"\n") {
		t.Errorf("README.md does not tell its reader to type %q", command)
	}
	if !strings.Contains(string(ci), "\nstep \"tests\" "+command+"\n") {
		t.Errorf(".ci/run does not run %q as its tests", command)
	}
}
