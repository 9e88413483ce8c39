package board

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
	"strconv"

	"github.com/aster-mesh/aster/protocol"
)

// AgendaTabs are the lists of a state document that people look at and order (wire 7.7).
var AgendaTabs = []string{"current", "planned", "done", "decisions"}

// Word is something that a person said about the state document: a message OperatorFeedback.
type Word struct {
	At        protocol.HLC
	ID        protocol.MsgID
	Value     json.RawMessage
	Persisted int64 // when main's inbox had it, ms by its home's clock; 0: not yet
	Processed int64 // when main said that it has dealt with it; 0: not yet
}

// Entry is an item of one of the document's lists.
type Entry struct {
	Key   string // what people and main call it: its id, else its ref, else its title
	Index int    // in the document's own list
	Fixed bool   // nothing names it alone, so nobody can say where it belongs
}

// tookLong is how long after a word lay in main's inbox a document of main counts as said in its knowledge, for a main
// that never says what it has dealt with.
const tookLong = 10 * 60 * 1000

// Took says whether main knew the word when it published the document: from then on the document tells, not the word.
// Nodes with the same records say the same, in whatever order they came.
func (d *Document) Took(w Word) bool {
	if d == nil || d.At.at < w.At {
		return false
	}
	return w.Processed > 0 && d.Wall > w.Processed || w.Persisted > 0 && d.Wall >= w.Persisted+tookLong
}

// Arrange gives each list of the document in the order in which people see it: main's, with what people asked for since
// on top. Each list holds each item of the document once. words may come in any order.
func (d *Document) Arrange(words []Word) map[string][]Entry {
	out := map[string][]Entry{}
	if d == nil {
		return out
	}
	var doc map[string]json.RawMessage
	if json.Unmarshal([]byte(d.Text), &doc) != nil {
		return out
	}
	for _, tab := range AgendaTabs {
		out[tab] = entries(doc[tab], tab == "planned" || tab == "decisions")
	}
	words = slices.Clone(words)
	slices.SortFunc(words, func(a, b Word) int { return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.ID, b.ID)) })
	for _, w := range words {
		if m, ok := moveOf(w.Value); ok && !d.Took(w) && out[m.Tab] != nil {
			out[m.Tab] = m.apply(out[m.Tab])
		}
	}
	return out
}

// entries are the objects and lines of one list; where main gave priorities, the smallest comes first.
func entries(list json.RawMessage, byPriority bool) []Entry {
	var items []json.RawMessage
	if json.Unmarshal(list, &items) != nil {
		return nil
	}
	out := make([]Entry, 0, len(items))
	priority := make([]float64, len(items))
	named := map[string]int{}
	for i, raw := range items {
		key, prio := nameOf(raw)
		if key == "" && !bytes.HasPrefix(bytes.TrimSpace(raw), []byte("{")) {
			continue // a number or null is no item
		}
		priority[i] = prio
		named[key]++
		out = append(out, Entry{key, i, key == ""})
	}
	for i, e := range out {
		if named[e.Key] > 1 || e.Fixed {
			out[i].Key, out[i].Fixed = e.Key+"#"+strconv.Itoa(e.Index), true
		}
	}
	if byPriority {
		slices.SortStableFunc(out, func(a, b Entry) int { return cmp.Compare(priority[a.Index], priority[b.Index]) })
	}
	return out
}

const noPriority = 1e300

func nameOf(raw json.RawMessage) (key string, priority float64) {
	var item struct{ ID, Ref, Title, Question, Priority json.RawMessage }
	if json.Unmarshal(raw, &item) != nil {
		return TextOf(raw), noPriority
	}
	priority = noPriority
	if n, err := strconv.ParseFloat(TextOf(item.Priority), 64); err == nil && n == n {
		priority = n
	}
	return cmp.Or(TextOf(item.ID), TextOf(item.Ref), TextOf(item.Title), TextOf(item.Question)), priority
}

// TextOf reads a string, or a number as it is written; anything else is none.
func TextOf(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	var n json.Number
	if json.Unmarshal(raw, &n) == nil {
		return n.String()
	}
	return ""
}

// move is a wish for another order: one item to stand before another, or, of those who only know the contract, all of them.
type move struct {
	Kind  string
	Tab   string
	Order []json.RawMessage
	Moved *struct{ ID, Before string } // Before empty: to the end
}

func moveOf(value json.RawMessage) (m move, ok bool) {
	return m, json.Unmarshal(value, &m) == nil && m.Kind == "reorder"
}

func (m *move) apply(list []Entry) []Entry {
	at := func(key string) int {
		return slices.IndexFunc(list, func(e Entry) bool { return e.Key == key && !e.Fixed })
	}
	if m.Moved == nil {
		return m.permute(list)
	}
	from := at(m.Moved.ID)
	if from < 0 {
		return list
	}
	moved := list[from]
	list = slices.Delete(slices.Clone(list), from, from+1)
	to := len(list)
	if m.Moved.Before != "" {
		if to = at(m.Moved.Before); to < 0 {
			to = m.successor(at, len(list))
		}
	}
	return slices.Insert(list, to, moved)
}

// successor is where the moved item belongs when the one that it was put before is gone: before the next that is there.
func (m *move) successor(at func(string) int, end int) int {
	past := false
	for _, raw := range m.Order {
		key := TextOf(raw)
		if i := at(key); past && i >= 0 {
			return i
		}
		past = past || key == m.Moved.ID
	}
	return end
}

// permute puts the items that are named into the places that they have together; others stay where they are.
func (m *move) permute(list []Entry) []Entry {
	rank := map[string]int{}
	for i, raw := range m.Order {
		if key := TextOf(raw); key != "" {
			if _, twice := rank[key]; !twice {
				rank[key] = i
			}
		}
	}
	var places []int
	var named []Entry
	for i, e := range list {
		if _, ok := rank[e.Key]; ok && !e.Fixed {
			places, named = append(places, i), append(named, e)
		}
	}
	slices.SortStableFunc(named, func(a, b Entry) int { return cmp.Compare(rank[a.Key], rank[b.Key]) })
	out := slices.Clone(list)
	for i, place := range places {
		out[place] = named[i]
	}
	return out
}
