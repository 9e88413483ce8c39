package web

import (
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/aster-mesh/aster/protocol"
)

const (
	passwordRounds   = 600_000 // of PBKDF2 with SHA-256: some 200 ms of one core, on both sides of a guess
	passwordBytesMin = 10
	passwordBytesMax = 1024 // hashing is not a way to keep us busy
)

// password is what is kept of one: never the words.
type password struct {
	Salt   []byte `json:"salt"`
	Rounds int    `json:"rounds"`
	Hash   []byte `json:"pbkdf2Sha256"`
}

// newPassword refuses words that are too short to guess at, or no text.
func newPassword(words string, rounds int) (password, error) {
	if n := len(words); n < passwordBytesMin || n > passwordBytesMax || !utf8.ValidString(words) {
		return password{}, protocol.Refuse(protocol.CodeBadFrame, "a password has %d to %d bytes of text", "", passwordBytesMin, passwordBytesMax)
	}
	p := password{Salt: make([]byte, 16), Rounds: rounds}
	rand.Read(p.Salt) // never fails (crypto/rand, Go 1.24)
	var err error
	p.Hash, err = pbkdf2.Key(sha256.New, words, p.Salt, p.Rounds, sha256.Size)
	return p, err
}

// is compares in constant time. A password that nobody has takes as long.
func (p *password) is(words string) bool {
	if len(words) > passwordBytesMax {
		words = ""
	}
	got, err := pbkdf2.Key(sha256.New, words, p.Salt, p.Rounds, sha256.Size)
	return err == nil && len(p.Hash) == sha256.Size && subtle.ConstantTimeCompare(got, p.Hash) == 1
}

const (
	// failuresMax wrong passwords of one account within failureSpan lock it for the rest of that (wire 7.3).
	failuresMax = 8
	failureSpan = 15 * time.Minute
	// guessedMax bounds the names that are no accounts and are counted like those, so that a lock tells nothing of either.
	guessedMax = 256
	// loginsMax may wait for the core that hashes, loginsEach of one address: a flood of guesses waits for itself, and who
	// knows a password comes after a handful at most.
	loginsMax  = 16
	loginsEach = 3
)

// failures counts wrong passwords by account. Safe for concurrent use.
type failures struct {
	mu  sync.Mutex
	of  map[string][]time.Time // oldest first
	one sync.Mutex             // held while a password is hashed: guesses share one core

	waiting map[string]int // logins under way by address, none at 0
	all     int            // of them together
}

// enter takes a place among the logins under way; leave gives it back. False: that address, or everybody, has enough.
func (f *failures) enter(from string) (leave func(), ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.all >= loginsMax || f.waiting[from] >= loginsEach {
		return nil, false
	}
	if f.waiting == nil {
		f.waiting = map[string]int{}
	}
	f.waiting[from]++
	f.all++
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.all--
		if f.waiting[from]--; f.waiting[from] == 0 {
			delete(f.waiting, from)
		}
	}, true
}

// wait says how long an account is locked from now on.
func (f *failures) wait(name string, now time.Time) time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	recent := f.recent(name, now)
	if len(recent) < failuresMax {
		return 0
	}
	return recent[len(recent)-failuresMax].Add(failureSpan).Sub(now)
}

func (f *failures) recent(name string, now time.Time) []time.Time {
	all := f.of[name]
	for len(all) > 0 && !now.Before(all[0].Add(failureSpan)) {
		all = all[1:]
	}
	return all
}

// add counts one more. known: the account exists, so that no flood of other names makes us forget its failures.
func (f *failures) add(name string, known func(string) bool, now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.of == nil {
		f.of = map[string][]time.Time{}
	}
	if _, there := f.of[name]; !there && len(f.of) >= guessedMax+operatorsMax {
		for other := range f.of {
			if !known(other) {
				delete(f.of, other)
				break
			}
		}
	}
	f.of[name] = append(f.recent(name, now), now)
}

func (f *failures) forget(name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.of, name)
}
