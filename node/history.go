package node

import (
	"encoding/json"
	"slices"

	"github.com/aster-mesh/aster/node/journal"
	"github.com/aster-mesh/aster/protocol"
	"github.com/aster-mesh/aster/protocol/asterism"
)

// historyMessages bounds what a new connection is shown unasked: a page, not everything (fault B50).
const historyMessages = 4 * asterism.HistoryPerChannel

// historyBytes bounds what is read for it: twice what fits into the frame, so that a channel of small messages still stands
// beside one of large ones. historyFirst messages are read first; what they weigh says how many more to read at once.
const (
	historyBytes = 2 * protocol.HubFrameBytesMax
	historyFirst = 20
)

// noTalk is what agents declare: the newest of each stands beside their talk, and crowds none of it out (fault B20).
var noTalk = func() (out []protocol.Intent) {
	for _, row := range protocol.Catalogue() {
		if row.Class == protocol.ClassDeclaration {
			out = append(out, row.Name)
		}
	}
	return out
}()

// history is what a new socket sees of the past: a board the last messages of all, an agent those it said or got.
func (n *Node) history(agent protocol.AgentID) asterism.History {
	h, _ := n.historyOf(agent)
	return h
}

// historyOf is history; whole says that nothing was left out for its length.
func (n *Node) historyOf(agent protocol.AgentID) (_ asterism.History, whole bool) {
	found, whole, err := n.newest(agent)
	if err != nil {
		n.log.Error("history not readable", "err", err)
		return asterism.History{}, false
	}
	if agent == "" {
		found = slices.DeleteFunc(found, func(m journal.Message) bool {
			_, away := n.hides(&m)
			return away
		})
	}
	return asterism.History{Channels: channels(found)}, whole
}

// newest reads the last messages of an agent, or of all, newest first, up to historyMessages and about historyBytes: whoever
// joins must not cost the node many times what it is shown. whole says that those are all.
func (n *Node) newest(agent protocol.AgentID) (found []journal.Message, whole bool, err error) {
	q := journal.Query{Agent: agent, But: noTalk, Limit: historyFirst, Newest: true}
	for bytes := 0; ; {
		page, err := n.messages(q)
		if err != nil {
			return nil, false, err
		}
		for i := range page {
			bytes += len(page[i].Envelope.Value) + 512
		}
		found = append(found, page...)
		if len(page) < q.Limit || len(found) >= historyMessages || bytes >= historyBytes {
			return found, len(page) < q.Limit, nil
		}
		q.Before = page[len(page)-1].Pos
		q.Limit = min(max((historyBytes-bytes)*len(found)/bytes, historyFirst), historyMessages-len(found))
	}
}

// channels groups messages by their sender, oldest first (wire 5.4: an agent's channel is named after it; a person's
// words stand in the channel of whom they were said to).
func channels(newest []journal.Message) []asterism.Channel {
	at := map[string]int{}
	var out []asterism.Channel
	for i := len(newest) - 1; i >= 0; i-- {
		m := &newest[i]
		key := m.Envelope.ChannelKey()
		c, ok := at[key]
		if !ok {
			c = len(out)
			at[key] = c
			out = append(out, asterism.Channel{Key: key})
		}
		out[c].Events = append(out[c].Events, asterism.Event{Env: &m.Envelope, At: m.Wall})
		out[c].Total++
	}
	return out
}

// channelHistory answers RequestChannelHistory, to boards and agents alike (fault KC20).
func (s *socket) channelHistory(f *asterism.Frame, sender asterism.Sender) {
	var v struct {
		ChannelKey string `json:"channelKey"`
		BeforeTs   int64  `json:"beforeTs"`
		Limit      int    `json:"limit"`
	}
	if json.Unmarshal(f.Value, &v) != nil || v.ChannelKey == "" {
		s.refuse(f, protocol.Refuse(protocol.CodeWrongType, "RequestChannelHistory needs value.channelKey, a channel's name", ""))
		return
	}
	if v.Limit < 1 || v.Limit > 1000 {
		v.Limit = asterism.HistoryPerChannel
	}
	if no := s.maySeeChannel(v.ChannelKey, sender); no != nil {
		s.refuse(f, no)
		return
	}
	as := s.n.hidden()
	page, err := s.channelPage(v.ChannelKey, v.BeforeTs, v.Limit, sender)
	if err != nil {
		s.unable(f, err, protocol.CodeBadFrame, "the channel could not be read")
		return
	}
	l := s.n.loop
	_ = l.post(s.n.ctx, func() {
		if s.n.hidden() != as { // somebody deleted meanwhile
			if page, err = s.channelPage(v.ChannelKey, v.BeforeTs, v.Limit, sender); err != nil {
				return
			}
		}
		s.conn.Send(l.enc.ChannelHistory(l.now, page))
		if sender.ID == "" && !page.Before { // whoever opens what was put away has it back, and so have all boards
			l.bringBack(v.ChannelKey)
		}
	})
}

// channelPage reads what a client may see of a channel.
func (s *socket) channelPage(key string, before int64, limit int, sender asterism.Sender) (asterism.ChannelPage, error) {
	page := asterism.ChannelPage{Key: key, Before: before > 0}
	found, err := s.n.channelMessages(key, 1000)
	if err != nil {
		return page, err
	}
	if s.outside {
		found = slices.DeleteFunc(found, func(m journal.Message) bool { return !seesMessage(sender.ID, &m) })
	}
	for i := len(found) - 1; i >= 0; i-- {
		if before == 0 || found[i].Wall < before {
			page.Events = append(page.Events, asterism.Event{Env: &found[i].Envelope, At: found[i].Wall})
		}
	}
	if rest := len(page.Events) - limit; rest > 0 {
		page.Events, page.Earlier = page.Events[rest:], rest
	}
	return page, nil
}
