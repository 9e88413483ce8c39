package webpush

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/url"
	"time"
)

// Key is by what push services know a node (VAPID). Subscriptions are made for one key, so a node keeps its own.
type Key struct {
	private *ecdsa.PrivateKey
	public  string
}

// proofLife is how long a proof holds; services take at most a day (RFC 8292), and clocks differ.
const proofLife = 12 * time.Hour

// contact is who a push service may turn to about a sender: the program, since a node's owner is nobody's business.
const contact = "https://github.com/aster-mesh/aster"

// NewKey makes a key.
func NewKey() (*Key, error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make a key for web push: %w", err)
	}
	return keyOf(private)
}

// ParseKey reads what Bytes gave.
func ParseKey(raw []byte) (*Key, error) {
	private, err := ecdsa.ParseRawPrivateKey(elliptic.P256(), raw)
	if err != nil {
		return nil, fmt.Errorf("read the key for web push: %w", err)
	}
	return keyOf(private)
}

func keyOf(private *ecdsa.PrivateKey) (*Key, error) {
	point, err := private.PublicKey.Bytes()
	if err != nil {
		return nil, fmt.Errorf("read the key for web push: %w", err)
	}
	return &Key{private, base64.RawURLEncoding.EncodeToString(point)}, nil
}

// Bytes is the private key, to be kept where nobody else reads.
func (k *Key) Bytes() ([]byte, error) { return k.private.Bytes() }

// Public is what browsers subscribe with: the point in base64url.
func (k *Key) Public() string { return k.public }

// String, and so every log, shows the public part alone.
func (k *Key) String() string { return k.public }

// LogValue implements slog.LogValuer.
func (k *Key) LogValue() slog.Value { return slog.StringValue(k.public) }

// proof is the Authorization of a request to endpoint: a token for its service alone, signed.
func (k *Key) proof(endpoint *url.URL, now time.Time) (string, error) {
	claims, err := json.Marshal(map[string]any{"aud": endpoint.Scheme + "://" + endpoint.Host, "exp": now.Add(proofLife).Unix(), "sub": contact})
	if err != nil {
		return "", fmt.Errorf("say who sends: %w", err)
	}
	text := base64.RawURLEncoding.EncodeToString([]byte(`{"typ":"JWT","alg":"ES256"}`)) + "." + base64.RawURLEncoding.EncodeToString(claims)
	hash := sha256.Sum256([]byte(text))
	r, s, err := ecdsa.Sign(rand.Reader, k.private, hash[:])
	if err != nil {
		return "", fmt.Errorf("sign who sends: %w", err)
	}
	sig := make([]byte, 64)
	r.FillBytes(sig[:32])
	s.FillBytes(sig[32:])
	return "vapid t=" + text + "." + base64.RawURLEncoding.EncodeToString(sig) + ", k=" + k.public, nil
}
