package hub

import (
	"bufio"
	"cmp"
	"crypto/ed25519"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	diffs "github.com/google/go-cmp/cmp"

	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/roles/room"
)

var update = flag.Bool("update", false, "rewrite the traces of the plays")

// TestPlays runs every testdata/plays/*.txt: prose, "-- script --", lines of commands, "-- trace --", what the hub did.
// A command and what followed from it stand together in the trace, so that a reviewer reads the hub's behaviour.
func TestPlays(t *testing.T) {
	files, err := filepath.Glob("testdata/plays/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal("no plays", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			raw, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			prose, rest, ok := strings.Cut(string(raw), "-- script --\n")
			script, want, ok2 := strings.Cut(rest, "-- trace --\n")
			if !ok || !ok2 {
				t.Fatalf("%s needs -- script -- and -- trace --", file)
			}
			got := newStage().run(t, script)
			if *update {
				if err := os.WriteFile(file, []byte(prose+"-- script --\n"+script+"-- trace --\n"+got), 0o600); err != nil {
					t.Fatal(err)
				}
				return
			}
			if diff := diffs.Diff(want, got); diff != "" {
				t.Errorf("trace differs (-want +got):\n%s", diff)
			}
		})
	}
}

// stage is a hub with a clock, a journal of identities and names for its peers.
type stage struct {
	core  *Core
	now   time.Time
	peers map[string]protocol.PeerID
	names map[protocol.PeerID]string
	seen  map[protocol.Digest]Seen
	envs  map[Ref]*protocol.Envelope
	conns map[string]ConnID
	who   map[ConnID]string
	seqs  map[protocol.LogID]uint64
	asked []Selected
	vals  map[string][]byte
	over  map[Ref]bool    // processed or refused
	room  protocol.RoomID // the one made last
	last  ConnID
	toks  Token
}

func newStage() *stage {
	s := &stage{
		now: time.UnixMilli(1_790_000_000_000), peers: map[string]protocol.PeerID{}, names: map[protocol.PeerID]string{},
		seen: map[protocol.Digest]Seen{}, envs: map[Ref]*protocol.Envelope{}, conns: map[string]ConnID{}, who: map[ConnID]string{}, vals: map[string][]byte{}, over: map[Ref]bool{}, seqs: map[protocol.LogID]uint64{},
	}
	self := s.peer("here")
	s.core = New(Boot{
		Self: self, Start: protocol.Start{At: 1, Rand: 1}, Term: protocol.TermBody{Number: 1, Peer: self, Agent: "main"},
		Members: map[protocol.PeerID]Member{self: {Name: "here", Role: protocol.RoleLocal, Inside: true}},
	})
	return s
}

func (s *stage) peer(name string) protocol.PeerID {
	if p, ok := s.peers[name]; ok {
		return p
	}
	seed := make([]byte, ed25519.SeedSize)
	copy(seed, name)
	p := protocol.PeerIDOf(ed25519.NewKeyFromSeed(seed).Public().(ed25519.PublicKey))
	s.peers[name], s.names[p] = p, name
	return p
}

func (s *stage) run(t *testing.T, script string) string {
	t.Helper()
	var out strings.Builder
	lines := bufio.NewScanner(strings.NewReader(script))
	for lines.Scan() {
		line := strings.TrimSpace(lines.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		fmt.Fprintf(&out, "%s\n", line)
		s.do(t, strings.Fields(line))
		s.settle(&out)
	}
	return out.String()
}

// settle plays the loop: what the Steps drafted is durable now, then the consequences show.
func (s *stage) settle(out *strings.Builder) {
	rd := s.core.Ready(s.now)
	for _, d := range rd.Drafts {
		ref := Ref{d.Record.Log, d.Record.Seq}
		switch d.Record.Kind {
		case protocol.KindMessage:
			if d.Env == nil { // of a room, for a member outside
				env, _ := protocol.DecodeBody[protocol.Envelope](&d.Record)
				fmt.Fprintf(out, "  log %s copy of %s for %v\n", s.ref(ref), env.ID, env.Rcpt)
				continue
			}
			s.envs[ref] = d.Env
			if _, ok := s.seen[d.Env.Identity()]; !ok {
				s.seen[d.Env.Identity()] = Seen{d.Env.Content(), ref}
			}
			if selection(d.Env.Intent) {
				s.asked = append(s.asked, Selected{ref, d.Env, time.UnixMilli(d.Record.Wall)})
			}
			fmt.Fprintf(out, "  log %s msg %s\n", s.ref(ref), d.Env.ID)
		case protocol.KindReceipts:
			body, _ := protocol.DecodeBody[protocol.ReceiptsBody](&d.Record)
			fmt.Fprintf(out, "  log %s %s by %s %s\n", s.ref(ref), body.Tier, body.Agent, body.Reason)
		case protocol.KindPresence:
			body, _ := protocol.DecodeBody[protocol.PresenceBody](&d.Record)
			fmt.Fprintf(out, "  log %s presence %s %s\n", s.ref(ref), body.Agent, body.State)
		case protocol.KindRoom:
			body, _ := protocol.DecodeBody[protocol.RoomBody](&d.Record)
			fmt.Fprintf(out, "  log %s %s", s.ref(ref), d.Record.Kind)
			if _, ok := d.Record.Log.Scope.Outsider(); ok {
				fmt.Fprintf(out, " %s %s %v", body.Op, body.Agent, body.Participants)
			}
			fmt.Fprintln(out)
		default:
			fmt.Fprintf(out, "  log %s %s\n", s.ref(ref), d.Record.Kind)
		}
	}
	for _, t := range rd.Tiers {
		s.over[t.Ref] = s.over[t.Ref] || t.Tier == protocol.Processed || t.Tier == protocol.Refused
	}
	for k, v := range rd.Values {
		if s.vals[k] = v; v == nil {
			delete(s.vals, k)
		}
	}
	for _, o := range rd.Out {
		if text := s.show(o); text != "" {
			fmt.Fprintf(out, "  %s\n", strings.TrimRight(text, " "))
		}
	}
}

func (s *stage) ref(r Ref) string {
	scope := string(r.Log.Scope)
	if p, ok := r.Log.Scope.Outsider(); ok {
		scope = "out:" + s.names[p]
	}
	return fmt.Sprintf("%s/%s#%d", s.names[r.Log.Peer], scope, r.Seq)
}

func (s *stage) show(o Out) string {
	switch o := o.(type) {
	case Deliver:
		env := s.envs[o.Ref]
		if shown := s.core.Aliases().Shown(o.Ref.Log.Peer, env); shown != env {
			return fmt.Sprintf("%s <- %s by %s try %d", s.who[o.Conn], env.ID, shown.From, o.Try)
		}
		return fmt.Sprintf("%s <- %s try %d", s.who[o.Conn], env.ID, o.Try)
	case Told:
		switch {
		case o.Refusal != nil:
			return fmt.Sprintf("told refused %s: %s", o.Refusal.Code, o.Refusal.Error())
		case o.Wait != nil:
			return fmt.Sprintf("told wait %s %d unread %v again=%v", o.Wait.Agent, o.Wait.Unread, o.Wait.IDs, o.Wait.Again)
		case o.Repeat:
			return fmt.Sprintf("told repeat of %s", s.ref(o.Ref))
		}
		return ""
	case TierReached:
		if o.Kept {
			return fmt.Sprintf("kept %s by %s", s.ref(o.Ref), o.Agent)
		}
		if o.Delivered {
			return fmt.Sprintf("delivered %s to %s", s.ref(o.Ref), o.Agent)
		}
		return fmt.Sprintf("tier %s %s %s %s", s.ref(o.Ref), o.Tier, o.Agent, o.Reason)
	case HintDelivered:
		return fmt.Sprintf("hint %s delivered %s", s.names[o.Home], s.ref(o.Ref))
	case Storm:
		return fmt.Sprintf("people hear: %s and %s have answered each other %d times", o.A, o.B, o.Turns)
	case StormOver:
		return fmt.Sprintf("over between %s and %s", o.A, o.B)
	case QueuedNotice:
		return fmt.Sprintf("%s hears that %s for %s is queued", o.Sender, o.ID, o.Target)
	case Roster:
		if o.Conn == 0 {
			return "roster to all"
		}
		return "roster to " + s.who[o.Conn]
	case Welcome:
		return fmt.Sprintf("%s is %s", o.Agent, o.Role)
	case Replaced:
		return fmt.Sprintf("close %s flap=%v", s.who[o.Conn], o.Flap)
	case MovedAway:
		return fmt.Sprintf("close %s: %s lives on %s", s.who[o.Conn], o.Agent, s.names[o.Home])
	case Recalled:
		return fmt.Sprintf("%s hears: %s is called %s now", s.who[o.Conn], o.Was, o.Is)
	case RoomEvent:
		var to []string
		for _, id := range o.Conns {
			to = append(to, s.who[id])
		}
		if o.Name == "RoomCreated" {
			s.room = o.Room
		}
		return fmt.Sprintf("%s to %v boards=%v %s", o.Name, to, o.Boards, strings.ReplaceAll(string(o.Value), string(s.room), "ROOM"))
	case RoomAcked:
		return fmt.Sprintf("%s hears: %s reached %d, waits for %v", o.Sender, o.ID, o.Reached, o.Offline)
	case MainChanged:
		return "main is " + string(o.Agent)
	}
	return ""
}

func (s *stage) do(t *testing.T, w []string) {
	t.Helper()
	arg := func(i int) string {
		if i < len(w) {
			return w[i]
		}
		return ""
	}
	s.toks++
	switch w[0] {
	case "attach": // attach CONN AGENT [ack-layer]
		s.last++
		s.conns[w[1]], s.who[s.last] = s.last, w[1]
		s.core.Step(s.now, Attach{Conn: s.last, Agent: protocol.AgentID(w[2]), Client: clientOf(arg(3)), Role: protocol.RoleLocal, AckLayer: arg(3) == "ack-layer", Token: s.toks})
	case "detach":
		s.core.Step(s.now, Detach{Conn: s.conns[w[1]]})
	case "declare":
		s.core.Step(s.now, Declare{Agent: protocol.AgentID(w[1]), Client: "worker", Token: s.toks})
	case "say": // say FROM TO INTENT ID [VALUE] [re=ID]
		env := s.envelope(w)
		in := Say{As: protocol.AgentID(w[1]), Env: env, Token: s.toks}
		if w[1] == "person" {
			in.As = ""
		}
		if re := strings.TrimPrefix(arg(6), "re="); re != "" {
			for _, e := range s.envs {
				if e.ID == protocol.MsgID(re) {
					in.Parent, in.Env.Re = e, e.ID
				}
			}
		}
		in.Env.From = in.As
		if old, ok := s.seen[in.Env.Identity()]; ok {
			in.Seen = &old
		}
		s.core.Step(s.now, in)
	case "ack", "keep": // ack AGENT ID: processed; keep: its adapter has it
		s.core.Step(s.now, Acked{Agent: protocol.AgentID(w[1]), Of: protocol.MsgID(w[2]), Processed: w[0] == "ack", Token: s.toks})
	case "taken":
		var refs []Ref
		for r := range s.core.conns[s.conns[w[1]]].inflight {
			refs = append(refs, r)
		}
		s.core.Step(s.now, Taken{Conn: s.conns[w[1]], Refs: refs})
	case "wait":
		s.core.Step(s.now, Wait{Agent: protocol.AgentID(w[1]), Token: s.toks})
	case "pass":
		s.pass(t, w[1])
	case "member": // member NAME ROLE
		all := map[protocol.PeerID]Member{}
		for p, m := range s.core.members {
			all[p] = m
		}
		role := protocol.Role(w[2])
		all[s.peer(w[1])] = Member{Name: w[1], Role: role, Inside: role.Inside()}
		s.core.Step(s.now, Members{all})
	case "restart": // the process ends and begins anew, with what the journal holds
		b := Boot{Clock: s.core.Clock(), Self: s.core.self, Start: protocol.Start{At: 1, Rand: 1}, Members: s.core.members, Term: s.core.term, Selections: s.asked, Seqs: s.core.author.seqs, Parked: s.vals, Early: s.vals, Held: s.seqs, Rooms: map[protocol.RoomID]*room.Room{}}
		kept, err := json.Marshal(s.core.rooms)
		if err != nil || json.Unmarshal(kept, &b.Rooms) != nil {
			t.Fatal("rooms do not survive", err)
		}
		for _, a := range s.core.agents {
			b.Agents = append(b.Agents, Bound{Bind: a.says(), At: a.word.at, Homes: a.homes, Guest: a.guest, Move: a.arrives})
		}
		s.remember(&b)
		s.core = New(b)
	case "from": // from PEER KIND …: a record of another node
		s.foreign(w)
	case "fill": // fill AGENT N [FROM]: so many messages
		var n int
		fmt.Sscan(w[2], &n)
		from := cmp.Or(arg(3), "main")
		for i := range n {
			s.core.Step(s.now, Say{As: protocol.AgentID(from), Env: s.envelope([]string{"say", from, w[1], "Request", fmt.Sprintf("%s-f%d", from, i)})})
		}
		for _, d := range s.core.Ready(s.now).Drafts {
			if d.Env != nil {
				s.envs[Ref{d.Record.Log, d.Record.Seq}] = d.Env
			}
		}
	default:
		if !s.more(w) {
			t.Fatalf("no such command: %q", w[0])
		}
	}
}

// pass lets time go by as the loop would: one Tick at each moment that the hub asked for.
func (s *stage) pass(t *testing.T, text string) {
	t.Helper()
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Fatal(err)
	}
	end := s.now.Add(d)
	for range 1000 {
		at := s.core.Next()
		if at.IsZero() || at.After(end) {
			s.now = end
			return
		}
		s.now = at
		s.core.Step(s.now, Tick{})
	}
	t.Fatal("the hub asks for ticks without end")
}

func (s *stage) envelope(w []string) protocol.Envelope {
	value := json.RawMessage(`{}`)
	if len(w) > 5 && w[5] != "-" {
		value = json.RawMessage(w[5])
	}
	to := protocol.AgentID(w[2])
	if to == "-" {
		to = ""
	}
	env := protocol.Envelope{ID: protocol.MsgID(w[4]), To: to, Intent: protocol.Intent(w[3]), Value: value}
	if to == "ROOM" {
		env.To, env.Room = "", s.room
	}
	env.Value = json.RawMessage(strings.ReplaceAll(string(env.Value), "ROOM", string(s.room)))
	for _, opt := range w[min(len(w), 6):] {
		switch k, v, _ := strings.Cut(opt, "="); k {
		case "addr":
			env.Addressee = append(env.Addressee, protocol.AgentID(v))
		case "replyTo":
			env.ReplyTo = v
		case "notice":
			env.Notice = true
		case "floor":
			env.Floor = json.RawMessage(v)
		case "rcpt":
			env.Rcpt = append(env.Rcpt, protocol.AgentID(v))
		case "room":
			env.Room = protocol.RoomID(strings.ReplaceAll(v, "ROOM", string(s.room)))
		}
	}
	return env
}
