package client

import (
	"context"
	"errors"
	"io"
	"net/url"
	"strconv"
	"time"

	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/api"
)

func get(path ...string) request  { return request{method: "GET", path: path} }
func post(path ...string) request { return request{method: "POST", path: path} }

func (r request) with(query url.Values) request { r.query = query; return r }

func set(q url.Values, key, value string) {
	if value != "" {
		q.Set(key, value)
	}
}

func setPos(q url.Values, key string, pos uint64) {
	if pos > 0 {
		q.Set(key, strconv.FormatUint(pos, 10))
	}
}

// Status is one screen of health.
func (c *Client) Status(ctx context.Context) (out api.Status, err error) {
	err = c.call(ctx, get("status"), nil, &out)
	return out, err
}

// Layers are the things that the node stands on, each looked at by itself.
func (c *Client) Layers(ctx context.Context) ([]api.Layer, error) {
	var out struct {
		Layers []api.Layer `json:"layers"`
	}
	err := c.call(ctx, get("layers"), nil, &out)
	return out.Layers, err
}

// Peers are the members of the mesh.
func (c *Client) Peers(ctx context.Context) ([]api.Peer, error) {
	var out struct{ Peers []api.Peer }
	err := c.call(ctx, get("peers"), nil, &out)
	return out.Peers, err
}

// Agents is the roster of the whole mesh.
func (c *Client) Agents(ctx context.Context) ([]api.Agent, error) {
	var out struct{ Agents []api.Agent }
	err := c.call(ctx, get("agents"), nil, &out)
	return out.Agents, err
}

// Tasks are all Delegates, open ones first.
func (c *Client) Tasks(ctx context.Context) ([]api.Task, error) {
	var out struct{ Tasks []api.Task }
	err := c.call(ctx, get("tasks"), nil, &out)
	return out.Tasks, err
}

// Task is one Delegate with its reports. id may be short.
func (c *Client) Task(ctx context.Context, id string) (out api.Task, err error) {
	err = c.call(ctx, get("tasks", id), nil, &out)
	return out, err
}

// CancelTask asks the task's worker to stop.
func (c *Client) CancelTask(ctx context.Context, id string) (out api.Task, err error) {
	err = c.call(ctx, post("tasks", id, "cancel"), nil, &out)
	return out, err
}

// Send returns when the message is logged.
func (c *Client) Send(ctx context.Context, req api.SendRequest) (out api.SendResult, err error) {
	err = c.call(ctx, post("send"), req, &out)
	return out, err
}

// Message is one message. id may be short.
func (c *Client) Message(ctx context.Context, id string) (out api.Message, err error) {
	err = c.call(ctx, get("messages", id), nil, &out)
	return out, err
}

// Search finds words, newest first, at most limit.
func (c *Client) Search(ctx context.Context, words string, before uint64, limit int) ([]api.Message, error) {
	q := url.Values{"q": {words}, "limit": {strconv.Itoa(limit)}}
	setPos(q, "before", before)
	return c.messages(ctx, get("search").with(q))
}

// Outbox is what agent sent and nobody has processed; dead: what was given up.
func (c *Client) Outbox(ctx context.Context, agent protocol.AgentID, dead bool) ([]api.Message, error) {
	q := url.Values{}
	set(q, "agent", string(agent))
	setFlag(q, "dead", dead)
	return c.messages(ctx, get("outbox").with(q))
}

func setFlag(q url.Values, key string, on bool) {
	if on {
		q.Set(key, "1")
	}
}

func (c *Client) messages(ctx context.Context, r request) ([]api.Message, error) {
	var out struct{ Messages []api.Message }
	err := c.call(ctx, r, nil, &out)
	return out.Messages, err
}

// TailQuery selects what Tail gives; zero fields select nothing away.
type TailQuery struct {
	Agent  protocol.AgentID
	Intent protocol.Intent
	Since  time.Time
	After  uint64 // Pos, exclusive; 0: no past unless Since is set
	Follow bool
	Limit  int // without Since and After: how many of the last ones
}

// Tail calls each with messages, oldest first, and with the tiers of those it gave. It returns nil when the past is
// told and q.Follow is not set, or when each says stop; ErrLost when the node ended what should go on.
func (c *Client) Tail(ctx context.Context, q TailQuery, each func(api.Event) (stop bool, err error)) error {
	v := url.Values{"follow": {"0"}}
	setFlag(v, "follow", q.Follow)
	set(v, "agent", string(q.Agent))
	set(v, "intent", string(q.Intent))
	setPos(v, "after", q.After)
	if !q.Since.IsZero() {
		v.Set("since", strconv.FormatInt(max(q.Since.UnixMilli(), 1), 10))
	}
	if q.Limit > 0 {
		v.Set("limit", strconv.Itoa(q.Limit))
	}
	return ended(lines(ctx, c, get("tail").with(v), each), q.Follow)
}

// ended is what the end of an answer means: all was told, or the node went away.
func ended(err error, goesOn bool) error {
	if errors.Is(err, io.EOF) {
		if goesOn {
			return ErrLost
		}
		return nil
	}
	return err
}

// InboxQuery selects inbox items: the unread unless All or Dead.
type InboxQuery struct {
	Agent     protocol.AgentID // empty: the node's rule chooses
	All, Dead bool
	After     uint64
}

func (q InboxQuery) values() url.Values {
	v := url.Values{}
	set(v, "agent", string(q.Agent))
	setFlag(v, "all", q.All)
	setFlag(v, "dead", q.Dead)
	setPos(v, "after", q.After)
	return v
}

// Inbox is oldest first and whole.
func (c *Client) Inbox(ctx context.Context, q InboxQuery) ([]api.InboxItem, error) {
	var out struct{ Items []api.InboxItem }
	err := c.call(ctx, get("inbox").with(q.values()), nil, &out)
	return out.Items, err
}

// FollowInbox calls each with what waits and then with what comes. ErrLost: the node went away.
func (c *Client) FollowInbox(ctx context.Context, q InboxQuery, each func(api.InboxItem) (stop bool, err error)) error {
	v := q.values()
	v.Set("follow", "1")
	return ended(lines(ctx, c, get("inbox").with(v), each), true)
}

// Ack says that messages are processed and returns their whole ids.
func (c *Client) Ack(ctx context.Context, req api.AckRequest) (out api.AckResult, err error) {
	err = c.call(ctx, post("ack"), req, &out)
	return out, err
}

// Wait blocks until something is unread, or returns ErrTimedOut. The node counts the time; until it answers not a byte
// is exchanged.
func (c *Client) Wait(ctx context.Context, agent protocol.AgentID, isNew bool, within time.Duration) (out api.WaitResult, err error) {
	q := url.Values{}
	set(q, "agent", string(agent))
	setFlag(q, "new", isNew)
	if within > 0 {
		q.Set("timeout", within.String())
	}
	err = c.call(ctx, get("wait").with(q), nil, &out)
	return out, err
}

// Invite makes an invite.
func (c *Client) Invite(ctx context.Context, req api.InviteRequest) (out api.InviteResult, err error) {
	err = c.call(ctx, post("invites"), req, &out)
	return out, err
}

// RenewMember gives a member another term of its certificate.
func (c *Client) RenewMember(ctx context.Context, peer protocol.PeerID) (out api.Peer, err error) {
	err = c.call(ctx, post("members", string(peer), "renew"), nil, &out)
	return out, err
}

// RevokeMember ends a membership.
func (c *Client) RevokeMember(ctx context.Context, peer protocol.PeerID, reason string) error {
	return c.call(ctx, post("members", string(peer), "revoke"), map[string]string{"reason": reason}, nil)
}

// Keys lists the contract's keys; all: those that are over as well.
func (c *Client) Keys(ctx context.Context, all bool) ([]api.Key, error) {
	var out struct{ Keys []api.Key }
	q := url.Values{}
	if all {
		q.Set("all", "1")
	}
	err := c.call(ctx, get("keys").with(q), nil, &out)
	return out.Keys, err
}

// IssueKey makes a key; the answer is the only one that holds its string.
func (c *Client) IssueKey(ctx context.Context, req api.KeyRequest) (out api.KeyIssued, err error) {
	err = c.call(ctx, post("keys"), req, &out)
	return out, err
}

// RenewKey gives a key another life.
func (c *Client) RenewKey(ctx context.Context, ref string, req api.KeyRenewRequest) (out api.Key, err error) {
	err = c.call(ctx, post("keys", ref, "renew"), req, &out)
	return out, err
}

// LabelKey gives a key another label.
func (c *Client) LabelKey(ctx context.Context, ref, label string) (out api.Key, err error) {
	err = c.call(ctx, post("keys", ref, "label"), api.KeyLabelRequest{Label: label}, &out)
	return out, err
}

// RevokeKey ends a key.
func (c *Client) RevokeKey(ctx context.Context, ref, mode string) (out api.KeyRevoked, err error) {
	err = c.call(ctx, post("keys", ref, "revoke"), api.KeyRevokeRequest{Mode: mode}, &out)
	return out, err
}

// Leave ends this node's own membership.
func (c *Client) Leave(ctx context.Context) error { return c.call(ctx, post("leave"), nil, nil) }

// ForgetAgent withdraws an agent's binding to this node.
func (c *Client) ForgetAgent(ctx context.Context, agent protocol.AgentID) error {
	return c.call(ctx, post("agents", string(agent), "forget"), nil, nil)
}

// RenameAgent gives an agent of this node another name and returns it.
func (c *Client) RenameAgent(ctx context.Context, agent, to protocol.AgentID) (out api.Agent, err error) {
	err = c.call(ctx, post("agents", string(agent), "rename"), api.RenameRequest{To: to}, &out)
	return out, err
}

// MoveAgent hands an agent over to another node, by name or peer id, and says what came of it.
func (c *Client) MoveAgent(ctx context.Context, agent protocol.AgentID, node string) (out api.Moved, err error) {
	err = c.call(ctx, post("agents", string(agent), "move"), api.MoveRequest{Node: node}, &out)
	return out, err
}

// Main is who is main, as the node knows it.
func (c *Client) Main(ctx context.Context) (out api.Main, err error) {
	err = c.call(ctx, get("main"), nil, &out)
	return out, err
}

// Handoff asks main to hand over to an agent. It returns when main was asked.
func (c *Client) Handoff(ctx context.Context, req api.HandoffRequest) error {
	return c.call(ctx, post("main", "handoff"), req, nil)
}

// TakeMain makes the node main without an election.
func (c *Client) TakeMain(ctx context.Context) (out api.TakeResult, err error) {
	err = c.call(ctx, post("main", "take"), nil, &out)
	return out, err
}

// Claims are what agents hold for themselves alone.
func (c *Client) Claims(ctx context.Context) ([]api.Claim, error) {
	var out struct{ Claims []api.Claim }
	err := c.call(ctx, get("claims"), nil, &out)
	return out.Claims, err
}

// Acquire asks main for a claim.
func (c *Client) Acquire(ctx context.Context, req api.ClaimRequest) (out api.Claim, err error) {
	err = c.call(ctx, post("claims"), req, &out)
	return out, err
}

// ReleaseClaim ends a claim that is held through the node.
func (c *Client) ReleaseClaim(ctx context.Context, id string) error {
	return c.call(ctx, post("claims", id, "release"), nil, nil)
}

// BoardLink is an address that opens the board once.
func (c *Client) BoardLink(ctx context.Context) (string, error) {
	var out struct{ URL string }
	err := c.call(ctx, post("board-link"), nil, &out)
	return out.URL, err
}

// SignOutAll ends every session of the board.
func (c *Client) SignOutAll(ctx context.Context) error {
	return c.call(ctx, post("sign-out-all"), nil, nil)
}

// Operators are the names of people's accounts.
func (c *Client) Operators(ctx context.Context) ([]string, error) {
	var out struct{ Operators []string }
	err := c.call(ctx, get("operators"), nil, &out)
	return out.Operators, err
}

// PutOperator makes an account, or changes its password.
func (c *Client) PutOperator(ctx context.Context, id, password string) error {
	return c.call(ctx, post("operators"), map[string]string{"id": id, "password": password}, nil)
}

// RemoveOperator ends an account, and its sessions.
func (c *Client) RemoveOperator(ctx context.Context, id string) error {
	return c.call(ctx, request{method: "DELETE", path: []string{"operators", id}}, nil, nil)
}

// CopyStore makes a copy of the node's store in its home; the caller removes it.
func (c *Client) CopyStore(ctx context.Context) (out api.StoreCopy, err error) {
	err = c.call(ctx, post("store", "copy"), nil, &out)
	return out, err
}

// StoreHealth says how the node's store is.
func (c *Client) StoreHealth(ctx context.Context) (out api.StoreHealth, err error) {
	err = c.call(ctx, get("store"), nil, &out)
	return out, err
}

// CompareBoards has the members of the inside compare their boards now.
func (c *Client) CompareBoards(ctx context.Context) (out api.Compared, err error) {
	err = c.call(ctx, post("store", "compare"), nil, &out)
	return out, err
}

// RepairStore has the node read everything again and ask others for what is damaged.
func (c *Client) RepairStore(ctx context.Context) (out api.StoreHealth, err error) {
	err = c.call(ctx, post("store", "repair"), nil, &out)
	return out, err
}

// Down asks the node to end. It returns when the node has begun to.
func (c *Client) Down(ctx context.Context) error { return c.call(ctx, post("down"), nil, nil) }

// PutBlob stores what r gives.
func (c *Client) PutBlob(ctx context.Context, name, mime string, r io.Reader) (out protocol.BlobRef, err error) {
	q := url.Values{}
	set(q, "name", name)
	set(q, "mime", mime)
	err = c.call(ctx, request{method: "PUT", path: []string{"blobs"}, query: q, body: r, kind: "application/octet-stream"}, nil, &out)
	return out, err
}

// Blob returns an attachment's content; the caller closes it.
func (c *Client) Blob(ctx context.Context, sha256 string) (io.ReadCloser, error) {
	return c.open(ctx, get("blobs", sha256))
}
