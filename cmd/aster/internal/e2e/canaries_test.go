package e2e

import (
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/aster-mesh/aster/protocol"
)

// canary is a word that is said once. Nothing else looks like it.
var canary = regexp.MustCompile(`canary\d{4}x[0-9a-f]{8}`)

// outsider is somebody who may have only what is addressed to them or said in their rooms while they are in.
type outsider struct {
	id   string
	url  string
	ears []*ear            // every connection it ever had
	may  map[string]string // words that it may have, with how they were said
	must map[string]string // those of them that it gets
}

func (o *outsider) now() *ear { return o.ears[len(o.ears)-1] }

// words are the canaries in all that its connections received.
func (o *outsider) words() map[string]bool {
	out := map[string]bool{}
	for _, e := range o.ears {
		for _, w := range canary.FindAll(e.bytes(), -1) {
			out[string(w)] = true
		}
	}
	return out
}

// aviary is a mesh with outsiders beside it, and what was said in it.
type aviary struct {
	t            *testing.T
	dice         *rand.Rand
	home, side   *node
	guest        *node
	insiders     []*ear // main first
	outside      []*outsider
	boards       []*ear // the controls: they see everything
	rooms        []*roomPlan
	said         map[string]string // word → how; those that boards must show
	kept         map[string]bool   // those that are in the logs of the inside
	parked       int               // words in rooms that waited for a person's
	conversation int
}

// roomPlan is a room as it should be.
type roomPlan struct {
	id, topic string
	in        map[*outsider]bool
}

// TestOutsidersGetNoWordThatIsNotTheirs: seeded conversations, each with a word of its own, beside a collab node, a collab
// client and a peer client. Every byte that these receive is searched, and the whole home of the node. Boards and a node
// of the inside are the control: with nothing held back, the same search finds the words. With ASTER_LONG=1 there are
// 1,000 conversations. Guards: KB10, B28.
func TestOutsidersGetNoWordThatIsNotTheirs(t *testing.T) {
	n := 100
	if long {
		n = 1000
	}
	a := newAviary(t)
	for a.conversation = range n {
		a.converse()
	}
	a.settle()
	a.search()
}

func newAviary(t *testing.T) *aviary {
	a := &aviary{t: t, dice: rand.New(rand.NewPCG(seed(t), 5)), said: map[string]string{}, kept: map[string]bool{}}
	nodes := meshOf(t, map[string]string{"home": mainHere}, "home", "side")
	a.home, a.side = nodes[0], nodes[1]
	a.guest = newNode(t, "guest", "agent = \"guest-agent\"\n")
	a.guest.up(a.home.invite("--role", "collab"))
	for _, who := range []struct {
		id string
		at *node
	}{{"main-agent", a.home}, {"worker-1", a.home}, {"worker-2", a.side}, {"worker-3", a.side}} {
		a.insiders = append(a.insiders, listen(t, socketOf(who.at), who.id))
	}
	for _, kind := range []string{"collab", "peer"} {
		key := a.home.ok("key", "issue", "--kind", kind)
		param := map[string]string{"collab": "key", "peer": "peerKey"}[kind]
		a.outside = append(a.outside, &outsider{id: kind + "-client", url: socketOf(a.home) + "?" + param + "=" + key})
	}
	a.outside = append(a.outside, &outsider{id: "guest-agent", url: socketOf(a.guest)})
	for _, o := range a.outside {
		o.may, o.must = map[string]string{}, map[string]string{}
		o.ears = append(o.ears, listen(t, o.url, o.id))
		a.home.knows(protocol.AgentID(o.id))
		a.side.knows(protocol.AgentID(o.id))
	}
	for _, who := range []string{"worker-2", "worker-3"} {
		a.home.knows(protocol.AgentID(who))
	}
	a.side.knows("worker-1")
	// A board of the guest's own is outside, too.
	watch := &outsider{id: "a board of the guest", url: socketOf(a.guest), may: a.outside[2].may, must: map[string]string{}}
	watch.ears = append(watch.ears, listen(t, watch.url, ""))
	a.outside = append(a.outside, watch)
	a.boards = []*ear{listen(t, socketOf(a.home), ""), listen(t, socketOf(a.side), "")}
	return a
}

func (a *aviary) insider() *ear { return a.insiders[a.dice.IntN(len(a.insiders))] }

// agents are the outsiders that are one.
func (a *aviary) agents() []*outsider { return a.outside[:3] }

func (a *aviary) outsider() *outsider { return a.agents()[a.dice.IntN(3)] }

// word makes a new word that these may have.
func (a *aviary) word(how string, to ...*outsider) string {
	w := fmt.Sprintf("canary%04dx%08x", a.conversation, a.dice.Uint32())
	how = fmt.Sprintf("conversation %d: %s", a.conversation, how)
	a.said[w] = how
	for _, o := range to {
		o.may[w], o.must[w] = how, how
	}
	return w
}

// keeping is word for what is a message in the logs.
func (a *aviary) keeping(how string, to ...*outsider) string {
	w := a.word(how, to...)
	a.kept[w] = true
	return w
}

const custom = `{"type":"CUSTOM","name":%q,"targetAgentId":%q,"msgId":"m-%s","value":{"text":%q}}`

// converse has one seeded conversation.
func (a *aviary) converse() {
	from, to, o := a.insider(), a.insider(), a.outsider()
	for to == from {
		to = a.insider()
	}
	pick := func(names ...string) string { return names[a.dice.IntN(len(names))] }
	switch kind := a.dice.IntN(20); kind {
	case 0, 1, 2:
		name := pick("Request", "Report", "Response", "WorkerReport", "NeverHeardOf", "Status", "Attachment", "DONE")
		w := a.keeping(name + " " + from.name + " to " + to.name)
		from.say(custom, name, to.name, w, w)
	case 3, 4:
		w := a.keeping("Request "+from.name+" to "+o.id, o)
		from.say(custom, pick("Request", "Report", "NeverHeardOf"), o.id, w, w)
	case 5:
		w := a.keeping("Request "+o.id+" to main", o)
		delete(o.must, w) // it knows what it said
		o.now().say(custom, "Request", "main-agent", w, w)
	case 6:
		w := a.keeping("Delegate of main")
		worker := a.insiders[1+a.dice.IntN(3)]
		a.insiders[0].say(custom, "Delegate", worker.name, w, w)
	case 7:
		w := a.keeping("a person's prompt to " + to.name)
		a.boards[a.dice.IntN(2)].say(custom, "UserPrompt", to.name, w, w)
	case 8:
		w := a.word("text of " + from.name)
		a.stream(from, "", w)
	case 9:
		w := a.word("text of "+from.name+" to "+o.id, o)
		a.stream(from, o.id, w)
	case 10:
		w := a.word("declaration of " + from.name)
		from.say(pick(`{"type":"CUSTOM","name":"OpsState","value":{"model":%q}}`, `{"type":"CUSTOM","name":"CommandManifest","value":{"commands":[{"name":"/x","desc":%q}]}}`,
			`{"type":"CUSTOM","name":"AgentActivity","value":{"tool":%q}}`, `{"type":"CUSTOM","name":"ServerNotice","value":{"kind":"note","text":%q}}`), w)
	case 11:
		w := a.word("question of " + from.name + " to people")
		from.say(`{"type":"CUSTOM","name":"SelectionPrompt","msgId":"m-%s","value":{"promptId":"p-%s","text":%q,"options":[{"label":"A"}]}}`, w, w, w)
	case 12:
		w := a.word("refused")
		delete(a.said, w) // boards are not shown it either
		if a.dice.IntN(2) == 0 {
			from.say(custom, "Request", "nobody-known", w, w)
		} else {
			from.say(custom, "Delegate", a.agents()[0].id, w, w)
		}
	case 13:
		a.ask(o)
	case 14:
		o.now().conn.Close(1000, "")
		<-o.now().gone
		o.ears = append(o.ears, listen(a.t, o.url, o.id))
	case 15:
		w := a.word("name of an agent")
		e := listen(a.t, socketOf(a.side), w)
		a.boards[1].hears("its name", func(h heard) bool { return h.Name == "AgentList" && strings.Contains(string(h.Value), w) })
		e.conn.Close(1000, "")
	default:
		a.inRoom()
	}
}

func (a *aviary) stream(from *ear, to, w string) {
	for _, part := range []string{"START", "CONTENT", "END"} {
		from.say(`{"type":"TEXT_MESSAGE_%s","messageId":"s-%s","role":"assistant","targetAgentId":%q,"delta":%q}`, part, w, to, w)
	}
}

// ask has an outsider ask for what is not its own.
func (a *aviary) ask(o *outsider) {
	channels := []string{"main-agent", "worker-1", "worker-2", o.id, "_"}
	for _, r := range a.rooms {
		channels = append(channels, "room:"+r.id)
		o.now().say(`{"type":"CUSTOM","name":"RequestRoomArtifacts","value":{"roomId":%q}}`, r.id)
	}
	for _, c := range channels[max(0, len(channels)-12):] {
		o.now().say(`{"type":"CUSTOM","name":"RequestChannelHistory","value":{"channelKey":%q,"limit":1000}}`, c)
	}
}

// inRoom makes a room, changes who is in one, or speaks in one.
func (a *aviary) inRoom() {
	if len(a.rooms) == 0 || a.dice.IntN(8) == 0 {
		a.makeRoom()
		return
	}
	r := a.rooms[a.dice.IntN(len(a.rooms))]
	if a.dice.IntN(3) == 0 {
		a.change(r, a.outsider())
	}
	var in []*outsider
	for _, o := range a.agents() {
		if r.in[o] {
			in = append(in, o)
		}
	}
	w := a.keeping(fmt.Sprintf("in room %s with %d outsiders", r.id, len(in)), in...)
	speaker, hearing := a.boards[0], a.boards[1:] // a person, who lets the talk go on; a board is not shown its own words
	if a.dice.IntN(2) == 0 {
		speaker.say(`{"type":"CUSTOM","name":"Note","roomId":%q,"value":{"text":"go on"}}`, r.id)
		speaker = a.insider()
		at := slices.Index(a.insiders, speaker) / 2 // two of them are at each node
		hearing = []*ear{a.boards[at], a.boards[1-at]}
	}
	speaker.say(`{"type":"CUSTOM","name":"Note","roomId":%q,"msgId":"m-%s","value":{"text":%q}}`, r.id, w, w)
	// Who is in changes only after everybody knows what was said before.
	for _, b := range hearing {
		f := b.hears(w, func(h heard) bool {
			return h.RoomID == r.id && h.MsgID == protocol.MsgID("m-"+w) || h.Name == "RoomGuard" && strings.Contains(string(h.Value), w)
		})
		if f.Name == "RoomGuard" { // it waits for who is in at another time: nothing is said in this room any more
			a.rooms = slices.DeleteFunc(a.rooms, func(o *roomPlan) bool { return o == r })
			delete(a.said, w)
			delete(a.kept, w)
			for _, o := range in {
				delete(o.must, w)
			}
			a.parked++
			return
		}
	}
}

func (a *aviary) makeRoom() {
	r := &roomPlan{in: map[*outsider]bool{}}
	names, who := `"main-agent","worker-1","worker-2","worker-3"`, []*outsider{}
	for _, o := range a.agents() {
		if a.dice.IntN(2) == 0 {
			r.in[o] = true
			who = append(who, o)
			names += fmt.Sprintf(",%q", o.id)
		}
	}
	w := a.word("topic of a room", who...)
	a.boards[0].say(`{"type":"CUSTOM","name":"RoomCreate","value":{"topic":%q,"participants":[%s],"budgets":{"maxConsecutive":100,"ratePerMin":1000,"maxAutoHop":100,"stallRounds":100}}}`, w, names)
	for _, b := range a.boards {
		b.hears("the room", func(h heard) bool {
			if h.Name != "RoomCreated" || !strings.Contains(string(h.Value), w) {
				return false
			}
			r.id = regexp.MustCompile(`rt-[0-9a-f]{12}`).FindString(string(h.Value))
			return true
		})
	}
	r.topic = w
	a.rooms = append(a.rooms, r)
}

// change lets somebody into a room or out of it, and returns when every node of the inside knows.
func (a *aviary) change(r *roomPlan, o *outsider) {
	verb, event := "RoomJoin", "RoomJoined"
	if r.in[o] {
		verb, event = "RoomLeave", "RoomLeft"
	}
	r.in[o] = !r.in[o]
	a.boards[0].say(`{"type":"CUSTOM","name":%q,"value":{"roomId":%q,"agentId":%q}}`, verb, r.id, o.id)
	for _, b := range a.boards {
		b.hears(event, func(h heard) bool {
			return h.Name == event && strings.Contains(string(h.Value), r.id) && strings.Contains(string(h.Value), o.id)
		})
	}
	o.may[r.topic] = "topic of a room that it was in" // the room's own, not a word said in it
}

// settle waits until everybody has what is theirs, and until a question and its answer have passed after all of it.
func (a *aviary) settle() {
	a.t.Helper()
	for _, o := range a.agents() {
		o.now().say(custom, "Request", "main-agent", "fence-"+o.id, "fence")
		a.insiders[0].hears("the fence of "+o.id, func(h heard) bool { return h.MsgID == protocol.MsgID("m-fence-"+o.id) })
		a.insiders[0].say(custom, "Response", o.id, "answer-"+o.id, "fence")
		o.now().hears("the answer", func(h heard) bool { return h.MsgID == protocol.MsgID("m-answer-"+o.id) })
		eventually(a.t, patience, o.id+" has what is its own", func() (bool, string) {
			got := o.words()
			var lacks []string
			for w, how := range o.must {
				if !got[w] {
					lacks = append(lacks, w+" ("+how+")")
				}
			}
			slices.Sort(lacks)
			return len(lacks) == 0, fmt.Sprintf("%d of %d missing, first %q", len(lacks), len(o.must), lacks[:min(5, len(lacks))])
		})
	}
	eventually(a.t, patience, "the boards show everything", func() (bool, string) {
		shown := (&outsider{ears: a.boards}).words()
		var lacks []string
		for w, how := range a.said {
			if !shown[w] {
				lacks = append(lacks, w+" ("+how+")")
			}
		}
		slices.Sort(lacks)
		return len(lacks) == 0, fmt.Sprintf("%d of %d missing, first %q", len(lacks), len(a.said), lacks[:min(5, len(lacks))])
	})
}

// search looks for words of others in all that outsiders have, and for all words on a node of the inside.
func (a *aviary) search() {
	a.t.Helper()
	own := 0
	for _, o := range a.outside {
		for w := range o.words() {
			if o.may[w] == "" {
				a.t.Errorf("%s was given %s, %s", o.id, w, a.said[w])
				continue
			}
			own++
		}
	}
	a.guest.kill()
	a.side.kill()
	guest := onDisk(a.t, a.guest)
	for w := range guest {
		if a.outside[2].may[w] == "" {
			a.t.Errorf("the home of the guest holds %s, %s", w, a.said[w])
		}
	}
	inside := onDisk(a.t, a.side)
	lacks := 0
	for w := range a.kept {
		if !inside[w] {
			lacks++
		}
	}
	if lacks > 0 || len(guest) == 0 || own == 0 || len(a.kept) < a.conversation/3 {
		a.t.Errorf("the search proves nothing: %d words, %d kept, of which %d are not in a home of the inside; %d in that of the guest, %d with outsiders", len(a.said), len(a.kept), lacks, len(guest), own)
	}
	a.t.Logf("%d conversations, %d words, %d with outsiders, %d rooms (%d parked), %d in the home of the guest, %d in that of a node inside", a.conversation+1, len(a.said), own, len(a.rooms), a.parked, len(guest), len(inside))
}

// onDisk are the canaries in all files of a node, and in what it said.
func onDisk(t *testing.T, n *node) map[string]bool {
	t.Helper()
	out := map[string]bool{}
	must(t, filepath.WalkDir(filepath.Dir(n.home), func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		raw, err := os.ReadFile(path)
		for _, w := range canary.FindAll(raw, -1) {
			out[string(w)] = true
		}
		return err
	}))
	return out
}
