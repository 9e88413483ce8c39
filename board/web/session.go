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

// sessions makes and checks cookies. A cookie says when it ends, which round of sign-ins it belongs to, whose it is, and
// has an HMAC over all of it: what is kept is the round, and what ended before its time. The cookie's name depends on the
// key, since browsers share cookies between the ports of a host and several nodes may have their boards on one machine.
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

// sessionTag tells sessions apart.
type sessionTag [16]byte

// admission is what a cookie says, once its HMAC holds.
type admission struct {
	until   time.Time
	round   uint32 // of all sign-ins: ended by signing everybody out
	epoch   uint32 // of the account: ended by a new password
	tag     sessionTag
	account string // empty: opened by a link of the node's owner
}

// admissionBytes is what a cookie holds beside its account and HMAC.
const admissionBytes = 8 + 4 + 4 + len(sessionTag{})

func (s sessions) mac(head []byte) []byte {
	m := hmac.New(sha256.New, s.key)
	m.Write([]byte("aster.session.2\x00"))
	m.Write(head)
	return m.Sum(nil)
}

// issue makes the cookie of a new session; its end and tag are chosen here.
func (s sessions) issue(in admission, now time.Time, secure bool) *http.Cookie {
	head := make([]byte, 0, admissionBytes+len(in.account))
	head = binary.BigEndian.AppendUint64(head, uint64(now.Add(SessionLife).UnixMilli()))
	head = binary.BigEndian.AppendUint32(head, in.round)
	head = binary.BigEndian.AppendUint32(head, in.epoch)
	rand.Read(in.tag[:]) // never fails (crypto/rand, Go 1.24)
	head = append(append(head, in.tag[:]...), in.account...)
	c := s.bare(secure)
	c.Value = base64.RawURLEncoding.EncodeToString(append(head, s.mac(head)...))
	c.MaxAge = int(SessionLife / time.Second)
	return c
}

// bare is the cookie without a session: sent so, it takes one away.
func (s sessions) bare(secure bool) *http.Cookie {
	return &http.Cookie{Name: s.cookie, Path: "/", MaxAge: -1, HttpOnly: true, Secure: secure, SameSite: http.SameSiteStrictMode}
}

// read returns what the cookie of r says. given: it has one at all; ok: one that is ours and in time.
func (s sessions) read(r *http.Request, now time.Time) (in admission, given, ok bool) {
	for _, c := range r.CookiesNamed(s.cookie) {
		given = true
		raw, err := base64.RawURLEncoding.DecodeString(c.Value)
		if err != nil || len(raw) < admissionBytes+sha256.Size {
			continue
		}
		head, mac := raw[:len(raw)-sha256.Size], raw[len(raw)-sha256.Size:]
		if !hmac.Equal(mac, s.mac(head)) {
			continue
		}
		in.until = time.UnixMilli(int64(binary.BigEndian.Uint64(head)))
		in.round, in.epoch = binary.BigEndian.Uint32(head[8:]), binary.BigEndian.Uint32(head[12:])
		copy(in.tag[:], head[16:])
		in.account = string(head[admissionBytes:])
		if now.Before(in.until) {
			return in, true, true
		}
	}
	return admission{}, given, false
}
