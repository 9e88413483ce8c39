package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/aster-mesh/aster/node"
	"github.com/aster-mesh/aster/protocol"
	"github.com/pelletier/go-toml/v2"
	"github.com/spf13/pflag"
)

const configFile = "config.toml"

// setting is one value of the node's configuration: its name in config.toml, in the environment and as a flag.
type setting struct {
	key  string // dotted, as in config.toml
	env  string
	flag string // of aster up; "" for none
	help string
	to   func(*node.Config, string) error // reads a text
	of   func(*node.Config) any           // for showing
}

// settings is the one list; the file, the environment, the flags and aster config all follow it.
var settings = []setting{
	text("name", "ASTER_NAME", "name", "name of this node, for people (default: the host's)", func(c *node.Config) *string { return &c.Name }),
	text("agent", "ASTER_AGENT", "agent", "id of this node's own agent", func(c *node.Config) *string { return &c.Agent }),
	{
		"board", "ASTER_BOARD", "board", "host:port of the board (default 127.0.0.1:7878, or a free port)",
		func(c *node.Config, s string) error { c.Board = s; return boardAddress(s) },
		func(c *node.Config) any { return c.Board },
	},
	{
		"state", "ASTER_STATE", "", "",
		func(c *node.Config, s string) error { c.State = expand(s); return nil },
		func(c *node.Config) any { return c.State },
	},
	words("mesh", "ASTER_MESH", "mesh", "multiaddr to listen on for other nodes, several allowed (default: loopback)", func(c *node.Config) *[]string { return &c.Mesh }),
	words("worker.command", "ASTER_WORKER_COMMAND", "", "", func(c *node.Config) *[]string { return &c.Worker.Command }),
	{
		"worker.repo", "ASTER_WORKER_REPO", "", "",
		func(c *node.Config, s string) error { c.Worker.Repo = expand(s); return nil },
		func(c *node.Config) any { return c.Worker.Repo },
	},
	{
		"worker.slots", "ASTER_WORKER_SLOTS", "", "",
		func(c *node.Config, s string) (err error) { c.Worker.Slots, err = atLeast(s, 1, 1024); return err },
		func(c *node.Config) any { return c.Worker.Slots },
	},
	{
		"worker.wall", "ASTER_WORKER_WALL", "", "",
		func(c *node.Config, s string) error {
			d, err := time.ParseDuration(s)
			if err != nil || d <= 0 {
				return errors.New(`is a duration such as "30m"`)
			}
			c.Worker.Wall = d
			return nil
		},
		func(c *node.Config) any { return durationText(c.Worker.Wall) },
	},
	size("worker.output_bytes", "ASTER_WORKER_OUTPUT_BYTES", func(c *node.Config) *int64 { return &c.Worker.OutputBytes }),
	size("worker.tokens", "ASTER_WORKER_TOKENS", func(c *node.Config) *int64 { return &c.Worker.Tokens }),
	{
		"access.keyless", "ASTER_ACCESS_KEYLESS", "", "",
		func(c *node.Config, s string) (err error) {
			if c.Access.Keyless, err = strconv.ParseBool(s); err != nil {
				return errors.New("is true or false")
			}
			return nil
		},
		func(c *node.Config) any { return c.Access.Keyless },
	},
	{
		"deadlock.detect", "ASTER_DEADLOCK_DETECT", "", "",
		func(c *node.Config, s string) (err error) {
			if c.Deadlock.Detect, err = strconv.ParseBool(s); err != nil {
				return errors.New("is true or false")
			}
			return nil
		},
		func(c *node.Config) any { return c.Deadlock.Detect },
	},
	{
		"deadlock.after", "ASTER_DEADLOCK_AFTER", "", "",
		func(c *node.Config, s string) error {
			d, err := time.ParseDuration(s)
			if err != nil || d < time.Second {
				return errors.New(`is a duration from "1s"`)
			}
			c.Deadlock.After = d
			return nil
		},
		func(c *node.Config) any { return durationText(c.Deadlock.After) },
	},
	size("limits.sender_per_second", "ASTER_LIMITS_SENDER_PER_SECOND", func(c *node.Config) *int64 { return &c.Limits.SenderPerSecond }),
	size("limits.sender_burst", "ASTER_LIMITS_SENDER_BURST", func(c *node.Config) *int64 { return &c.Limits.SenderBurst }),
	size("limits.pair_per_second", "ASTER_LIMITS_PAIR_PER_SECOND", func(c *node.Config) *int64 { return &c.Limits.PairPerSecond }),
	size("limits.pair_burst", "ASTER_LIMITS_PAIR_BURST", func(c *node.Config) *int64 { return &c.Limits.PairBurst }),
	{
		"trace.endpoint", "ASTER_TRACE_ENDPOINT", "", "",
		func(c *node.Config, s string) error {
			if c.Trace.Endpoint = s; s == "" {
				return nil
			}
			return node.CheckTraceEndpoint(s)
		},
		func(c *node.Config) any { return c.Trace.Endpoint },
	},
	size("store.bytes_max", "ASTER_STORE_BYTES_MAX", func(c *node.Config) *int64 { return &c.Store.BytesMax }),
	age("retention.age", "ASTER_RETENTION_AGE", `is an age of a day or more such as "30d", or "0": nothing leaves for its age`, day,
		func(c *node.Config) *time.Duration { return &c.Retention.Age }),
	age("retention.records", "ASTER_RETENTION_RECORDS", fmt.Sprintf(`is an age of %s or more such as "90d", or "0": old records stay`, ageText(node.RecordsAgeMin)), node.RecordsAgeMin,
		func(c *node.Config) *time.Duration { return &c.Retention.Records }),
	age("boards.compare", "ASTER_BOARDS_COMPARE", `is a day or more such as "1d", or "0": this node asks nobody to compare`, day,
		func(c *node.Config) *time.Duration { return &c.Boards.Compare }),
}

func text(key, env, flag, help string, at func(*node.Config) *string) setting {
	return setting{
		key, env, flag, help,
		func(c *node.Config, s string) error { *at(c) = s; return nil }, func(c *node.Config) any { return *at(c) },
	}
}

// boardAddress says what is wrong with where the board is to be, or nil. Empty is the default.
func boardAddress(s string) error {
	_, port, err := net.SplitHostPort(s)
	if n, wrong := strconv.ParseUint(port, 10, 16); s != "" && (err != nil || wrong != nil || n == 0 && port != "0") {
		return fmt.Errorf("is host:port such as 127.0.0.1:7878, not %q", clean(s))
	}
	return nil
}

// words are a list: a JSON array, or words between spaces.
func words(key, env, flag, help string, at func(*node.Config) *[]string) setting {
	return setting{
		key, env, flag, help,
		func(c *node.Config, s string) error {
			var list []string
			if !strings.HasPrefix(strings.TrimSpace(s), "[") {
				list = strings.Fields(s)
			} else if json.Unmarshal([]byte(s), &list) != nil {
				return errors.New(`is a list of texts such as ["a", "b"]`)
			}
			*at(c) = list
			return nil
		},
		func(c *node.Config) any { return *at(c) },
	}
}

func size(key, env string, at func(*node.Config) *int64) setting {
	return setting{
		key, env, "", "",
		func(c *node.Config, s string) error {
			n, err := strconv.ParseInt(s, 10, 64)
			if err != nil || n < 0 {
				return errors.New("is a whole number from 0")
			}
			*at(c) = n
			return nil
		},
		func(c *node.Config) any { return *at(c) },
	}
}

func atLeast(s string, least, most int) (int, error) {
	n, err := strconv.Atoi(s)
	if err != nil || n < least || n > most {
		return 0, fmt.Errorf("is a whole number from %d to %d", least, most)
	}
	return n, nil
}

// expand puts the user's own folder for a leading ~.
func expand(path string) string {
	if own, err := os.UserHomeDir(); err == nil && (path == "~" || strings.HasPrefix(path, "~/")) {
		return filepath.Join(own, path[1:])
	}
	return path
}

// settled is a configuration with where each value came from, by key.
type settled struct {
	node.Config
	source map[string]string
}

// defaults are the values that hold when nobody says otherwise. What is chosen by the node at its first start (a free
// port, the host's name) is empty here.
func defaults(home string) node.Config {
	return node.Config{
		Home: home, Version: version(),
		Worker: node.WorkerConfig{Slots: 1, Wall: 30 * time.Minute, OutputBytes: 64 << 20},
		Access: node.AccessConfig{Keyless: true},
		Store:  node.StoreConfig{BytesMax: 8 << 30},

		Retention: node.RetentionConfig{Age: 30 * day},

		Boards:   node.BoardsConfig{Compare: day},
		Deadlock: node.DeadlockConfig{After: 2 * time.Minute},
		Limits:   node.LimitsConfig{SenderPerSecond: protocol.SenderPerSecond, SenderBurst: protocol.SenderBurst, PairPerSecond: protocol.PairPerSecond, PairBurst: protocol.PairBurst},
	}
}

// settle reads defaults, then config.toml, then the environment, then flags (nil: none).
func settle(home string, flags *pflag.FlagSet) (settled, error) {
	out := settled{Config: defaults(home), source: map[string]string{}}
	path := filepath.Join(home, configFile)
	values, err := readConfigFile(path)
	if err != nil {
		return out, err
	}
	for _, s := range settings {
		out.source[s.key] = "default"
		apply := func(value, source string) error {
			if err := s.to(&out.Config, value); err != nil {
				return failed("%s: %s %s", source, s.key, err)
			}
			out.source[s.key] = source
			return nil
		}
		if value, ok := values[s.key]; ok {
			err = errors.Join(err, apply(value, tilde(path)))
		}
		if value, ok := os.LookupEnv(s.env); ok {
			err = errors.Join(err, apply(value, s.env))
		}
		if s.flag != "" && flags != nil && flags.Changed(s.flag) {
			err = errors.Join(err, apply(flagText(flags.Lookup(s.flag)), "--"+s.flag))
		}
	}
	return out, err
}

func flagText(f *pflag.Flag) string {
	list, ok := f.Value.(pflag.SliceValue)
	if !ok {
		return f.Value.String()
	}
	raw, err := json.Marshal(list.GetSlice())
	if err != nil {
		return f.Value.String()
	}
	return string(raw)
}

// fileShape is all that config.toml may hold. Pointers tell what is absent.
type fileShape struct {
	Name   *string   `toml:"name"`
	Agent  *string   `toml:"agent"`
	State  *string   `toml:"state"`
	Board  *string   `toml:"board"`
	Mesh   *[]string `toml:"mesh"`
	Worker struct {
		Command     *[]string `toml:"command"`
		Repo        *string   `toml:"repo"`
		Slots       *int64    `toml:"slots"`
		Wall        *string   `toml:"wall"`
		OutputBytes *int64    `toml:"output_bytes"`
		Tokens      *int64    `toml:"tokens"`
	} `toml:"worker"`
	Access struct {
		Keyless *bool `toml:"keyless"`
	} `toml:"access"`
	Deadlock struct {
		Detect *bool   `toml:"detect"`
		After  *string `toml:"after"`
	} `toml:"deadlock"`
	Store struct {
		BytesMax *int64 `toml:"bytes_max"`
	} `toml:"store"`
	Retention struct {
		Age     *string `toml:"age"`
		Records *string `toml:"records"`
	} `toml:"retention"`
	Boards struct {
		Compare *string `toml:"compare"`
	} `toml:"boards"`
	Limits struct {
		SenderPerSecond *int64 `toml:"sender_per_second"`
		SenderBurst     *int64 `toml:"sender_burst"`
		PairPerSecond   *int64 `toml:"pair_per_second"`
		PairBurst       *int64 `toml:"pair_burst"`
	} `toml:"limits"`
	Trace struct {
		Endpoint *string `toml:"endpoint"`
	} `toml:"trace"`
}

// readConfigFile returns the values of the file as texts by key; none when there is no file. Keys that do not exist
// are refused with their line: a misspelt limit must not silently be no limit.
func readConfigFile(path string) (map[string]string, error) {
	raw, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read config: %w", err)
	}
	var f fileShape
	if err := toml.NewDecoder(bytes.NewReader(raw)).DisallowUnknownFields().Decode(&f); err != nil {
		return nil, tomlError(path, err)
	}
	out := map[string]string{}
	put(out, "name", f.Name)
	put(out, "agent", f.Agent)
	put(out, "board", f.Board)
	put(out, "state", f.State)
	putList(out, "mesh", f.Mesh)
	putList(out, "worker.command", f.Worker.Command)
	put(out, "worker.repo", f.Worker.Repo)
	put(out, "worker.slots", f.Worker.Slots)
	put(out, "worker.wall", f.Worker.Wall)
	put(out, "worker.output_bytes", f.Worker.OutputBytes)
	put(out, "worker.tokens", f.Worker.Tokens)
	put(out, "access.keyless", f.Access.Keyless)
	put(out, "deadlock.detect", f.Deadlock.Detect)
	put(out, "deadlock.after", f.Deadlock.After)
	put(out, "store.bytes_max", f.Store.BytesMax)
	put(out, "retention.age", f.Retention.Age)
	put(out, "retention.records", f.Retention.Records)
	put(out, "boards.compare", f.Boards.Compare)
	put(out, "limits.sender_per_second", f.Limits.SenderPerSecond)
	put(out, "limits.sender_burst", f.Limits.SenderBurst)
	put(out, "limits.pair_per_second", f.Limits.PairPerSecond)
	put(out, "limits.pair_burst", f.Limits.PairBurst)
	put(out, "trace.endpoint", f.Trace.Endpoint)
	return out, nil
}

func put[T any](out map[string]string, key string, value *T) {
	if value != nil {
		out[key] = fmt.Sprint(*value)
	}
}

func putList(out map[string]string, key string, value *[]string) {
	if value == nil {
		return
	}
	if raw, err := json.Marshal(*value); err == nil { // texts always encode
		out[key] = string(raw)
	}
}

// kinds says what a setting of a Go type looks like.
var kinds = map[string]string{
	"[]string": `a list of texts, such as ["claude", "-p"]`, "string": "a text in quotes", "int64": "a whole number", "bool": "true or false",
}

// tomlError names file, line and what to do.
func tomlError(path string, err error) error {
	var unknown *toml.StrictMissingError
	if errors.As(err, &unknown) && len(unknown.Errors) > 0 {
		first := unknown.Errors[0]
		line, _ := first.Position()
		key := strings.Join(first.Key(), ".")
		return failed("%s:%d: there is no setting %q. All of them: aster config", tilde(path), line, key)
	}
	var bad *toml.DecodeError
	if errors.As(err, &bad) {
		line, column := bad.Position()
		text := strings.TrimPrefix(bad.Error(), "toml: ")
		if _, kind, _ := strings.Cut(text, " of type "); kinds[kind] != "" { // the rest names types of this program
			text = strings.Join(bad.Key(), ".") + " is " + kinds[kind]
		}
		return failed("%s:%d:%d: %s", tilde(path), line, column, text)
	}
	return failed("%s: %s", tilde(path), err)
}
