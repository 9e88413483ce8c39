package e2e

import (
	"archive/tar"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/api"
)

// TestASupportBundleOfARealNodeHoldsNoSecret plants secrets wherever a node keeps or hears any, and looks for each in every
// file of the bundle.
func TestASupportBundleOfARealNodeHoldsNoSecret(t *testing.T) {
	config := "[worker]\ncommand = [\"sh\", \"-c\", \"PASS=planted-in-the-command true\"]\n"
	mesh := meshOf(t, map[string]string{"ada": config}, "ada", "bee")
	n := mesh[0]
	n.declare("ann")
	n.declare("bob")
	secrets := map[string]string{"words": "planted-in-a-message", "command": "planted-in-the-command", "invite": n.invite()}
	_, err := n.say(t.Context(), api.SendRequest{From: "ann", To: "bob", Intent: protocol.Request, Value: text(secrets["words"]), MsgID: "b-1"})
	must(t, err)
	var key struct{ Secret string }
	issued := n.ok("key", "issue", "--kind", "collab", "--label", "guest", "--json")
	must(t, json.Unmarshal([]byte(issued), &key))
	secrets["key"] = key.Secret
	if r := n.pipe("planted-password-12\n", "operator", "put", "pat"); r.code != 0 {
		t.Fatalf("operator: %s", r)
	}
	secrets["password"] = "planted-password-12"
	secrets["board link"] = filepath.Base(n.ok("board", "--print"))
	for _, file := range []string{"node.key", "mesh.key", "session.key"} {
		raw, err := os.ReadFile(filepath.Join(n.home, file))
		must(t, err)
		secrets[file] = strings.TrimSpace(string(raw))
		seed, err := base64.StdEncoding.DecodeString(secrets[file])
		must(t, err)
		secrets[file+", raw"] = string(seed)
	}
	var file api.NodeFile
	raw, err := os.ReadFile(filepath.Join(n.home, "node.json"))
	must(t, err)
	must(t, json.Unmarshal(raw, &file))
	secrets["token"] = file.Token
	// What strangers say reaches the diagnostics too.
	n.run("up", "--join", secrets["invite"])

	for _, state := range []string{"running", "at rest"} {
		if state == "at rest" {
			n.down()
		}
		path := filepath.Join(t.TempDir(), "bundle.tgz")
		n.run("doctor", "--bundle", path)
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
			t.Fatalf("%s: %v", state, err)
		}
		for name, body := range unpacked(t, path) {
			for what, secret := range secrets {
				if secret == "" {
					t.Fatalf("no secret %q was planted", what)
				}
				if strings.Contains(body, secret) {
					t.Errorf("%s: %s holds the %s", state, name, what)
				}
			}
		}
	}
}

func unpacked(t *testing.T, path string) map[string]string {
	t.Helper()
	f, err := os.Open(path)
	must(t, err)
	defer f.Close()
	zip, err := gzip.NewReader(f)
	must(t, err)
	out := map[string]string{}
	for in := tar.NewReader(zip); ; {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			return out
		}
		must(t, err)
		raw, err := io.ReadAll(in)
		must(t, err)
		out[h.Name] = string(raw)
	}
}
