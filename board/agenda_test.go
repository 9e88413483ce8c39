package board

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/aster-mesh/aster/protocol"
)

func agendaOf(text string) *Document { return &Document{At: pos{at: 100}, Wall: 100, Text: text} }

func keysOf(list []Entry) (out []string) {
	for _, e := range list {
		out = append(out, e.Key)
	}
	return out
}

func moves(at protocol.HLC, id, key, before string, order ...string) Word {
	return Word{At: at, ID: protocol.MsgID(id), Value: mustJSON(map[string]any{"kind": "reorder", "tab": "planned", "order": order, "moved": map[string]string{"id": key, "before": before}})}
}

func mustJSON(v any) json.RawMessage {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return raw
}

const fourPlanned = `{"planned":[{"id":"a"},{"id":"b"},{"id":"c"},{"id":"d"}]}`

// TestTwoWhoMoveAtOnceBothMove: each wish holds, whoever's came first, and all nodes show the same.
func TestTwoWhoMoveAtOnceBothMove(t *testing.T) {
	d := agendaOf(fourPlanned)
	mine, theirs := moves(200, "m1", "d", "a", "d", "a", "b", "c"), moves(201, "m2", "a", "", "b", "c", "d", "a")
	for _, words := range [][]Word{{mine, theirs}, {theirs, mine}} {
		if got := keysOf(d.Arrange(words)["planned"]); !slices.Equal(got, []string{"d", "b", "c", "a"}) {
			t.Errorf("planned: %v", got)
		}
	}
	same := moves(201, "m3", "d", "", "a", "b", "c", "d")
	if got := keysOf(d.Arrange([]Word{same, mine})["planned"]); !slices.Equal(got, []string{"a", "b", "c", "d"}) {
		t.Errorf("of two wishes for one item the later holds: %v", got)
	}
}

// TestNoOrderLosesAnItem: whatever is wished for in whatever order, each item of the document is there once, and nodes that
// know the same show the same.
func TestNoOrderLosesAnItem(t *testing.T) {
	dice := rand.New(rand.NewPCG(1, 2))
	names := []string{"a", "b", "c", "d", "e", "gone", "", "7"}
	name := func() string { return names[dice.IntN(len(names))] }
	for round := range 500 {
		var items []any
		for range dice.IntN(8) {
			items = append(items, []any{map[string]any{"id": name(), "priority": dice.IntN(3)}, name(), 7, nil, map[string]any{"title": name()}, map[string]any{"id": 7}}[dice.IntN(6)])
		}
		d := agendaOf(string(mustJSON(map[string]any{"planned": items, "done": 4})))
		var words []Word
		for i := range dice.IntN(6) {
			w := moves(protocol.HLC(200+dice.IntN(3)), fmt.Sprint(i), name(), name(), name(), name(), name())
			if dice.IntN(2) == 0 {
				w.Value = mustJSON(map[string]any{"kind": "reorder", "tab": "planned", "order": []any{name(), 7, name(), nil, name()}})
			}
			words = append(words, w)
		}
		plain, got := d.Arrange(nil)["planned"], d.Arrange(words)["planned"]
		dice.Shuffle(len(words), func(i, j int) { words[i], words[j] = words[j], words[i] })
		if again := d.Arrange(words)["planned"]; !slices.Equal(got, again) {
			t.Fatalf("round %d: two nodes show %v and %v", round, got, again)
		}
		byIndex := func(a, b Entry) int { return a.Index - b.Index }
		slices.SortFunc(plain, byIndex)
		slices.SortFunc(got, byIndex)
		if !slices.Equal(plain, got) {
			t.Fatalf("round %d: of %v are left %v", round, plain, got)
		}
		seen := map[string]bool{}
		for _, e := range got {
			if seen[e.Key] {
				t.Fatalf("round %d: %q twice", round, e.Key)
			}
			seen[e.Key] = true
		}
	}
}

// TestAWishEndsWithTheDocumentThatKnewIt: not with one that main wrote before it had read the word.
func TestAWishEndsWithTheDocumentThatKnewIt(t *testing.T) {
	w := moves(200, "m", "d", "a")
	minutes := int64(60_000)
	for _, c := range []struct {
		name                 string
		at                   protocol.HLC
		wall                 int64
		persisted, processed int64
		took                 bool
	}{
		{"before it was said", 100, 100, 150, 160, false},
		{"main has it and has not looked", 300, 300, 250, 0, false},
		{"written before main dealt with it", 300, 300, 250, 400, false},
		{"written after main dealt with it", 500, 500, 250, 400, true},
		{"a main that never says so, long after", 500, 250 + 10*minutes, 250, 0, true},
		{"never came", 500, 100 * minutes, 0, 0, false},
	} {
		d := &Document{At: pos{at: c.at}, Wall: c.wall, Text: fourPlanned}
		w.Persisted, w.Processed = c.persisted, c.processed
		if d.Took(w) != c.took {
			t.Errorf("%s: took %v", c.name, !c.took)
		}
		if first := d.Arrange([]Word{w})["planned"][0].Key; (first == "a") != c.took {
			t.Errorf("%s: %s is first", c.name, first)
		}
	}
	var none *Document
	if none.Took(w) || len(none.Arrange([]Word{w})) != 0 {
		t.Error("there is no document")
	}
}

// TestTheContractsOrderIsUnderstood: of a client that names all items and no move; what it does not name stays.
func TestTheContractsOrderIsUnderstood(t *testing.T) {
	d := agendaOf(`{"planned":[{"id":"a","priority":2},{"ref":"b","priority":1},"c",{"title":"d"}],"done":[{}]}`)
	if got := keysOf(d.Arrange(nil)["planned"]); !slices.Equal(got, []string{"b", "a", "c", "d"}) {
		t.Errorf("main's order: %v", got)
	}
	w := Word{At: 200, Value: json.RawMessage(`{"kind":"reorder","tab":"planned","order":["d","x","b"]}`)}
	if got := keysOf(d.Arrange([]Word{w})["planned"]); !slices.Equal(got, []string{"d", "a", "c", "b"}) {
		t.Errorf("after it: %v", got)
	}
	if e := d.Arrange(nil)["done"]; len(e) != 1 || !e[0].Fixed {
		t.Errorf("an item without a name: %+v", e)
	}
	gone := moves(200, "m", "d", "gone", "d", "gone", "b")
	if got := keysOf(d.Arrange([]Word{gone})["planned"]); !slices.Equal(got, []string{"d", "b", "a", "c"}) {
		t.Errorf("put before what is gone: %v", got)
	}
}
