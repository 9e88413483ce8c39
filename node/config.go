package node

import (
	"log/slog"
	"net"
	"time"

	"github.com/aster-mesh/aster/protocol/api"
	"github.com/aster-mesh/aster/roles/cut"
)

// Config says how one node runs. cmd/aster fills it from defaults, config.toml, ASTER_* and flags, in that order.
type Config struct {
	Home    string   // directory, 0700; made if absent
	Name    string   // of the node, for people; default the host's name
	Agent   string   // this node's own agent; empty: DESIGN 8's rule
	Join    string   // an invite, read from --join; empty: found a mesh, or go on with the home's
	Reclaim bool     // this home goes on although a newer start of it ran elsewhere (see fence)
	Leave   bool     // with Join: leave a mesh of which this is the only member
	State   string   // path of the state document, watched while main lives here; empty: state.json in Home
	Board   string   // host:port of the board; empty: 127.0.0.1:7878, or another port when that is taken
	Mesh    []string // multiaddrs to listen on; empty: loopback, a port chosen once and kept
	Version string

	Worker    WorkerConfig
	Access    AccessConfig
	Store     StoreConfig
	Retention RetentionConfig
	Limits    LimitsConfig
	Trace     TraceConfig

	Boards   BoardsConfig
	Deadlock DeadlockConfig

	// Keeper is the argv that runs the worker's keeper; empty: this program with the argument keeper.
	Keeper []string
	// BoardListener, when set, is used instead of opening Board (socket activation, ListenBeside, tests).
	BoardListener net.Listener
	// LockWait is how long to wait for another process to let go of the home; 0: not at all, Run returns *RunningError.
	LockWait time.Duration
	Log      *slog.Logger
	// Ready is called once, when the node serves.
	Ready func(api.Ready)

	probe       func(*Node)   // tests look inside
	silentWait  time.Duration // tests; 0: a minute
	pushes      pushService   // tests; nil: the Internet's
	pushEvery   time.Duration // tests; 0: pushLook
	pushSettle  time.Duration // tests; 0: webpush.Settle
	askTime     time.Duration // tests; 0: half a minute
	goneAfter   time.Duration // tests; 0: a minute
	baseBytes   int           // tests; how large the snapshot of what leaves may be; 0: as large as members can fetch
	cutLook     time.Duration // tests; 0: a minute; below: not by itself
	halfAfter   time.Duration // tests; 0: a minute
	fetchWindow time.Duration // tests; 0: half a minute

	ahead func() time.Duration // tests; how far the loop's clock is ahead of the machine's; nil: not at all
}

// WorkerConfig is [worker] of config.toml: who runs Delegates here.
type WorkerConfig struct {
	Command     []string      `toml:"command"`      // the task comes on stdin and in ASTER_TASK_*; empty: no runner
	Repo        string        `toml:"repo"`         // a repository here; empty: each task's bundle is cloned
	Slots       int           `toml:"slots"`        // runs at once; default 1
	Wall        time.Duration `toml:"-"`            // of `wall = "30m"`; default 30 min
	OutputBytes int64         `toml:"output_bytes"` // a run that prints more is stopped; default 64 MiB
	Tokens      int64         `toml:"tokens"`       // a run that reports more is stopped; 0 = no limit
}

// AccessConfig is [access].
type AccessConfig struct {
	Keyless bool `toml:"keyless"` // the node's own user needs no key on loopback; default true
}

// LimitsConfig is [limits]: how fast messages may enter here. Zeros are the defaults of protocol/limits.go.
type LimitsConfig struct {
	SenderPerSecond int64 `toml:"sender_per_second"` // messages of one sender, for long
	SenderBurst     int64 `toml:"sender_burst"`      // and at once
	PairPerSecond   int64 `toml:"pair_per_second"`   // messages of one sender to one recipient, for long
	PairBurst       int64 `toml:"pair_burst"`        // and at once
}

// StoreConfig is [store].
type StoreConfig struct {
	BytesMax int64 `toml:"bytes_max"` // of the home; new writes are refused above it; default 8 GiB
}

// RetentionConfig is [retention].
type RetentionConfig struct {
	// Age is how long attachments and large values stay after they are over; 0: until the store is nearly full. `age = "30d"`.
	Age time.Duration `toml:"-"`
	// Records is how old records are before they may leave, once the members have agreed on what they come to; 0: never, and
	// nobody is asked. At least RecordsAgeMin. `records = "90d"`.
	Records time.Duration `toml:"-"`
}

// RecordsAgeMin is the least age at which records leave: what waited for somebody has expired by then.
const RecordsAgeMin = cut.BaseAge

// BoardsConfig is [boards].
type BoardsConfig struct {
	// Compare is how often this node, when it is its turn, has the members of the inside compare their boards; 0: never.
	Compare time.Duration `toml:"-"` // of `compare = "1d"`
}

// DeadlockConfig is [deadlock].
type DeadlockConfig struct {
	Detect bool          `toml:"detect"` // boards hear of agents that wait for each other's answers
	After  time.Duration `toml:"-"`      // of `after = "2m"`: once they have waited so long; default 2 min
}
