package node

import (
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/aster-mesh/aster/node/hub"
	"github.com/aster-mesh/aster/protocol/api"
)

// scrape asks a node's board for an address with its token; without one as a stranger.
func (r *running) scrape(t testing.TB, path, token string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), "GET", r.Board+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(body)
}

// TestMetricsSayWhatIsWrittenAndNobodysWords: each figure of the list comes, each is explained, none tells names or words, and
// a stranger gets none.
func TestMetricsSayWhatIsWrittenAndNobodysWords(t *testing.T) {
	var n *Node
	r := start(t, func(c *Config) { c.Name = "secret-name"; c.probe = func(at *Node) { n = at } })
	if err := n.loop.call(t.Context(), func() { n.loop.core.Step(n.loop.now, hub.Declare{Agent: "secret-agent", Client: "cli"}) }); err != nil {
		t.Fatal(err)
	}
	if _, err := n.Send(t.Context(), api.SendRequest{From: "secret-agent", To: "secret-agent", Intent: "Request", Value: []byte(`{"text":"secret-word"}`)}); err != nil {
		t.Fatal(err)
	}
	if code, _ := r.scrape(t, "/metrics", ""); code != http.StatusUnauthorized {
		t.Errorf("a stranger got %d", code)
	}
	code, body := r.scrape(t, "/metrics", n.token)
	if code != http.StatusOK {
		t.Fatalf("%d: %s", code, body)
	}
	docs, err := os.ReadFile("../docs/watching.md")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(body) {
		name, ok := strings.CutPrefix(line, "# TYPE aster_")
		if !ok {
			continue
		}
		if name, _, _ = strings.Cut(name, " "); !strings.Contains(string(docs), "aster_"+name) {
			t.Errorf("aster_%s is not in docs/watching.md", name)
		}
	}
	for _, want := range []string{"aster_messages_total 1\n", `aster_layer_ok{layer="loop"} 1`, `aster_layer_ok{layer="disk"} 1`, "aster_fenced 0", "go_goroutines", `aster_build_info{version="test"} 1`} {
		if !strings.Contains(body, want) {
			t.Errorf("no %q in %s", want, body)
		}
	}
	for _, secret := range []string{"secret", string(r.Peer), n.token, r.home} {
		if strings.Contains(body, secret) {
			t.Errorf("it tells %q", secret)
		}
	}
}

// TestStuckLoopIsNamed: while the loop stands still, what looks at layers answers and names it, and nothing else.
func TestStuckLoopIsNamed(t *testing.T) {
	var n *Node
	r := start(t, func(c *Config) { c.probe = func(at *Node) { n = at } })
	for _, path := range []string{"/healthz", "/readyz"} {
		if code, body := r.scrape(t, path, ""); code != http.StatusOK {
			t.Errorf("%s of a well node: %d %s", path, code, body)
		}
	}
	held, let := make(chan struct{}), make(chan struct{})
	if err := n.loop.post(t.Context(), func() { close(held); <-let }); err != nil {
		t.Fatal(err)
	}
	<-held
	defer close(let)
	began := time.Now()
	layers := n.Layers(t.Context())
	if took := time.Since(began); took > 5*layerTime {
		t.Errorf("it took %s", took)
	}
	for _, l := range layers {
		if l.OK == (l.Name == "loop") {
			t.Errorf("%+v", l)
		}
	}
	for _, path := range []string{"/healthz", "/readyz"} {
		if code, body := r.scrape(t, path, ""); code != http.StatusServiceUnavailable || !strings.Contains(body, "loop") {
			t.Errorf("%s with a stuck loop: %d %s", path, code, body)
		}
	}
}
