package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/api"
	"github.com/aster-mesh/aster/spec"
	"github.com/aster-mesh/aster/spec/check"
)

// TestNodeAnswersAsTheEarlierHubDidButForListedDifferences replays the clients' side of each fixture against a fresh node.
func TestNodeAnswersAsTheEarlierHubDidButForListedDifferences(t *testing.T) {
	if testing.Short() {
		t.Skip("each step of a fixture waits until nothing more comes")
	}
	fixtures, err := spec.Fixtures()
	if err != nil || len(fixtures) == 0 {
		t.Fatal(err, "no fixtures")
	}
	differences, err := spec.Differences()
	if err != nil {
		t.Fatal(err)
	}
	if len(differences) > 40 {
		t.Errorf("%d differences, at most 40", len(differences))
	}
	got := make([]*check.Replayed, len(fixtures))
	t.Run("replay", func(t *testing.T) {
		for i := range fixtures {
			t.Run(fixtures[i].Name, func(t *testing.T) {
				t.Parallel() // each waits for its own node
				var err error
				if got[i], err = check.Replay(t.Context(), freshHub(t), &fixtures[i], differences); err != nil {
					t.Fatal(err)
				}
				for _, w := range got[i].Wrong {
					t.Error(w)
				}
			})
		}
	})
	used := map[string]int{}
	for _, r := range got {
		if r == nil {
			return
		}
		for id, n := range r.Used {
			used[id] += n
		}
	}
	for _, d := range differences {
		if used[d.ID] == 0 {
			t.Errorf("%s was never met: %s", d.ID, d.Why)
		}
		t.Logf("%-4s %3d times: %s", d.ID, used[d.ID], d.Why)
	}
}

// freshHub is a node of its own with somebody who is signed in to its board.
func freshHub(t *testing.T) check.Hub {
	home, socket := aloneIn(t)
	board := "http" + strings.TrimSuffix(strings.TrimPrefix(socket, "ws"), "/ws")
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	person := &http.Client{Jar: jar, Timeout: 10 * time.Second}
	var file api.NodeFile
	raw, err := os.ReadFile(filepath.Join(home, "node.json"))
	if err == nil {
		err = json.Unmarshal(raw, &file)
	}
	if err != nil {
		t.Fatal(err)
	}
	post := func(address, body, header, value string) ([]byte, error) {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, address, strings.NewReader(body))
		if err != nil {
			return nil, err
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set(header, value)
		res, err := person.Do(req)
		if err != nil {
			return nil, err
		}
		defer res.Body.Close()
		answer, err := io.ReadAll(res.Body)
		if err == nil && res.StatusCode != http.StatusOK {
			err = fmt.Errorf("%s answered %s: %s", address, res.Status, answer)
		}
		return answer, err
	}
	answer, err := post(board+api.Prefix+"/board-link", "{}", "Authorization", "Bearer "+file.Token)
	if err != nil {
		t.Fatal(err)
	}
	var link struct{ URL string }
	if err := json.NewDecoder(bytes.NewReader(answer)).Decode(&link); err != nil {
		t.Fatal(err)
	}
	res, err := person.Get(link.URL)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	patience := 5 * time.Second
	if d, err := time.ParseDuration(os.Getenv("ASTER_PATIENCE")); err == nil {
		patience = d // while differences are looked for
	}
	return check.Hub{URL: socket, Patience: patience + protocol.HandoffWait,
		Post: func(path, body string) error {
			_, err := post(board+path, body, "Origin", board)
			return err
		},
		LocalKey: func() (string, error) {
			files, err := filepath.Glob(filepath.Join(home, "local-keys", "*.key"))
			if err != nil || len(files) != 1 {
				return "", fmt.Errorf("local keys: %v, %w", files, err)
			}
			raw, err := os.ReadFile(files[0])
			return strings.TrimSpace(string(raw)), err
		}}
}
