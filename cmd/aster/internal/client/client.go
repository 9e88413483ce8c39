package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/api"
)

var (
	// ErrNotRunning says that no node answers for the home.
	ErrNotRunning = errors.New("no node runs here")
	// ErrTimedOut says that the node waited as long as it was told to and nothing came.
	ErrTimedOut = errors.New("timed out")
	// ErrLost says that the node went away in the middle of an answer.
	ErrLost = errors.New("the node went away")
)

// answerBytesMax bounds an answer held in memory: a full inbox of 64 MiB with its envelopes.
const answerBytesMax = 256 << 20

// Client is one node's API.
type Client struct {
	node api.NodeFile
	http *http.Client
}

// NodeFileName is the file in a home by which commands find their node.
const NodeFileName = "node.json"

// Open reads node.json of a home. It connects to nothing; a file that a dead process left behind is found out by the
// first call. It returns ErrNotRunning when there is no such file.
func Open(home string) (*Client, error) {
	raw, err := os.ReadFile(filepath.Join(home, NodeFileName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ErrNotRunning
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", NodeFileName, err)
	}
	var node api.NodeFile
	if err := json.Unmarshal(raw, &node); err != nil {
		return nil, fmt.Errorf("read %s: %w", filepath.Join(home, NodeFileName), err)
	}
	return New(node), nil
}

// New returns the client of a node whose file is known. The requests of a waiting client cost nothing: there are no
// deadlines of ours and no keep-alive probes, and no proxy stands in between.
func New(node api.NodeFile) *Client {
	dialer := &net.Dialer{KeepAlive: -1}
	return &Client{node: node, http: &http.Client{
		Transport: &http.Transport{DialContext: dialer.DialContext, MaxIdleConnsPerHost: 8},
		// A redirect would carry the token to wherever it points.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// Node is what node.json said.
func (c *Client) Node() api.NodeFile { return c.node }

// Close gives up idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// request is one call. Its path elements are escaped here.
type request struct {
	method  string
	path    []string
	query   url.Values
	body    io.Reader
	kind    string // content type of body
	content string // Content-Range of body
}

// open sends r and returns the body of a 2xx answer; the caller closes it.
func (c *Client) open(ctx context.Context, r request) (io.ReadCloser, error) {
	address := strings.TrimSuffix(c.node.Board, "/") + api.Prefix
	for _, p := range r.path {
		address += "/" + url.PathEscape(p)
	}
	if len(r.query) > 0 {
		address += "?" + r.query.Encode()
	}
	req, err := http.NewRequestWithContext(ctx, r.method, address, r.body)
	if err != nil {
		return nil, fmt.Errorf("ask the node: %w", err)
	}
	req.Header.Set("Authorization", "Bearer "+c.node.Token)
	if r.kind != "" {
		req.Header.Set("Content-Type", r.kind)
	}
	if r.content != "" {
		req.Header.Set("Content-Range", r.content)
	}
	res, err := c.http.Do(req)
	if err != nil {
		return nil, transportError(ctx, err)
	}
	if res.StatusCode/100 == 2 {
		return res.Body, nil
	}
	defer res.Body.Close()
	return nil, refusalOf(res)
}

// transportError tells a node that is not there from one that went away, and drops the address, which says nothing to
// a person.
func transportError(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	var op *net.OpError
	if errors.As(err, &op) && op.Op == "dial" {
		return ErrNotRunning
	}
	return fmt.Errorf("%w: %w", ErrLost, errors.Unwrap(err))
}

// CodeInternal and CodeNotReady are the API's codes for a node that could not do it and one that is starting.
const (
	CodeInternal = "internal"
	CodeNotReady = "not-ready"
	codeTimedOut = "timed-out"
)

func refusalOf(res *http.Response) error {
	var body api.Error
	raw, err := io.ReadAll(io.LimitReader(res.Body, 1<<20))
	if err != nil || json.Unmarshal(raw, &body) != nil || body.Error.Code == "" {
		return fmt.Errorf("something else answers at the node's address: HTTP %d", res.StatusCode)
	}
	if body.Error.Code == codeTimedOut {
		return ErrTimedOut
	}
	if res.StatusCode == http.StatusUnauthorized {
		return ErrNotRunning // another process has the port of a node that is gone
	}
	return &body.Error
}

// call sends in as JSON, if it is not nil, and reads the answer into out, if that is not nil.
func (c *Client) call(ctx context.Context, r request, in, out any) error {
	if in != nil {
		raw, err := json.Marshal(in)
		if err != nil {
			return fmt.Errorf("encode request: %w", err)
		}
		r.body, r.kind = bytes.NewReader(raw), "application/json"
	}
	body, err := c.open(ctx, r)
	if err != nil {
		return err
	}
	defer body.Close()
	raw, err := io.ReadAll(io.LimitReader(body, answerBytesMax))
	if err != nil {
		return lostOr(ctx, err)
	}
	if out == nil {
		return nil
	}
	if err := json.Unmarshal(raw, out); err != nil {
		return fmt.Errorf("read the node's answer: %w", err)
	}
	return nil
}

func lostOr(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return fmt.Errorf("%w: %w", ErrLost, err)
}

// lines calls each with every line of an answer. It returns io.EOF at the answer's end and nil when each says stop.
func lines[T any](ctx context.Context, c *Client, r request, each func(T) (stop bool, err error)) error {
	body, err := c.open(ctx, r)
	if err != nil {
		return err
	}
	defer body.Close()
	d := json.NewDecoder(body)
	for {
		var item T
		if err := d.Decode(&item); errors.Is(err, io.EOF) {
			return io.EOF
		} else if err != nil {
			return lostOr(ctx, err)
		}
		if stop, err := each(item); stop || err != nil {
			return err
		}
	}
}

// RefusalCode is the code of a refusal in err, or "".
func RefusalCode(err error) string {
	var no *protocol.Refusal
	if errors.As(err, &no) {
		return no.Code
	}
	return ""
}
