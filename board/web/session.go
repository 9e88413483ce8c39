package web

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"net/http"
	"sync"
	"time"
)

const (
	// LinkLife is how long a link of `aster board` waits for its click.
	LinkLife = 10 * time.Minute
	// SessionLife is how long a browser stays in; a working day and a little.
	SessionLife = 12 * time.Hour
	// linksMax bounds what waits: a script that asks for links in a loop pushes out its own oldest ones.
	linksMax = 64
)

// links are tickets that have been issued and not used. Only their hashes are kept, so that a look into the process's
// memory or a dump opens nothing.
type links struct {
	mu   sync.Mutex
	open []link // oldest first
}

type link struct {
	hash  [32]byte
	until time.Time
}

// issue makes a ticket: 32 random bytes as text.
func (l *links) issue(now time.Time) string {
	raw := make([]byte, 32)
	rand.Read(raw)
	ticket := base64.RawURLEncoding.EncodeToString(raw)
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.open) >= linksMax {
		l.open = append(l.open[:0], l.open[len(l.open)-linksMax+1:]...)
	}
	l.open = append(l.open, link{sha256.Sum256([]byte(ticket)), now.Add(LinkLife)})
	return ticket
}

// use says whether ticket was issued here, is in time and was not used; it never says so again. Every open link is
// compared, each in constant time.
func (l *links) use(ticket string, now time.Time) bool {
	hash := sha256.Sum256([]byte(ticket))
	l.mu.Lock()
	defer l.mu.Unlock()
	kept, found := l.open[:0], 0
	for _, o := range l.open {
		same := subtle.ConstantTimeCompare(o.hash[:], hash[:])
		alive := now.Before(o.until)
		if alive {
			found |= same
		}
		if alive && same == 0 {
			kept = append(kept, o)
		}
	}
	l.open = kept
	return found == 1
}

// sessions makes and checks cookies. A cookie is its end, 16 random bytes and an HMAC over both: the server remembers
// none. The cookie's name depends on the key, since browsers share cookies between the ports of a host and several
// nodes may have their boards on one machine.
type sessions struct {
	key    []byte
	cookie string
}

// newSessions derives both from key, so that neither says anything about another use of it.
func newSessions(key []byte) sessions {
	derive := func(use string) []byte {
		m := hmac.New(sha256.New, key)
		m.Write([]byte(use))
		return m.Sum(nil)
	}
	return sessions{key: derive("aster.session.key.1"), cookie: "aster_" + hex.EncodeToString(derive("aster.session.name.1")[:4])}
}

func (s sessions) mac(head []byte) []byte {
	m := hmac.New(sha256.New, s.key)
	m.Write([]byte("aster.session.1\x00"))
	m.Write(head)
	return m.Sum(nil)
}

// issue makes the cookie of a new session.
func (s sessions) issue(now time.Time, secure bool) *http.Cookie {
	head := make([]byte, 8+16)
	binary.BigEndian.PutUint64(head, uint64(now.Add(SessionLife).UnixMilli()))
	rand.Read(head[8:])
	return &http.Cookie{
		Name:     s.cookie,
		Value:    base64.RawURLEncoding.EncodeToString(append(head, s.mac(head)...)),
		Path:     "/",
		MaxAge:   int(SessionLife / time.Second),
		HttpOnly: true,
		Secure:   secure,
		SameSite: http.SameSiteStrictMode,
	}
}

// check returns when the session of r ends; ok is false when r has none that holds now.
func (s sessions) check(r *http.Request, now time.Time) (until time.Time, ok bool) {
	for _, c := range r.CookiesNamed(s.cookie) {
		raw, err := base64.RawURLEncoding.DecodeString(c.Value)
		if err != nil || len(raw) != 8+16+sha256.Size {
			continue
		}
		head, mac := raw[:8+16], raw[8+16:]
		end := time.UnixMilli(int64(binary.BigEndian.Uint64(head)))
		if hmac.Equal(mac, s.mac(head)) && now.Before(end) {
			return end, true
		}
	}
	return time.Time{}, false
}
