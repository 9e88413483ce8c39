package web

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"time"
)

// Config says what a Server serves and whom it believes.
type Config struct {
	Backend Backend
	// Token of node.json: Authorization: Bearer. Empty: no command is believed.
	Token string
	// Hosts are more names that a Host header may carry, with or without a port. Loopback names and addresses, and the
	// address on which a connection arrived, are always allowed.
	Hosts []string
	// SessionKey signs sessions; kept in the home, open pages survive a restart of the node. Empty: a new one each time.
	SessionKey []byte
	// Keeper keeps accounts, and which sessions were ended before their time; nil: nothing of that outlives the process.
	Keeper Keeper
	// Access keeps which addresses are let in (package access); nil: all private ones, until the process ends.
	Access Keeper
	// Pushes keeps who is told by web push; nil: nothing of that outlives the process.
	Pushes Keeper
	// Exposed says that the board listens for other machines too.
	Exposed bool
	// OnAccess is called after a request has changed which addresses are let in. It must not block.
	OnAccess func()
	// Now is the clock of links and sessions; nil: time.Now.
	Now func() time.Time
	// Log hears of internal errors and, at Debug, of refusals; nil: nobody.
	Log *slog.Logger
}

// Server answers for one node's board.
type Server struct {
	backend   Backend
	tokenHash [32]byte
	hasToken  bool
	hosts     map[string]bool
	log       *slog.Logger
	now       func() time.Time
	sessions  sessions
	links     links
	operators *operators
	doors     doors
	exposed   bool
	onAccess  func()
	failures  failures
	pushes    pushes
	nobodys   password // is compared with where there is no account, so that it takes as long
	rounds    int      // of hashing a password
	assets    map[string]asset
	handler   http.Handler

	// Paces, changed by tests only, before the first request.
	beatEvery   time.Duration // status on an open event stream
	stateEvery  time.Duration // look at the state document
	writeWithin time.Duration // one write to one stream
}

// New makes a Server. It starts nothing. It fails if what Keeper holds cannot be read: a board that has forgotten its
// accounts would let in whom they keep out.
func New(cfg Config) (*Server, error) {
	s := &Server{
		backend:     cfg.Backend,
		tokenHash:   sha256.Sum256([]byte(cfg.Token)),
		hasToken:    cfg.Token != "",
		hosts:       map[string]bool{},
		doors:       doors{keep: cfg.Access, open: map[*passage]struct{}{}},
		exposed:     cfg.Exposed,
		onAccess:    cfg.OnAccess,
		log:         cfg.Log,
		now:         cfg.Now,
		assets:      loadAssets(),
		rounds:      passwordRounds,
		beatEvery:   5 * time.Second,
		stateEvery:  time.Second,
		writeWithin: 10 * time.Second,
	}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	if s.now == nil {
		s.now = time.Now
	}
	for _, h := range cfg.Hosts {
		s.hosts[strings.ToLower(h)] = true
	}
	key := cfg.SessionKey
	if len(key) == 0 {
		key = make([]byte, 32)
		rand.Read(key) // never fails (crypto/rand, Go 1.24)
	}
	s.sessions = newSessions(key)
	s.handler = s.routes()
	var err error
	if s.operators, err = newOperators(cfg.Keeper); err != nil {
		return nil, err
	}
	s.pushes = pushes{keep: cfg.Pushes, holds: func(in admission, now time.Time) bool { return now.Before(in.until) && s.operators.still(&in) }}
	if err := s.pushes.read(); err != nil {
		s.log.Warn("nobody is told by web push until their page is opened again", "err", err)
	}
	s.operators.ended = s.prunePushes
	s.prunePushes()
	s.nobodys = password{Salt: make([]byte, 16), Hash: make([]byte, sha256.Size)}
	rand.Read(s.nobodys.Salt)
	rand.Read(s.nobodys.Hash)
	return s, nil
}

// Handler answers everything that arrives at the board's port.
func (s *Server) Handler() http.Handler { return s.handler }

// HTTP is an http.Server over Handler with the limits that the board needs: a header within 5 s and 32 KiB, idle
// connections for 2 min. Bodies and streams set their own deadlines. Requests end when base does.
func (s *Server) HTTP(base context.Context) *http.Server {
	return &http.Server{
		Handler:           s.handler,
		ReadHeaderTimeout: 5 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    32 << 10,
		BaseContext:       func(net.Listener) context.Context { return base },
		ErrorLog:          serverLog(s.log),
	}
}

// LinkURL makes a link that opens the board at base (http://127.0.0.1:7878) once, within LinkLife.
func (s *Server) LinkURL(base string) string {
	return strings.TrimSuffix(base, "/") + "/open/" + s.links.issue(s.now())
}
