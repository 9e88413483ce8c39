package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aster-mesh/aster/cmd/aster/internal/client"
	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/api"
)

// TestInvitesAreRefusedByName: each bad invite ends up with exit 4 and its reason, and leaves both sides as they were.
func TestInvitesAreRefusedByName(t *testing.T) {
	host := newNode(t, "host", "")
	host.up("")
	guest := newNode(t, "guest", "")
	refused := func(what, token, reason string) {
		t.Helper()
		ready, r := guest.start(token)
		switch {
		case ready != nil:
			t.Fatalf("%s: the guest is in: %+v", what, ready)
		case r.code != 4 || !strings.Contains(r.stderr, reason):
			t.Errorf("%s: want exit 4 and %q: %s", what, reason, r)
		case token != "" && strings.Contains(r.stderr, token):
			t.Errorf("%s: the refusal repeats the token: %s", what, r)
		}
	}
	short := host.invite("--ttl", "1s")
	made := time.Now()
	used := host.invite()
	first := newNode(t, "first", "")
	first.up(used)
	refused("used", used, "used")
	good := host.invite()
	for at := range 6 {
		i := at * (len(good) - 1) / 5
		bad := []byte(good)
		bad[i] = map[bool]byte{true: 'B', false: 'A'}[bad[i] == 'A']
		refused(fmt.Sprintf("tampered at %d of %d", i, len(good)), string(bad), "invite")
	}
	refused("cut short", good[:len(good)/2], "invite")
	refused("not an invite", "hello there", "invite")
	if r := guest.pipe("", "up", "--join", "-"); r.code != 4 || !strings.Contains(r.stderr, "no invite") {
		t.Errorf("nothing: want exit 4: %s", r)
	}
	refused("gigantic", strings.Repeat("A", 1<<17), "invite")
	stranger := newNode(t, "stranger", "")
	stranger.up("")
	foreign := stranger.invite()
	stranger.kill()
	refused("foreign, of a node that is gone", foreign, "no node answers")
	instant(time.Until(made.Add(1100 * time.Millisecond)))
	refused("expired", short, "ended")

	// The guest's home took no harm: a good invite still brings it in.
	ready := guest.up(good)
	if ready.Joined == nil || ready.Joined.Through != "host" {
		t.Errorf("ready says %+v", ready)
	}
	host.linked(2)
	if st := host.mustStatus(); st.Nodes != 3 {
		t.Errorf("%d members, want 3", st.Nodes)
	}
	// Homes that have a mesh are told both ways forward, and nothing happens to them.
	guest.kill()
	stranger.up("")
	foreign = stranger.invite()
	refused("a member of another mesh", foreign, "aster leave")
	guest.up("")
	guest.linked(2)
	alone := newNode(t, "alone", "")
	alone.up("")
	alone.kill()
	if ready, r := alone.start(foreign); ready != nil || r.code != 4 || !strings.Contains(r.stderr, "--leave") {
		t.Errorf("alone in a mesh of its own: want exit 4 and --leave: %v %s", ready, r)
	}
	if r := alone.up(foreign, "--leave"); r.Joined == nil || r.Joined.Through != "stranger" {
		t.Errorf("with --leave: %+v", r)
	}
}

// TestRevokedWithinASecond: its links close within a second, what it says later counts nowhere, its own up says so.
func TestRevokedWithinASecond(t *testing.T) {
	nodes := meshOf(t, nil, "host", "friend", "foe")
	host, friend, foe := nodes[0], nodes[1], nodes[2]
	host.declare("main-agent")
	foe.knows("main-agent")
	var before, after api.SendResult
	must(t, json.Unmarshal([]byte(foe.ok("send", "--json", "--from", "eve", "--to", "main-agent", "while I may")), &before))
	eventually(t, patience, "what it said before is here", func() (bool, string) {
		return len(inboxOf(host, "main-agent")[before.MsgID]) == 1, ""
	})
	foe.kill() // what it says from now on nobody has seen when it is revoked
	host.linked(1)
	foe.up("")
	host.linked(2)
	friend.linked(2)

	peer := memberRow(t, host, "foe").Peer
	began := time.Now()
	must(t, host.api().RevokeMember(t.Context(), peer, "it is a test"))
	for _, n := range []*node{host, friend} {
		eventually(t, patience, n.name+" has closed the link", func() (bool, string) {
			st, err := n.status()
			return err == nil && st.Linked == 1 && st.Nodes == 2, fmt.Sprintf("%+v %v", st, err)
		})
	}
	took := time.Since(began)
	t.Logf("links closed %s after the command", took.Round(time.Millisecond))
	if took > promised(time.Second) {
		t.Errorf("links closed after %s, want at most 1 s", took)
	}
	if r := foe.run("send", "--json", "--from", "eve", "--to", "main-agent", "and yet"); r.code == 0 {
		must(t, json.Unmarshal([]byte(r.stdout), &after)) // its own node may not know yet
	}
	// It learns it from those who refuse it, and its next up says so at once.
	foe.kill()
	foe.up("")
	eventually(t, patience, "its node says so", func() (bool, string) {
		st, err := foe.status()
		return strings.Contains(strings.Join(st.Warnings, "\n"), "revoked"), fmt.Sprintf("%q %v", st.Warnings, err)
	})
	foe.kill()
	if ready := foe.up(""); !strings.Contains(strings.Join(ready.Warnings, "\n"), "revoked") {
		t.Errorf("its up says %q", ready.Warnings)
	}
	// A message of a member is through, so the foe's would have been.
	var marker api.SendResult
	must(t, json.Unmarshal([]byte(friend.ok("send", "--json", "--from", "fred", "--to", "main-agent", "marker")), &marker))
	eventually(t, patience, "a member's message is here", func() (bool, string) {
		return len(inboxOf(host, "main-agent")[marker.MsgID]) == 1, ""
	})
	inbox := inboxOf(host, "main-agent")
	if len(inbox) != 2 || len(inbox[before.MsgID]) != 1 {
		t.Errorf("the inbox holds %v", inbox)
	}
	if after.MsgID != "" {
		for _, n := range []*node{host, friend} {
			if _, err := n.api().Message(t.Context(), string(after.MsgID)); client.RefusalCode(err) != protocol.CodeUnknownID {
				t.Errorf("%s knows what a revoked member said: %v", n.name, err)
			}
			if st := n.mustStatus(); st.Linked != 1 {
				t.Errorf("%s is linked with %d", n.name, st.Linked)
			}
		}
	}
	// A new invite brings it back; what it said in between still counts nowhere.
	foe.kill()
	if ready := foe.up(host.invite()); ready.Joined == nil || len(ready.Warnings) > 0 {
		t.Errorf("back with a new invite: %+v", ready)
	}
	host.linked(2)
	friend.linked(2)
	foe.ok("send", "--from", "eve", "--to", "main-agent", "back again")
	eventually(t, patience, "mail of the returned one is here", func() (bool, string) {
		got := len(inboxOf(host, "main-agent"))
		return got == 3, fmt.Sprintf("%d messages, want 3", got)
	})
	foe.down()
	if ready := foe.up(""); len(ready.Warnings) > 0 {
		t.Errorf("started again after its return: %q", ready.Warnings)
	}
}

// TestUpstreamAndCollab: an outside member sees what is addressed to it and nothing else, on its disk and in its API.
func TestUpstreamAndCollab(t *testing.T) {
	nodes := meshOf(t, nil, "host", "inner")
	host, inner := nodes[0], nodes[1]
	host.declare("main-agent")
	inner.declare("ines")
	host.knows("ines")
	inner.knows("main-agent")
	const secret, public = "zanzibarquagga", "openingwords"
	talk := func(when string) {
		host.ok("send", "--from", "main-agent", "--to", "ines", secret+" "+when)
		inner.ok("send", "--from", "ines", "--to", "main-agent", secret+" back "+when)
		host.ok("delegate", "--from", "main-agent", "--to", "ines", secret+" work "+when)
	}
	talk("before")
	outside := map[string]*node{}
	for _, role := range []string{"upstream", "collab"} {
		n := newNode(t, role+"-node", "")
		if ready := n.up(host.invite("--role", role)); string(ready.Role) != role {
			t.Errorf("%s: ready says %+v", role, ready)
		}
		n.declare(role + "-agent")
		host.knows(protocol.AgentID(role + "-agent"))
		n.knows("main-agent")
		outside[role] = n
	}
	talk("after")
	var lines []string
	try := func(n *node, code int, args ...string) {
		t.Helper()
		r := n.run(args...)
		lines = append(lines, fmt.Sprintf("%s: aster %s: exit %d", n.name, strings.Join(args, " "), r.code))
		if r.code != code {
			t.Errorf("%s: aster %s: want exit %d: %s", n.name, strings.Join(args, " "), code, r)
		}
	}
	for role, n := range outside {
		who, direct := role+"-agent", map[string]int{"upstream": 0, "collab": 4}[role]
		try(host, direct, "delegate", "--from", "main-agent", "--to", who, public+" do this")
		try(host, 0, "send", "--from", "main-agent", "--to", who, public+" question")
		try(inner, 4, "delegate", "--from", "ines", "--to", who, "do this for me")
		try(n, direct, "delegate", "--from", who, "--to", "main-agent", "please do that")
		try(n, 0, "send", "--from", who, "--to", "main-agent", "please answer")
		want := 1
		if direct == 0 {
			want = 2
		}
		eventually(t, patience, who+" has its mail", func() (bool, string) {
			got := len(inboxOf(n, protocol.AgentID(who)))
			return got == want, fmt.Sprintf("%d messages, want %d", got, want)
		})
		eventually(t, patience, "main-agent has mail of "+who, func() (bool, string) {
			got := 0
			for _, items := range inboxOf(host, "main-agent") {
				if string(items[0].From) == who {
					got++
				}
			}
			return got == want, fmt.Sprintf("%d messages, want %d", got, want)
		})
	}
	eventually(t, patience, "the inside has both", func() (bool, string) {
		a, b := host.mustStatus(), inner.mustStatus()
		return a.Journal == b.Journal && a.BoardDigest == b.BoardDigest, fmt.Sprintf("%.8s %.8s", a.Journal, b.Journal)
	})
	for role, n := range outside {
		checkSees(t, n, role, secret, public)
	}
	if t.Failed() {
		t.Log(strings.Join(lines, "\n"))
	}
}

// checkSees looks for words in every byte of a home and in everything its API answers. The public words must be found
// by the same search, or it would prove nothing.
func checkSees(t *testing.T, n *node, role, secret, public string) {
	t.Helper()
	answers := map[string]string{}
	for _, args := range [][]string{
		{"search", "--json", secret}, {"search", "--json", public}, {"agents", "--json"}, {"peers", "--json"},
		{"task", "list", "--json"}, {"inbox", "--all", "--json", "--agent", role + "-agent"}, {"status", "--json"},
	} {
		answers["aster "+strings.Join(args[:len(args)-1], " ")] += n.ok(args...)
	}
	var all []byte
	must(t, n.api().Tail(t.Context(), client.TailQuery{Since: time.UnixMilli(1)}, func(e api.Event) (bool, error) {
		raw, err := json.Marshal(e)
		all = append(all, raw...)
		return false, err
	}))
	answers["the stream of all messages"] = string(all)
	foundPublic := 0
	look := func(where string, raw []byte) {
		if bytes.Contains(raw, []byte(secret)) {
			t.Errorf("the %s finds the inside's words in %s", role, where)
		}
		if bytes.Contains(raw, []byte(public)) {
			foundPublic++
		}
	}
	for where, answer := range answers {
		look(where, []byte(answer))
	}
	if foundPublic < 2 {
		t.Errorf("the %s's API shows its own mail in %d answers only: the search proves nothing", role, foundPublic)
	}
	foundPublic = 0
	err := filepath.WalkDir(n.home, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return nil // a file that went away meanwhile
		}
		raw, err := os.ReadFile(path)
		if err == nil {
			look(path, raw)
		}
		return nil
	})
	must(t, err)
	if foundPublic == 0 {
		t.Errorf("the %s's own mail is not found on its disk: the search proves nothing", role)
	}
}
