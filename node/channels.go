package node

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/aster-mesh/aster/board"
	"github.com/aster-mesh/aster/node/hub"
	"github.com/aster-mesh/aster/node/journal"
	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/api"
	"github.com/aster-mesh/aster/protocol/asterism"
)

// channelVerbs are a person's steps on a channel of what was said (wire 4.1, 5.4).
var channelVerbs = map[protocol.Intent]protocol.ChannelStep{
	"ArchiveChannel": protocol.ChannelArchive, "DeleteChannelHistory": protocol.ChannelDelete, "CloseChannel": protocol.ChannelClose,
}

// channelPages bounds how far back a channel is looked for, in pages of 1,000 messages.
const channelPages = 20

// channelVerb carries out a step of a board. Nobody else puts away or deletes what was said: an agent could hide its words.
func (s *socket) channelVerb(f *asterism.Frame, name protocol.Intent) {
	key, no := s.channelNamed(f, name)
	if no != nil {
		s.refuse(f, no)
		return
	}
	found, err := s.n.channelMessages(key, 1000)
	if err != nil {
		s.unable(f, err, protocol.CodeBadFrame, "the channel could not be read")
		return
	}
	l := s.n.loop
	_ = l.post(s.n.ctx, func() {
		if s.gone {
			return
		}
		if k, ok := l.core.Agent(protocol.AgentID(key)); ok {
			key = string(k.Agent)
		} else if len(found) == 0 && l.board.Channels().Of(key) == nil && !l.board.HasRoom(key) {
			s.conn.Send(l.enc.Refused(l.now, "", protocol.MsgID(f.MsgID), protocol.Refuse(protocol.CodeUnknownID,
				"there is no channel %q", "channels are named after agents, and room:ID after rooms", protocol.CutText(key, 80))))
			return
		}
		l.stepOnChannel(channelVerbs[name], key, found)
	})
}

// channelNamed is the channel that a verb of this connection is about, or why it may not be said.
func (s *socket) channelNamed(f *asterism.Frame, name protocol.Intent) (string, *protocol.Refusal) {
	var v struct {
		AgentID    string `json:"agentId"`
		ChannelKey string `json:"channelKey"`
	}
	switch {
	case s.session.Sender().ID != "":
		return "", protocol.Refuse(protocol.CodeNotAllowed, "only a person at a board says %s", "ask one", string(name))
	case !s.n.role().Inside():
		return "", protocol.Refuse(protocol.CodeNotAllowed, "channels are put away and deleted at nodes of the inside", "")
	case json.Unmarshal(f.Value, &v) != nil || v.AgentID == "" && v.ChannelKey == "" ||
		v.AgentID != "" && v.ChannelKey != "" && protocol.FoldChannel(v.AgentID) != protocol.FoldChannel(v.ChannelKey):
		return "", protocol.Refuse(protocol.CodeWrongType, "%s needs value.agentId or value.channelKey, a channel's name", "", string(name))
	}
	key := v.ChannelKey
	if key == "" {
		key = v.AgentID
	}
	if len(key) > protocol.ChannelBytesMax {
		return "", protocol.Refuse(protocol.CodeWrongType, "a channel's name has at most %d bytes", "", protocol.ChannelBytesMax)
	}
	return key, s.n.full()
}

// stepOnChannel writes a step, unless nothing would change; found is what the channel has that is not deleted, newest first.
// That something is deleted boards hear in any case: one of them may still show it.
func (l *loop) stepOnChannel(step protocol.ChannelStep, key string, found []journal.Message) {
	c := l.board.Channels().Of(key)
	body := protocol.ChannelBody{Step: step, Channel: key}
	switch step {
	case protocol.ChannelArchive:
		fresh := slices.ContainsFunc(found, func(m journal.Message) bool {
			_, away := c.Hides(m.At, m.Log, m.Seq)
			return !away
		})
		if !fresh {
			return
		}
		body.Count, body.Last = len(found), found[0].Wall
	case protocol.ChannelDelete, protocol.ChannelClose:
		if len(found) == 0 && c != nil && c.Deleted != nil {
			l.toldDeleted(step, key)
			return
		}
	}
	l.core.Step(l.now, hub.Author{Scope: protocol.ScopeInside, Kind: protocol.KindChannel, Body: protocol.EncodeBody(body)})
}

// bringBack shows boards again what was put away.
func (l *loop) bringBack(key string) {
	if c := l.board.Channels().Of(key); c.Archived() && l.n.full() == nil {
		body := protocol.ChannelBody{Step: protocol.ChannelRestore, Channel: c.Key}
		l.core.Step(l.now, hub.Author{Scope: protocol.ScopeInside, Kind: protocol.KindChannel, Body: protocol.EncodeBody(body)})
	}
}

// channelStepped follows a record on a channel: of this node or another one.
func (l *loop) channelStepped(r *protocol.Record) {
	l.showChannels()
	body, err := protocol.DecodeBody[protocol.ChannelBody](r)
	if err != nil || r.Log.Scope != protocol.ScopeInside || len(body.Channel) > protocol.ChannelBytesMax {
		return
	}
	if body.Step == protocol.ChannelDelete || body.Step == protocol.ChannelClose {
		l.toldDeleted(body.Step, body.Channel)
	}
}

// toldDeleted tells all boards and open pages here that a channel's words are gone, in the words of whoever asked.
func (l *loop) toldDeleted(step protocol.ChannelStep, key string) {
	l.n.pages.publish(api.Event{Type: "channel", Channel: key})
	name := protocol.Intent("DeleteChannelHistory")
	if step == protocol.ChannelClose {
		name = "CloseChannel"
	}
	l.toBoards(l.enc.Custom(l.now, asterism.Custom{Name: name, Value: protocol.EncodeBody(map[string]string{"agentId": key, "channelKey": key})}), 0)
}

// showChannels lets readers outside the loop know what is put away or deleted now.
func (l *loop) showChannels() {
	all := l.board.Channels()
	l.n.channels.Store(&all)
}

// hidden is what is put away or deleted. Two equal pointers say that nothing changed between.
func (n *Node) hidden() *board.Channels {
	if c := n.channels.Load(); c != nil {
		return c
	}
	return &board.Channels{}
}

// deleted says whether a message stands in what a person deleted: it is shown to nobody.
func (n *Node) deleted(m *journal.Message) bool {
	gone, _ := n.hides(m)
	return gone
}

func (n *Node) hides(m *journal.Message) (deleted, archived bool) {
	all := *n.hidden()
	if len(all) == 0 {
		return false, false
	}
	return all.Of(m.Envelope.ChannelKey()).Hides(m.At, m.Log, m.Seq)
}

// messages is what the journal has for q and nobody deleted: fewer than q.Limit only when there are no more.
func (n *Node) messages(q journal.Query) ([]journal.Message, error) {
	return n.leaving(q, n.deleted)
}

// words are messages, each word once however many records it stands in.
func (n *Node) words(q journal.Query) ([]journal.Message, error) {
	return n.leaving(q, func(m *journal.Message) bool { return n.deleted(m) || n.again(m) })
}

func (n *Node) leaving(q journal.Query, out func(*journal.Message) bool) ([]journal.Message, error) {
	return n.without(q.Limit, out, func(last uint64) ([]journal.Message, error) {
		if last > 0 && q.Newest {
			q.Before = last
		} else if last > 0 {
			q.After = last
		}
		return n.store.Messages(q)
	})
}

// without reads page after page until limit messages are left when what is gone is taken out.
func (n *Node) without(limit int, gone func(*journal.Message) bool, read func(last uint64) ([]journal.Message, error)) (out []journal.Message, err error) {
	if limit <= 0 {
		limit = 100
	}
	for last := uint64(0); ; {
		page, err := read(last)
		if err != nil {
			return nil, err
		}
		whole := len(page)
		if whole > 0 {
			last = page[whole-1].Pos
		}
		out = append(out, slices.DeleteFunc(page, func(m journal.Message) bool { return gone(&m) })...)
		if whole == 0 || whole < limit || len(out) >= limit {
			return out[:min(len(out), limit)], nil
		}
	}
}

// search is what the journal finds and nobody deleted.
func (n *Node) search(words string, before uint64, limit int) ([]journal.Message, error) {
	return n.without(limit, n.deleted, func(last uint64) ([]journal.Message, error) {
		if last > 0 {
			before = last
		}
		return n.store.Search(words, before, limit)
	})
}

// undeleted is the message that somebody means by an id, unless it is deleted.
func (n *Node) undeleted(id string) (journal.Message, error) {
	m, err := n.resolve(id)
	if err == nil && n.deleted(&m) {
		return journal.Message{}, protocol.Refuse(protocol.CodeUnknownID, "the history that %q stood in was deleted", "", protocol.CutText(id, 80))
	}
	return m, err
}

// channelMessages reads the newest messages of a channel that nobody deleted, newest first, at most limit of them.
func (n *Node) channelMessages(key string, limit int) ([]journal.Message, error) {
	q := journal.Query{But: noTalk, Limit: 1000, Newest: true}
	if key != protocol.NoChannel && !strings.HasPrefix(key, protocol.RoomChannel) {
		q.Agent = protocol.AgentID(key)
	}
	var out []journal.Message
	for range channelPages {
		page, err := n.store.Messages(q)
		if err != nil {
			return nil, err
		}
		for i := range page {
			m := &page[i]
			if protocol.FoldChannel(m.Envelope.ChannelKey()) == protocol.FoldChannel(key) && !n.deleted(m) {
				out = append(out, *m)
			}
		}
		if len(out) >= limit || len(page) < q.Limit {
			break
		}
		q.Before = page[len(page)-1].Pos
	}
	return out[:min(len(out), limit)], nil
}

// archivedStubs names what is put away, for boards: its content comes when a board asks for it.
func (l *loop) archivedStubs() (out []asterism.Stub) {
	for _, c := range l.board.Channels().Archived() {
		stub := asterism.Stub{Key: c.Key, Count: c.Count, LastTs: c.Last}
		if k, ok := l.core.Agent(protocol.AgentID(c.Key)); ok {
			stub.Role = k.Role
		}
		out = append(out, stub)
	}
	return out
}
