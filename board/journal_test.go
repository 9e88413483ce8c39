package board

import (
	"bytes"
	"crypto/ed25519"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/roles/keys"
	"github.com/aster-mesh/aster/roles/member"
)

var day0 = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// mesh is a founder, two members inside and one outside, all admitted by the founder.
type mesh struct {
	id    member.MeshID
	key   ed25519.PrivateKey
	peers []protocol.PeerID
	chain []member.Chain
	roles []protocol.Role
}

func testKey(n byte) ed25519.PrivateKey { return ed25519.NewKeyFromSeed(bytes.Repeat([]byte{n}, 32)) }

func newMesh(t testing.TB) mesh {
	t.Helper()
	m := mesh{key: testKey(99), roles: []protocol.Role{protocol.RoleLocal, protocol.RoleLocal, protocol.RoleLocal, protocol.RoleUpstream}}
	m.id = member.MeshIDOf(m.key.Public().(ed25519.PublicKey))
	for i, role := range m.roles {
		key := testKey(byte(i + 1))
		p := protocol.PeerIDOf(key.Public().(ed25519.PublicKey))
		a := member.Admit{Peer: p, Name: fmt.Sprintf("node-%d", i), Role: role}
		var chain member.Chain
		var r *protocol.Refusal
		if i == 0 {
			chain, r = member.Found(m.key, a, day0)
		} else {
			chain, r = member.Issue(testKey(1), m.chain[0], a, day0)
		}
		if r != nil {
			t.Fatal(r)
		}
		m.peers, m.chain = append(m.peers, p), append(m.chain, chain)
	}
	return m
}

func (m *mesh) admits(i int) protocol.MemberBody {
	c := m.chain[i][0].Cert
	return protocol.MemberBody{Peer: c.Peer, Name: c.Name, Role: c.Role, Chain: member.EncodeChain(m.chain[i])}
}

// journal is a set of logs under writing.
type journal struct {
	mesh
	logs  []*journalLog
	clock protocol.HLC
}

type journalLog struct {
	id      protocol.LogID
	records []*protocol.Record
	last    protocol.HLC
}

func newJournal(t testing.TB) *journal { return &journal{mesh: newMesh(t), clock: 1 << 20} }

func (j *journal) open(node int, scope protocol.Scope) *journalLog {
	l := &journalLog{id: protocol.LogID{Peer: j.peers[node], Start: protocol.Start{At: 1 << 20, Rand: uint64(len(j.logs))}, Scope: scope}}
	j.logs = append(j.logs, l)
	return l
}

func (l *journalLog) raw(at protocol.HLC, kind protocol.Kind, body []byte) *protocol.Record {
	l.last = max(l.last+1, at)
	r := &protocol.Record{Log: l.id, Seq: uint64(len(l.records) + 1), At: l.last, Wall: int64(l.last) * 10, Kind: kind, Body: body}
	if n := len(l.records); n > 0 {
		r.Prev = l.records[n-1].Hash()
	}
	l.records = append(l.records, r)
	return r
}

func (j *journal) write(l *journalLog, kind protocol.Kind, body any) *protocol.Record {
	j.clock += 10
	return l.raw(j.clock, kind, protocol.EncodeBody(body))
}

// bind writes the bindings behind which a log tells words of agents.
func (j *journal) bind(l *journalLog, ids ...protocol.AgentID) {
	for _, id := range ids {
		j.write(l, protocol.KindBind, protocol.BindBody{Agent: id, Home: l.id.Peer, Since: 1, Role: protocol.RoleLocal})
	}
}

// merged is the journal in one of the orders in which it may arrive: each log's records in their order.
func (j *journal) merged(dice *rand.Rand) []*protocol.Record {
	var out []*protocol.Record
	next := make([]int, len(j.logs))
	open := make([]int, 0, len(j.logs))
	for i, l := range j.logs {
		if len(l.records) > 0 {
			open = append(open, i)
		}
	}
	for len(open) > 0 {
		k := dice.IntN(len(open))
		i := open[k]
		for n := 1 + dice.IntN(1+dice.IntN(20)); n > 0 && next[i] < len(j.logs[i].records); n-- {
			out = append(out, j.logs[i].records[next[i]])
			next[i]++
		}
		if next[i] == len(j.logs[i].records) {
			open = append(open[:k], open[k+1:]...)
		}
	}
	return out
}

// fold applies records as the node does: when a cut takes back what was shown, from the start.
func fold(t testing.TB, s *State, records []*protocol.Record) *State {
	t.Helper()
	for _, r := range records {
		if err := s.Apply(r, nil); err != nil {
			t.Fatal(err)
		}
	}
	if s.Stale() {
		s = s.Restart()
		for _, r := range records {
			if err := s.Apply(r, nil); err != nil {
				t.Fatal(err)
			}
		}
		if s.Stale() {
			t.Fatal("stale after a restart that knew all cuts")
		}
	}
	return s
}

func emptyState(j *journal, kept int) *State { return newState(member.NewRoster(j.id), kept) }

// randomJournal writes n records of all kinds, sound and broken, few names so that they meet.
func randomJournal(t testing.TB, seed uint64, n int) *journal {
	dice := rand.New(rand.NewPCG(seed, 7))
	j := newJournal(t)
	var logs []*journalLog
	for node := range 3 {
		logs = append(logs, j.open(node, protocol.ScopeInside), j.open(node, protocol.ScopeInside), j.open(node, protocol.ScopeOutside(j.peers[3])))
	}
	logs = append(logs, j.open(3, protocol.ScopeOutside(j.peers[3])))
	for i := range j.mesh.peers {
		j.write(logs[0], protocol.KindMember, j.admits(i))
	}
	for _, l := range logs {
		for _, id := range []protocol.AgentID{"a", "b", "c", "a-2"} {
			if dice.IntN(5) > 0 { // else its words in this log are forged
				j.bind(l, id)
			}
		}
	}
	for range n {
		l := logs[dice.IntN(len(logs))]
		kind, body := randomBody(dice, j, logs)
		if l.id.Scope == protocol.ScopeInside && dice.IntN(9) == 0 {
			kind, body = randomDecision(dice, j, l, logs)
		}
		if dice.IntN(25) == 0 {
			body = []byte([]string{"", "{", "null", "[]", `{"to":7}`, "\xff"}[dice.IntN(6)])
		}
		j.clock += protocol.HLC(dice.IntN(20))
		at := j.clock
		if dice.IntN(4) == 0 {
			at -= protocol.HLC(dice.IntN(400)) // clocks differ, and some times are equal
		}
		l.raw(at, kind, body)
	}
	return j
}

func randomBody(dice *rand.Rand, j *journal, logs []*journalLog) (protocol.Kind, []byte) {
	agent := func() protocol.AgentID { return protocol.AgentID([]string{"a", "A", "b", "c", "a-2"}[dice.IntN(5)]) }
	id := func() protocol.MsgID { return protocol.MsgID(fmt.Sprintf("m-%d", dice.IntN(20))) }
	was := func() protocol.AgentID { return protocol.AgentID([]string{"", "", "", "a", "b"}[dice.IntN(5)]) }
	enc := func(kind protocol.Kind, v any) (protocol.Kind, []byte) { return kind, protocol.EncodeBody(v) }
	switch dice.IntN(18) {
	case 0, 1, 2:
		return enc(protocol.KindMessage, protocol.Envelope{ID: id(), From: agent(), To: agent(), Intent: protocol.Delegate, Value: json.RawMessage(fmt.Sprintf(`{"task":"do %d","base":"b%d"}`, dice.IntN(99), dice.IntN(9)))})
	case 3, 4, 5:
		return enc(protocol.KindMessage, protocol.Envelope{ID: id(), From: agent(), To: agent(), Intent: protocol.WorkerReport, Re: id(), FromWas: was(), Value: randomReport(dice), Blobs: []protocol.BlobRef{{SHA256: fmt.Sprint(dice.IntN(9)), Use: "result"}}})
	case 6:
		return enc(protocol.KindMessage, protocol.Envelope{ID: id(), From: agent(), To: agent(), Intent: protocol.Cancel, Re: id(), ToWas: was()})
	case 7:
		return enc(protocol.KindMessage, protocol.Envelope{ID: id(), From: agent(), Intent: protocol.Intent([]string{"OpsState", "RoleState", "CapabilityManifest"}[dice.IntN(3)]), Value: json.RawMessage(fmt.Sprintf(`{ "n" : %[1]d, "role":"r%[1]d", "t":"<&>" }`, dice.IntN(9)))})
	case 8:
		return enc(protocol.KindMessage, protocol.Envelope{ID: id(), From: agent(), To: agent(), Intent: protocol.Intent([]string{"Request", "made-up", "other-made-up"}[dice.IntN(3)])})
	case 9, 10:
		of := logs[dice.IntN(len(logs))]
		from := uint64(dice.IntN(60))
		ranges := []uint64{from, from + uint64(dice.IntN(30)), uint64(dice.IntN(60)), uint64(dice.IntN(60))}
		if dice.IntN(10) == 0 {
			ranges = [][]uint64{{5, ^uint64(0)}, {^uint64(0), ^uint64(0)}, {3}, {9, 2}, {1, 1 << 62}}[dice.IntN(5)]
		}
		return enc(protocol.KindReceipts, protocol.ReceiptsBody{Tier: []protocol.Tier{protocol.Persisted, protocol.Processed, protocol.Refused, protocol.Logged}[min(dice.IntN(9), 3)], Agent: agent(), Of: []protocol.LogRange{{Log: of.id.String(), Ranges: ranges}}, Reason: "r"})
	case 11, 12:
		return enc(protocol.KindBind, protocol.BindBody{Agent: agent(), Home: j.peers[dice.IntN(4)], Since: protocol.HLC(dice.IntN(50)), Role: []protocol.Role{"local", "main", "peer", "board", ""}[dice.IntN(5)], Forgotten: dice.IntN(4) == 0, RenamedTo: was()})
	case 13:
		return enc(protocol.KindPresence, protocol.PresenceBody{Agent: agent(), State: []string{"idle", "working"}[dice.IntN(2)]})
	case 14:
		switch dice.IntN(9) {
		case 0:
			who := 1 + dice.IntN(3)
			cuts := map[string]uint64{}
			for _, l := range logs {
				if l.id.Peer == j.peers[who] && dice.IntN(3) > 0 {
					cuts[l.id.String()] = uint64(dice.IntN(50))
				}
			}
			return enc(protocol.KindRevoke, protocol.RevokeBody{Peer: j.peers[who], Cuts: cuts})
		case 1:
			return enc(protocol.KindInviteUsed, protocol.InviteUsedBody{Invite: fmt.Sprintf("%016d", dice.IntN(3)), Peer: j.peers[dice.IntN(4)]})
		case 2:
			return enc(protocol.KindMember, j.admits(dice.IntN(4)))
		}
		return enc(protocol.KindTerm, protocol.TermBody{Number: uint64(dice.IntN(4)), Peer: j.peers[dice.IntN(4)], Agent: agent()})
	case 16:
		body := protocol.RoomBody{Room: protocol.RoomID(fmt.Sprint("rt-", dice.IntN(3))), Agent: agent(), By: agent(), Participants: []protocol.AgentID{agent(), agent()}, Intent: "request", Bid: float64(dice.IntN(3))}
		body.Op = []protocol.RoomOp{protocol.RoomCreated, protocol.RoomJoined, protocol.RoomLeft, protocol.RoomArtifacts, protocol.RoomFloor, protocol.RoomStall, protocol.RoomShared, protocol.RoomClosed, "new"}[min(dice.IntN(27)/3, 8)]
		if body.Op == protocol.RoomArtifacts {
			body.Header, body.Decision = &protocol.RoomText{Text: fmt.Sprint(dice.IntN(99))}, &protocol.RoomText{Text: "d"}
		}
		return enc(protocol.KindRoom, body)
	case 17:
		env := protocol.Envelope{ID: id(), From: agent(), Room: protocol.RoomID(fmt.Sprint("rt-", dice.IntN(3))), Intent: "Say", Addressee: []protocol.AgentID{agent()}[:dice.IntN(2)], Rcpt: []protocol.AgentID{agent()}}
		if dice.IntN(4) == 0 {
			env.From = ""
		}
		return enc(protocol.KindMessage, env)
	case 15:
		if dice.IntN(4) > 0 {
			return enc(protocol.KindKey, randomKeyStep(dice, agent()))
		}
	}
	if dice.IntN(2) == 0 {
		steps := []protocol.ChannelStep{protocol.ChannelArchive, protocol.ChannelRestore, protocol.ChannelDelete, protocol.ChannelClose, "new"}
		return enc(protocol.KindChannel, protocol.ChannelBody{Step: steps[dice.IntN(len(steps))], Channel: string(agent()), Count: dice.IntN(3), Last: int64(dice.IntN(3))})
	}
	return protocol.Kind([]string{"new-kind", "newer-kind"}[dice.IntN(2)]), []byte(`{"x":1}`)
}

func randomReport(dice *rand.Rand) json.RawMessage {
	return json.RawMessage([]string{
		fmt.Sprintf(`{"status":"in_progress","summary":"s%d","stage":"tests","tail":"t%d"}`, dice.IntN(99), dice.IntN(99)),
		`{"status":"blocked","summary":"which?"}`,
		fmt.Sprintf(`{"status":"done","outcome":"done","summary":"d%d","attempt":1,"exit":0,"durationMs":31,"commit":"c%d","diff":{"files":1,"added":%d,"removed":1,"paths":["x"]}}`, dice.IntN(99), dice.IntN(99), dice.IntN(9)),
		`{"status":"blocked","outcome":"failed","exit":2}`,
		`{"status":"blocked","outcome":"cancelled"}`,
		`{"status":"done"}`,
		`{"status":7,"outcome":[],"exit":"x","diff":3,"attempt":-1}`,
		`"only words"`,
		`{"outcome":"unheard-of"}`,
	}[min(dice.IntN(14), 8)])
}

func randomKeyStep(dice *rand.Rand, who protocol.AgentID) protocol.KeyBody {
	steps := []protocol.KeyStep{protocol.KeyIssue, protocol.KeyUse, protocol.KeyLabel, protocol.KeyRenew, protocol.KeyRevoke, protocol.KeyEnd, protocol.KeyLapse, "new"}
	return protocol.KeyBody{
		Step: steps[dice.IntN(len(steps))], Hash: keys.HashOf(fmt.Sprint(dice.IntN(3))).String(), Kind: []string{"collab", "local", "none"}[dice.IntN(3)],
		Label: fmt.Sprint(dice.IntN(3)), TTL: int64(dice.IntN(3)), Agent: who, Until: int64(dice.IntN(3)),
	}
}
