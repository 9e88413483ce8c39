package webpush

import (
	"bytes"
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/ecdh"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"
)

func b64(t testing.TB, text string) []byte {
	t.Helper()
	raw, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// TestSealIsTheStandards: the worked example of RFC 8291, section 5, to the last bit.
func TestSealIsTheStandards(t *testing.T) {
	ours, err := ecdh.P256().NewPrivateKey(b64(t, "yfWPiYE-n46HLnH0KqZOF1fJJU3MYrct3AELtAQ-oRw"))
	if err != nil {
		t.Fatal(err)
	}
	key, auth, err := ReadKeys("BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4", "BTBZMqHH6r4Tts7J_aSIgg")
	if err != nil {
		t.Fatal(err)
	}
	got, err := sealWith(&Subscription{Key: key, Auth: auth}, []byte("When I grow up, I want to be a watermelon\x02"), ours, b64(t, "DGv6ra1nlYgDCS1FRnbzlw"))
	if err != nil {
		t.Fatal(err)
	}
	const want = "DGv6ra1nlYgDCS1FRnbzlwAAEABBBP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS6TlzAC8wEqKK6PBru3jl7A_yl95bQpu6cVPTpK4Mqgkf1CXztLVBSt2Ks3oZwbuwXPXLWyouBWLVWGNWQexSgSxsj_Qulcy4a-fN"
	if text := base64.RawURLEncoding.EncodeToString(got); text != want {
		t.Errorf("sealed as\n%s, want\n%s", text, want)
	}
}

// browser is who subscribed: it opens what was sealed for it.
type browser struct {
	private *ecdh.PrivateKey
	auth    []byte
}

func newBrowser(t *testing.T) *browser {
	t.Helper()
	k, err := ecdh.P256().GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	auth := make([]byte, authBytes)
	_, _ = rand.Read(auth)
	return &browser{k, auth}
}

func (b *browser) subscription(endpoint string) *Subscription {
	return &Subscription{Endpoint: endpoint, Key: b.private.PublicKey().Bytes(), Auth: b.auth}
}

// open is the other half of RFC 8291, written apart from seal.
func (b *browser) open(sealed []byte) (string, error) {
	if len(sealed) < 16+4+1+65+16+1 || binary.BigEndian.Uint32(sealed[16:]) != 4096 || sealed[20] != 65 {
		return "", fmt.Errorf("no header: %x", sealed)
	}
	salt, sender, body := sealed[:16], sealed[21:86], sealed[86:]
	point, err := ecdh.P256().NewPublicKey(sender)
	if err != nil {
		return "", err
	}
	shared, err := b.private.ECDH(point)
	if err != nil {
		return "", err
	}
	prk, err := hkdf.Extract(sha256.New, shared, b.auth)
	if err != nil {
		return "", err
	}
	ikm, err := hkdf.Expand(sha256.New, prk, "WebPush: info\x00"+string(b.private.PublicKey().Bytes())+string(sender), 32)
	if err != nil {
		return "", err
	}
	prk, err = hkdf.Extract(sha256.New, ikm, salt)
	if err != nil {
		return "", err
	}
	key, err := hkdf.Expand(sha256.New, prk, "Content-Encoding: aes128gcm\x00", 16)
	if err != nil {
		return "", err
	}
	nonce, err := hkdf.Expand(sha256.New, prk, "Content-Encoding: nonce\x00", 12)
	if err != nil {
		return "", err
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return "", err
	}
	gcm, err := cipher.NewGCM(block)
	if err != nil {
		return "", err
	}
	plain, err := gcm.Open(nil, nonce, body, nil)
	if err != nil {
		return "", err
	}
	end := bytes.LastIndexByte(plain, 2)
	if end < 0 || strings.Trim(string(plain[end+1:]), "\x00") != "" {
		return "", fmt.Errorf("no delimiter: %q", plain)
	}
	return string(plain[:end]), nil
}

// service is a push service over TLS on this machine. A Sender of its own finds it under a public address.
type service struct {
	*httptest.Server
	roots *x509.CertPool

	mu     sync.Mutex
	got    []*http.Request
	bodies [][]byte
	answer func(w http.ResponseWriter, r *http.Request)
}

const serviceHost = "push.example.org"

func newService(t *testing.T) *service {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	form := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: serviceHost}, DNSNames: []string{serviceHost},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true}
	raw, err := x509.CreateCertificate(rand.Reader, form, form, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(raw)
	if err != nil {
		t.Fatal(err)
	}
	s := &service{roots: x509.NewCertPool()}
	s.roots.AddCert(cert)
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		s.mu.Lock()
		s.got, s.bodies = append(s.got, r), append(s.bodies, body)
		answer := s.answer
		s.mu.Unlock()
		if answer == nil {
			w.WriteHeader(http.StatusCreated)
			return
		}
		answer(w, r)
	}))
	s.TLS = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{raw}, PrivateKey: private}}}
	s.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, 0)
	s.StartTLS()
	t.Cleanup(s.Close)
	return s
}

// sender reaches the service as push.example.org at a public address.
func (s *service) sender() *Sender {
	out := NewSender()
	out.roots = s.roots
	out.resolve = func(context.Context, string) ([]netip.Addr, error) {
		return []netip.Addr{netip.MustParseAddr("9.9.9.9")}, nil
	}
	out.dial = func(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
		if to != netip.MustParseAddrPort("9.9.9.9:443") {
			return nil, errors.New("dialled " + to.String())
		}
		return (&net.Dialer{}).DialContext(ctx, "tcp", s.Listener.Addr().String())
	}
	return out
}

func newKey(t *testing.T) *Key {
	t.Helper()
	made, err := NewKey()
	if err != nil {
		t.Fatal(err)
	}
	raw, err := made.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	k, err := ParseKey(raw) // as after a restart
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// TestANoteArrivesSealedAndSigned: the service reads no word of it, can see which node sends, and the browser reads it.
func TestANoteArrivesSealedAndSigned(t *testing.T) {
	s, k, b := newService(t), newKey(t), newBrowser(t)
	now := time.Now()
	note := Note{Text: []byte(`{"waiting":2}`), Life: 30 * time.Minute, Urgent: true}
	a := s.sender().Send(t.Context(), k, b.subscription("https://"+serviceHost+"/send/abc?x=1"), note, now)
	if !a.OK {
		t.Fatalf("answer: %+v", a)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	r, body := s.got[0], s.bodies[0]
	if text, err := b.open(body); err != nil || text != string(note.Text) {
		t.Errorf("opened as %q, %v", text, err)
	}
	if _, err := newBrowser(t).open(body); err == nil {
		t.Error("another browser opens it")
	}
	if bytes.Contains(body, []byte("waiting")) || len(body) != 16+4+1+65+textBytes+1+16 {
		t.Errorf("%d bytes: its length tells what it says", len(body))
	}
	for name, want := range map[string]string{"TTL": "1800", "Urgency": "high", "Topic": "aster", "Content-Encoding": "aes128gcm", "Cookie": ""} {
		if got := r.Header.Get(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	if r.Method != "POST" || r.URL.RequestURI() != "/send/abc?x=1" {
		t.Errorf("%s %s", r.Method, r.URL)
	}
	proofHolds(t, k, r.Header.Get("Authorization"), now)
}

func proofHolds(t *testing.T, k *Key, header string, now time.Time) {
	t.Helper()
	token, public, ok := strings.Cut(strings.TrimPrefix(header, "vapid t="), ", k=")
	if !ok || public != k.Public() {
		t.Fatalf("Authorization: %s", header)
	}
	parts := strings.Split(token, ".")
	key, err := ecdsa.ParseUncompressedPublicKey(elliptic.P256(), b64(t, public))
	if err != nil || len(parts) != 3 {
		t.Fatalf("%v: %v", parts, err)
	}
	sig, hash := b64(t, parts[2]), sha256.Sum256([]byte(parts[0]+"."+parts[1]))
	if len(sig) != 64 || !ecdsa.Verify(key, hash[:], new(big.Int).SetBytes(sig[:32]), new(big.Int).SetBytes(sig[32:])) {
		t.Error("the signature does not hold")
	}
	var claims struct {
		Aud, Sub string
		Exp      int64
	}
	if err := json.Unmarshal(b64(t, parts[1]), &claims); err != nil {
		t.Fatal(err)
	}
	if life := time.Unix(claims.Exp, 0).Sub(now); claims.Aud != "https://"+serviceHost || !strings.HasPrefix(claims.Sub, "https://") || life <= 0 || life > 24*time.Hour {
		t.Errorf("claims: %+v", claims)
	}
}

// TestAnswersOfAService: what each means for the subscription. A redirect is an answer, and is not followed.
func TestAnswersOfAService(t *testing.T) {
	s, k, b := newService(t), newKey(t), newBrowser(t)
	sender := s.sender()
	for _, c := range []struct {
		status int
		after  string
		want   Answer
	}{
		{201, "", Answer{OK: true}}, {204, "", Answer{OK: true}},
		{404, "", Answer{Gone: true}}, {410, "", Answer{Gone: true}},
		{429, "120", Answer{Wait: 2 * time.Minute}}, {503, "99999999999", Answer{Wait: waitMax}}, {503, "90000", Answer{Wait: waitMax}}, {500, "soon", Answer{}}, {400, "-5", Answer{}},
		{301, "", Answer{}}, {302, "", Answer{}}, {307, "", Answer{}}, {308, "", Answer{}},
	} {
		s.mu.Lock()
		s.got = nil
		s.answer = func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Location", "https://"+serviceHost+"/elsewhere")
			w.Header().Set("Retry-After", c.after)
			w.WriteHeader(c.status)
			_, _ = io.WriteString(w, "secret of the service")
		}
		s.mu.Unlock()
		got := sender.Send(t.Context(), k, b.subscription("https://"+serviceHost+"/x"), Note{Text: []byte("{}")}, time.Now())
		why := got.Why
		got.Why = ""
		if got != c.want {
			t.Errorf("%d %s: %+v, want %+v", c.status, c.after, got, c.want)
		}
		s.mu.Lock()
		if len(s.got) != 1 {
			t.Errorf("%d: asked %d times", c.status, len(s.got))
		}
		s.mu.Unlock()
		if strings.Contains(why, "secret") || strings.Contains(why, "/x") {
			t.Errorf("%d: %q says too much", c.status, why)
		}
	}
}

// TestWhereNotesMayGo: only to public https, by the name and by each address that it stands for, when somebody subscribes
// and at each delivery. Guards: KB14
func TestWhereNotesMayGo(t *testing.T) {
	for _, endpoint := range []string{
		"", "x", "http://push.example.org/x", "ftp://push.example.org/x", "https:push.example.org", "https:///x", "//push.example.org/x",
		"https://127.0.0.1:18999/x", "https://127.0.0.1/x", "https://[::1]/x", "https://10.0.0.1/x", "https://192.168.1.1/x", "https://169.254.169.254/latest", "https://9.9.9.9/x", "https://[2620:fe::9]/x",
		"https://2130706433/x", "https://0x7f000001/x", "https://0177.0.0.1/x", "https://127.1/x", "https://localhost/x", "https://LOCALHOST/x", "https://a.localhost/x", "https://router/x", "https://nas.local/x",
		"https://vault.internal/x", "https://printer.lan/x", "https://a.home.arpa/x", "https://push.example.org:8443/x", "https://push.example.org:22/x", "https://push.example.org:/x",
		"https://me@push.example.org/x", "https://me:pw@push.example.org/x", "https://push.example.org/x#y", "https://push.example.org./x", "https://push..org/x", "https://-push.example.org/x", "https://püsh.example.org/x",
		"https://push.example.org%00.evil/x", "https://push.example.org\\@127.0.0.1/x", "https://" + strings.Repeat("a.", 130) + "org/x", "https://push.example.org/" + strings.Repeat("x", endpointBytesMax),
	} {
		if u, no := checkEndpoint(endpoint); no == nil {
			t.Errorf("%q may be pushed to, as %s", endpoint, u)
		}
	}
	for _, endpoint := range []string{"https://fcm.googleapis.com/fcm/send/x:y", "https://updates.push.services.mozilla.com/wpush/v2/g", "https://wns2-par02p.notify.windows.com/w/?token=B", "https://web.push.apple.com:443/Q", "HTTPS://Push.Example.ORG/x"} {
		if _, no := checkEndpoint(endpoint); no != nil {
			t.Errorf("%s: %v", endpoint, no)
		}
	}
}

func TestWhichAddressesArePublic(t *testing.T) {
	for text, want := range map[string]bool{
		"9.9.9.9": true, "142.250.1.1": true, "2620:fe::9": true, "2a00:1450::1": true, "::ffff:9.9.9.9": true, "64:ff9b::909:909": true,
		"0.0.0.0": false, "0.1.2.3": false, "10.1.2.3": false, "100.64.0.1": false, "100.127.255.255": false, "127.0.0.1": false, "127.9.9.9": false, "169.254.169.254": false, "172.16.0.1": false, "172.31.255.255": false,
		"192.0.0.8": false, "192.0.2.1": false, "192.88.99.1": false, "192.168.0.1": false, "198.18.0.1": false, "198.51.100.1": false, "203.0.113.1": false, "224.0.0.1": false, "240.0.0.1": false, "255.255.255.255": false,
		"::": false, "::1": false, "::ffff:127.0.0.1": false, "::ffff:10.0.0.1": false, "::127.0.0.1": false, "fc00::1": false, "fd12::1": false, "fe80::1": false, "fe80::1%eth0": false, "2620:fe::9%eth0": false, "fec0::1": false, "ff02::1": false,
		"64:ff9b::7f00:1": false, "64:ff9b::a00:1": false, "64:ff9b:1::1": false, "100::1": false, "2001::1": false, "2001:db8::1": false, "2002:7f00:1::": false, "3fff::1": false, "5f00::1": false,
	} {
		if got := public(netip.MustParseAddr(text)); got != want {
			t.Errorf("%s is public: %v", text, got)
		}
	}
	if public(netip.Addr{}) {
		t.Error("no address is public")
	}
}

// TestANameIsLookedUpAtEachDelivery: it stood for a public address when somebody subscribed, and then for this machine.
func TestANameIsLookedUpAtEachDelivery(t *testing.T) {
	s, k, b := newService(t), newKey(t), newBrowser(t)
	sender := s.sender()
	honest := sender.resolve
	now := "public"
	dialled := 0
	dial := sender.dial
	sender.dial = func(ctx context.Context, to netip.AddrPort) (net.Conn, error) { dialled++; return dial(ctx, to) }
	sender.resolve = func(ctx context.Context, host string) ([]netip.Addr, error) {
		all, err := honest(ctx, host)
		switch now {
		case "private":
			return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil
		case "both":
			return append(all, netip.MustParseAddr("10.0.0.1")), nil
		case "none":
			return nil, nil
		case "unknown":
			return nil, errors.New("no such host")
		}
		return all, err
	}
	to := b.subscription("https://" + serviceHost + "/x")
	send := func() Answer { return sender.Send(t.Context(), k, to, Note{Text: []byte("{}")}, time.Now()) }
	if no := sender.Check(t.Context(), to.Endpoint); no != nil {
		t.Fatal(no)
	}
	if a := send(); !a.OK {
		t.Fatalf("%+v", a)
	}
	was := dialled
	for _, now = range []string{"private", "both", "none", "unknown"} {
		if no := sender.Check(t.Context(), to.Endpoint); no == nil {
			t.Errorf("%s: somebody may subscribe", now)
		}
		if a := send(); a.OK || a.Gone || a.Why == "" {
			t.Errorf("%s: %+v", now, a)
		}
	}
	if dialled != was {
		t.Error("a refused address was dialled")
	}
	now = "public"
	if a := send(); !a.OK {
		t.Errorf("%+v", a)
	}
}

// TestAServiceMustBeWhoItSays: a certificate of somebody else, and one that nobody signed, are refused.
func TestAServiceMustBeWhoItSays(t *testing.T) {
	s, k, b := newService(t), newKey(t), newBrowser(t)
	for name, change := range map[string]func(*Sender) string{
		"another name": func(*Sender) string { return "https://push.example.net/x" },
		"unknown":      func(x *Sender) string { x.roots = x509.NewCertPool(); return "https://" + serviceHost + "/x" },
	} {
		sender := s.sender()
		endpoint := change(sender)
		if a := sender.Send(t.Context(), k, b.subscription(endpoint), Note{Text: []byte("{}")}, time.Now()); a.OK || a.Gone {
			t.Errorf("%s: %+v", name, a)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.got) > 0 {
		t.Error("a note went out all the same")
	}
}

// TestAKeyIsNotLogged: whatever prints a Key prints its public part.
func TestAKeyIsNotLogged(t *testing.T) {
	k := newKey(t)
	raw, err := k.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	slog.New(slog.NewTextHandler(&out, nil)).Info("x", "key", k)
	slog.New(slog.NewJSONHandler(&out, nil)).Info("x", "key", k)
	fmt.Fprintf(&out, "%v %+v %s", k, k, k)
	for _, form := range []string{fmt.Sprintf("%x", raw), base64.RawURLEncoding.EncodeToString(raw), new(big.Int).SetBytes(raw).String()} {
		if strings.Contains(out.String(), form) {
			t.Error("the private key was printed")
		}
	}
	for _, bad := range [][]byte{nil, raw[1:], make([]byte, 32), append(raw, 0)} {
		if _, err := ParseKey(bad); err == nil {
			t.Errorf("%d bytes are a key", len(bad))
		}
	}
}

// What a page sends as a subscription is whatever anybody wrote into it.
func FuzzSubscription(f *testing.F) {
	f.Add("https://fcm.googleapis.com/x", "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4", "BTBZMqHH6r4Tts7J_aSIgg==")
	f.Add("https://[::1]:443/", "BA", "")
	f.Fuzz(func(t *testing.T, endpoint, p256dh, auth string) {
		if u, no := checkEndpoint(endpoint); no == nil {
			again, err := url.Parse(endpoint)
			if err != nil || again.Scheme != "https" || net.ParseIP(again.Hostname()) != nil || !strings.Contains(u.Hostname(), ".") || u.User != nil {
				t.Errorf("%q may be pushed to", endpoint)
			}
		}
		key, secret, err := ReadKeys(p256dh, auth)
		if err != nil {
			return
		}
		if _, err := seal(&Subscription{Key: key, Auth: secret}, []byte("x")); err != nil {
			t.Errorf("keys that were taken do not seal: %v", err)
		}
	})
}
