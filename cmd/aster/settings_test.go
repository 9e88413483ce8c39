package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
)

func upFlags(t *testing.T, args ...string) *pflag.FlagSet {
	t.Helper()
	cmd := upCommand(&app{})
	if err := cmd.ParseFlags(args); err != nil {
		t.Fatal(err)
	}
	return cmd.Flags()
}

func TestAFlagBeatsTheEnvironmentBeatsTheFileBeatsTheDefault(t *testing.T) {
	home := newHome(t)
	file := filepath.Join(home, configFile)
	writeConfig(t, home, "name = \"from-file\"\nagent = \"file-agent\"\nmesh = [\"/ip4/1.2.3.4/tcp/1\"]\n[worker]\ncommand = [\"claude\", \"-p\"]\nwall = \"5m\"\nslots = 4\n[access]\nkeyless = false\n")
	t.Setenv("ASTER_NAME", "from-env")
	t.Setenv("ASTER_AGENT", "env-agent")
	t.Setenv("ASTER_WORKER_SLOTS", "7")
	got, err := settle(home, upFlags(t, "--name=from-flag"))
	if err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string][2]any{
		"name":                {"from-flag", "--name"},
		"agent":               {"env-agent", "ASTER_AGENT"},
		"worker.slots":        {7, "ASTER_WORKER_SLOTS"},
		"worker.wall":         {"5m", tilde(file)},
		"access.keyless":      {false, tilde(file)},
		"store.bytes_max":     {int64(8 << 30), "default"},
		"retention.age":       {"30d", "default"},
		"boards.compare":      {"1d", "default"},
		"worker.output_bytes": {int64(64 << 20), "default"},
	} {
		for _, s := range settings {
			if s.key == key && (s.of(&got.Config) != want[0] || got.source[key] != want[1]) {
				t.Errorf("%s = %v from %s, want %v from %s", key, s.of(&got.Config), got.source[key], want[0], want[1])
			}
		}
	}
	if c := got.Worker.Command; len(c) != 2 || c[1] != "-p" || got.Worker.Wall != 5*time.Minute || len(got.Mesh) != 1 {
		t.Errorf("config %+v", got.Config)
	}
}

func TestMeshMayBeGivenSeveralTimes(t *testing.T) {
	got, err := settle(newHome(t), upFlags(t, "--mesh=/ip4/0.0.0.0/tcp/1", "--mesh=/ip4/0.0.0.0/udp/1/quic-v1"))
	if err != nil || len(got.Mesh) != 2 || got.source["mesh"] != "--mesh" {
		t.Fatalf("mesh %v from %s, %v", got.Mesh, got.source["mesh"], err)
	}
}

func writeConfig(t *testing.T, home, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(home, configFile), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestABadSettingIsRefusedWithItsPlace(t *testing.T) {
	for text, want := range map[string]string{
		"name = \"a\"\nnmae = \"b\"\n":        `config.toml:2: there is no setting "nmae". All of them: aster config`,
		"[worker]\nslot = 3\n":                `config.toml:2: there is no setting "worker.slot"`,
		"[worker]\nslots = 0\n":               "worker.slots is a whole number from 1",
		"[worker]\nwall = \"soon\"\n":         `worker.wall is a duration such as "30m"`,
		"name = 3\n":                          "config.toml:1:8: name is a text in quotes",
		"name = \"a\n":                        "config.toml:1",
		"[store]\nbytes_max = -1\n":           "store.bytes_max is a whole number from 0",
		"[retention]\nage = \"1h\"\n":         `retention.age is an age of a day or more such as "30d"`,
		"[retention]\nrecords = \"1d\"\n":     `retention.records is an age of 31d or more such as "90d", or "0": old records stay`,
		"[retention]\nage = 30\n":             "retention.age is a text in quotes",
		"[boards]\ncompare = \"1h\"\n":        `boards.compare is a day or more such as "1d"`,
		"[worker]\ncommand = \"claude -p\"\n": `config.toml:2:11: worker.command is a list of texts, such as ["claude", "-p"]`,
	} {
		home := newHome(t)
		writeConfig(t, home, text)
		got := typeIn(t, nil, "", "config", "--home", home)
		got.err = strings.ReplaceAll(got.err, "aster --home "+tilde(home)+" ", "aster ")
		if got.code != 1 || !strings.Contains(got.err, want) || strings.Count(got.err, "\n") != 1 {
			t.Errorf("%q: exit %d, %q, want %q", text, got.code, got.err, want)
		}
	}
}

func TestConfigPrintsEverySettingWithItsSource(t *testing.T) {
	home := newHome(t)
	t.Setenv("ASTER_HOME", home)
	t.Setenv("ASTER_BOARD", "127.0.0.1:9999")
	got := typeIn(t, nil, "", "config", "--json")
	lines := strings.Split(strings.TrimSpace(got.out), "\n")
	if got.code != 0 || len(lines) != len(settings)+1 {
		t.Fatalf("exit %d, %d lines, want %d: %s", got.code, len(lines), len(settings)+1, got.err)
	}
	sources := map[string]string{}
	for _, line := range lines {
		var row struct{ Setting, Source string }
		if err := json.Unmarshal([]byte(line), &row); err != nil {
			t.Fatal(err)
		}
		sources[row.Setting] = row.Source
	}
	if sources["home"] != "ASTER_HOME" || sources["board"] != "ASTER_BOARD" || sources["name"] != "default" {
		t.Errorf("sources %v", sources)
	}
}

func TestAgesAreWrittenAsTheyAreRead(t *testing.T) {
	for text, want := range map[string]time.Duration{"30d": 30 * day, "0": 0, "0d": 0, "36h": 36 * time.Hour, "24h": day} {
		got, ok := parseAge(text)
		again, ok2 := parseAge(ageText(got))
		if !ok || got != want || !ok2 || again != want {
			t.Errorf("%q is %s, written %q", text, got, ageText(got))
		}
	}
	for _, text := range []string{"", "d", "-1d", "30", "23h", "1e3d", "99999999d"} {
		if got, ok := parseAge(text); ok {
			t.Errorf("%q is taken for %s", text, got)
		}
	}
}
