package webpush

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/ecdh"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"strings"
)

const (
	saltBytes   = 16
	authBytes   = 16
	pointBytes  = 65 // a point of P-256, not compressed
	recordBytes = 4096
	// textBytes is what a sealed note is filled up to, so that its length does not tell the counts.
	textBytes = 128
)

// Subscription is where a browser can be reached, and what only it can open.
type Subscription struct {
	Endpoint string
	Key      []byte // the browser's public key: a point of P-256
	Auth     []byte // the secret that it shares with whom it gave the subscription to
}

// ReadKeys reads the two values as browsers give them: base64url, with or without its padding.
func ReadKeys(p256dh, auth string) (key, secret []byte, err error) {
	decode := func(s string) ([]byte, error) { return base64.RawURLEncoding.DecodeString(strings.TrimRight(s, "=")) }
	if key, err = decode(p256dh); err == nil {
		_, err = ecdh.P256().NewPublicKey(key)
	}
	if err != nil || len(key) != pointBytes {
		return nil, nil, fmt.Errorf("p256dh is no point of P-256")
	}
	if secret, err = decode(auth); err != nil || len(secret) != authBytes {
		return nil, nil, fmt.Errorf("auth is not %d bytes of base64url", authBytes)
	}
	return key, secret, nil
}

// seal encrypts text for who holds the subscription's private key: a header and one record of aes128gcm.
func seal(s *Subscription, text []byte) ([]byte, error) {
	ours, err := ecdh.P256().GenerateKey(rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make a key for one note: %w", err)
	}
	salt := make([]byte, saltBytes)
	_, _ = rand.Read(salt) // crypto/rand never fails
	filled := append(make([]byte, 0, textBytes+1), text...)
	filled = append(filled, 2) // the last record; what follows is filling
	return sealWith(s, append(filled, make([]byte, max(0, textBytes-len(text)))...), ours, salt)
}

// sealWith is seal with what it draws by chance given, and the text already delimited.
func sealWith(s *Subscription, delimited []byte, ours *ecdh.PrivateKey, salt []byte) ([]byte, error) {
	theirs, err := ecdh.P256().NewPublicKey(s.Key)
	if err != nil {
		return nil, fmt.Errorf("read the browser's key: %w", err)
	}
	shared, err := ours.ECDH(theirs)
	if err != nil {
		return nil, fmt.Errorf("agree on a key: %w", err)
	}
	info := "WebPush: info\x00" + string(s.Key) + string(ours.PublicKey().Bytes())
	secret, err := hkdf.Key(sha256.New, shared, s.Auth, info, sha256.Size)
	if err != nil {
		return nil, fmt.Errorf("derive a key: %w", err)
	}
	key, err := hkdf.Key(sha256.New, secret, salt, "Content-Encoding: aes128gcm\x00", 16)
	if err != nil {
		return nil, fmt.Errorf("derive a key: %w", err)
	}
	nonce, err := hkdf.Key(sha256.New, secret, salt, "Content-Encoding: nonce\x00", 12)
	if err != nil {
		return nil, fmt.Errorf("derive a nonce: %w", err)
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, fmt.Errorf("make a cipher: %w", err)
	}
	gcm, err := cipher.NewGCM(block)
	if err != nil {
		return nil, fmt.Errorf("make a cipher: %w", err)
	}
	out := append(make([]byte, 0, saltBytes+5+pointBytes+len(delimited)+gcm.Overhead()), salt...)
	out = binary.BigEndian.AppendUint32(out, recordBytes)
	out = append(append(out, pointBytes), ours.PublicKey().Bytes()...)
	return gcm.Seal(out, nonce, delimited, nil), nil
}
