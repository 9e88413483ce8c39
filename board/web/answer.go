package web

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/api"
	"github.com/aster-mesh/aster/roles/access"
)

const (
	bodyBytesMax = 1 << 20
	// bodyPause is how long a sender of a body may fall silent.
	bodyPause = 30 * time.Second
)

// Codes that only the board's HTTP side gives.
const (
	codeNoCredential = "no-credential"
	codeWrongHost    = "wrong-host"
	codeWrongOrigin  = "wrong-origin"
	codeCrossSite    = "cross-site"
	codeTokenInURL   = "token-in-url"
	codeNoRoute      = "no-such-route"
	codeWrongMethod  = "wrong-method"
	codeTimedOut     = "timed-out"
	codeInternal     = "internal"
	codeNotReady     = "not-ready"
	codeLocked       = "locked"
)

// statusOf gives each refusal its HTTP status (api.Error). What is not listed is a matter of rights.
var statusOf = map[string]int{
	protocol.CodeBadFrame:      http.StatusBadRequest,
	protocol.CodeTooDeep:       http.StatusBadRequest,
	protocol.CodeNotUTF8:       http.StatusBadRequest,
	protocol.CodeDuplicateKey:  http.StatusBadRequest,
	protocol.CodeNoAgentID:     http.StatusBadRequest,
	protocol.CodeBadAgentID:    http.StatusBadRequest,
	protocol.CodeUnknownIntent: http.StatusBadRequest,
	protocol.CodeWrongType:     http.StatusUnsupportedMediaType,
	codeTokenInURL:             http.StatusBadRequest,
	codeNoCredential:           http.StatusUnauthorized,
	protocol.CodeUnknownAgent:  http.StatusNotFound,
	protocol.CodeUnknownID:     http.StatusNotFound,
	codeNoRoute:                http.StatusNotFound,
	codeWrongMethod:            http.StatusMethodNotAllowed,
	codeTimedOut:               http.StatusRequestTimeout,
	protocol.CodeAmbiguousID:   http.StatusConflict,
	protocol.CodeMsgIDReused:   http.StatusConflict,
	protocol.CodeInboxFull:     http.StatusConflict,
	protocol.CodeExpired:       http.StatusConflict,
	protocol.CodeHopLoop:       http.StatusConflict,
	protocol.CodeHopDepth:      http.StatusConflict,
	protocol.CodeRate:          http.StatusConflict,
	protocol.CodeFlap:          http.StatusConflict,
	protocol.CodeRepoMismatch:  http.StatusConflict,
	protocol.CodeNoWorker:      http.StatusConflict,
	protocol.CodeFrameTooLarge: http.StatusRequestEntityTooLarge,
	protocol.CodeDiskFull:      http.StatusInsufficientStorage,
	protocol.CodeFenced:        http.StatusServiceUnavailable,
	"KEY_NOT_FOUND":            http.StatusNotFound, // wire 3.8
	"UNKNOWN_KIND":             http.StatusBadRequest,
	"INVALID_LABEL":            http.StatusBadRequest,
	"INVALID_ROLE_DESC":        http.StatusBadRequest,
	"INVALID_TTL":              http.StatusBadRequest,
	"INVALID_BOUND_AGENT":      http.StatusBadRequest,
	"INVALID_MODE":             http.StatusBadRequest,
	"LIMIT_EXCEEDED":           http.StatusConflict,
	"ALREADY_REVOKED":          http.StatusConflict,
	"NOOP_LABEL":               http.StatusConflict,
	"NOT_RENEWABLE":            http.StatusConflict,
	"NO_EXPIRY":                http.StatusConflict,
	codeInternal:               http.StatusInternalServerError,
	codeNotReady:               http.StatusServiceUnavailable,
	access.CodePublic:          http.StatusBadRequest,
	codeLocked:                 http.StatusTooManyRequests,
}

func refuse(w http.ResponseWriter, no *protocol.Refusal) {
	status, ok := statusOf[no.Code]
	if !ok {
		status = http.StatusForbidden
	}
	if no.RetryMs > 0 {
		status = http.StatusTooManyRequests
		w.Header().Set("Retry-After", strconv.FormatInt((no.RetryMs+999)/1000, 10))
	}
	if status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", "Bearer")
	}
	writeJSON(w, status, api.Error{Error: *no})
}

// fail answers an error: a refusal as it stands, the end of waiting as 408, anything else as "internal", logged here
// and told to nobody.
func (s *Server) fail(w http.ResponseWriter, r *http.Request, err error) {
	var no *protocol.Refusal
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &no):
		refuse(w, no)
	case errors.As(err, &tooLarge):
		refuse(w, protocol.Refuse(protocol.CodeFrameTooLarge, "it has more than %d bytes", "Say where it is instead: a path, or a commit", tooLarge.Limit))
	case errors.Is(err, context.DeadlineExceeded):
		refuse(w, protocol.Refuse(codeTimedOut, "it did not happen in time", ""))
	case r.Context().Err() != nil: // nobody listens any more
	case errors.Is(err, ErrNotReady):
		refuse(w, protocol.Refuse(codeNotReady, "the node is starting", "Try again in a moment"))
	default:
		s.log.Error("request failed", "route", r.Pattern, "err", err)
		refuse(w, protocol.Refuse(codeInternal, "the node could not do it", "aster logs says why"))
	}
}

func writeJSON(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // who went away hears nothing
}

// answer sends body, or the error.
func (s *Server) answer(w http.ResponseWriter, r *http.Request, body any, err error) {
	if err != nil {
		s.fail(w, r, err)
		return
	}
	writeJSON(w, http.StatusOK, body)
}

// readJSON reads the whole body into v. An empty body leaves v as it is. The body's size was bounded by the guard.
func readJSON(w http.ResponseWriter, r *http.Request, v any) error {
	raw, err := io.ReadAll(paced(w, r.Body))
	if err != nil {
		var tooLarge *http.MaxBytesError
		if errors.As(err, &tooLarge) {
			return err
		}
		return protocol.Refuse(protocol.CodeBadFrame, "the body did not arrive whole", "")
	}
	if len(bytes.TrimSpace(raw)) == 0 {
		return nil
	}
	if !utf8.Valid(raw) {
		return protocol.Refuse(protocol.CodeNotUTF8, "the body is not UTF-8", "")
	}
	if protocol.Depth(raw) > protocol.NestingMax {
		return protocol.Refuse(protocol.CodeTooDeep, "the body is nested deeper than %d", "", protocol.NestingMax)
	}
	if no := protocol.RefuseNumbers("the body", raw); no != nil {
		return no
	}
	if err := json.Unmarshal(raw, v); err != nil {
		return protocol.Refuse(protocol.CodeBadFrame, "the body is not the JSON that this address takes", "")
	}
	return nil
}

// paced gives every read of a body its own deadline, so that a sender that trickles ends and a long upload does not. At
// the end the deadline is taken back: it would otherwise cancel the request while its handler still works.
func paced(w http.ResponseWriter, body io.Reader) io.Reader {
	return &pacedReader{body, http.NewResponseController(w)}
}

type pacedReader struct {
	body io.Reader
	conn *http.ResponseController
}

func (p *pacedReader) Read(b []byte) (int, error) {
	_ = p.conn.SetReadDeadline(time.Now().Add(bodyPause)) // a recorder in tests has none
	n, err := p.body.Read(b)
	if err != nil {
		_ = p.conn.SetReadDeadline(time.Time{})
	}
	return n, err
}
